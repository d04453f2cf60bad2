"""The four papers' methods on equal footing: their numbers, their order, and the cost of a step.

Rates (FPR95, in percent) are compared by ratios, on their logarithms, where the spread over seeds is
similar for all methods. Average precision (percent) is compared in points. Ranked methods have the same
seeds.
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
from lib.study.report.changes import levels, with_tests

FPR95, FPR95_WIDE, PHOTOGRAPHS = "FPR95", "FPR95 of wide pairs", "matching of photographs"
BASE = "HardNet+"
RATES = (FPR95, FPR95_WIDE)
# Measure -> 1 if lower is better, −1 if higher is better.
SIGNS = {**dict.fromkeys(RATES, 1), **dict.fromkeys((PHOTOGRAPHS, *frames.TASKS), -1)}
# Torch's name of an optimiser -> its name for readers.
OPTIMISERS = {"sgd": "SGD", "adam": "Adam"}
# Distance in px up to which a keypoint in another photograph is a right answer.
TOLERANCE = 3
LEVEL = 0.05
# Paper -> name of a run on equal footing -> its name in the claims.
CLAIM_KEYS = {
    "tcdesc": {"equal_tcdesc_hn_aug": "tcdesc_hn_aug", "equal_hardnet_aug_undamped": "hardnet_long"},
    "dsm": {"dsm_long": "dsm_aug", "equal_hardnet_aug_undamped": "real_margin_1"},
}


def by_measure(runs: Runs, study: Study) -> dict[str, Methods]:
    """Return methods by label, trained on one set, under each of `SIGNS` that the study's data has.

    For FPR95 a cell is a column of PhotoTour's protocol, with resamples of test points. HPatches' tasks
    have one cell, with resamples of what sequences show. Real places also have wide pairs and matching
    between photographs, for which a cell is a place.
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
    """Return the methods of a tidy frame, by key.

    A cell is a test set with this ending in its name on which all methods were measured.
    """
    of_kind = frame[frame["test_set"].str.endswith(ending)]
    return by_method(frames.wide(of_kind, "test_set").dropna(axis="columns"))


def without_dampening(runs: Runs) -> Runs:
    """Return runs with the same SGD for all methods.

    A method that was also trained without its authors' dampening has that run instead, under its label.
    """
    alike = {(run.job.name, run.job.seed): run for run in runs if run.job.name not in UNDAMPED_KEYS}
    for run in runs:
        if key := UNDAMPED_KEYS.get(run.job.name):
            label = alike[key, run.job.seed].job.label
            alike[key, run.job.seed] = replace(run, job=replace(run.job, label=label))
    return list(alike.values())


def claimed_values(claim: Claim, runs: Runs, sets: Sequence[str]) -> Values:
    """Return a claim's values from runs on equal footing, by `lib.study.claims.measured.values_of`.

    Runs get the names that a claim of DSM or TCDesc has for them; equal footing is these papers'
    setting.
    """
    named = CLAIM_KEYS[claim.paper]
    renamed = [
        replace(run, job=replace(run.job, name=named.get(run.job.name, run.job.name))) for run in runs
    ]
    return values_of(claim, renamed, sets)


def by_optimiser(runs: Runs, study: Study) -> dict[str, dict[str, Methods]]:
    """Return `by_measure` of the runs with each of `OPTIMISERS`, with methods in the same order."""
    trained = [run for own in frames.by_label(runs).values() for run in own if run.job.recipe]
    return {
        name: by_measure([run for run in trained if run.job.recipe.optimizer.name == key], study)
        for key, name in OPTIMISERS.items()
    }


def on_scale(measure: str, methods: Methods) -> Methods:
    """Return methods' values on a measure's scale: logarithms of rates, all else unchanged."""
    if measure not in RATES:
        return methods
    return {label: method.logarithm() for label, method in methods.items()}


def optimisers(measured: Mapping[str, Mapping[str, Methods]]) -> pd.DataFrame:
    """Tabulate the change from one optimiser to another, one row per method.

    Args:
        measured: optimiser -> measure -> methods, for two optimisers, e.g. from `by_optimiser`; the
            second has all methods of the first.

    Returns:
        For each measure, the mean with each optimiser; the "ratio" of rates, or the "change" in points,
        from the first to the second, with its interval "from" and "to" by the `residual` of all methods
        with either; and "Holm", its p by Holm's correction over the methods.
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
    """Compare every two methods, the one with the better mean first.

    Args:
        measure: one of `SIGNS`.
        methods: as for `residual`; intervals use it, jointly with the test points or sequences.

    Returns:
        By "better" and "worse", the "ratio" of the second's rate to the first's, or how many points the
        first is "ahead", with the interval "from" and "to"; its two-sided "p", and "Holm", the p
        corrected over all pairs; "improvement", the probability that a run of the first is better than
        one of the second, with Newcombe's interval "low" to "high".
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
    """Return the means on a measure's scale, by label, signed so that lower is better."""
    scaled = on_scale(measure, methods)
    return SIGNS[measure] * pd.Series({label: method.values.mean() for label, method in scaled.items()})


def draws(measure: str, methods: Methods) -> pd.DataFrame:
    """Draw means as from `lower_better` that other studies might find; see `significance.draws`."""
    drawn = significance.draws(list(on_scale(measure, methods).values()))
    return pd.DataFrame(SIGNS[measure] * drawn, columns=list(methods))


def ranks(measure: str, methods: Methods) -> pd.DataFrame:
    """Rank the means by "method": "rank", 1 the best, with its interval "from" and "to", and "first".

    The interval holds 95% of `draws`. "first" is the share of draws in which the method ranks first.
    """
    drawn = draws(measure, methods).rank(axis=1)
    low, high = np.quantile(drawn, [LEVEL / 2, 1 - LEVEL / 2], axis=0, method="inverted_cdf")
    ranks = {"rank": lower_better(measure, methods).rank(), "from": low, "to": high}
    return pd.DataFrame(ranks).assign(first=(drawn == 1).mean()).rename_axis("method")


def agreement(one: tuple[str, Methods], other: tuple[str, Methods]) -> dict[str, float]:
    """Measure how far two orders of the same methods agree.

    Args:
        one, other: a measure, and the methods that are ordered by it.

    Returns:
        "methods", how many both have; "tau", Kendall's τ of their means, 1 for the same order and −1 for
        the reverse; "from" and "to", between which τ lies in 95% of joint draws of seeds and test
        points.
    """
    common = [label for label in one[1] if label in other[1]]
    means = [lower_better(*standing)[common] for standing in (one, other)]
    drawn, again = (draws(*standing)[common].to_numpy() for standing in (one, other))
    # Both draws use one seed; reversed, the second's are independent of the first's.
    tau, low, high = significance.agreement(*means, drawn, again[::-1])
    return {"methods": len(common), "tau": tau, "from": low, "to": high}


def cost(runs: Runs, methods: Methods) -> pd.DataFrame:
    """Tabulate the time of a training step, and the gain in FPR95.

    Args:
        runs: from `lib.study.artefacts.together`, on one train set.
        methods: FPR95 of the methods to compare.

    Returns:
        By "method", "ms", the milliseconds of a step in its fastest run, which other work on the machine
        slowed least; "times", the multiple of HardNet+'s; and the "ratio" of its geometric-mean FPR95 to
        HardNet+'s, whose interval `pairs` has.
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
    rates = np.exp(lower_better(FPR95, methods))
    return table.assign(ratio=rates / rates[BASE])
