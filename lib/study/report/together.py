"""The four papers' methods on equal footing: their numbers, which is ahead, and what a step costs.

Rates (FPR95, in percent) are compared by ratios, on their logarithms, where spreads over seeds are alike
from method to method; average precision (percent) is compared in points. Methods that are ranked have
the same seeds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd

from lib.data.scenes.sets import IMAGES_OF, WIDE
from lib.statistics import significance
from lib.statistics.intervals import contrast, difference, residual
from lib.study.artefacts.together import UNDAMPED_KEYS
from lib.study.claims import Claim, Methods, Values
from lib.study.claims.measured import by_method, fpr95_by_column, hpatches_by_task, values_of
from lib.study.open import Runs, Study
from lib.study.report import frames
from lib.study.report.changes import intervals, levels, with_tests

FPR95, FPR95_WIDE, PHOTOGRAPHS = "FPR95", "FPR95 of wide pairs", "matching of photographs"
BASE = "HardNet+"
RATES = (FPR95, FPR95_WIDE)
# By measure, 1 where lower is better and −1 where higher is.
SIGNS = {**dict.fromkeys(RATES, 1), **dict.fromkeys((PHOTOGRAPHS, *frames.TASKS), -1)}
# Torch's names of optimisers as readers know them.
OPTIMISERS = {"sgd": "SGD", "adam": "Adam"}
# Px up to which a keypoint of another photograph is a right answer.
TOLERANCE = 3
LEVEL = 0.05
# By paper, what its claims call runs on equal footing.
CLAIM_KEYS = {
    "tcdesc": {"equal_tcdesc_hn_aug": "tcdesc_hn_aug", "equal_hardnet_aug_undamped": "hardnet_long"},
    "dsm": {"dsm_long": "dsm_aug", "equal_hardnet_aug_undamped": "real_margin_1"},
}


def by_measure(runs: Runs, study: Study) -> dict[str, Methods]:
    """Methods by label, all trained on one set, under each of `SIGNS` that the study's data has.

    Of FPR95 a cell is a column of PhotoTour's protocol, with resamples of test points. HPatches' tasks
    have one, with resamples of what sequences show. Real places have wide pairs and matching
    between photographs besides, of which a cell is a place.
    """
    source = study.source
    measured = {FPR95: fpr95_by_column(runs, source.tested)}
    if source.scenes is not None:
        matching = frames.tidy(runs, "image_pairs").query(f"metric == 'ap.{TOLERANCE}'")
        measured[FPR95_WIDE] = _by_place(frames.fpr95(runs), WIDE)
        measured[PHOTOGRAPHS] = _by_place(matching, IMAGES_OF)
    if source.own_hpatches is not None:
        numbers = frames.hpatches_numbers(runs)
        measured |= {task: hpatches_by_task(numbers, [task]) for task in frames.TASKS}
    return {
        measure: {method.label: method for method in methods.values()}
        for measure, methods in measured.items()
    }


def _by_place(frame: pd.DataFrame, ending: str) -> Methods:
    """The methods of a tidy frame by key. A cell is a test set whose name has this ending and on which
    all methods were measured."""
    of_kind = frame[frame["test_set"].str.endswith(ending)]
    return by_method(frames.wide(of_kind, "test_set").dropna(axis="columns"))


def without_dampening(runs: Runs) -> Runs:
    """Runs with one SGD for all: of a method that was trained without its authors' dampening, too, that
    run in the other's place and under its label."""
    alike = {(run.job.name, run.job.seed): run for run in runs if run.job.name not in UNDAMPED_KEYS}
    for run in runs:
        if key := UNDAMPED_KEYS.get(run.job.name):
            label = alike[key, run.job.seed].job.label
            alike[key, run.job.seed] = replace(run, job=replace(run.job, label=label))
    return list(alike.values())


def claimed_values(claim: Claim, runs: Runs, sets: Sequence[str]) -> Values:
    """`lib.study.claims.measured.values_of` runs on equal footing, under the names that a claim of DSM
    or TCDesc, whose setting that is, has for them."""
    named = CLAIM_KEYS[claim.paper]
    renamed = [
        replace(run, job=replace(run.job, name=named.get(run.job.name, run.job.name))) for run in runs
    ]
    return values_of(claim, renamed, sets)


def by_optimiser(runs: Runs, study: Study) -> dict[str, dict[str, Methods]]:
    """`by_measure` of the runs with each of `OPTIMISERS`, the methods in the same order under each."""
    trained = [run for own in frames.by_label(runs).values() for run in own if run.job.recipe]
    return {
        name: by_measure([run for run in trained if run.job.recipe.optimizer.name == key], study)
        for key, name in OPTIMISERS.items()
    }


def on_scale(measure: str, methods: Methods) -> Methods:
    """Methods' values as a measure compares them: logarithms of rates, all else as it is."""
    if measure not in RATES:
        return methods
    return {label: method.logarithm() for label, method in methods.items()}


