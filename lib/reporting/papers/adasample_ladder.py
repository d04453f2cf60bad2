"""From HardNet+* to AdaSample+* one choice at a time (Sec. 5.2), and what generated positives do.

FPR95 is in percent, the mean over the test sets; changes are in points, negative for the better. The
intervals are those of `lib.intervals`: over seeds, paired where they are shared, and jointly over test
points.
"""

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.intervals import Estimate, Measured, contrast, relative_gain
from lib.reporting import frames, plots
from lib.reporting.claims.measured import fpr95_by_column
from lib.reporting.papers.adasample_significance import LABELS, paper_comparisons
from lib.reporting.style import DOUBLE_WIDTH, GREY, PALETTE, panels
from lib.study.open import Found

WHOLE = "the whole ladder"
# The two columns of Table 3 that are trained on the first set.
FIRST_SET = ["Lib>Ntr", "Lib>Yos"]
# By what is changed alone, the method with it and the method without.
GENERATION: Mapping[str, tuple[str, str]] = {
    "generation, HardNet": ("HardNet, generation alone", "HardNet"),
    "then momentum 0.5 for 0.9": ("HardNet*", "HardNet, generation alone"),
    "generation, AdaSample": ("AdaSample*", "AdaSample"),
    "generation, Hardpos": ("Hardpos*", "Hardpos"),
    "AdaSample for HardNet": ("AdaSample", "HardNet"),
    "AdaSample* for HardNet*": ("AdaSample*", "HardNet*"),
    "Hardpos for AdaSample": ("Hardpos", "AdaSample"),
    "Hardpos* for AdaSample*": ("Hardpos*", "AdaSample*"),
}


def methods(found: Sequence[Found]) -> dict[str, Measured]:
    """By label each method's FPR95, (seeds, test sets), and what it would be on other test points.

    Args:
        found: runs on one train set, methods in the order to show.
    """
    job = found[0].job
    by_key = fpr95_by_column(found, (job.train_set, *job.sets_of("fpr95")))
    return {of.label: of for of in by_key.values()}


def levels(found: Sequence[Found]) -> pd.DataFrame:
    """Each method's learning rate and mean FPR95.

    Args:
        found: as for `methods`.

    Returns:
        By "method" its "rate", the "mean" and its interval "from" and "to", and the number of "seeds".
    """
    rates = {run.job.label: run.job.recipe.optimizer.options["lr"] for run in found}
    rows = {
        label: {"rate": f"{rates[label]:g}", **_with_interval("mean", contrast([(1.0, of)]))}
        | {"seeds": len(of.values)}
        for label, of in methods(found).items()
    }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("method")


def changes(found: Sequence[Found], pairs: Mapping[str, tuple[str, str]]) -> pd.DataFrame:
    """What FPR95 changes by from one method to another.

    Args:
        found: as for `methods`.
        pairs: by what is changed, the labels of the method with it and of the one without.

    Returns:
        By "changed" the "change" in points and its interval "from" and "to".
    """
    of = methods(found)
    rows = {
        name: _with_interval("change", contrast([(1.0, of[after]), (-1.0, of[before])]))
        for name, (after, before) in pairs.items()
    }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("changed")


def generation(found: Sequence[Found]) -> pd.DataFrame:
    """`changes` of `GENERATION`, and last by how much AdaSample's by generation exceeds HardNet's."""
    of = methods(found)
    terms = zip(
        (1.0, -1.0, -1.0, 1.0),
        (*GENERATION["generation, AdaSample"], *GENERATION["generation, HardNet"]),
        strict=True,
    )
    table = changes(found, GENERATION)
    both = contrast([(weight, of[label]) for weight, label in terms])
    table.loc["generation, AdaSample − HardNet"] = _with_interval("change", both)
    return table


def two_patches(found: Sequence[Found]) -> pd.DataFrame:
    """By "method", of the classes drawn in training, the "share" that had two patches, mean over steps
    and seeds, 0 to 1."""
    shares = frames.steps(found).groupby("label", sort=False)["two_share"].mean()
    return shares.rename("share").rename_axis("method").to_frame()


def ladder(found: Sequence[Found]) -> pd.DataFrame:
    """The rungs, what each changes from the one below, and its share of the whole change.

    Args:
        found: as for `methods`; each rung changes one choice of the one before it.

    Returns:
        By "rung" `levels` under "FPR95", and under "change" and "share (%)" the changes with their
        intervals; last `WHOLE`, from the first rung to the last. Shares, by the delta method, are given
        only where the interval of the whole change lies below 0: without a gain there is none to share.
    """
    of, labels = methods(found), [*levels(found).index]
    rungs = _rungs(labels)
    pairs = {**rungs, WHOLE: (labels[-1], labels[0])}
    whole = contrast([(1.0, of[labels[-1]]), (-1.0, of[labels[0]])])
    shares = {
        name: _share(of, pair, pairs[WHOLE], whole)
        for name, pair in rungs.items()
        if whole.limits()[1] < 0
    }
    parts = {
        "FPR95": levels(found),
        "change": changes(found, pairs).rename(columns={"change": "points"}),
        "share (%)": pd.DataFrame.from_dict(shares, orient="index", columns=["share", "from", "to"]),
    }
    table = pd.concat(parts, axis=1).reindex([*labels, WHOLE]).rename_axis("rung")
    return table.astype({("FPR95", "seeds"): "Int64"})


