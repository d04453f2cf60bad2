"""Figures in one style: sized for a journal's column, colour-blind safe, units on the axes.

matplotlib is imported when a figure is drawn, so that tables alone stay quick. The palette is
Okabe and Ito's; methods differ in marker or line style as well, so that grey prints can be read.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lib.files import write_bytes
from lib.reporting.artefacts import artefact_path

if TYPE_CHECKING:
    from IPython.display import Image
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMN_WIDTH = 3.5
DOUBLE_WIDTH = 7.2
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (6, 2)))
GREY = "#777777"
STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.labelsize": 8,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.5,
    "axes.axisbelow": True,
    "hatch.linewidth": 0.4,
    "lines.linewidth": 1.3,
    "lines.markersize": 4.5,
    "figure.dpi": 100,
    "savefig.dpi": 200,
    "figure.constrained_layout.use": True,
    "svg.hashsalt": "study",
}


@contextmanager
def style() -> Iterator[None]:
    """Draw in the study's style inside a `with` block, whatever the user's matplotlibrc says."""
    import matplotlib as mpl

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        yield


def new_figure(
    width: float, height: float, columns: int = 1, *, share_y: bool = False
) -> tuple[Figure, list[Axes]]:
    """Return a figure of this size in inches with its axes in one row.

    It is bound to no window and to no global state, so nothing has to be closed.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, columns, squeeze=False, sharey=share_y)
    return figure, list(axes[0])


def save_figure(figure: Figure, folder: Path | str | None, name: str) -> Path | None:
    """Write a figure to `folder/figures/<name>.png` at 200 dpi, atomically; None saves nothing.

    The file holds no time and no version, so the same figure gives the same bytes.

    Raises:
        ValueError: the name leads out of the folder.
        OSError: the folder cannot be written.
    """
    if folder is None:
        return None
    path = artefact_path(Path(folder), "figures", name, ".png")
    write_bytes(path, png(figure))
    return path


def png(figure: Figure) -> bytes:
    """Return the PNG that `save_figure` writes."""
    buffer = io.BytesIO()
    with style():
        figure.savefig(buffer, format="png", dpi=200, metadata={"Software": None})
    return buffer.getvalue()


def as_image(figure: Figure, alt: str | None = None) -> Image:
    """Return the figure as what a notebook cell displays: the PNG alone, at 100 px an inch.

    Args:
        figure: the figure.
        alt: what the picture shows, for those who do not see it.
    """
    from IPython.display import Image

    return Image(png(figure), format="png", width=round(figure.get_figwidth() * 100), alt=alt)


def paper_vs_ours(
    paper: Mapping[str, float],
    ours: Mapping[str, Sequence[float]],
    *,
    ours_name: str,
    paper_name: str = "paper",
    quantity: str = "mean FPR95 (%), lower is better",
    width: float = COLUMN_WIDTH,
) -> Figure:
    """Dot plot of one quantity a method: the paper's value hollow, ours filled, on a log axis.

    Args:
        paper: the printed value by display label; a method the paper lacks may be absent.
        ours: one value a seed by display label; their mean is the dot, their range the bar.
        ours_name: what ours is, with profile and data, e.g. `ours (quick, mini)`.
        paper_name: what the paper's values are, e.g. `paper (UBC)`.
        quantity: the axis' label, with unit.
        width: inches.

    Raises:
        ValueError: there is nothing to draw, or a value is not positive and finite.
    """
    labels = list(dict.fromkeys([*paper, *ours]))
    _require_positive([*paper.values(), *(v for seeds in ours.values() for v in seeds)])
    with style():
        figure, (axes,) = new_figure(width, 0.95 + 0.2 * len(labels))
        places = {label: len(labels) - 1 - place for place, label in enumerate(labels)}
        for label, seeds in ours.items():
            if len(seeds) > 1:
                axes.plot([min(seeds), max(seeds)], [places[label]] * 2, color=PALETTE[0], lw=1.6)
        axes.plot(
            list(paper.values()),
            [places[label] for label in paper],
            "o",
            markerfacecolor="white",
            markeredgecolor=PALETTE[1],
            label=paper_name,
        )
        ours = {label: seeds for label, seeds in ours.items() if len(seeds)}
        most = max((len(seeds) for seeds in ours.values()), default=0)
        axes.plot(
            [float(np.mean(seeds)) for seeds in ours.values()],
            [places[label] for label in ours],
            "o",
            color=PALETTE[0],
            label=ours_name + (", bar: range over seeds" if most > 1 else ", one seed"),
        )
        _log_axis(axes)
        axes.set_yticks(list(places.values()), list(places))
        axes.set_ylim(-0.6, len(labels) - 0.4)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x")
        axes.grid(axis="y", linestyle=":")
        axes.set_xlabel(quantity)
        figure.legend(loc="outside upper left", handletextpad=0.3, borderaxespad=0.2)
    return figure


