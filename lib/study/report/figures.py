"""Figures that several notebooks draw, grey pictures in figures, and the study's style.

The style is `study.mplstyle` next to this file. It is sized for a journal's column and uses Okabe and
Ito's palette, which colour-blind readers can tell apart. Methods also differ in marker or line, for grey
prints.
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
# Parts of an HPatches task.
PARTS = ("intra", "inter", "viewpoint", "illumination", "all")
# Light enough to be told apart on grey photographs.
ON_GREY = ("#E69F00", "#56B4E9", "#F0E442", "#CC79A7", "#009E73", "#D55E00")
# Pixels per inch of photographs, as a notebook shows them; more would only make files larger.
DENSITY = 100
# Gap between the patches of a mosaic, px.
GAP = 4


def use_style() -> None:
    """Draw all figures in the study's style, whatever the user's matplotlibrc says."""
    mpl.rcdefaults()
    plt.style.use(Path(__file__).with_name("study.mplstyle"))


def png(figure: Figure) -> bytes:
    """Return a figure as PNG at 200 dpi, without time or version, so that its bytes are reproducible.

    A palette of 128 colours is enough for lines and grey patches, and halves the size of committed
    files.
    """
    drawn = io.BytesIO()
    content = io.BytesIO()
    # Only what is returned is compressed.
    figure.savefig(drawn, dpi=200, pil_kwargs={"compress_level": 0})
    Image.open(drawn).convert("RGB").quantize(128).save(content, "png", optimize=True)
    return content.getvalue()


def intervals(
    axes: Axes, frame: pd.DataFrame, value: str, labels: Sequence[str], **look: object
) -> None:
    """Draw each row of a frame as a dot with its interval, the first row on top.

    Args:
        axes: to draw on; row n is at y = n.
        frame: with columns "from" and "to"; an interval without ends is left out.
        value: the column of the dots.
        labels: labels of the rows.
        look: options of `Axes.errorbar`.
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
    """Draw each method's seeds with their mean and interval, and next to them the changes.

    Args:
        methods: name -> FPR95 in percent, the first on top.
        changed: from `lib.study.report.changes.changes`. If its rows are named by methods, a change is
            drawn in its method's row; else changes have rows of their own.
        note: profile and data, shown above.
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
    """Draw how much each option changes FPR95, with a row per option and a marker per recipe.

    Args:
        changed: rows from `lib.study.report.changes.effects`.
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
    """Draw the mean FPR95 of each method: the paper's, and ours with seeds and intervals.

    Args:
        common: from `lib.study.report.changes.common_rows`.
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
    """Draw HPatches' three tasks (Balntas et al., CVPR 2017), one panel per task, one row per method.

    A bar is the task's number. Markers are its parts, coloured by level. All are means over seeds, whose
    spread is in `lib.study.report.frames.by_task`.

    Args:
        runs: from `lib.study.report.frames.hpatches_numbers`; its first method is on top.
        note: profile, data and seeds, shown above.
    """
    # Imported here because seaborn loads `scipy.stats`, which takes half a second.
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
    """Draw a grey picture without frame or ticks; the axes take its pixel coordinates and keep them.

    Args:
        axes: to draw on.
        grey: (H, W), 0 to 255.
        width: width of the drawing in inches, to which the picture is reduced at `DENSITY`; None keeps
            its size.
        first: x and y of its first pixel, if it is part of a larger picture.
    """
    x, y = first
    high, wide = grey.shape
    edges = (x - 0.5, x + wide - 0.5, y + high - 0.5, y - 0.5)
    # The picture's longer side, in pixels, when it is drawn at this width.
    seen = grey if width is None else reduced(grey, round(DENSITY * width * max(high, wide) / wide))
    axes.imshow(seen, cmap="gray", vmin=0, vmax=255, interpolation="nearest", extent=edges)
    axes.autoscale(False)
    axes.set_axis_off()


def outline(axes: Axes, region: np.ndarray, colour: str) -> None:
    """Draw the image of the unit circle, and of its radius along x, under an affine map (2, 3).

    A dark rim keeps light lines visible on a light background. Smooth edges would double the file's
    size.
    """
    angle = np.linspace(0, 2 * np.pi, 97)
    circle = region @ np.stack([np.cos(angle), np.sin(angle), np.ones_like(angle)])
    # The circle starts where the radius ends.
    line = np.column_stack([region[:, 2], circle])
    for shade, thickness in (("black", 2.2), (colour, 1.2)):
        axes.plot(*line, color=shade, lw=thickness, antialiased=False)


def mosaic(axes: Axes, patches: np.ndarray, labels: Sequence[object]) -> np.ndarray:
    """Draw patches (rows, columns, s, s) on white, each row with a label on its left.

    Args:
        axes: to draw on, in pixels of the mosaic.
        patches: grey values.
        labels: labels of the rows.

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
