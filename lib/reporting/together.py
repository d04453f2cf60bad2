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
from matplotlib.figure import Figure
from scipy import stats

from lib.experiments.rows import tested_on
from lib.intervals import Estimate, Measured, contrast, side_by_side
from lib.reporting import frames, hpatches, plots
from lib.reporting.changes import levels, with_interval
from lib.reporting.claims.measured import fpr95_by_column, hpatches_by_task
from lib.reporting.style import DOUBLE_WIDTH, PALETTE, panels
from lib.significance import holm, vargha_delaney
from lib.study.open import Found, Study

FPR95, BASE = "FPR95", "HardNet+"
# By measure, 1 where lower is better and −1 where higher is.
SIGNS = {FPR95: 1, **dict.fromkeys(hpatches.TASKS, -1)}
LEVEL, DRAWS = 0.05, 20_000
Methods = Mapping[str, Measured]


def by_measure(found: Sequence[Found], study: Study) -> dict[str, dict[str, Measured]]:
    """Methods by label under each of `SIGNS`, with resamples of test points or of what sequences show; a
    cell is a column of PhotoTour's protocol, or a train set."""
    of = {FPR95: fpr95_by_column(found, study.place.source.sets)}
    by_set = [[run for run in found if run.job.train_set == name] for name in study.place.source.sets]
    runs = [hpatches.numbers(trained, tested_on(study)) for trained in by_set if trained]
    for task in hpatches.TASKS:
        parts = [hpatches_by_task(each, [task]) for each in runs]
        of[task] = {key: side_by_side([part[key] for part in parts]) for key in parts[0]}
    labels = {run.job.name: run.job.label for run in found}
    return {measure: {labels[key]: m for key, m in each.items()} for measure, each in of.items()}


def table(of: Mapping[str, Methods]) -> pd.DataFrame:
    """A row a method, under each measure its `lib.reporting.changes.levels`."""
    return pd.concat({measure: levels(each) for measure, each in of.items()}, axis=1)


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


def summed_up(levels: pd.DataFrame, orders: pd.DataFrame, found: Mapping[str, pd.DataFrame]) -> str:
    """In sentences without the first's beginning: who is first by FPR95, beside HardNet with the same
    augmentation and generation of positives ("+", "*"), who by HPatches' tasks, behind whom each other
    method is significantly, and how many pairs differ so.

    Args:
        levels: of `table`, as saved, its columns flat.
        orders: of `ordered`, as saved.
        found: by measure, of `pairs`, as saved; a measure may be missing.
    """
    ranked, by_measure = levels.set_index("method"), orders.set_index("measure")

    def level(name: str) -> str:
        mean, low, high = ranked.loc[name, [f"{FPR95} {of}" for of in ("mean", "from", "to")]]
        return f"{mean:.1f}% ({low:.1f} to {high:.1f})"

    def first(measure: str) -> tuple[str, str]:
        name = (SIGNS[measure] * ranked[f"{measure} mean"]).idxmin()
        if measure not in found:
            return name, ""
        of = found[measure]
        others = of.loc[(of["better"] == name) & (of["Holm"] > LEVEL), "worse"]
        return name, f"not significantly ahead of {' and '.join(others)}" if len(others) else ""

    best, level_with = first(FPR95)
    base = f"HardNet{best[len(best.rstrip('+*')) :]}"
    told = f"{best} has the lowest {FPR95} of {len(ranked)} methods, {level(best)}"
    told += f", {level_with}" if level_with else ""
    told += "" if best == base else f"; {base} has {level(base)}"
    on_tasks = []
    for task in by_measure.index.drop(FPR95):
        name, level_with = first(task)
        behind = f", {level_with}" if level_with else ""
        on_tasks.append(f"{name} in {task} ({ranked.loc[name, f'{task} mean']:.1f}%{behind})")
    if on_tasks:
        told += f". Mean average precision on HPatches is highest for {', '.join(on_tasks)}"
    counts = [f"{row['significant']:.0f} by {measure}" for measure, row in by_measure.iterrows()]
    left = by_measure.loc[FPR95]
    return (
        f"{told}. Of {left['pairs']:.0f} pairs of methods the number that differ significantly is "
        f"{', '.join(counts)}; by {FPR95} the data exclude {left['of'] - left['rankings']:,.0f} of "
        f"{left['of']:,.0f} rankings"
    )


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


def ranks_figure(of: Mapping[str, Methods], note: str) -> Figure:
    """`ranks` of the methods, a panel a measure."""
    size = (DOUBLE_WIDTH, 0.9 + 0.24 * len(of[FPR95]), len(of))
    with panels(*size, note=note, sharey=True) as (figure, [row]):
        for axes, (measure, each) in zip(row, of.items(), strict=True):
            plots.intervals(axes, ranks(each, SIGNS[measure]), "rank", color=PALETTE[0])
            axes.set(title=measure, xlim=(0.5, len(each) + 0.5))
    return figure


def cost(found: Sequence[Found], of: Methods) -> pd.DataFrame:
    """What a step costs beside what it gains.

    Args:
        found: of `lib.experiments.together`, on one train set.
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
