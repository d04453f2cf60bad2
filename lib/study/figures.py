"""Drawing that several notebooks share: effects with intervals, HPatches' tasks, and grey pictures."""

import re
from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from matplotlib.transforms import offset_copy
from numpy.typing import ArrayLike

from lib.data.images import reduced
from lib.study.tables import LEVELS, PROTOCOLS, TASKS, means

DOUBLE_WIDTH = 7.2
# Light, middle and dark, so that grey prints keep the order.
LEVEL_COLOURS = {"easy": "#56B4E9", "hard": "#D55E00", "tough": "#000000"}
# The parts of an HPatches task.
PARTS = ("intra", "inter", "viewpoint", "illumination", "all")
# Light enough to be told apart on grey photographs.
ON_GREY = ("#E69F00", "#56B4E9", "#F0E442", "#CC79A7", "#009E73", "#D55E00")
# Pixels per inch of photographs, as a notebook shows them; more would only make files larger.
DENSITY = 100
# Gap between the patches of a mosaic, px.
GAP = 4
# Ticks of an axis of ratios, and of one that spans more than a factor of five.
RATIOS = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.2, 1.5, 2, 2.5, 3)
FEW_RATIOS = (0.01, 0.1, 0.3, 1, 3, 10, 100)


def forest(
    axes: Axes, effects: pd.DataFrame, singles: Mapping[str, ArrayLike], none: float, single: str
) -> None:
    """Draw effects below each other, each with its interval, its single replicates and what is printed.

    Args:
        axes: to draw on; the legend is the caller's.
        effects: a row an effect, the first at the top; its index names the rows, and R_L2 there is
            drawn with a subscript. Columns: `effect`; `from` and `to`, the ends of its 95% interval,
            NaN for a single run; and `printed` where a paper has the effect.
        singles: the effects of single replicates, by the name of their row.
        none: where no effect is, 1 of a ratio and 0 of a difference.
        single: what a replicate is, for the legend, as in `lib.study.runs.Study.replicate`.
    """
    heights = np.arange(len(effects))
    for height, name in zip(heights, effects.index, strict=True):
        replicates(axes, singles[name], height, single if height == 0 else None)
    axes.hlines(heights, effects["from"], effects["to"], color="C0", lw=1.2)
    for end in ("from", "to"):
        axes.plot(effects[end], heights, "|", color="C0", ms=6)
    known = effects["from"].notna()
    if known.any():
        label = "mean, with 95% interval"
        axes.plot(effects["effect"].where(known), heights, "D", color="C0", ms=3.5, label=label)
    if not known.all():
        alone = effects["effect"].where(~known)
        axes.plot(alone, heights, "D", color="C0", mfc="white", ms=3.5, label="single run, no interval")
    if "printed" in effects:
        axes.plot(effects["printed"], heights, "o", mfc="none", mec="C1", ms=6, label="printed")
    axes.axvline(none, color="0.5", lw=0.8)
    axes.set_yticks(heights, [with_subscripts(str(name)) for name in effects.index])
    axes.set_ylim(len(effects) - 0.5, -0.5)
    axes.grid(axis="y", linestyle=":")


def replicates(axes: Axes, values: ArrayLike, height: float, label: str | None = None) -> None:
    """Draw the single values of a row below the row's mark, however high the row is.

    Every other value lies a little lower, so that near ones do not hide each other.

    Args:
        axes: to draw on.
        values: (n,) along the x axis.
        height: of the row, on the y axis.
        label: for the legend.
    """
    values = np.sort(np.asarray(values))
    # Lines that are shifted do not widen the axis by themselves.
    axes.update_datalim(np.column_stack([values, np.full(len(values), height)]))
    for own, points in ((values[::2], -4), (values[1::2], -6.5)):
        below = offset_copy(axes.transData, axes.figure, y=points, units="points")
        look = {"color": "0.6", "ms": 2.5, "transform": below}
        axes.plot(own, np.full(len(own), height), "o", **look, label=label if points == -4 else None)


