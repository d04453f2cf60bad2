"""Figures that several notebooks draw, grey pictures in figures, and the study's style.

The style is `study.mplstyle` beside this file: sized for a journal's column, in Okabe and Ito's palette,
which the colour-blind can tell apart. Methods differ in marker or line as well, for grey prints.
"""

import io
from collections.abc import Iterable, Sequence
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator
from PIL import Image

from lib.data.images import reduced
from lib.statistics.intervals import Measured
from lib.study.claims import Methods
from lib.study.report import frames
from lib.study.report.changes import levels
from lib.study.report.frames import LEVELS, PROTOCOLS, TASKS

DOUBLE_WIDTH = 7.2
# Light, middle and dark, so that grey prints keep the order.
LEVEL_COLOURS = {"easy": "#56B4E9", "hard": "#D55E00", "tough": "#000000"}
# Of a task of HPatches.
PARTS = ("intra", "inter", "viewpoint", "illumination", "all")
# Light enough to be told apart on grey photographs.
ON_GREY = ("#E69F00", "#56B4E9", "#F0E442", "#CC79A7", "#009E73", "#D55E00")
# Pixels an inch of photographs, as a notebook shows them: with more, files would be large for nothing.
DENSITY = 100
# Between the patches of a mosaic, px.
GAP = 4


def use_style() -> None:
    """Draw all figures in the study's style, whatever the user's matplotlibrc says."""
    mpl.rcdefaults()
    plt.style.use(Path(__file__).with_name("study.mplstyle"))


def png(figure: Figure) -> bytes:
    """A figure's PNG at 200 dpi. It holds no time and no version: one figure, the same bytes.

    128 colours of the figure's own are enough for lines and grey patches, and halve what is committed.
    """
    drawn = io.BytesIO()
    content = io.BytesIO()
    figure.savefig(drawn, format="png", dpi=200)
    Image.open(drawn).convert("RGB").quantize(128).save(content, format="png", optimize=True)
    return content.getvalue()


def intervals(
    axes: Axes, frame: pd.DataFrame, value: str, labels: Sequence[str], **look: object
) -> None:
    """Draw a row of a frame as a dot with its interval, the first on top.

    Args:
        axes: to draw on; row n stands at n.
        frame: with columns "from" and "to"; an interval without ends is left out.
        value: the column of the dots.
        labels: of the rows.
        look: for `Axes.errorbar`.
    """
    rows = range(len(frame))
    lengths = frame[["from", "to"]].astype(float).sub(frame[value], axis=0).abs().where(np.isfinite).T
    axes.errorbar(frame[value], rows, xerr=lengths, **{"fmt": "o", "capsize": 2} | look)
    axes.set(yticks=rows, yticklabels=labels, ylim=(len(frame) - 0.4, -0.6))
    axes.grid(linestyle=":")


def _seeds(axes: Axes, methods: Iterable[Measured]) -> None:
    """Draw the mean of each seed a little below the rows of `intervals`."""
    for row, method in enumerate(methods):
        means = np.atleast_2d(method.values).mean(axis=1)
        axes.plot(means, np.full(len(means), row + 0.25), "o", color="0.6", ms=3, mew=0)


def changes_figure(methods: Methods, changed: pd.DataFrame, note: str) -> Figure:
    """Each seed of each method as a dot with mean and interval, and beside them what changes.

    Args:
        methods: by name, the first on top; FPR95 in percent.
        changed: of `lib.study.report.changes.changes`. Where it is named by methods, a change stands in
            its method's row; else changes have rows of their own.
        note: profile and data; stands above.
    """
    own_rows = not set(changed.index) <= set(methods)
    changed = changed if own_rows else changed.reindex(list(methods))
    size = (DOUBLE_WIDTH, 0.9 + 0.27 * max(len(methods), len(changed)))
    figure, (left, right) = plt.subplots(1, 2, figsize=size)
    intervals(left, levels(methods), "mean", list(methods), fmt="D", ms=4)
    _seeds(left, methods.values())
    intervals(right, changed, "change", changed.index, fmt="D", ms=4, color="C1")
    left.set_xlabel("FPR95 (%)\nseeds, mean and 95% interval")
    right.axvline(0, color="0.5", lw=1)
    right.tick_params(labelleft=own_rows)
    what = "change" if own_rows else "change from the row above"
    right.set_xlabel(f"{what} (points)\n95% interval; left is better")
    figure.suptitle(note, fontsize=8, color="0.5", x=0.01, ha="left")
    return figure


def options_figure(changed: pd.DataFrame) -> Figure:
    """What each option changes in FPR95, a row an option and a marker a recipe.

    Args:
        changed: rows of `lib.study.report.changes.effects`.
    """
    figure, axes = plt.subplots(figsize=(5.8, 0.9 + 0.24 * len(changed)))
    axes.axvline(0, color="0.5", lw=1)
    for marker, recipe in zip("osD^", changed["recipe"].unique(), strict=False):
        own = changed.where(changed["recipe"] == recipe)
        intervals(axes, own, "change", changed["option"], fmt=marker, label=recipe)
    axes.set_xlabel("change of mean FPR95 (points; right is worse)")
    figure.legend(loc="outside lower center", ncols=2)
    return figure


