"""Figures that several notebooks draw, grey pictures in figures, and the study's style.

The style is `study.mplstyle` beside this file: sized for a journal's column, in Okabe and Ito's palette,
which the colour-blind can tell apart. Methods differ in marker or line as well, for grey prints.
"""

import io
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator
from PIL import Image

from lib.data.images import reduced
from lib.statistics.intervals import Measured
from lib.study.report import frames
from lib.study.report.changes import levels
from lib.study.report.hpatches import LEVELS

DOUBLE_WIDTH = 7.2
BELOW = "outside lower center"
BAR = "#E4E4E4"
# Light, middle and dark, so that grey prints keep the order.
LEVEL_COLOURS = dict(zip(LEVELS, ("#56B4E9", "#D55E00", "#000000"), strict=True))
# By task its quantity, and its parts: name, end of the key, and marker.
TASK_PARTS = {
    "verification": (
        "mean AP at 1 to 5 (%)",
        (("intra", "intra.ap", "o"), ("inter", "inter.ap", "s")),
    ),
    "matching": (
        "mAP (%)",
        (("viewpoint", "viewpoint", "^"), ("illumination", "illumination", "v")),
    ),
    "retrieval": ("mAP, whole pool (%)", (("retrieval", "all", "D"),)),
}
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
    drawn, content = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, format="png", dpi=200)
    Image.open(drawn).convert("RGB").quantize(128).save(content, format="png", optimize=True)
    return content.getvalue()


def intervals(axes: Axes, frame: pd.DataFrame, value: str, **look: object) -> None:
    """Draw a dot a row of a frame with its interval, which is left out where it has no ends.

    Args:
        axes: to draw on; a row stands at its index.
        frame: with columns "from" and "to".
        value: the column of the dots.
        look: for `Axes.errorbar`.
    """
    lengths = frame[["from", "to"]].astype(float).sub(frame[value], axis=0).abs()
    lengths = lengths.where(np.isfinite)
    axes.errorbar(frame[value], frame.index, xerr=lengths.T, **{"fmt": "o", "capsize": 2} | look)


