"""The four papers' methods on equal footing: what they reach, who is ahead, and what a step costs.

Rates (FPR95, in percent) are compared by ratios, on their logarithms, where spreads over seeds are alike
from method to method; average precision (percent) is compared in points. Methods that are ranked have
the same seeds.
"""

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations

import numpy as np
import pandas as pd
from scipy import stats

from lib import profiles
from lib.data.scenes.sets import IMAGES_OF, WIDE
from lib.statistics.intervals import Estimate, Measured, contrast, difference, residual, side_by_side
from lib.statistics.significance import holm, vargha_delaney
from lib.study.artefacts.rows import tested_on
from lib.study.artefacts.searches import NoSearch
from lib.study.artefacts.together import equal_footing
from lib.study.claims.measured import by_method, fpr95_by_column, hpatches_by_task
from lib.study.open import Record, Study, manifest_path, on_record, open_study
from lib.study.report import frames, hpatches
from lib.study.report.changes import levels, with_interval

FPR95, FPR95_WIDE, PHOTOGRAPHS = "FPR95", "FPR95 of wide pairs", "matching of photographs"
BASE = "HardNet+"
RATES = (FPR95, FPR95_WIDE)
# By measure, 1 where lower is better and −1 where higher is.
SIGNS = {**dict.fromkeys(RATES, 1), **dict.fromkeys((PHOTOGRAPHS, *hpatches.TASKS), -1)}
# Px up to which a keypoint of another photograph is a right answer.
TOLERANCE = 3
LEVEL, DRAWS = 0.05, 20_000
Methods = Mapping[str, Measured]


def by_measure(runs: Sequence[Record], study: Study) -> dict[str, dict[str, Measured]]:
    """Methods by label under each of `SIGNS` that the study's data has.

    Of FPR95 a cell is a column of PhotoTour's protocol, with resamples of test points; of HPatches'
    tasks a train set, with resamples of what sequences show. Real places have wide pairs and matching
    between photographs besides, of which a cell is a place.
    """
    source, labels = study.setting.source, {run.job.name: run.job.label for run in runs}
    measured = {FPR95: fpr95_by_column(runs, source.tested)}
    if source.scenes is not None:
        rates, matching = frames.fpr95(runs), frames.tidy(runs, "image_pairs")
        measured[FPR95_WIDE] = _by_place(rates[rates["test_set"].str.endswith(WIDE)])
        matching = matching[matching["test_set"].str.endswith(IMAGES_OF)]
        measured[PHOTOGRAPHS] = _by_place(matching[matching["metric"] == f"ap.{TOLERANCE}"])
    if source.own_hpatches is not None:
        by_set = [[run for run in runs if run.job.train_set == name] for name in source.sets]
        numbers = [hpatches.numbers(trained, tested_on(study)) for trained in by_set if trained]
        for task in hpatches.TASKS:
            parts = [hpatches_by_task(table, [task]) for table in numbers]
            measured[task] = {key: side_by_side([part[key] for part in parts]) for key in parts[0]}
    return {
        measure: {labels[key]: values for key, values in methods.items()}
        for measure, methods in measured.items()
    }


def _by_place(frame: pd.DataFrame) -> dict[str, Measured]:
    """Of a tidy frame each method by key, a cell a test set that all of them have."""
    table = frames.wide(frame, "test_set").dropna(axis="columns")
    return by_method(table, list(table), None)


def on_scale(measure: str, methods: Methods) -> Methods:
    """Methods' values as a measure compares them: logarithms of rates, all else as it is."""
    if measure not in RATES:
        return methods
    return {label: method.logarithm() for label, method in methods.items()}


def shown(measure: str, name: str, estimate: Estimate) -> dict[str, float]:
    """An estimate on a measure's scale with its interval, of rates as a ratio."""
    row = with_interval(name, estimate)
    return {key: math.exp(value) for key, value in row.items()} if measure in RATES else row


def table(by_measure: Mapping[str, Methods]) -> pd.DataFrame:
    """A row a method, under each measure its `lib.study.report.changes.levels`."""
    return pd.concat({measure: levels(methods) for measure, methods in by_measure.items()}, axis=1)


# Torch's names of optimisers as readers know them.
OPTIMISERS = {"sgd": "SGD", "adam": "Adam"}
ByOptimiser = Mapping[str, Mapping[str, Methods]]


