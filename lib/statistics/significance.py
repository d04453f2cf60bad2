"""Statistics for few seeds: how to test AdaSample's Table 3 (Sec. 5.4), and more.

The module holds the Mann-Whitney test (Mann and Whitney, 1947), Holm's step-down correction (1979),
Vargha and Delaney's effect size (2000) with Newcombe's interval (2006), the test's power, and the
uncertainty of a printed FPR95 from its test pairs alone. It also holds rankings of methods: which ones
other studies might find, and how far two agree. Functions take and return arrays; a row is a run, a
column a pair of train and test set.
"""

import math
from collections.abc import Sequence
from itertools import combinations, product

import numpy as np
import pandas as pd
import scipy
from numpy.typing import ArrayLike

from lib.statistics.intervals import CONFIDENCE, Measured, contrast, residual

# Number of non-matching pairs in each of UBC PhotoTour's test sets.
NEGATIVES = 50_000
# Number of other studies that `draws` simulates.
DRAWS = 20_000


def mann_whitney(lower: ArrayLike, higher: ArrayLike) -> dict[str, np.ndarray]:
    """Test whether one method's values are stochastically lower than another's (AdaSample, Sec. 5.4).

    Args:
        lower: A matrix of size (`num_runs_lower` x `num_columns`), or a vector of runs, all finite: the
            method that is lower under the alternative (with FPR95: the better one).
        higher: A matrix of size (`num_runs_higher` x `num_columns`), or a vector: the other method.

    Returns:
        Vectors of size (`num_columns`), or numbers. "u": the number of pairs (one run of each method) in
        which the supposedly lower one is higher, ties counting half. One-sided p: "exact" from all
        splits of the pooled values into two groups, valid with ties; "asymptotic" from the normal
        distribution, with the variance corrected for ties; "continuity", the same with the continuity
        correction of one half.
    """
    lower, higher = (np.asarray(runs, float) for runs in (lower, higher))
    pooled = np.sort(np.concatenate([lower, higher]), axis=0)
    ties = (np.diff(pooled, axis=0) == 0).any()
    ways = {
        "exact": {"method": scipy.stats.PermutationMethod(n_resamples=np.inf) if ties else "exact"},
        "asymptotic": {"method": "asymptotic", "use_continuity": False},
        "continuity": {"method": "asymptotic", "use_continuity": True},
    }
    p = {}
    with np.errstate(invalid="ignore", divide="ignore"):
        for name, way in ways.items():
            test = scipy.stats.mannwhitneyu(lower, higher, alternative="less", **way)
            # Without the continuity correction scipy computes 0 / 0 if all values are equal.
            p[name] = np.nan_to_num(test.pvalue, nan=1.0)
    return {"u": test.statistic, **p}


