"""Plots that know no paper: they take a frame and the names of its columns.

The rows of a frame are single values, one a seed or a test set; a plot takes their mean and shows their
range.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from lib.benchmarks.fpr95 import threshold_level
from lib.study.report.style import COLUMN_WIDTH, DOUBLE_WIDTH, PALETTE, look, looks, panels


def curves(axes: Axes, frame: pd.DataFrame, x: str, y: str, by: str, **line: object) -> None:
    """A line for each value of `by`: the mean of `y` at each `x`, in a band of the range.

    Raises:
        ValueError: there is nothing to draw, or a line has more values at one `x` than at another.
    """
    if frame.empty:
        raise ValueError("no curve to draw; give at least one method's values")
    every = looks([str(label) for label in frame[by].unique()])
    for label, of in frame.groupby(by, sort=False):
        at = of.groupby(x)[y].agg(["mean", "min", "max", "size"])
        if at["size"].nunique() > 1:
            raise ValueError(f"curve of {label}: more values at one {x} than at another")
        drawn = {**every[str(label)], "marker": "o" if len(at) == 1 else None, **line}
        if at["size"].max() > 1:
            axes.fill_between(at.index, at["min"], at["max"], color=drawn["color"], alpha=0.18, lw=0)
        axes.plot(at.index, at["mean"], label=label, **drawn)
    # Without `visible` it would switch a grid off that is there.
    axes.grid(visible=True, axis="y")
    axes.set(xlabel=x, ylabel=y)


def curves_figure(
    frame: pd.DataFrame, x: str, y: str, by: str, *, note: str = "", **line: object
) -> Figure:
    """`curves` as a figure of one column, `y` logarithmic, each named at its end; `x` and `y` label the
    axes.

    Args:
        frame, x, y, by, line: as for `curves`.
        note: what the values are of; stands above.

    Raises:
        ValueError: as for `curves`, or a value cannot stand on a logarithmic axis.
    """
    with panels(COLUMN_WIDTH, 2.2, note=note) as (figure, [[axes]]):
        curves(axes, frame, x, y, by, **line)
        if pd.api.types.is_integer_dtype(frame[x]):
            axes.xaxis.get_major_locator().set_params(integer=True)
        log_axis(axes, frame[y])
        label_ends(axes)
    return figure


def label_ends(axes: Axes) -> None:
    """Names each line that has a label at its right end, in its colour, no name upon another.

    To be called when all is drawn and the axes have their scales.
    """
    lines = [line for line in axes.lines if not line.get_label().startswith("_")]
    lines = [line for line in lines if np.isfinite(line.get_ydata()).any()]
    in_axes = axes.transData + axes.transAxes.inverted()
    ends = [line.get_xydata()[np.isfinite(line.get_ydata())][-1] for line in lines]
    heights = np.array([in_axes.transform(end)[1] for end in ends])
    # Layout takes something off the axes for ticks and titles.
    gap = 9.5 / (0.7 * axes.get_window_extent().height * 72 / axes.figure.dpi)
    order = np.argsort(heights, kind="stable")
    for below, above in itertools.pairwise(order):
        heights[above] = max(heights[above], heights[below] + gap)
    ceiling = max(1.0, gap * (len(order) - 1))
    for above in order[::-1]:
        heights[above] = min(heights[above], ceiling)
        ceiling = heights[above] - gap
    for line, end, height in zip(lines, ends, heights, strict=True):
        arrow = {"arrowstyle": "-", "color": line.get_color(), "lw": 0.5, "shrinkA": 0, "shrinkB": 1}
        # From the name's left end: from its middle it would cross other names.
        arrow["relpos"] = (0, 0.5)
        where = {"xytext": (1.08, height), "textcoords": "axes fraction", "va": "center"}
        axes.annotate(line.get_label(), end, color=line.get_color(), arrowprops=arrow, **where)


def bars(frame: pd.DataFrame, value: str) -> np.ndarray:
    """(2, rows) how far the intervals "from" and "to" go from a column's values, as `errorbar` takes it;
    NaN, which draws none, where an end is missing or infinite, or the frame has no ends."""
    ends = frame.reindex(columns=["from", "to"]).astype(float)
    lengths = ends.sub(frame[value], axis=0).abs()
    return lengths.where(np.isfinite(lengths).all(axis=1)).to_numpy().T


def intervals(
    axes: Axes, frame: pd.DataFrame, value: str, by: str | None = None, **marker: object
) -> None:
    """A row a row of the frame, the first on top and named by its index: a dot, and its interval.

    Args:
        axes: to draw on.
        frame: with columns "from" and "to", as for `bars`.
        value: the column of the dots, which labels the axis.
        by: a column whose values colour and marker tell, in the order of a categorical column or else of
            the rows; None draws all rows alike.
        marker: how dots look, in place of that.
    """
    groups = frame[by] if by else pd.Series("", frame.index)
    names = groups.cat.categories if isinstance(groups.dtype, pd.CategoricalDtype) else groups.unique()
    colours, heights = looks([str(name) for name in names]), np.arange(len(frame))[::-1]
    for place, name in enumerate(names):
        of = (groups == name).to_numpy()
        dots = look(place, marker=True) | {"color": colours[str(name)]["color"], "capsize": 2} | marker
        shown = frame[of]
        axes.errorbar(shown[value], heights[of], xerr=bars(shown, value), label=name, **dots)
    name_rows(axes, frame.index)
    axes.grid(axis="y", linestyle=":")
    axes.margins(x=0.1)
    axes.set_xlabel(value)


def name_rows(axes: Axes, labels: Sequence[str]) -> None:
    """Names rows that stand at whole numbers, the first on top."""
    axes.set_yticks(range(len(labels))[::-1], labels)
    axes.set_ylim(-0.6, len(labels) - 0.4)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")


def distance_histograms(probes: Mapping[str, Mapping[str, Sequence[float]]], note: str = "") -> Figure:
    """Densities of the distances of matching and of non-matching pairs, one panel a method.

    Args:
        probes: by title a probe of `lib.probes.distance_histogram`: "edges" (B + 1,),
            "matching" and "non_matching" (B,) counts. The dashed line is the threshold of FPR95; the
            share of non-matching pairs left of it is FPR95.
        note: profile, data and seed; stands above the panels.
    """
    width = COLUMN_WIDTH if len(probes) == 1 else DOUBLE_WIDTH
    shown = {"ylabel": "density", "legend": 3 if len(probes) > 1 else 2, "sharey": True}
    with panels(width, 2.2, len(probes), note=note, **shown) as (figure, [row]):
        for axes, (title, probe) in zip(row, probes.items(), strict=True):
            edges = np.asarray(probe["edges"], dtype=np.float64)
            for kind, colour, hatch in (("matching", 0, None), ("non_matching", 1, "////")):
                counts = np.asarray(probe[kind], dtype=np.float64)
                density, colour = counts / (counts.sum() * np.diff(edges)), PALETTE[colour]
                axes.stairs(density, edges, fill=True, alpha=0.2, color=colour, lw=0)
                axes.stairs(density, edges, fill=True, fc="none", ec=colour, hatch=hatch, lw=0)
                axes.stairs(density, edges, color=colour, label=kind.replace("_", "-"), lw=1.2)
            level, rank = threshold_level(np.asarray(probe["matching"]))
            # As if the pairs of a bin were spread evenly in it.
            threshold = np.interp(rank / probe["matching"][level], [0, 1], edges[level : level + 2])
            axes.axvline(threshold, color="black", lw=1, ls="--", label="95% recall")
            axes.set(title=title, xlabel="descriptor distance")
            axes.set_ylim(bottom=0)
    return figure


def log_axis(axes: Axes, values: Iterable[float]) -> None:
    """Make the vertical axis logarithmic, with plain numbers at few times the powers of ten.

    Args:
        axes: with everything drawn on it.
        values: what stands on it.

    Raises:
        ValueError: there is none, or one is not positive and finite.
    """
    array = np.asarray(values, dtype=np.float64)
    if not array.size or not (np.isfinite(array) & (array > 0)).all():
        raise ValueError(f"{array} cannot stand on a log axis; give positive numbers")
    axes.set_yscale("log")
    low, high = axes.yaxis.get_view_interval()
    few = high / low < 10
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 4, 5, 6, 8) if few else (1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