def distance_histograms(
    panels: Mapping[str, Mapping[str, Sequence[float]]],
    *,
    distance: str = "descriptor distance",
    note: str = "",
) -> Figure:
    """Densities of the distances of matching and of non-matching pairs, one panel a method.

    Args:
        panels: by title a probe of `lib.evaluation.distance_histogram`: "edges" (B + 1,),
            "matching" and "non_matching" (B,) counts. The dashed line is `recall_threshold`; the
            share of non-matching pairs left of it is FPR95.
        distance: the axis' label.
        note: profile, data and seed; stands above the panels.

    Raises:
        ValueError: there is no panel, or a panel's counts do not fit its edges or are all zero.
    """
    if not panels:
        raise ValueError("no panel to draw; give at least one method's histograms")
    with style():
        width = COLUMN_WIDTH if len(panels) == 1 else DOUBLE_WIDTH
        figure, all_axes = new_figure(width, 2.2, len(panels), share_y=True)
        for axes, (title, probe) in zip(all_axes, panels.items(), strict=True):
            edges = np.asarray(probe["edges"], dtype=np.float64)
            for kind, name, colour, hatch in (
                ("matching", "matching", PALETTE[0], None),
                ("non_matching", "non-matching", PALETTE[1], "////"),
            ):
                density = _density(title, edges, probe[kind])
                axes.stairs(density, edges, fill=True, alpha=0.2, color=colour, lw=0)
                axes.stairs(density, edges, fill=True, fc="none", ec=colour, hatch=hatch, lw=0)
                axes.stairs(density, edges, color=colour, label=name, lw=1.2)
            threshold = recall_threshold(edges, probe["matching"])
            axes.axvline(threshold, color="black", lw=1, ls="--", label="95% recall")
            axes.set_title(title, loc="left")
            axes.set_xlabel(distance)
            axes.set_ylim(bottom=0)
        all_axes[0].set_ylabel("density")
        handles, names = all_axes[0].get_legend_handles_labels()
        columns = 3 if width == DOUBLE_WIDTH else 2
        figure.legend(handles, names, loc="outside lower center", ncols=columns, columnspacing=1.2)
        if note:
            figure.suptitle(note, fontsize=8, color=GREY, x=0.01, ha="left")
    return figure


def recall_threshold(edges: Sequence[float], matching: Sequence[float], recall: float = 0.95) -> float:
    """Distance below which a share `recall` of the matching pairs lies, even within each bin.

    Args:
        edges: (B + 1,) bin edges.
        matching: (B,) counts of matching pairs, not all zero.
        recall: the share, in (0, 1].
    """
    below = np.concatenate([[0.0], np.cumsum(np.asarray(matching, dtype=np.float64))])
    return float(np.interp(recall * below[-1], below, np.asarray(edges, dtype=np.float64)))


