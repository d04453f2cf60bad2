"""Every p-value that the Mann-Whitney test of few runs can give, in each form that software has.

With five runs against five, ties allowed, each form of it (exact or asymptotic, corrected or not, one-
or two-sided) can give only few values, all enumerated here. "Lower" is the method said to be lower.
"""

import itertools
from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd
from scipy import stats


def _exact_without_ties(found: pd.DataFrame) -> pd.Series:
    """As scipy's method="exact" does with ties: the distribution without them, u rounded up."""
    without = found[found["tied"] == 0].set_index("u")["at_most"]
    return without.reindex(np.ceil(found["u"]))


def _normal(found: pd.DataFrame, continuity: float, ties: bool) -> np.ndarray:
    pairs, runs = found["lower"] * found["higher"], found["lower"] + found["higher"]
    correction = found["tie_sum"] / (runs * (runs - 1)) if ties else 0
    deviation = np.sqrt(pairs / 12 * (runs + 1 - correction))
    p = stats.norm.sf((pairs / 2 - found["u"] - continuity) / deviation)
    return np.where(deviation > 0, p, 1.0)


FORMS: Mapping[str, Callable[[pd.DataFrame], np.ndarray]] = {
    "exact": lambda found: found["at_most"],
    "exact, mid-p": lambda found: (found["at_most"] + 1 - found["at_least"]) / 2,
    "exact, ties ignored": _exact_without_ties,
    "normal, continuity + ties": lambda found: _normal(found, 0.5, True),
    "normal, continuity": lambda found: _normal(found, 0.5, False),
    "normal, ties": lambda found: _normal(found, 0.0, True),
    "normal, plain": lambda found: _normal(found, 0.0, False),
    "R, scipy 1.7 and later": lambda found: np.where(
        found["tied"] == 0, found["at_most"], _normal(found, 0.5, True)
    ),
}
"""One-sided p by form of the test: exact or asymptotic, corrected for continuity, for ties, or neither.

"normal, continuity + ties", one-sided, is what scipy gave by default before 1.7; R, and scipy since,
take the exact p without ties and else the same.
"""


def p_value(form: str, sides: int, found: pd.DataFrame) -> np.ndarray:
    """p of each outcome by a form of `FORMS`; two-sided is twice the smaller tail."""
    p = np.asarray(FORMS[form](found))
    if sides == 1:
        return p
    # With the methods exchanged in the alternative.
    u = found["lower"] * found["higher"] - found["u"]
    other = found.assign(u=u, at_most=found["at_least"], at_least=found["at_most"])
    return np.minimum(1, 2 * np.minimum(p, np.asarray(FORMS[form](other))))


def every_outcome(lower: int, higher: int) -> pd.DataFrame:
    """Every result that a comparison of so many runs can have, a row each.

    Patterns of ties are as many as 2 to the power of all runs: ten take a second.

    Returns:
        "u", the Mann-Whitney statistic of the lower method, ties counting half; "at_most" and
        "at_least", the share of all splits of the pooled values that give this u or less, or more;
        "tied", how many values are, "tie_sum", the sum over their groups of t³ − t, t its size, and
        "ties", the sizes, the largest first, e.g. "3+2"; and the numbers of runs, "lower" and "higher".
    """
    runs = lower + higher
    # Whether a pooled value is larger than the one before.
    steps = np.array(list(itertools.product((0, 1), repeat=runs - 1)))
    patterns = np.insert(steps, 0, 0, axis=1).cumsum(axis=1)
    splits = np.array(list(itertools.combinations(range(runs), lower)))
    null = stats.rankdata(patterns, axis=1)[:, splits].sum(axis=2) - lower * (lower + 1) / 2
    rows = set()
    for pattern, statistics in zip(patterns, null, strict=True):
        sizes = np.bincount(pattern)
        groups = sorted(sizes[sizes > 1].tolist(), reverse=True)
        ties = (sum(groups), sum(t**3 - t for t in groups), "+".join(map(str, groups)))
        u, counts = np.unique(statistics, return_counts=True)
        up_to = counts.cumsum()
        tails = up_to / len(statistics), 1 - (up_to - counts) / len(statistics)
        rows |= {(*row, *ties) for row in np.transpose([u, *tails]).tolist()}
    columns = ["u", "at_most", "at_least", "tied", "tie_sum", "ties"]
    return pd.DataFrame(sorted(rows), columns=columns).assign(lower=lower, higher=higher)