def _rungs(labels: Sequence[str]) -> dict[str, tuple[str, str]]:
    """By label, each method but the first, and the one before it."""
    return {above: (above, below) for below, above in itertools.pairwise(labels)}


def _share(
    of: Mapping[str, Measured], part: tuple[str, str], ends: tuple[str, str], whole: Estimate
) -> dict[str, float]:
    """One change in percent of another."""
    share = contrast([(1.0, of[part[0]]), (-1.0, of[part[1]])]).value / whole.value
    terms = zip((1.0, -1.0, -share, share), (*part, *ends), strict=True)
    linear = contrast([(100 * weight / whole.value, of[label]) for weight, label in terms])
    # By construction the linear form is 0 at the estimate.
    low, high = linear.limits()
    return {"share": 100 * share, "from": 100 * share + low, "to": 100 * share + high}


def gains(found: Sequence[Found]) -> pd.DataFrame:
    """The relative gain of the whole ladder and of its last rung, beside the one that is printed.

    Args:
        found: as for `ladder`.

    Returns:
        By "from, to" the gain "ours" in percent of the first one's FPR95 with its interval, and the gain
        "printed" in Table 3, of the mean of the two columns that are trained on the first set.
    """
    of, paper = methods(found), paper_comparisons().loc[FIRST_SET].mean()
    first, below, last = [list(of)[place] for place in (0, -2, -1)]
    rows = {
        f"{before}, {last}": _with_interval("ours", relative_gain(of[last], of[before]))
        for before in (first, below)
    }
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("from, to")
    printed = 100 * (1 - paper["lower_mean"] / paper["higher_mean"])
    return table.assign(printed=[printed, np.nan])


def at_one_rate(own: Sequence[Found], shared: Sequence[Found]) -> pd.DataFrame:
    """AdaSample+* against HardNet+*, each at its own learning rate and both at one.

    Args:
        own: runs of both; those on the train set of `shared` are taken.
        shared: runs of both on one train set at one rate.

    Returns:
        A row either way: the "rate" and "mean" FPR95 of both, and the "change" in points from
        HardNet+* to AdaSample+* with its interval.
    """
    alike = [run for run in own if run.job.train_set == shared[0].job.train_set]
    rows = {}
    for name, found in {"each at its own": alike, "both at one": shared}.items():
        level = levels(found)
        changed = changes(found, {"": (LABELS["lower"], LABELS["higher"])})
        of_each = level.loc[[LABELS["higher"], LABELS["lower"]], ["rate", "mean"]].stack()
        rows[name] = pd.concat([of_each, pd.concat({"AdaSample+* − HardNet+*": changed.loc[""]})])
    return pd.DataFrame(rows).T.infer_objects().rename_axis("learning rates")


def _with_interval(name: str, estimate: Estimate) -> dict[str, float]:
    low, high = estimate.limits()
    return {name: estimate.value, "from": low, "to": high}


def ladder_figure(found: Sequence[Found], note: str) -> Figure:
    """`changes_figure` of the rungs, each change in the row of its rung."""
    return changes_figure(found, changes(found, _rungs([*levels(found).index])), note)


def changes_figure(found: Sequence[Found], changed: pd.DataFrame, note: str) -> Figure:
    """Each seed of each method as a dot with mean and interval, and beside them what changes.

    Args:
        found: as for `methods`.
        changed: of `changes`. Where it is named by methods, a change stands in its method's row; else
            changes have rows of their own.
        note: profile and data; stands above.
    """
    of, shown = methods(found), levels(found)
    labels = list(of)
    own_rows = not set(changed.index) <= set(labels)
    rows = max(len(labels), len(changed))
    with panels(DOUBLE_WIDTH, 0.9 + 0.27 * rows, 2, note=note) as (figure, [[left, right]]):
        plots.name_rows(left, labels)
        for height, (label, runs) in zip(range(len(labels))[::-1], of.items(), strict=True):
            seeds = runs.values.mean(axis=1)
            left.plot(seeds, np.full(len(seeds), height - 0.25), "o", color=PALETTE[5], ms=3, mew=0)
            _interval(left, height, shown.loc[label], "mean", PALETTE[0])
        left.set_xlabel("FPR95 (%)\nseeds, mean and 95% interval")
        names = list(changed.index) if own_rows else labels
        plots.name_rows(right, names if own_rows else [""] * len(labels))
        right.axvline(0, color=GREY, lw=1)
        for name, row in changed.iterrows():
            height = len(names) - 1 - names.index(name)
            _interval(right, height, row, "change", PALETTE[1])
            at = {"textcoords": "offset points", "xytext": (0, 4), "ha": "center", "fontsize": 7}
            right.annotate(f"{row['change']:+.1f}".replace("-", "−"), (row["change"], height), **at)
        what = "change" if own_rows else "change from the row above"
        right.set_xlabel(f"{what} (points)\n95% interval; left is better")
    return figure


def _interval(axes: Axes, height: float, row: pd.Series, value: str, colour: str) -> None:
    """A dot with a bar to both ends of its interval."""
    ends = [[row[value] - row["from"]], [row["to"] - row[value]]]
    axes.errorbar([row[value]], [height], xerr=ends, fmt="D", color=colour, ms=4, capsize=2.5)
