"""Every p-value that the Mann-Whitney test of few runs can give, in each form that software has.

With five runs against five, ties allowed, each form of it (exact or asymptotic, corrected or not, one-
or two-sided) can give only few values, all enumerated here. "Lower" is the method said to be lower.
"""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats


@dataclass(frozen=True)
class Outcomes:
    """Results that a comparison can have, arrays of size (`num_outcomes`).

    Attributes:
        u: Mann-Whitney statistic of the lower method, ties counting half.
        tie_sum: sum over the groups of tied values of t³ - t, t its size.
        at_most, at_least: share of all splits of the pooled values that give this u or less, or more.
        lower, higher: number of runs of either method.
    """

    u: np.ndarray
    tie_sum: np.ndarray
    at_most: np.ndarray
    at_least: np.ndarray
    lower: int
    higher: int

    def mirrored(self) -> "Outcomes":
        """The same comparisons with the methods exchanged in the alternative."""
        u = self.lower * self.higher - self.u
        return replace(self, u=u, at_most=self.at_least, at_least=self.at_most)


def _exact_without_ties(found: Outcomes) -> np.ndarray:
    """As scipy's method="exact" does with ties: the distribution without them, u rounded up."""
    null = _null_statistics(found.lower, found.higher)[-1]
    return np.searchsorted(null, np.ceil(found.u), side="right") / len(null)


def _normal(found: Outcomes, continuity: float, ties: bool) -> np.ndarray:
    pairs, runs = found.lower * found.higher, found.lower + found.higher
    correction = found.tie_sum / (runs * (runs - 1)) if ties else 0
    deviation = np.sqrt(pairs / 12 * (runs + 1 - correction))
    with np.errstate(invalid="ignore", divide="ignore"):
        p = stats.norm.sf((pairs / 2 - found.u - continuity) / deviation)
    return np.where(deviation > 0, p, 1.0)


FORMS: Mapping[str, Callable[[Outcomes], np.ndarray]] = {
    "exact": lambda found: found.at_most,
    "exact, mid-p": lambda found: (found.at_most + 1 - found.at_least) / 2,
    "exact, ties ignored": _exact_without_ties,
    "normal, continuity + ties": lambda found: _normal(found, 0.5, True),
    "normal, continuity": lambda found: _normal(found, 0.5, False),
    "normal, ties": lambda found: _normal(found, 0.0, True),
    "normal, plain": lambda found: _normal(found, 0.0, False),
    "R, scipy 1.7 and later": lambda found: np.where(
        found.tie_sum == 0, found.at_most, _normal(found, 0.5, True)
    ),
}
"""One-sided p by form of the test: exact or asymptotic, corrected for continuity, for ties, or neither.

"normal, continuity + ties", one-sided, is what scipy gave by default before 1.7; R, and scipy since,
take the exact p without ties and else the same.
"""


def p_value(form: str, sides: int, found: Outcomes) -> np.ndarray:
    """A vector of size (`num_outcomes`): p of a form of `FORMS`; two-sided is twice the smaller tail."""
    p = FORMS[form](found)
    return p if sides == 1 else np.minimum(1, 2 * np.minimum(p, FORMS[form](found.mirrored())))


def _null_statistics(lower: int, higher: int) -> np.ndarray:
    """Of size (2^(`num_runs` - 1) x `num_splits`): every split's U, ascending, by pattern of ties.

    Bit i of a row's number says that the pooled value i + 1 is larger than value i; the last row has
    no ties.
    """
    runs = lower + higher
    splits = np.array(list(itertools.combinations(range(runs), lower)))
    ranks = stats.rankdata(_patterns(runs), axis=1)
    return np.sort(ranks[:, splits].sum(2) - lower * (lower + 1) / 2, axis=1)


def _patterns(runs: int) -> np.ndarray:
    steps = np.arange(2 ** (runs - 1))[:, None] >> np.arange(runs - 1) & 1
    return np.concatenate([np.zeros((len(steps), 1), dtype=int), np.cumsum(steps, axis=1)], axis=1)


def every_outcome(lower: int, higher: int) -> tuple[Outcomes, list[tuple[int, ...]]]:
    """Every outcome there is, each once, and the sizes of its tied groups, largest first.

    Patterns of ties are as many as 2 to the power of all runs: ten take a second.
    """
    null, rows = _null_statistics(lower, higher), set()
    for pattern, statistics in zip(_patterns(lower + higher), null, strict=True):
        sizes = np.bincount(pattern)
        groups = tuple(sorted(sizes[sizes > 1].tolist(), reverse=True))
        tie_sum = int((sizes**3 - sizes).sum())
        u, counts = np.unique(statistics, return_counts=True)
        up_to = counts.cumsum()
        tails = up_to / len(statistics), 1 - (up_to - counts) / len(statistics)
        rows |= {(*row, tie_sum, groups) for row in np.transpose([u, *tails]).tolist()}
    u, at_most, at_least, tie_sum, groups = zip(*sorted(rows), strict=True)
    arrays = np.array([u, tie_sum, at_most, at_least], dtype=float)
    return Outcomes(*arrays, lower, higher), list(groups)