def changes_figure(methods: Mapping[str, Measured], changed: pd.DataFrame, note: str) -> Figure:
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
    for axes, frame, value in ((left, levels(methods), "mean"), (right, changed, "change")):
        colour = "C0" if axes is left else "C1"
        intervals(axes, frame.set_axis(range(len(frame))), value, fmt="D", ms=4, color=colour)
        axes.set_yticks(range(len(frame)), frame.index)
        axes.set_ylim(len(frame) - 0.4, -0.6)
        axes.grid(axis="y", linestyle=":")
        axes.grid(axis="x")
        axes.margins(x=0.1)
    for row, method in enumerate(methods.values()):
        seeds = method.values.mean(axis=1)
        left.plot(seeds, np.full(len(seeds), row + 0.25), "o", color="C5", ms=3, mew=0)
    for row, change in enumerate(changed["change"]):
        if np.isfinite(change):
            text, above = f"{change:+.1f}".replace("-", "−"), {"textcoords": "offset points"}
            right.annotate(text, (change, row), (0, 4), ha="center", fontsize=7, **above)
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
        changed: rows of `lib.study.report.changes.effects`, numbered from 0.
    """
    figure, axes = plt.subplots(figsize=(5.8, 0.9 + 0.24 * len(changed)))
    axes.axvline(0, color="0.5", lw=1)
    for marker, (recipe, rows) in zip("osD^", changed.groupby("recipe", sort=False), strict=False):
        intervals(axes, rows, "change", fmt=marker, label=recipe)
    axes.set(xlabel="change of mean FPR95 (points; right is worse)", ylim=(len(changed) - 0.5, -0.5))
    axes.set_yticks(changed.index, changed["option"])
    axes.grid(axis="y", linestyle=":")
    figure.legend(loc=BELOW, ncols=2)
    return figure


def means_figure(common: pd.DataFrame, methods: Mapping[str, Measured], where: str) -> Figure:
    """Mean FPR95 of each method, the paper's and, with seeds and intervals, ours.

    Args:
        common: of `lib.study.report.changes.common_rows`.
        methods: FPR95 by key.
        where: profile and data of ours.
    """
    figure, panels = plt.subplots(1, 2, figsize=(DOUBLE_WIDTH, 0.9 + 0.22 * len(common)), sharey=True)
    rows, ours = range(len(common)), panels[1]
    for row, key in enumerate(common.index.get_level_values("key")):
        seeds = np.atleast_2d(methods[key].values).mean(axis=1)
        ours.plot(seeds, np.full(len(seeds), row), "o", color="0.6", ms=3)
    ends = common[["from", "to"]].where(np.isfinite)
    ours.hlines(rows, ends["from"], ends["to"], color="C0", lw=1.3)
    for axes, column, data in zip(panels, ("paper", "ours"), ("UBC PhotoTour", where), strict=True):
        axes.plot(common[column], rows, "oC0", zorder=3)
        axes.set(title=f"{column}, {data}", xscale="log", xlabel="mean FPR95 (%), log scale")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.minorticks_off()
        axes.grid(axis="both")
    ours.set_yticks(rows, common.index.get_level_values("label"))
    ours.invert_yaxis()
    return figure


def tasks_figure(runs: pd.DataFrame, note: str) -> Figure:
    """HPatches' three tasks (Balntas et al., CVPR 2017), a panel each, a row a method; a bar is the
    task's number.

    Markers are its parts, coloured by level and shaped by setup; a part that no run has, as where all
    sequences are of one kind, is left out. A line sets methods trained on HPatches apart. All are means
    over seeds, whose spread is in `lib.study.report.hpatches.by_task`.

    Args:
        runs: of `lib.study.report.hpatches.numbers`; its first method is on top.
        note: profile, data and seeds; stands above.
    """
    mean = frames.means(runs)
    rows, size = np.arange(len(mean)), (DOUBLE_WIDTH, 1.15 + 0.27 * len(mean))
    on_hpatches = mean.index.get_level_values("key").str.endswith("_hp")
    figure, panels = plt.subplots(1, len(TASK_PARTS), figsize=size, sharey=True)
    shapes = {"mean": {"marker": "s", "color": BAR}}
    shapes |= {level: {"marker": "o", "color": colour} for level, colour in LEVEL_COLOURS.items()}
    for axes, (task, (quantity, parts)) in zip(panels, TASK_PARTS.items(), strict=True):
        axes.barh(rows, mean[task], height=0.74, color=BAR)
        for row in np.flatnonzero(mean[task].notna()):
            axes.text(102, row, f"{mean[task].iloc[row]:.1f}", va="center")
        for number, (part, ending, marker) in enumerate(parts):
            shapes[part] = {"marker": marker, "color": "black", "mfc": "none", "mew": 0.8}
            # The parts of a task a little above and below the row's middle; the light level on top.
            shifted = rows - 0.17 * (len(parts) - 1 - 2 * number)
            for level in reversed(LEVELS):
                look = {"color": LEVEL_COLOURS[level], "mec": "white", "mew": 0.4, "ms": 4.6}
                if (key := f"{task}.{level}.{ending}") in mean:
                    axes.plot(mean[key], shifted, marker, zorder=3, clip_on=False, **look)
        for row in np.flatnonzero(on_hpatches[1:] != on_hpatches[:-1]):
            axes.axhline(row + 0.5, color="black", lw=0.6)
        axes.set(title=task, xlabel=quantity, xlim=(0, 100), ylim=(len(mean) - 0.4, -0.6))
        axes.tick_params(axis="y", length=0)
    axes.set_yticks(rows, mean.index.get_level_values("label"))
    handles = [Line2D([], [], label=name, ls="none", **shape) for name, shape in shapes.items()]
    figure.legend(handles=handles, loc=BELOW, ncols=9, handletextpad=0.2, columnspacing=0.9)
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
    (x, y), (high, wide) = first, grey.shape
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


def evenly(items: Sequence[int], most: int) -> list[int]:
    """At most so many of them, evenly spaced."""
    chosen = np.linspace(0, len(items) - 1, min(most, len(items))).round().astype(int)
    return [items[index] for index in chosen]


def apart(positions: np.ndarray, reach: np.ndarray, shape: tuple[int, int], most: int) -> list[int]:
    """Which squares in an image (H, W) to show, at most so many: the largest first, inside, disjoint.

    Args:
        positions: (N, 2) centres.
        reach: (N,) from a centre to each side.
        shape: of the image.
        most: squares.
    """
    inside = np.minimum(positions, np.array(shape[::-1]) - 1 - positions).min(axis=1) >= reach
    chosen: list[int] = []
    for index in np.argsort(-reach, kind="stable"):
        away = np.abs(positions[chosen] - positions[index]).max(axis=1)
        if inside[index] and (away >= reach[chosen] + reach[index]).all():
            chosen.append(int(index))
    return chosen[:most]


def mosaic(
    axes: Axes, patches: np.ndarray, labels: Sequence[object], breaks: Collection[int] = ()
) -> np.ndarray:
    """Draw patches (rows, columns, s, s) on white, each row with a label before it.

    Args:
        axes: to draw on, in pixels of the mosaic.
        patches: grey values.
        labels: of the rows.
        breaks: columns that stand farther from the one before.

    Returns:
        (columns,) left edges of the columns, px.
    """
    rows, columns, side = patches.shape[:3]
    gaps = [GAP * (3 if column in breaks else 1) for column in range(1, columns)]
    lefts = np.cumsum([0, *(side + gap for gap in gaps)])
    tops = np.arange(rows) * (side + GAP)
    canvas = np.full((tops[-1] + side, lefts[-1] + side), 255, np.uint8)
    for row, column in np.ndindex(rows, columns):
        canvas[tops[row] :, lefts[column] :][:side, :side] = patches[row, column]
    show(axes, canvas)
    axes.set_axis_on()
    axes.set_yticks(tops + side / 2, [str(label) for label in labels])
    axes.set_xticks([])
    axes.tick_params(length=0, labelsize=7, labelcolor="0.4", pad=2)
    axes.spines[:].set_visible(False)
    return lefts