def by_optimiser(runs: Sequence[Record], study: Study) -> dict[str, dict[str, dict[str, Measured]]]:
    """`by_measure` of the runs with each of `OPTIMISERS`, methods in one order under all."""
    runs = [run for run in runs if run.job.recipe]
    order, measured = list(dict.fromkeys(run.job.label for run in runs)), {}
    for key, name in OPTIMISERS.items():
        trained = [run for run in runs if run.job.recipe.optimizer.name == key]
        measured[name] = {
            measure: {label: methods[label] for label in order if label in methods}
            for measure, methods in by_measure(trained, study).items()
        }
    return measured


def optimisers(measured: ByOptimiser) -> pd.DataFrame:
    """What Adam in place of SGD changes, a row a method.

    Returns:
        Under each measure the mean with "SGD" and with "Adam"; the "ratio" of rates, or the "change" in
        points, from the first to the second, with its interval "from" and "to" by the `residual` of all
        methods with either; and its p by Holm's correction over the methods, "Holm".
    """
    tables = {}
    for measure in measured["SGD"]:
        means = {name: measured[name][measure] for name in OPTIMISERS.values()}
        sgd, adam = (on_scale(measure, methods) for methods in means.values())
        left = residual([*sgd.values(), *adam.values()])
        rows, name = {}, "ratio" if measure in RATES else "change"
        for label in sgd:
            estimate = difference(adam[label], sgd[label], left)
            row = {optimiser: methods[label].values.mean() for optimiser, methods in means.items()}
            rows[label] = row | shown(measure, name, estimate) | {"Holm": estimate.p_value()}
        tables[measure] = pd.DataFrame.from_dict(rows, orient="index")
        tables[measure]["Holm"] = holm(tables[measure]["Holm"])
    return pd.concat(tables, axis=1).rename_axis("method")


def suited(runs: Sequence[Record], optimiser: Mapping[str, str]) -> list[Record]:
    """The runs of each method with one optimiser, and descriptors that nobody trains.

    Args:
        runs: of `lib.study.artefacts.together.equal_footing`.
        optimiser: by method's label, a key of `OPTIMISERS`.
    """
    order = list(optimiser)
    trained = [run for run in runs if run.job.recipe]
    chosen = [run for run in trained if run.job.recipe.optimizer.name == optimiser[run.job.label]]
    untrained = [run for run in runs if run.job.recipe is None]
    return untrained + sorted(chosen, key=lambda run: order.index(run.job.label))


def pairs(measure: str, methods: Methods) -> pd.DataFrame:
    """Every two methods, the one with the better mean first.

    Args:
        measure: of `SIGNS`.
        methods: as for `residual`, which intervals are by, and jointly over what was tested on.

    Returns:
        By "better" and "worse" the "ratio" of the second's rate to the first's, or how many points the
        first is "ahead", with the interval "from" and "to"; the two-sided "p" of that, and by Holm's
        correction over all pairs "Holm"; the probability that a run of the first is better than one of
        the second, "improvement", with Newcombe's interval "low" to "high".
    """
    methods, sign = on_scale(measure, methods), SIGNS[measure]
    rows, left, name = {}, residual(methods.values()), "ratio" if measure in RATES else "ahead"
    for names in combinations(methods, 2):
        better, worse = sorted(names, key=lambda label: sign * methods[label].values.mean())
        ahead = contrast([(sign, methods[worse]), (-sign, methods[better])], left)
        runs = (sign * methods[label].values.mean(axis=1) for label in (worse, better))
        effect = vargha_delaney(*runs)
        chance = {"improvement": effect.value, "low": effect.low, "high": effect.high}
        rows[better, worse] = {**shown(measure, name, ahead), "p": ahead.p_value(), **chance}
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis(["better", "worse"])
    table.insert(4, "Holm", holm(table["p"]))
    return table


def orders(names: Collection[str], sure: Collection[tuple[str, str]]) -> int:
    """In how many orders methods can stand, the better first, so that no sure pair is reversed."""

    @cache
    def left(placed: frozenset[str]) -> int:
        free = [n for n in names if n not in placed and all(a in placed for a, b in sure if b == n)]
        return sum(left(placed | {name}) for name in free) if free else 1

    return left(frozenset())