def learning_curves(
    curves: Mapping[str, Mapping[str, Sequence[float]]],
    *,
    time: str = "epoch",
    quantity: str = "FPR95 (%)",
    note: str = "",
    log: bool = True,
) -> Figure:
    """FPR95 by epoch, one line a method: the mean over seeds in a band of their range.

    Args:
        curves: by label either a frame or a mapping from each seed to its values; all seeds of a
            method are equally long. The first value belongs to epoch 1.
        time: the horizontal axis' label.
        quantity: the vertical axis' label, with unit.
        note: profile, data and sets; stands above the axes.
        log: a logarithmic vertical axis.

    Raises:
        ValueError: nothing to draw, seeds of unequal length, or on a log axis a value that is not
            positive and finite.
    """
    if not curves:
        raise ValueError("no curve to draw; give at least one method's values by epoch")
    with style():
        figure, (axes,) = new_figure(COLUMN_WIDTH, 2.5)
        for place, (label, by_seed) in enumerate(curves.items()):
            lengths = {len(by_seed[seed]) for seed in by_seed}
            if len(lengths) != 1 or 0 in lengths:
                raise ValueError(f"curves of {label}: seeds have lengths {sorted(lengths)}")
            values = pd.DataFrame({seed: list(by_seed[seed]) for seed in by_seed}).to_numpy()
            if log:
                _require_positive(values.ravel())
            steps = np.arange(1, len(values) + 1)
            colour = PALETTE[place % len(PALETTE)]
            if values.shape[1] > 1:
                axes.fill_between(steps, values.min(1), values.max(1), color=colour, alpha=0.18, lw=0)
            line = LINES[place % len(LINES)]
            single = {"marker": "o"} if len(steps) == 1 else {}
            axes.plot(steps, values.mean(1), color=colour, ls=line, label=label, **single)
        if log:
            _log_axis(axes, "y")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.grid(axis="y")
        axes.set_xlabel(time)
        axes.set_ylabel(quantity)
        if note:
            axes.set_title(note, loc="left", fontsize=8, color=GREY)
        figure.legend(loc="outside lower center", ncols=2, columnspacing=1.2)
    return figure


def rate_curves(
    curves: Mapping[str, Mapping[float, Sequence[float]]],
    chosen: float,
    *,
    quantity: str = "FPR95 (%)",
    note: str = "",
) -> Figure:
    """A measure against the learning rate, one line a method: the mean in a band of the range.

    Args:
        curves: by label, by rate, the values of its runs.
        chosen: the rate that was taken; a vertical line marks it.
        quantity: the vertical axis' label, with unit.
        note: where the values come from; stands above the axes.
    """
    with style():
        figure, (axes,) = new_figure(COLUMN_WIDTH, 2.6)
        for place, (label, by_rate) in enumerate(curves.items()):
            rates = sorted(by_rate)
            values = np.array([by_rate[rate] for rate in rates])
            colour = PALETTE[place % len(PALETTE)]
            axes.fill_between(rates, values.min(1), values.max(1), color=colour, alpha=0.12, lw=0)
            axes.plot(rates, values.mean(1), color=colour, ls=LINES[place], marker=".", label=label)
        axes.axvline(chosen, color=GREY, lw=1, ls=":")
        axes.set_xscale("log")
        axes.grid(axis="y")
        axes.set_xlabel("learning rate (dotted: chosen)")
        axes.set_ylabel(quantity)
        if note:
            axes.set_title(note, loc="left", fontsize=8, color=GREY)
        figure.legend(loc="outside lower center", ncols=2, columnspacing=1.2)
    return figure


def _require_positive(values: Sequence[float]) -> None:
    array = np.asarray(values, dtype=np.float64)
    if array.size == 0:
        raise ValueError("no value to draw")
    bad = array[~(np.isfinite(array) & (array > 0))]
    if bad.size:
        raise ValueError(f"value {bad[0]:g} cannot stand on a log axis; give positive numbers")


def _density(title: str, edges: np.ndarray, counts: Sequence[float]) -> np.ndarray:
    counts = np.asarray(counts, dtype=np.float64)
    if counts.shape != (len(edges) - 1,) or not counts.sum() > 0:
        raise ValueError(
            f"panel {title!r}: {counts.shape} counts summing to {counts.sum():g} for "
            f"{len(edges)} edges; give one count a bin, not all zero"
        )
    return counts / (counts.sum() * np.diff(edges))


def _log_axis(axes: Axes, which: str = "x") -> None:
    """Make an axis logarithmic with plain numbers at 1, 2 and 5 times the powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis = axes.xaxis if which == "x" else axes.yaxis
    (axes.set_xscale if which == "x" else axes.set_yscale)("log")
    low, high = axes.get_xlim() if which == "x" else axes.get_ylim()
    few = high / low < 10
    axis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 4, 5, 6, 8) if few else (1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