def mann_whitney_outcomes(lower: int, higher: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """List every result that a comparison of so many runs can have, one per row, few ties first.

    The number of tie patterns grows as 2 to the power of all runs; ten runs take a second.

    Returns:
        The outcomes: "u", the Mann-Whitney statistic of the lower method, ties counting half; "at_most"
        and "at_least", the share of all splits of the pooled values that give this u or less, or more;
        "tied", the number of tied values, and "ties", the sizes of their groups, the largest first, e.g.
        "3+2". And the p of each outcome, columns (form of the test, number of sides): "normal,
        continuity + ties", one-sided, was scipy's default before 1.7; two-sided p is twice the smaller
        tail.
    """
    runs = range(lower + higher)
    # Whether a pooled value is larger than the one before.
    rises = np.array(list(product((0, 1), repeat=len(runs) - 1)))
    patterns = np.insert(rises, 0, 0, axis=1).cumsum(axis=1)
    splits = [[*own, *sorted({*runs} - {*own})] for own in combinations(runs, lower)]
    groups = np.split(patterns[:, splits], [lower], axis=2)
    forms = {}
    for form, continuity in (("normal, continuity + ties", True), ("normal, ties", False)):
        for sides, alternative in ((1, "less"), (2, "two-sided")):
            way = {"use_continuity": continuity, "alternative": alternative, "method": "asymptotic"}
            with np.errstate(invalid="ignore", divide="ignore"):
                tested = scipy.stats.mannwhitneyu(*groups, axis=2, **way)
            # NaN is the p of runs that are all equal.
            forms[form, sides] = np.nan_to_num(tested.pvalue, nan=1.0)
    at_most = scipy.stats.rankdata(tested.statistic, "max", axis=1) / len(splits)
    at_least = 1 - (scipy.stats.rankdata(tested.statistic, "min", axis=1) - 1) / len(splits)
    forms["exact", 1], forms["exact", 2] = at_most, np.minimum(1, 2 * np.minimum(at_most, at_least))
    sizes = [sorted(np.bincount(pattern), reverse=True) for pattern in patterns]
    tied = [[size for size in own if size > 1] for own in sizes]
    columns = {
        "u": tested.statistic.ravel(),
        "at_most": at_most.ravel(),
        "at_least": at_least.ravel(),
        "tied": np.repeat([*map(sum, tied)], len(splits)),
        "ties": np.repeat(["+".join(map(str, own)) for own in tied], len(splits)),
    }
    order = ["tied", "ties", "u", "at_most", "at_least"]
    outcomes = pd.DataFrame(columns).drop_duplicates().sort_values(order)
    p = pd.DataFrame({form: values.ravel() for form, values in forms.items()})
    return outcomes, p.loc[outcomes.index]


def holm(p_values: ArrayLike) -> np.ndarray:
    """Adjust p for several hypotheses by Holm's step-down method (1979), for the family-wise error.

    Args:
        p_values: A vector of size (`num_columns`), in [0, 1].

    Returns:
        A vector of the same size and order; reject a hypothesis where it is at most the level.
    """
    p = np.asarray(p_values, float)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1, np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)))
    return adjusted


