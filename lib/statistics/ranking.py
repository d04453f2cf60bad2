"""Orders of methods: how many are open, what other studies might find, and how far two agree."""

import math
from collections.abc import Collection, Sequence
from functools import cache
from itertools import combinations

import numpy as np
from scipy import stats

from lib.statistics.intervals import Measured, contrast, residual

DRAWS = 20_000


def orders(names: Collection[str], sure: Collection[tuple[str, str]]) -> int:
    """In how many orders methods can stand, the better first, so that no sure pair is reversed."""

    @cache
    def left(placed: frozenset[str]) -> int:
        free = [n for n in names if n not in placed and all(a in placed for a, b in sure if b == n)]
        return sum(left(placed | {name}) for name in free) if free else 1

    return left(frozenset())


def draws(methods: Sequence[Measured]) -> np.ndarray:
    """(`DRAWS`, methods) means that other studies might find, seeds and test points drawn jointly.

    What is due to seeds is Student's by the `residual`, what a seed does to all methods left out, which
    changes no rank; what is due to test points is one of the resamples, the same for all. So of any two
    methods the difference has about the interval of a `contrast` by the residual.

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
    """(B,) how far test points drawn anew move a mean; zeros where none were drawn."""
    if method.resampled is None:
        return np.zeros(1)
    means = method.resampled[0].mean(axis=(0, 1), dtype=float)
    # As wide as they are once what is counted too often is taken off.
    spread = means.std(ddof=1)
    return (means - means.mean()) * (contrast([(1.0, method)]).over_units / spread if spread else 1.0)


def agreement(
    one: Sequence[float], other: Sequence[float], draws_of_one: np.ndarray, draws_of_other: np.ndarray
) -> tuple[float, float, float]:
    """Kendall's τ of methods' means in two studies, 1 for one order and −1 for the reverse, and the ends
    between which it lies in 95% of joint draws.

    Args:
        one, other: means.
        draws_of_one, draws_of_other: (draws, methods) around them, independent of each other.
    """
    first, second = np.array(list(combinations(range(len(one)), 2))).T
    signs = [np.sign(drawn[:, first] - drawn[:, second]) for drawn in (draws_of_one, draws_of_other)]
    low, high = np.quantile(math.prod(signs).mean(axis=1), [0.025, 0.975])
    return stats.kendalltau(one, other).statistic, low, high
