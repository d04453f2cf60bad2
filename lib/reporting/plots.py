"""Plots that know no paper: they take a frame and the names of its columns.

The rows of a frame are single values, one a seed or a test set; a plot takes their mean and shows their
range.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from lib.evaluation.fpr95 import threshold_level
from lib.reporting.style import COLUMN_WIDTH, DOUBLE_WIDTH, GREY, PALETTE, look, panels


def curves(axes: Axes, frame: pd.DataFrame, x: str, y: str, by: str, **line: object) -> None:
    """A line for each value of `by`: the mean of `y` at each `x`, in a band of the range.

    Raises:
        ValueError: there is nothing to draw, or a line has more values at one `x` than at another.
    """
    if frame.empty:
        raise ValueError("no curve to draw; give at least one method's values")
    for place, (label, of) in enumerate(frame.groupby(by, sort=False)):
        at = of.groupby(x)[y].agg(["mean", "min", "max", "size"])
        if at["size"].nunique() > 1:
            raise ValueError(f"curve of {label}: more values at one {x} than at another")
        drawn = {**look(place), "marker": "o" if len(at) == 1 else None, **line}
        if at["size"].max() > 1:
            axes.fill_between(at.index, at["min"], at["max"], color=drawn["color"], alpha=0.18, lw=0)
        axes.plot(at.index, at["mean"], label=label, **drawn)
    # Without `visible` it would switch a grid off that is there.
    axes.grid(visible=True, axis="y")
    axes.set(xlabel=x, ylabel=y)


def curves_figure(
    frame: pd.DataFrame,
    x: str,
    y: str,
    by: str,
    *,
    log: str = "",
    marked: float | None = None,
    note: str = "",
    **line: object,
) -> Figure:
    """`curves` as a figure of one column; `x` and `y` label the axes.

    Args:
        frame, x, y, by, line: as for `curves`.
        log: "x", "y" or neither.
        marked: where on `x` a dotted line stands.
        note: what the values are of; stands above.

    Raises:
        ValueError: as for `curves`, or a value cannot stand on a logarithmic axis.
    """
    with panels(COLUMN_WIDTH, 2.5, note=note, legend=2) as (figure, [[axes]]):
        curves(axes, frame, x, y, by, **line)
        if pd.api.types.is_integer_dtype(frame[x]):
            axes.xaxis.get_major_locator().set_params(integer=True)
        if log:
            log_axis(axes, log, frame[{"x": x, "y": y}[log]])
        if marked is not None:
            axes.axvline(marked, color=GREY, lw=1, ls=":")
    return figure


def beside(frame: pd.DataFrame, value: str, label: str, whose: str) -> Figure:
    """A row a label on a logarithmic axis: the first of `whose` hollow, the second filled.

    Args:
        frame: labels stand in its order, the first on top; some may lack one of the two.
        value, label, whose: its columns; the first labels the axis. `whose` has two values, which the
            legend names; several values of one label are drawn as their mean and a bar over the range.

    Raises:
        ValueError: there is nothing to draw, or a value is not positive and finite.
    """
    labels = list(frame[label].unique())
    places = pd.Series(range(len(labels))[::-1], labels)
    filled = {"color": PALETTE[0]}
    with panels(DOUBLE_WIDTH * 0.7, 0.95 + 0.2 * len(labels)) as (figure, [[axes]]):
        kinds = ({"mfc": "white", "mec": PALETTE[1]}, filled)
        for (name, of), kind in zip(frame.groupby(whose, sort=False), kinds, strict=True):
            at = of.groupby(label, sort=False)[value].agg(["mean", "min", "max", "size"])
            spread = at[at["size"] > 1]
            if kind is filled:
                name += ", bar: range over seeds" if len(spread) else ", one seed"
            axes.hlines(places[spread.index], spread["min"], spread["max"], lw=1.6, **filled)
            axes.plot(at["mean"], places[at.index], "o", label=name, **kind)
        log_axis(axes, "x", frame[value])
        name_rows(axes, labels)
        axes.grid(axis="y", linestyle=":")
        axes.set_xlabel(value)
        figure.legend(loc="outside upper left", handletextpad=0.3, borderaxespad=0.2)
    return figure


def intervals(axes: Axes, frame: pd.DataFrame, value: str, error: str, label: str, by: str) -> None:
    """A row a row of the frame, the first on top: a dot, and a bar of `error` either way if it has one.

    Args:
        axes: to draw on.
        frame, value, error, label: the frame and its columns; `value` labels the axis.
        by: what colour and marker tell, in the order of a categorical column or else of the rows.
    """
    groups = frame[by]
    if not isinstance(groups.dtype, pd.CategoricalDtype):
        groups = pd.Series(pd.Categorical(groups, groups.unique()), frame.index)
    rows = pd.Series(range(len(frame))[::-1], frame.index)
    for place, (name, of) in enumerate(frame.groupby(groups, observed=False)):
        looks = look(place, marker=True)
        axes.errorbar(of[value], rows[of.index], xerr=of[error], label=name, capsize=2, **looks)
    name_rows(axes, frame[label])
    axes.margins(x=0.1)
    axes.grid(axis="y")
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
        probes: by title a probe of `lib.evaluation.distance_histogram`: "edges" (B + 1,),
            "matching" and "non_matching" (B,) counts. The dashed line is the threshold of FPR95; the
            share of non-matching pairs left of it is FPR95.
        note: profile, data and seed; stands above the panels.

    Raises:
        ValueError: there is no panel, or a panel's counts do not fit its edges or are all zero.
    """
    if not probes:
        raise ValueError("no panel to draw; give at least one method's histograms")
    width = COLUMN_WIDTH if len(probes) == 1 else DOUBLE_WIDTH
    shown = {"ylabel": "density", "legend": 3 if len(probes) > 1 else 2, "sharey": True}
    with panels(width, 2.2, len(probes), note=note, **shown) as (figure, [row]):
        for axes, (title, probe) in zip(row, probes.items(), strict=True):
            edges = np.asarray(probe["edges"], dtype=np.float64)
            for kind, colour, hatch in (("matching", 0, None), ("non_matching", 1, "////")):
                counts = np.asarray(probe[kind], dtype=np.float64)
                if counts.shape != (len(edges) - 1,) or not counts.sum() > 0:
                    raise ValueError(f"panel {title!r}: give one count a bin, not all zero")
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


def log_axis(axes: Axes, which: str, values: Iterable[float]) -> None:
    """Make an axis ("x" or "y") logarithmic, with plain numbers at few times the powers of ten.

    Args:
        axes: with everything drawn on it.
        which: "x" or "y".
        values: what stands on it.

    Raises:
        ValueError: there is none, or one is not positive and finite.
    """
    array = np.asarray(values, dtype=np.float64)
    if not array.size or not (np.isfinite(array) & (array > 0)).all():
        raise ValueError(f"{array} cannot stand on a log axis; give positive numbers")
    axes.set(**{f"{which}scale": "log"})
    axis = getattr(axes, f"{which}axis")
    low, high = axis.get_view_interval()
    few = high / low < 10
    axis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 4, 5, 6, 8) if few else (1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