def vargha_delaney(a: ArrayLike, b: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compute the probability that a run of `a` is higher than one of `b` (Vargha and Delaney, 2000).

    With FPR95, lower is better: pass the baseline as `a` to get the probability that the method `b`
    beats it. The values of the two orders add up to 1.

    Args:
        a: A matrix of size (`num_runs_a` x `num_columns`), or a vector of runs, two or more.
        b: A matrix of size (`num_runs_b` x `num_columns`), or a vector.

    Returns:
        For each column A = P(a > b) + P(a = b) / 2 over all pairs of runs, and the ends of Newcombe's
        interval (2006, method 5). The interval is wide even where the runs separate completely; a
        bootstrap of the runs has no width there.
    """
    a, b = (np.asarray(runs, float) for runs in (a, b))
    value = ((a[:, None] > b) + 0.5 * (a[:, None] == b)).mean(axis=(0, 1))
    return value, *np.vectorize(_newcombe, otypes=[float, float])(value, len(a), len(b))


def power(
    effects: Sequence[float], *, runs: int = 5, alpha: float = 0.05, simulations: int = 20_000
) -> pd.Series:
    """Simulate the power of the exact one-sided test for normal values.

    Args:
        effects: A vector of size (`num_effects`): differences of the means in units of the standard
            deviation over seeds, which is the same for both methods; 0 gives the size of the test.
        runs: number of runs of each method.
        alpha: level; for the strictest step of Holm's correction over six tests, 0.05 / 6.
        simulations: number of draws; every effect uses the same ones.

    Returns:
        The fraction of draws that the test rejects, by "effect".
    """
    effects = np.asarray(effects, float)
    draws = np.random.default_rng(0).normal(size=(2, simulations, runs))
    lower, higher = draws[0] - effects[:, None, None], draws[1]
    p = scipy.stats.mannwhitneyu(lower, higher, alternative="less", axis=-1, method="exact").pvalue
    return pd.Series((p <= alpha).mean(axis=-1), pd.Index(effects, name="effect"))


def binomial_error(rate: ArrayLike) -> np.ndarray:
    """Standard error of a false positive rate at a fixed threshold, from its non-matching pairs alone.

    Args:
        rate: any shape, in percent, 0 to 100.

    Returns:
        The same shape, in percent. It is a lower bound, because it ignores the threshold's own error and
        that pairs share points.
    """
    share = np.asarray(rate, float) / 100
    return 100 * np.sqrt(share * (1 - share) / NEGATIVES)


def draws(methods: Sequence[Measured]) -> np.ndarray:
    """Draw means that other studies might find, (`DRAWS`, methods), jointly over seeds and test points.

    The part due to seeds is Student's, with the spread of the `residual`. A seed's common effect on all
    methods is left out, because it changes no rank. The part due to test points is one of the resamples,
    the same for all methods. So the difference of any two methods has about the interval of a `contrast`
    with the residual.

    Args:
        methods: as for `residual`, on a scale on which they have the same spread.
    """
    random, (spread, freedom) = np.random.default_rng(0), residual(methods)
    means = np.array([method.values.mean() for method in methods])
    length = np.sqrt(len(methods[0].values) * random.chisquare(freedom, (DRAWS, 1)) / freedom)
    over_seeds = spread * random.normal(size=(DRAWS, len(means))) / length
    moved = np.stack([_moved(method) for method in methods], axis=1)
    return means + over_seeds + moved[random.integers(len(moved), size=DRAWS)]


def _moved(method: Measured) -> np.ndarray:
    """Return how far resampled test points move a mean, (B,); a single zero if none were resampled."""
    if method.resampled is None:
        return np.zeros(1)
    means = method.resampled[0].mean((0, 1), float)
    # Rescaled to the standard error of `contrast`, which corrects the overcounted variance of pairs.
    spread = means.std(ddof=1)
    return (means - means.mean()) * (contrast([(1.0, method)]).over_units / spread if spread else 1.0)


def agreement(
    one: Sequence[float], other: Sequence[float], draws_of_one: np.ndarray, draws_of_other: np.ndarray
) -> tuple[float, float, float]:
    """Return Kendall's τ of methods' means in two studies, and the ends of its 95% range in joint draws.

    τ is 1 for the same order and −1 for the reverse.

    Args:
        one, other: the methods' means in each study.
        draws_of_one, draws_of_other: (draws, methods) around these means, independent of each other.
    """
    first, second = np.array(list(combinations(range(len(one)), 2))).T
    signs = [np.sign(drawn[:, first] - drawn[:, second]) for drawn in (draws_of_one, draws_of_other)]
    low, high = np.quantile(math.prod(signs).mean(axis=1), [0.025, 0.975])
    return scipy.stats.kendalltau(one, other).statistic, low, high


def _newcombe(value: float, runs_a: int, runs_b: int) -> tuple[float, float]:
    """Find the values that are z standard errors from the estimate, with errors at those values."""
    z = scipy.stats.norm.ppf((1 + CONFIDENCE) / 2)
    more = (runs_a + runs_b) / 2 - 1

    def gap(supposed: float) -> float:
        spread = 1 + more * ((1 - supposed) / (2 - supposed) + supposed / (1 + supposed))
        variance = supposed * (1 - supposed) * spread / (runs_a * runs_b)
        return (value - supposed) ** 2 - z**2 * variance

    # The gap is also zero at an estimate of 0 or 1 itself, so the brackets stop short of it.
    low = scipy.optimize.brentq(gap, 0, min(value, 1 - 1e-12)) if value > 0 else 0.0
    high = scipy.optimize.brentq(gap, max(value, 1e-12), 1) if value < 1 else 1.0
    return low, high


def effect_sizes(compared: pd.DataFrame, runs: int = 5) -> pd.Series:
    """Difference of the means in pooled standard deviations, corrected for few runs (Hedges, 1981).

    Args:
        compared: one row per comparison, with "lower_mean", "lower_std", "higher_mean" and "higher_std".
        runs: number of runs of each method.
    """
    pooled = np.sqrt((compared["lower_std"] ** 2 + compared["higher_std"] ** 2) / 2)
    few = 1 - 3 / (4 * (2 * runs - 2) - 1)
    return (few * (compared["higher_mean"] - compared["lower_mean"]) / pooled).rename("effect")
