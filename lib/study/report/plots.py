"""Plots that know no paper: intervals in rows, and densities of distances."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.benchmarks.fpr95 import threshold_level
from lib.study.report.style import COLUMN_WIDTH, DOUBLE_WIDTH, PALETTE, panels


def intervals(axes: Axes, frame: pd.DataFrame, value: str, color: str) -> None:
    """A row a row of the frame, the first on top and named by its index: a dot and its interval, which
    is left out where an end is missing or infinite.

    Args:
        axes: to draw on.
        frame: with columns "from" and "to".
        value: the column of the dots.
        color: of both.
    """
    lengths = frame[["from", "to"]].astype(float).sub(frame[value], axis=0).abs()
    lengths = lengths.where(np.isfinite(lengths).all(axis=1))
    heights = np.arange(len(frame))[::-1]
    axes.errorbar(frame[value], heights, xerr=lengths.T, fmt="D", ms=4, capsize=2, color=color)
    name_rows(axes, frame.index)
    axes.grid(axis="y", linestyle=":")
    axes.margins(x=0.1)


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
