"""Comparisons of methods: their mean FPR95 and the changes from one to another, with intervals.

FPR95 is in percent. Intervals are those of `lib.statistics.intervals` at 95%: over seeds, paired where
methods share them, and jointly over the test points or sequences. They have no ends if a single seed
leaves the spread unknown.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd

from lib.statistics.intervals import Estimate, Measured, contrast, difference
from lib.statistics.significance import holm
from lib.study.claims import Methods
from lib.study.claims.measured import fpr95_by_column
from lib.study.open import Runs
from lib.study.report import frames

WHOLE, DEFAULT = "the whole ladder", "default"


def intervals(estimates: Mapping[Hashable, Estimate], name: str) -> pd.DataFrame:
    """Tabulate estimates, one per row: the value, and the ends of its interval, "from" and "to".

    Args:
        estimates: row's name -> estimate.
        name: the value's column. For "ratio" the estimates are logarithms, and their exp is shown.
    """
    rows = [(estimate.value, *estimate.limits()) for estimate in estimates.values()]
    table = pd.DataFrame(rows, pd.Index(list(estimates)), [name, "from", "to"])
    return np.exp(table) if name == "ratio" else table


def with_tests(estimates: Mapping[Hashable, Estimate], name: str) -> pd.DataFrame:
    """Add to `intervals` the two-sided "p" that the estimate is 0, and "Holm", the corrected p.

    Holm's correction is over all rows.
    """
    p_values = [estimate.p_value() for estimate in estimates.values()]
    return intervals(estimates, name).assign(p=p_values, Holm=holm(p_values))


def fpr95_of(groups: Mapping[str, Runs]) -> Methods:
    """FPR95 of groups of runs on one train set, (seeds, test sets), with resamples of test points.

    Args:
        groups: name to show -> the runs of one method.
    """
    job = next(iter(groups.values()))[0].job
    measured = {}
    for name, runs in groups.items():
        [measured[name]] = fpr95_by_column(runs, (job.train_set, *job.test_sets)).values()
    return measured


def methods(runs: Runs) -> Methods:
    """Return `fpr95_of` each method, by label, for runs on one train set, in the order to show."""
    return fpr95_of(frames.by_label(runs))


def over_triplets(
    distances: np.ndarray, numbers: Callable[[np.ndarray], np.ndarray], **about: object
) -> Measured:
    """Compute numbers from each run's triplets, with resamples of these triplets.

    The same indices are drawn for every run.

    Args:
        distances: (…, seeds, T).
        numbers: function from (…, seeds, T) or (…, seeds, B, T) to (seeds, cells) or (seeds, cells, B).
        about: further fields of `Measured`.
    """
    count = distances.shape[-1]
    again = np.random.default_rng(0).integers(count, size=(400, count))
    drawn = numbers(distances[..., again])[None]
    return Measured(numbers(distances), drawn, count - 1, units="triplets", **about)


def levels(measured: Methods) -> pd.DataFrame:
    """Tabulate by "method" the "mean", its interval "from" and "to", and the number of "seeds" (≥ 1)."""
    means = {name: contrast([(1.0, method)]) for name, method in measured.items()}
    table = intervals(means, "mean").rename_axis("method")
    return table.assign(seeds=[estimate.seeds for estimate in means.values()])


def levels_at_rates(runs: Runs) -> pd.DataFrame:
    """Return the `levels` of `methods`, each preceded by its learning "rate"."""
    lr = {run.job.label: f"{run.job.recipe.optimizer.options['lr']:g}" for run in runs}
    return pd.DataFrame({"rate": lr}).join(levels(methods(runs))).rename_axis("method")


def changes(measured: Methods, pairs: Mapping[str, tuple[str, str]]) -> pd.DataFrame:
    """Tabulate by "changed" the "change" of the mean in points, with its interval "from" and "to".

    Args:
        measured: method's name -> values.
        pairs: name of the change -> names of the method with it and of the method without it.
    """
    differences = {name: difference(measured[a], measured[b]) for name, (a, b) in pairs.items()}
    return intervals(differences, "change").rename_axis("changed")


def listed(points: pd.Series, decimals: int = 1) -> str:
    """List changes by name with their signs, e.g. "margin 2 (+1.3), w_i = 1 (−0.4)", or "none"."""
    texts = [f"{name} ({change:+.{decimals}f})" for name, change in points.items()]
    return ", ".join(texts).replace("(-", "(−") or "none"


def rungs(labels: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Pair each method of a ladder but the first with the one before it, by label, for `changes`."""
    return {above: (above, below) for below, above in pairwise(labels)}


