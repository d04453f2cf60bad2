"""Methods side by side: their levels, and what changes from one to another, with intervals.

Intervals are those of `lib.statistics.intervals` at 95%: over seeds, paired where they are shared,
and jointly over what was tested on; without ends where one seed leaves the spread unknown.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lib.statistics.intervals import Estimate, Measured, contrast
from lib.study.claims.measured import fpr95_by_column
from lib.study.open import Record
from lib.study.report import frames, plots
from lib.study.report.style import DOUBLE_WIDTH, GREY, PALETTE, panels


def fpr95_of(groups: Mapping[str, Sequence[Record]]) -> dict[str, Measured]:
    """FPR95 of groups of runs on one train set, (seeds, test sets), with resamples of test points.

    Args:
        groups: by the name to show, the runs of one method.
    """
    job = next(iter(groups.values()))[0].job
    sets, measured = (job.train_set, *job.test_sets), {}
    for name, found in groups.items():
        [measured[name]] = fpr95_by_column(found, sets).values()
    return measured


def methods(found: Sequence[Record]) -> dict[str, Measured]:
    """`fpr95_of` each method by its label, of runs on one train set, in the order to show."""
    return fpr95_of(frames.by_label(found))


def levels(of: Mapping[str, Measured]) -> pd.DataFrame:
    """By "method" its "mean", the interval "from" and "to", and the number of "seeds", at least 1."""
    rows = {
        name: with_interval("mean", contrast([(1.0, each)])) | {"seeds": len(np.atleast_2d(each.values))}
        for name, each in of.items()
    }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("method")


def with_rates(table: pd.DataFrame, groups: Mapping[str, Sequence[Record]]) -> pd.DataFrame:
    """A table of `levels` after each method's learning "rate", that of its first run."""
    rates = {name: runs[0].job.recipe.optimizer.options["lr"] for name, runs in groups.items()}
    return table.assign(rate=[f"{rates[name]:g}" for name in table.index])[["rate", *table.columns]]


def levels_at_rates(found: Sequence[Record]) -> pd.DataFrame:
    """`levels` of `methods`, after each one's learning "rate"."""
    return with_rates(levels(methods(found)), frames.by_label(found))


def changes(of: Mapping[str, Measured], pairs: Mapping[str, tuple[str, str]]) -> pd.DataFrame:
    """By "changed" the "change" of the mean in points and its interval "from" and "to".

    Args:
        of: methods by name.
        pairs: by what is changed, the names of the method with it and of the one without.
    """
    rows = {
        name: with_interval("change", contrast([(1.0, of[after]), (-1.0, of[before])]))
        for name, (after, before) in pairs.items()
    }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("changed")


def with_interval(name: str, estimate: Estimate) -> dict[str, float]:
    """An estimate under a name, with the ends of its interval, "from" and "to"."""
    low, high = estimate.limits()
    return {name: estimate.value, "from": low, "to": high}


def changes_figure(
    of: Mapping[str, Measured], changed: pd.DataFrame, note: str, against: str = "the row above"
) -> Figure:
    """Each seed of each method as a dot with mean and interval, and beside them what changes.

    Args:
        of: methods by name, the first on top; FPR95 in percent.
        changed: of `changes`. Where it is named by methods, a change stands in its method's row; else
            changes have rows of their own.
        note: profile and data; stands above.
        against: what changes named by methods are from.
    """
    own_rows = not set(changed.index) <= set(of)
    beside = changed if own_rows else changed.reindex(list(of))
    with panels(DOUBLE_WIDTH, 0.9 + 0.27 * max(len(of), len(beside)), 2, note=note) as (figure, [row]):
        left, right = row
        plots.intervals(left, levels(of), "mean", PALETTE[0])
        for height, runs in zip(range(len(of))[::-1], of.values(), strict=True):
            seeds = runs.values.mean(axis=1)
            left.plot(seeds, np.full(len(seeds), height - 0.25), "o", color=PALETTE[5], ms=3, mew=0)
        left.set_xlabel("FPR95 (%)\nseeds, mean and 95% interval")
        right.axvline(0, color=GREY, lw=1)
        plots.intervals(right, beside, "change", PALETTE[1])
        for height, value in zip(range(len(beside))[::-1], beside["change"], strict=True):
            if np.isfinite(value):
                at = {"textcoords": "offset points", "xytext": (0, 4), "ha": "center", "fontsize": 7}
                right.annotate(f"{value:+.1f}".replace("-", "−"), (value, height), **at)
        if not own_rows:
            right.tick_params(labelleft=False)
        what = "change" if own_rows else f"change from {against}"
        right.set_xlabel(f"{what} (points)\n95% interval; left is better")
    return figure