def optimisers(measured: Mapping[str, Mapping[str, Methods]]) -> pd.DataFrame:
    """The change that one optimiser makes in place of another, one row for each method.

    Args:
        measured: by optimiser, of two, the methods under each measure, e.g. of `by_optimiser`; the
            second has all that the first has.

    Returns:
        Under each measure the mean with either; the "ratio" of rates, or the "change" in points, from
        the first to the second, with its interval "from" and "to" by the `residual` of all methods with
        either; and its p by Holm's correction over the methods, "Holm".
    """
    tables = {}
    for measure in next(iter(measured.values())):
        either = {name: measures[measure] for name, measures in measured.items()}
        before, after = (on_scale(measure, methods) for methods in either.values())
        spread = residual([*before.values(), *after.values()])
        changed = {label: difference(after[label], before[label], spread) for label in before}
        means = pd.DataFrame({name: levels(methods)["mean"] for name, methods in either.items()})
        change = with_tests(changed, "ratio" if measure in RATES else "change").drop(columns="p")
        tables[measure] = means.loc[[*before]].join(change)
    return pd.concat(tables, axis=1).rename_axis("method")


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
    methods = on_scale(measure, methods)
    sign = SIGNS[measure]
    runs = pd.DataFrame({label: sign * m.values.mean(axis=1) for label, m in methods.items()})
    spread = residual(methods.values())
    in_order = [sorted(two, key=runs.mean().get) for two in combinations(methods, 2)]
    ahead = {
        (better, worse): contrast([(sign, methods[worse]), (-sign, methods[better])], spread)
        for better, worse in in_order
    }
    table = with_tests(ahead, "ratio" if measure in RATES else "ahead").rename_axis(["better", "worse"])
    better, worse = (runs[list(side)] for side in zip(*in_order, strict=True))
    effect = significance.vargha_delaney(worse, better)
    table[["improvement", "low", "high"]] = np.transpose(effect)
    return table


def lower_better(measure: str, methods: Methods) -> pd.Series:
    """By label the mean on a measure's scale, the lower the better."""
    scaled = on_scale(measure, methods)
    return SIGNS[measure] * pd.Series({label: method.values.mean() for label, method in scaled.items()})


def draws(measure: str, methods: Methods) -> pd.DataFrame:
    """Means as of `lower_better` that other studies might find; see `significance.draws`."""
    drawn = significance.draws(list(on_scale(measure, methods).values()))
    return pd.DataFrame(SIGNS[measure] * drawn, columns=list(methods))


def ranks(measure: str, methods: Methods) -> pd.DataFrame:
    """By "method" the "rank" of its mean, 1 the best; "from" and "to", between which it lies in 95% of
    `draws`; and the share of them in which it is "first"."""
    drawn = draws(measure, methods).rank(axis=1)
    low, high = np.quantile(drawn, [LEVEL / 2, 1 - LEVEL / 2], axis=0, method="inverted_cdf")
    ranks = {"rank": lower_better(measure, methods).rank(), "from": low, "to": high}
    return pd.DataFrame(ranks).assign(first=(drawn == 1).mean()).rename_axis("method")


def agreement(one: tuple[str, Methods], other: tuple[str, Methods]) -> dict[str, float]:
    """How far two orders of the same methods agree.

    Args:
        one, other: methods and the measure that they stand by.

    Returns:
        How many "methods" both have; Kendall's "tau" of their means, 1 for one order and −1 for the
        reverse; "from" and "to", between which it lies in 95% of joint draws of seeds and test points.
    """
    common = [label for label in one[1] if label in other[1]]
    means = [lower_better(*standing)[common] for standing in (one, other)]
    drawn, again = (draws(*standing)[common].to_numpy() for standing in (one, other))
    # Both begin from one seed; in reverse the second's draws are independent of the first's.
    tau, low, high = significance.agreement(*means, drawn, again[::-1])
    return {"methods": len(common), "tau": tau, "from": low, "to": high}


def cost(runs: Runs, methods: Methods) -> pd.DataFrame:
    """The time that a step takes, and the gain in FPR95.

    Args:
        runs: of `lib.study.artefacts.together`, on one train set.
        methods: FPR95 of those that are compared.

    Returns:
        By "method" the milliseconds "ms" of a step in its fastest run, which other work on the machine
        slowed least; "times" those of HardNet+; and the "ratio" of its FPR95 to HardNet+'s with its
        interval, by the `residual` as in `pairs`.
    """
    own = frames.by_label(runs)
    fastest = {
        label: min(
            1000 * run.content["seconds"] / run.content["curve"]["step"][-1] for run in own[label]
        )
        for label in methods
    }
    table = pd.DataFrame({"ms": fastest}).rename_axis("method")
    table["times"] = table["ms"] / fastest[BASE]
    scaled = on_scale(FPR95, methods)
    spread = residual(scaled.values())
    base = scaled.pop(BASE)
    ratios = {label: difference(method, base, spread) for label, method in scaled.items()}
    return table.join(intervals(ratios, "ratio"))