def rungs_table(runs: Runs) -> pd.DataFrame:
    """Tabulate a ladder of methods: the change by each choice, and its share of the whole change.

    Args:
        runs: runs of the rungs, as for `methods`; each rung changes one choice of the one before it.

    Returns:
        Indexed by "rung": `levels_at_rates` under "FPR95", and the changes and shares with their
        intervals under "change" and "share (%)". The last row is `WHOLE`, from the first rung to the
        last. Shares, by the delta method, are given only if the interval of the whole change lies below
        0, because without a gain there is nothing to share.
    """
    measured = methods(runs)
    first, *_, last = measured
    steps = rungs(measured)
    whole = difference(measured[last], measured[first])
    shares = {}
    for rung, (after, before) in steps.items() if whole.limits()[1] < 0 else ():
        share = difference(measured[after], measured[before]).value / whole.value
        # The linear form of the ratio's error, which is 0 at the estimate.
        terms = ((1.0, after), (-1.0, before), (-share, last), (share, first))
        error = contrast([(100 * weight / whole.value, measured[name]) for weight, name in terms])
        shares[rung] = replace(error, value=100 * share)
    parts = {
        "FPR95": levels_at_rates(runs),
        "change": changes(measured, steps | {WHOLE: (last, first)}).rename(columns={"change": "points"}),
        "share (%)": intervals(shares, "share"),
    }
    table = pd.concat(parts, axis=1).reindex([*measured, WHOLE]).rename_axis("rung")
    return table.astype({("FPR95", "seeds"): "Int64"})


def significantly_changed(table: pd.DataFrame) -> str:
    """Say in two sentences which rungs of a `rungs_table` lower FPR95, and which raise it.

    The whole ladder is included. A change counts if its interval excludes 0.
    """
    change = table["change"].dropna()
    sure = {"lowered": change["to"] < 0, "raised": change["from"] > 0}
    return "\n".join(
        f"FPR95 is significantly {word} by: {listed(change.loc[rows, 'points'], 2)}"
        for word, rows in sure.items()
    )


def common_rows(printed: pd.DataFrame, measured: Methods) -> pd.DataFrame:
    """Return the rows common to a printed table of UBC PhotoTour and ours, sorted by the paper's means.

    Args:
        printed: from `lib.study.printed.printed`.
        measured: FPR95 by key, from `lib.study.claims.measured.fpr95_by_column`.

    Returns:
        Index (`key`, `label`); columns `paper` and `ours`, the mean FPR95 over the columns that ours
        has, `from`, `to` and `seeds` of `levels`, and `trained`, whether the method was trained. The
        highest mean of the paper comes first.
    """
    columns = next(iter(measured.values())).cells
    paper = frames.printed_by_column(printed, columns)["Mean"].rename("paper")
    ours = levels(measured).rename(columns={"mean": "ours"})
    ours["trained"] = [method.values.ndim == 2 for method in measured.values()]
    table = paper.reset_index("label").join(ours, how="inner").set_index("label", append=True)
    return table.sort_values("paper", ascending=False, kind="stable")


def effects(by_recipe: Mapping[str, Methods]) -> pd.DataFrame:
    """Tabulate how much each option changes FPR95 from that of the default.

    Args:
        by_recipe: recipe -> option -> FPR95 in percent, (seeds, test sets); `DEFAULT` is an option of
            each recipe.

    Returns:
        One row per option, in the order given: `recipe`, `option`, `mean` FPR95 (%), its standard
        deviation `sd` over the `seeds`, and the `change` from the recipe's default in points, with its
        interval `from` and `to`. The default's own change is missing.
    """
    tables = {}
    for recipe, options in by_recipe.items():
        pairs = {option: (option, DEFAULT) for option in options if option != DEFAULT}
        spread = [method.values.mean(axis=1).std(ddof=1) for method in options.values()]
        table = levels(options)[["mean", "seeds"]].assign(sd=spread)
        tables[recipe] = table.join(changes(options, pairs))
    return pd.concat(tables, names=["recipe", "option"]).reset_index()