def ratio_ticks(axis: Axis) -> None:
    """Label the ratios within the limits of a logarithmic axis, and no others.

    Matplotlib labels powers of ten, of which an axis from 0.7 to 1.5 has one.
    """
    low, high = axis.get_view_interval()
    ticks = FEW_RATIOS if high > 5 * low else RATIOS
    shown = [tick for tick in ticks if low <= tick <= high]
    axis.set_ticks(shown, labels=[f"{tick:g}" for tick in shown])
    axis.set_minor_locator(NullLocator())


def with_subscripts(name: str) -> str:
    """Return a name as Matplotlib sets it: what follows a letter's underscore, as in w_i, is lowered."""
    return re.sub(r"\b([A-Za-z])_(\w+)", r"\1$_{\2}$", name)


def tasks_figure(numbers: pd.DataFrame) -> Figure:
    """Draw HPatches' three tasks (Balntas et al., CVPR 2017), one panel a task, one row a method.

    A bar is the task's number, which stands at its end. Markers are the numbers that it averages,
    coloured by level. All are means over seeds or places.

    Args:
        numbers: from `lib.study.tables.numbers(runs, "hpatches")`, in percent; its first method is on
            top, and each method has a label of its own.
    """
    mean = means(numbers).droplevel("method")
    parts = _parts(mean)
    # Two markers of a level lie above and below the bar's middle, so that neither hides the other.
    beside = {"intra": -0.25, "inter": 0.25, "viewpoint": -0.25, "illumination": 0.25}
    parts["height"] = mean.index.get_indexer(parts["label"]) + parts["part"].map(beside).fillna(0)
    order = [part for part in PARTS if part in set(parts["part"])]
    look = {"palette": LEVEL_COLOURS, "style_order": order, "s": 22, "zorder": 3}
    heights = np.arange(len(mean))
    size = (DOUBLE_WIDTH, 1.15 + 0.4 * len(mean))
    figure, panels = plt.subplots(1, len(TASKS), figsize=size, sharey=True)
    for axes, task in zip(panels, TASKS, strict=True):
        axes.barh(heights, mean[task], height=0.84, color="#E4E4E4")
        own = parts[parts["task"] == task]
        sns.scatterplot(own, x="value", y="height", hue="level", style="part", ax=axes, **look)
        for height, value in zip(heights, mean[task], strict=True):
            axes.text(value + 1.5, height, f"{value:.1f}" if np.isfinite(value) else "", va="center")
        axes.set(title=task, ylabel="", xlim=(0, 100), ylim=(len(mean) - 0.5, -0.5))
        axes.set_xlabel(f"{PROTOCOLS[task].partition(': ')[2]} (%)")
        axes.set_yticks(heights, mean.index)
        handles = axes.get_legend_handles_labels()
        axes.get_legend().remove()
    spacing = {"ncols": 10, "handletextpad": 0.2, "columnspacing": 0.9}
    figure.legend(*handles, loc="outside lower center", **spacing)
    return figure


def _parts(mean: pd.DataFrame) -> pd.DataFrame:
    """Return the numbers that tasks average: columns label, task, level, part and value.

    Args:
        mean: index `label`; columns are keys of `lib.benchmarks.hpatches`, of which those of single
            sequences and of pool sizes are left out.
    """
    parts = mean.melt(var_name="key", ignore_index=False).reset_index()
    pattern = rf"^(?P<task>\w+)\.(?P<level>{'|'.join(LEVELS)})\.(?P<part>{'|'.join(PARTS)})(?:\.ap)?$"
    return parts.join(parts["key"].str.extract(pattern)).dropna()


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
    height, wide = grey.shape
    if width is not None:
        # The picture's longer side, in pixels, when it is drawn at this width.
        grey = reduced(grey, round(DENSITY * width * max(height, wide) / wide))
    axes.imshow(
        grey,
        cmap="gray",
        vmin=0,
        vmax=255,
        interpolation="nearest",
        extent=(x - 0.5, x + wide - 0.5, y + height - 0.5, y - 0.5),
    )
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
        patches: grey values, 0 to 255.
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
