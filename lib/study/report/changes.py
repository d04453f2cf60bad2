"""Methods side by side: their levels, and what changes from one to another, with intervals.

FPR95 is in percent. Intervals are those of `lib.statistics.intervals` at 95%: over seeds, paired where
they are shared, and jointly over what was tested on; without ends where one seed leaves the spread
unknown.
"""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from lib.statistics.intervals import Estimate, Measured, contrast, difference
from lib.study.claims.measured import fpr95_by_column
from lib.study.open import Record
from lib.study.report import frames, phototour

WHOLE = "the whole ladder"


def fpr95_of(groups: Mapping[str, Sequence[Record]]) -> dict[str, Measured]:
    """FPR95 of groups of runs on one train set, (seeds, test sets), with resamples of test points.

    Args:
        groups: by the name to show, the runs of one method.
    """
    job, measured = next(iter(groups.values()))[0].job, {}
    for name, runs in groups.items():
        [measured[name]] = fpr95_by_column(runs, (job.train_set, *job.test_sets)).values()
    return measured


def methods(runs: Sequence[Record]) -> dict[str, Measured]:
    """`fpr95_of` each method by its label, of runs on one train set, in the order to show."""
    return fpr95_of(frames.by_label(runs))


def over_triplets(
    distances: np.ndarray, numbers: Callable[[np.ndarray], np.ndarray], **about: object
) -> Measured:
    """Numbers of each run's triplets, with resamples of these, the same for every run.

    Args:
        distances: (…, seeds, T).
        numbers: from (…, seeds, T) or (…, seeds, B, T) to (seeds, cells) or (seeds, cells, B).
        about: further fields of `Measured`.
    """
    count = distances.shape[-1]
    again = np.random.default_rng(0).integers(count, size=(400, count))
    drawn = numbers(distances[..., again])[None]
    return Measured(numbers(distances), drawn, count - 1, units="triplets", **about)


def with_interval(name: str, estimate: Estimate) -> dict[str, float]:
    """An estimate under a name, with the ends of its interval, "from" and "to"."""
    low, high = estimate.limits()
    return {name: estimate.value, "from": low, "to": high}


def levels(measured: Mapping[str, Measured]) -> pd.DataFrame:
    """By "method" its "mean", the interval "from" and "to", and the number of "seeds", at least 1."""
    rows = {
        name: with_interval("mean", contrast([(1.0, method)]))
        | {"seeds": len(np.atleast_2d(method.values))}
        for name, method in measured.items()
    }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("method")


def with_rates(table: pd.DataFrame, groups: Mapping[str, Sequence[Record]]) -> pd.DataFrame:
    """A table of `levels` after each method's learning "rate", that of its first run."""
    rates = [f"{groups[name][0].job.recipe.optimizer.options['lr']:g}" for name in table.index]
    return table.assign(rate=rates)[["rate", *table.columns]]


def levels_at_rates(runs: Sequence[Record]) -> pd.DataFrame:
    """`levels` of `methods`, after each one's learning "rate"."""
    return with_rates(levels(methods(runs)), frames.by_label(runs))


def changes(measured: Mapping[str, Measured], pairs: Mapping[str, tuple[str, str]]) -> pd.DataFrame:
    """By "changed" the "change" of the mean in points and its interval "from" and "to".

    Args:
        measured: methods by name.
        pairs: by what is changed, the names of the method with it and of the one without.
    """
    rows = {
        name: with_interval("change", difference(measured[after], measured[before]))
        for name, (after, before) in pairs.items()
    }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("changed")


def listed(points: pd.Series, decimals: int = 1) -> str:
    """Changes by name with their signs, e.g. "margin 2 (+1.3), w_i = 1 (−0.4)"; "none" of none."""
    texts = [f"{name} ({change:+.{decimals}f})" for name, change in points.items()]
    return ", ".join(texts).replace("(-", "(−") or "none"


def rungs(labels: Iterable[str]) -> dict[str, tuple[str, str]]:
    """The pairs of a ladder, for `changes`: by label each method but the first, and the one before."""
    return {above: (above, below) for below, above in itertools.pairwise(labels)}


def rungs_table(runs: Sequence[Record]) -> pd.DataFrame:
    """From one method to another one choice at a time: what each changes, and its share of the whole.

    Args:
        runs: of rungs, as for `methods`; each changes one choice of the one before it.

    Returns:
        By "rung" `levels_at_rates` under "FPR95", and under "change" and "share (%)" the changes with
        their intervals; last `WHOLE`, from the first rung to the last. Shares, by the delta method, are
        given only where the interval of the whole change lies below 0: without a gain there is none to
        share.
    """
    measured, shares = methods(runs), {}
    first, *_, last = measured
    steps, whole = rungs(measured), difference(measured[last], measured[first])
    for rung, (after, before) in steps.items() if whole.limits()[1] < 0 else ():
        share = difference(measured[after], measured[before]).value / whole.value
        # The linear form of the ratio's error, which is 0 at the estimate.
        terms = ((1.0, after), (-1.0, before), (-share, last), (share, first))
        error = contrast([(100 * weight / whole.value, measured[name]) for weight, name in terms])
        low, high = error.limits()
        shares[rung] = {"share": 100 * share, "from": 100 * share + low, "to": 100 * share + high}
    changed = changes(measured, steps | {WHOLE: (last, first)})
    parts = {
        "FPR95": levels_at_rates(runs),
        "change": changed.rename(columns={"change": "points"}),
        "share (%)": pd.DataFrame.from_dict(shares, orient="index", columns=["share", "from", "to"]),
    }
    table = pd.concat(parts, axis=1).reindex([*measured, WHOLE]).rename_axis("rung")
    return table.astype({("FPR95", "seeds"): "Int64"})


def surely_changed(table: pd.DataFrame) -> str:
    """Which rungs, and whether the whole ladder, lower FPR95 and which raise it, by intervals that leave
    out 0; of a table of `rungs_table`."""
    change = table["change"].dropna()
    sure = {"lowered": change["to"] < 0, "raised": change["from"] > 0}
    return "\n".join(
        f"FPR95 is surely {word} by: {listed(change.loc[rows, 'points'], 2)}"
        for word, rows in sure.items()
    )


def common_rows(printed: pd.DataFrame, measured: Mapping[str, Measured]) -> pd.DataFrame:
    """The rows that a printed table of UBC PhotoTour and ours share, in the order of the paper's means.

    Args:
        printed: of `lib.study.printed.printed`.
        measured: FPR95 by key, of `lib.study.claims.measured.fpr95_by_column`.

    Returns:
        Index (`key`, `label`); columns `paper` and `ours`, the mean FPR95 over the columns that ours
        has, `from`, `to` and `seeds` of `levels`, and whether the row was `trained`.
    """
    columns = next(iter(measured.values())).cells
    paper = phototour.printed_by_column(printed, columns)["Mean"].rename("paper")
    ours = levels(measured).rename(columns={"mean": "ours"})
    ours["trained"] = [method.values.ndim == 2 for method in measured.values()]
    table = paper.reset_index("label").join(ours, how="inner").set_index("label", append=True)
    return table.sort_values("paper", ascending=False, kind="stable")