def means_figure(common: pd.DataFrame, methods: Methods, where: str) -> Figure:
    """Mean FPR95 of each method, the paper's and, with seeds and intervals, ours.

    Args:
        common: of `lib.study.report.changes.common_rows`.
        methods: FPR95 by key.
        where: profile and data of ours.
    """
    figure, panels = plt.subplots(1, 2, figsize=(DOUBLE_WIDTH, 0.9 + 0.22 * len(common)), sharey=True)
    keys, labels = zip(*common.index, strict=True)
    panels[0].plot(common["paper"], range(len(common)), "o")
    intervals(panels[1], common, "ours", labels, capsize=0)
    _seeds(panels[1], [methods[key] for key in keys])
    for axes, title in zip(panels, ("paper, UBC PhotoTour", f"ours, {where}"), strict=True):
        axes.set(title=title, xscale="log", xlabel="mean FPR95 (%), log scale")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.minorticks_off()
        axes.grid(linestyle=":")
    return figure


def tasks_figure(runs: pd.DataFrame, note: str) -> Figure:
    """HPatches' three tasks (Balntas et al., CVPR 2017), a panel each, a row a method; a bar is the
    task's number.

    Markers are its parts, coloured by level. All are means over seeds, whose spread is in
    `lib.study.report.frames.by_task`.

    Args:
        runs: of `lib.study.report.frames.hpatches_numbers`; its first method is on top.
        note: profile, data and seeds; stands above.
    """
    # It imports `scipy.stats`, half a second that no other figure here needs.
    import seaborn as sns

    mean = frames.means(runs).droplevel("key")
    parts = mean.melt(var_name="key", ignore_index=False).reset_index()
    pattern = rf"^(?P<task>\w+)\.(?P<level>{'|'.join(LEVELS)})\.(?P<part>{'|'.join(PARTS)})(?:\.ap)?$"
    parts = parts.join(parts["key"].str.extract(pattern)).dropna()
    look = {"hue": "level", "palette": LEVEL_COLOURS, "style": "part", "zorder": 3}
    look["style_order"] = [part for part in PARTS if part in set(parts["part"])]
    size = (DOUBLE_WIDTH, 1.15 + 0.27 * len(mean))
    figure, panels = plt.subplots(1, len(TASKS), figsize=size, sharey=True)
    for axes, task in zip(panels, TASKS, strict=True):
        axes.barh(mean.index, mean[task], height=0.74, color="#E4E4E4")
        sns.scatterplot(parts[parts["task"] == task], x="value", y="label", ax=axes, s=24, **look)
        for row, value in enumerate(mean[task]):
            axes.text(102, row, f"{value:.1f}" if np.isfinite(value) else "", va="center")
        axes.set(title=task, ylabel="", xlim=(0, 100), ylim=(len(mean) - 0.4, -0.6))
        axes.set_xlabel(f"{PROTOCOLS[task].partition(': ')[2]} (%)")
        axes.get_legend().remove()
    spacing = {"ncols": 10, "handletextpad": 0.2, "columnspacing": 0.9}
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", **spacing)
    figure.suptitle(note, fontsize=8, color="0.5", x=0.01, ha="left")
    return figure


def show(
    axes: Axes, grey: np.ndarray, width: float | None = None, first: tuple[int, int] = (0, 0)
) -> None:
    """Draw a grey picture, without axes around it; they get its pixels' coordinates, and keep them.

    Args:
        axes: to draw on.
        grey: (H, W), 0 to 255.
        width: inches that it is drawn in; it is reduced to `DENSITY`. None draws it as it is.
        first: x and y of its first pixel, where it is a part of a larger one.
    """
    x, y = first
    high, wide = grey.shape
    edges = (x - 0.5, x + wide - 0.5, y + high - 0.5, y - 0.5)
    # As long as it is where it has the width that it is drawn in.
    seen = grey if width is None else reduced(grey, round(DENSITY * width * max(high, wide) / wide))
    axes.imshow(seen, cmap="gray", vmin=0, vmax=255, interpolation="nearest", extent=edges)
    axes.autoscale(False)
    axes.set_axis_off()


def outline(axes: Axes, region: np.ndarray, colour: str) -> None:
    """Draw what an affine map (2, 3) makes of the unit circle, and of its hand along x.

    A dark rim keeps light lines visible on light ground. Smooth edges would double the file's size.
    """
    angle = np.linspace(0, 2 * np.pi, 97)
    circle = region @ np.stack([np.cos(angle), np.sin(angle), np.ones_like(angle)])
    # The circle starts where the hand ends.
    line = np.column_stack([region[:, 2], circle])
    for shade, thickness in (("black", 2.2), (colour, 1.2)):
        axes.plot(*line, color=shade, lw=thickness, antialiased=False)


def mosaic(axes: Axes, patches: np.ndarray, labels: Sequence[object]) -> np.ndarray:
    """Draw patches (rows, columns, s, s) on white, each row with a label before it.

    Args:
        axes: to draw on, in pixels of the mosaic.
        patches: grey values.
        labels: of the rows.

    Returns:
        (columns,) left edges of the columns, px.
    """
    rows, columns, side = patches.shape[:3]
    margins = [(0, 0), (0, 0), (0, GAP), (0, GAP)]
    canvas = np.pad(patches, margins, constant_values=255).swapaxes(1, 2)
    show(axes, canvas.reshape(rows * (side + GAP), -1)[:-GAP, :-GAP])
    axes.set_axis_on()
    axes.set_yticks(np.arange(rows) * (side + GAP) + side / 2, [str(label) for label in labels])
    axes.set_xticks([])
    axes.tick_params(length=0, labelsize=7, labelcolor="0.4", pad=2)
    axes.spines[:].set_visible(False)
    return np.arange(columns) * (side + GAP)