def ordered(measured: Mapping[str, Methods]) -> pd.DataFrame:
    """By measure the number of "pairs", of how many the difference is "significant", p being 5% at most
    by Holm's correction, and how many "rankings" of all methods contradict none of these, "of" how many.
    """
    rows = {}
    for measure, methods in measured.items():
        table = pairs(measure, methods)
        sure = list(table.index[table["Holm"] <= LEVEL])
        rows[measure] = {
            "pairs": len(table),
            "significant": len(sure),
            "rankings": orders(tuple(methods), sure),
            "of": math.factorial(len(methods)),
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("measure")


def draws(methods: Methods, seed: int = 0) -> np.ndarray:
    """(`DRAWS`, methods) the means that other studies might find, seeds and test points drawn jointly.

    What is due to seeds is Student's by the `residual`, what a seed does to all methods left out, which
    changes no rank; what is due to test points is one of the resamples, the same for all. So of any two
    methods the difference has about the interval of `pairs`.

    Args:
        methods: of `on_scale`.
        seed: of the draws.
    """
    random, (spread, freedom) = np.random.default_rng(seed), residual(methods.values())
    means = np.array([method.values.mean() for method in methods.values()])
    seeds = len(next(iter(methods.values())).values)
    length = np.sqrt(seeds * random.chisquare(freedom, (DRAWS, 1)) / freedom)
    over_seeds = spread * random.normal(size=(DRAWS, len(means))) / length
    moved = np.stack([_moved(method) for method in methods.values()], axis=1)
    return means + over_seeds + moved[random.integers(len(moved), size=DRAWS)]


def _moved(method: Measured) -> np.ndarray:
    """(B,) how far test points drawn anew move a mean; zeros where none were drawn."""
    if method.resampled is None:
        return np.zeros(1)
    means = method.resampled[0].mean(axis=(0, 1), dtype=float)
    # As wide as they are once what is counted too often is taken off.
    spread = means.std(ddof=1)
    return (means - means.mean()) * (contrast([(1.0, method)]).over_units / spread if spread else 1.0)


def ranks(measure: str, methods: Methods) -> pd.DataFrame:
    """By "method" the "rank" of its mean, 1 the best; "from" and "to", between which it lies in 95% of
    `draws`; and the share of them in which it is "first"."""
    methods, sign = on_scale(measure, methods), SIGNS[measure]
    ranked = stats.rankdata(sign * draws(methods), axis=1)
    low, high = np.quantile(ranked, [LEVEL / 2, 1 - LEVEL / 2], axis=0, method="inverted_cdf")
    rank = stats.rankdata([sign * method.values.mean() for method in methods.values()])
    columns = {"rank": rank, "from": low, "to": high, "first": (ranked == 1).mean(axis=0)}
    return pd.DataFrame(columns, pd.Index(methods, name="method"))


@dataclass(frozen=True)
class Standing:
    """Methods under one measure of one size and kind of data, the lower the better.

    Attributes:
        means: by method and optimiser.
        draws: (`DRAWS`, methods) of `draws`.
    """

    means: pd.Series
    draws: pd.DataFrame


def standings(runs: Sequence[Record], study: Study) -> dict[str, Standing]:
    """By measure how methods stand, each with each optimiser that it was trained with."""
    named = [
        replace(run, job=replace(run.job, label=f"{run.job.label}, {OPTIMISERS[optimiser]}"))
        for run in runs
        if run.job.recipe
        for optimiser in [run.job.recipe.optimizer.name]
    ]
    standing = {}
    for measure, methods in by_measure(named, study).items():
        scaled, sign = on_scale(measure, methods), SIGNS[measure]
        means = pd.Series({label: sign * method.values.mean() for label, method in scaled.items()})
        standing[measure] = Standing(means, pd.DataFrame(sign * draws(scaled), columns=means.index))
    return standing


def standings_on_record() -> dict[str, dict[str, Standing]]:
    """`standings` by size and kind of data, of those whose records of equal footing are all there."""
    found = {}
    for profile, data in itertools.product(profiles.PROFILES, ("mini", "photos", "scenes")):
        if manifest_path(profile, data).exists():
            study = open_study(profile, data)
            with suppress(NoSearch):
                if runs := on_record(study, equal_footing(study)):
                    found[study.where] = standings(runs, study)
    return found


def agreement(one: Standing, other: Standing) -> dict[str, float]:
    """How far two orders of the same methods agree.

    Returns:
        How many "methods" both have; Kendall's "tau" of their means, 1 for one order and −1 for the
        reverse; "from" and "to", between which it lies in 95% of joint draws of seeds and test points.
    """
    common = one.means.index.intersection(other.means.index)
    first, second = np.array(list(combinations(range(len(common)), 2))).T

    def signs(values: np.ndarray) -> np.ndarray:
        return np.sign(values[..., first] - values[..., second])

    # Both began from one seed; in reverse the second's draws are independent of the first's.
    drawn = signs(one.draws[common].to_numpy()) * signs(other.draws[common].to_numpy()[::-1])
    low, high = np.quantile(drawn.mean(axis=1), [LEVEL / 2, 1 - LEVEL / 2])
    tau = stats.kendalltau(one.means[common], other.means[common]).statistic
    return {"methods": len(common), "tau": tau, "from": low, "to": high}


def last_fifth(runs: Sequence[Record]) -> pd.Series:
    """By method's label by how many percent FPR95 fell over the last fifth of training, the mean over
    runs and over the test sets' pairs on which training was followed."""
    epochs = frames.epochs(runs)
    last = epochs["epoch"].max()
    means = epochs.pivot_table("FPR95 (%)", "label", "epoch", sort=False)
    return 100 * (1 - means[last] / means[round(0.8 * last)])


def conclusion(
    methods: Mapping[str, Methods], runs: Sequence[Record], measured: ByOptimiser | None = None
) -> str:
    """What the comparison comes to, in a few sentences.

    Args:
        methods: under each measure, the trained ones.
        runs: their records.
        measured: of `by_optimiser`, where each method was trained with either.
    """
    rates, counts = methods[FPR95], ordered(methods)
    best = min(rates, key=lambda label: rates[label].values.mean())
    decided = ", ".join(f"{row['significant']} in {name}" for name, row in counts.iterrows())
    sentences = [
        f"{best} has the lowest FPR95, {rates[best].values.mean():.2f}%.",
        f"Of {counts['pairs'].iloc[0]} pairs of methods these differ significantly: {decided}.",
    ]
    if measured is not None:
        adam = optimisers(measured)[FPR95]
        least, most = adam["ratio"].idxmin(), adam["ratio"].idxmax()
        sentences.append(
            f"Adam in place of SGD multiplies FPR95 by {adam['ratio'][least]:.2f} ({least}) to "
            f"{adam['ratio'][most]:.2f} ({most}), significantly for {(adam['Holm'] <= LEVEL).sum()} of "
            f"{len(adam)} methods."
        )
    falling = last_fifth(runs)
    sentences.append(
        f"FPR95 fell by {falling.mean():.0f}% over the last fifth of training ({falling.min():.0f} to "
        f"{falling.max():.0f}% by method), so the order may change with longer training."
    )
    return "\n".join(sentences)


def cost(runs: Sequence[Record], methods: Methods) -> pd.DataFrame:
    """What a step costs beside what it gains.

    Args:
        runs: of `lib.study.artefacts.together`, on one train set.
        methods: FPR95 of those that are compared.

    Returns:
        By "method" the milliseconds "ms" of a step in its fastest run, which other work on the machine
        slowed least; "times" those of HardNet+; and the "ratio" of its FPR95 to HardNet+'s with its
        interval, by the `residual` as in `pairs`.
    """
    steps = frames.by_label([run for run in runs if run.job.label in methods])
    fastest = {
        label: min(1000 * run.content["seconds"] / run.content["curve"]["step"][-1] for run in own)
        for label, own in steps.items()
    }
    methods = on_scale(FPR95, methods)
    left, against = residual(methods.values()), {}
    for label in [label for label in methods if label != BASE]:
        estimate = difference(methods[label], methods[BASE], left)
        against[label] = shown(FPR95, "ratio", estimate)
    table = pd.DataFrame({"ms": fastest}).reindex(list(methods)).rename_axis("method")
    table["times"] = table["ms"] / fastest[BASE]
    return table.join(pd.DataFrame.from_dict(against, orient="index"))
