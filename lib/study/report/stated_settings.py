"""The first steps of methods at the settings that their papers state."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from lib.study.open import Found
from lib.study.report import frames, plots
from lib.study.report.rates import FPR95, SPREAD
from lib.study.report.style import DOUBLE_WIDTH, GREY, PALETTE, panels


def spread(found: Sequence[Found]) -> pd.DataFrame:
    """The measures of spread by "label" and "stage" (share of training) of runs that measured them."""
    frame = frames.tidy(found, "descriptor_spread")
    frame[["name", "stage"]] = frame["metric"].str.split(".", n=1, expand=True)
    table = frame.pivot_table("value", ["label", "stage"], "name", sort=False)
    return table[list(SPREAD)].rename(columns=SPREAD)


def figure(found: Sequence[Found], note: str) -> Figure:
    """The first steps of runs: loss, distances, FPR95 by epoch and spread.

    Args:
        found: a run a method, of hinges with margin 1, with `descriptor_spread` measured.
        note: profile and data; stands above.
    """
    steps, epochs, spreads = frames.steps(found), frames.epochs(found), spread(found)
    labels = [run.job.label for run in found]
    looks = {"note": note, "legend": 4, "grid": "y"}
    columns = max(3, len(labels) + 1)
    with panels(DOUBLE_WIDTH, 4.2, columns, 2, **looks) as (drawn, grid):
        plots.curves(grid[0, 0], steps, "step", "loss", "label")
        grid[0, 0].axhline(1.0, color=GREY, lw=0.8, ls=":")
        for axes, label in zip(grid[0, 1:], labels, strict=False):
            of = steps[steps["label"] == label]
            for name, shown, looks in (("d_pos", "positives", "-"), ("d_neg", "negatives", ":")):
                axes.plot(of["step"], of[name], looks, color=PALETTE[2], label=shown, lw=1.2)
            axes.set(title=label, xlabel="step", ylabel="distance in the loss")
        plots.curves(grid[1, 0], epochs, "epoch", FPR95, "label")
        shown = (SPREAD["effective_rank"], SPREAD["mean_cosine"])
        for axes, name in zip(grid[1, 1:], shown, strict=False):
            of = spreads[name].reset_index().astype({"stage": float})
            of = of.rename(columns={"stage": "share of training"})
            plots.curves(axes, of, "share of training", name, "label")
    return drawn
