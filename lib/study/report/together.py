"""The four papers' methods on equal footing: what they reach, who is ahead, and what a step costs.

FPR95 and HPatches' numbers are in percent. Methods that are ranked have the same seeds.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations

import numpy as np
import pandas as pd
from scipy import stats

from lib.statistics.intervals import Estimate, Measured, contrast, side_by_side
from lib.statistics.significance import holm, vargha_delaney
from lib.study.artefacts.rows import tested_on
from lib.study.claims.measured import fpr95_by_column, hpatches_by_task
from lib.study.open import Found, Study
from lib.study.report import frames, hpatches
from lib.study.report.changes import levels, with_interval

FPR95, BASE = "FPR95", "HardNet+"
# By measure, 1 where lower is better and −1 where higher is.
SIGNS = {FPR95: 1, **dict.fromkeys(hpatches.TASKS, -1)}
LEVEL, DRAWS = 0.05, 20_000
Methods = Mapping[str, Measured]


def by_measure(found: Sequence[Found], study: Study) -> dict[str, dict[str, Measured]]:
    """Methods by label under each of `SIGNS`, with resamples of test points or of what sequences show; a
    cell is a column of PhotoTour's protocol, or a train set."""
    of = {FPR95: fpr95_by_column(found, study.place.source.tested)}
    by_set = [[run for run in found if run.job.train_set == name] for name in study.place.source.sets]
    runs = [hpatches.numbers(trained, tested_on(study)) for trained in by_set if trained]
    for task in hpatches.TASKS:
        parts = [hpatches_by_task(each, [task]) for each in runs]
        of[task] = {key: side_by_side([part[key] for part in parts]) for key in parts[0]}
    labels = {run.job.name: run.job.label for run in found}
    return {measure: {labels[key]: m for key, m in each.items()} for measure, each in of.items()}


def table(of: Mapping[str, Methods]) -> pd.DataFrame:
    """A row a method, under each measure its `lib.study.report.changes.levels`."""
    return pd.concat({measure: levels(each) for measure, each in of.items()}, axis=1)


# Torch's names of optimisers as readers know them.
OPTIMISERS = {"sgd": "SGD", "adam": "Adam"}
ByOptimiser = Mapping[str, Mapping[str, Methods]]


def by_optimiser(found: Sequence[Found], study: Study) -> dict[str, dict[str, dict[str, Measured]]]:
    """`by_measure` of the runs with each of `OPTIMISERS`, methods in one order under all."""
    runs = {name: [run for run in found if run.job.recipe.optimizer.name == name] for name in OPTIMISERS}
    order = list(dict.fromkeys(run.job.label for run in found))
    return {
        OPTIMISERS[name]: {
            measure: {label: methods[label] for label in order if label in methods}
            for measure, methods in by_measure(of, study).items()
        }
        for name, of in runs.items()
    }


def optimisers(of: ByOptimiser) -> pd.DataFrame:
    """A row a method, under each measure its mean with "SGD" and with "Adam", and the "change" from the
    first to the second, paired by seeds, with its interval "from" and "to"."""
    tables = {}
    for measure in SIGNS:
        sgd, adam = (of[name][measure] for name in OPTIMISERS.values())
        rows = {
            label: {name: of[name][measure][label].values.mean() for name in OPTIMISERS.values()}
            | with_interval("change", contrast([(1.0, adam[label]), (-1.0, sgd[label])]))
            for label in sgd
        }
        tables[measure] = pd.DataFrame.from_dict(rows, orient="index")
    return pd.concat(tables, axis=1).rename_axis("method")


def chosen(of: ByOptimiser, optimiser: Mapping[str, str]) -> dict[str, dict[str, Measured]]:
    """Each method under each measure with one optimiser.

    Args:
        of: of `by_optimiser`.
        optimiser: by method's label, a key of `OPTIMISERS`.
    """
    return {
        measure: {label: of[OPTIMISERS[name]][measure][label] for label, name in optimiser.items()}
        for measure in SIGNS
    }


def residual(of: Methods) -> tuple[float, int]:
    """The standard deviation of a run once its method and its seed are taken off, one for all methods,
    and its degrees of freedom: of three seeds a pair by itself has but two.

    Args:
        of: two methods or more, with the same seeds, two or more.
    """
    runs = np.stack([each.values.mean(axis=1) for each in of.values()])
    left = runs - runs.mean(axis=0) - runs.mean(axis=1, keepdims=True) + runs.mean()
    freedom = (runs.shape[0] - 1) * (runs.shape[1] - 1)
    return math.sqrt((left**2).sum() / freedom), freedom


def pairs(of: Methods, sign: int) -> pd.DataFrame:
    """Every two methods, the one with the better mean first.

    Args:
        of: as for `residual`, which intervals are by, and jointly over what was tested on.
        sign: of `SIGNS`.

    Returns:
        By "better" and "worse" how far the first is "ahead", with the interval "from" and "to"; the
        two-sided "p" of that, and by Holm's correction over all pairs "Holm"; the probability that a run
        of the first is better than one of the second, "improvement", with Newcombe's interval "low" to
        "high".
    """
    rows, left = {}, residual(of)
    for names in combinations(of, 2):
        better, worse = sorted(names, key=lambda name: sign * of[name].values.mean())
        ahead = _by_residual([(sign, of[worse]), (-sign, of[better])], left)
        effect = vargha_delaney(*(sign * of[name].values.mean(axis=1) for name in (worse, better)))
        chance = {"improvement": effect.value, "low": effect.low, "high": effect.high}
        rows[better, worse] = {**with_interval("ahead", ahead), "p": ahead.p_value(), **chance}
    found = pd.DataFrame.from_dict(rows, orient="index").rename_axis(["better", "worse"])
    found.insert(4, "Holm", holm(found["p"]))
    return found


def _by_residual(two: Sequence[tuple[float, Measured]], left: tuple[float, int]) -> Estimate:
    """The difference of two methods, over seeds by the `residual` of all."""
    difference, (spread, freedom) = contrast(two), left
    over_seeds = spread * math.sqrt(2 / difference.seeds)
    return replace(difference, over_seeds=over_seeds, seed_freedom=freedom)


def orders(names: Collection[str], sure: Collection[tuple[str, str]]) -> int:
    """In how many orders methods can stand, the better first, so that no sure pair is reversed."""

    @cache
    def left(placed: frozenset[str]) -> int:
        free = [n for n in names if n not in placed and all(a in placed for a, b in sure if b == n)]
        return sum(left(placed | {name}) for name in free) if free else 1

    return left(frozenset())


def ordered(of: Mapping[str, Methods]) -> pd.DataFrame:
    """By measure the number of "pairs", of how many the difference is "significant", p being 5% at most
    by Holm's correction, and how many "rankings" of all methods contradict none of these, "of" how many.
    """
    rows = {}
    for measure, each in of.items():
        found = pairs(each, SIGNS[measure])
        sure = list(found.index[found["Holm"] <= LEVEL])
        counts = {"pairs": len(found), "significant": len(sure), "rankings": orders(tuple(each), sure)}
        rows[measure] = {**counts, "of": math.factorial(len(each))}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("measure")


def draws(of: Methods, seed: int = 0) -> np.ndarray:
    """(`DRAWS`, methods) the means that other studies might find, seeds and test points drawn jointly.

    What is due to seeds is Student's by the `residual`, what a seed does to all methods left out, which
    changes no rank; what is due to test points is one of the resamples, the same for all. So of any two
    methods the difference has about the interval of `pairs`.
    """
    random, (spread, freedom) = np.random.default_rng(seed), residual(of)
    means = np.array([each.values.mean() for each in of.values()])
    seeds = len(next(iter(of.values())).values)
    length = np.sqrt(seeds * random.chisquare(freedom, (DRAWS, 1)) / freedom)
    over_seeds = spread * random.normal(size=(DRAWS, len(means))) / length
    moved = np.stack([_moved(each) for each in of.values()], axis=1)
    return means + over_seeds + moved[random.integers(len(moved), size=DRAWS)]


def _moved(of: Measured) -> np.ndarray:
    """(B,) how far test points drawn anew move a mean; zeros where none were drawn."""
    if of.resampled is None:
        return np.zeros(1)
    means = of.resampled[0].mean(axis=(0, 1), dtype=float)
    # As wide as they are once what is counted too often is taken off.
    spread = means.std(ddof=1)
    return (means - means.mean()) * (contrast([(1.0, of)]).over_units / spread if spread else 1.0)


def ranks(of: Methods, sign: int) -> pd.DataFrame:
    """By "method" the "rank" of its mean, 1 the best; "from" and "to", between which it lies in 95% of
    `draws`; and the share of them in which it is "first"."""
    ranked = stats.rankdata(sign * draws(of), axis=1)
    low, high = np.quantile(ranked, [LEVEL / 2, 1 - LEVEL / 2], axis=0, method="inverted_cdf")
    rank = stats.rankdata([sign * each.values.mean() for each in of.values()])
    columns = {"rank": rank, "from": low, "to": high, "first": (ranked == 1).mean(axis=0)}
    return pd.DataFrame(columns, pd.Index(of, name="method"))


def cost(found: Sequence[Found], of: Methods) -> pd.DataFrame:
    """What a step costs beside what it gains.

    Args:
        found: of `lib.study.artefacts.together`, on one train set.
        of: FPR95 of those that are compared.

    Returns:
        By "method" the milliseconds "ms" of a step in its fastest run, which other work on the machine
        slowed least; "times" those of HardNet+; and the "change" of FPR95 from HardNet+'s in points,
        with its interval, by the `residual` as in `pairs`.
    """
    steps = frames.by_label([run for run in found if run.job.label in of])
    fastest = {
        label: min(1000 * run.content["seconds"] / run.content["curve"]["step"][-1] for run in runs)
        for label, runs in steps.items()
    }
    left = residual(of)
    against = {
        label: with_interval("change", _by_residual([(1.0, each), (-1.0, of[BASE])], left))
        for label, each in of.items()
        if label != BASE
    }
    table = pd.DataFrame({"ms": fastest}).rename_axis("method")
    table["times"] = table["ms"] / fastest[BASE]
    return table.join(pd.DataFrame.from_dict(against, orient="index"))
