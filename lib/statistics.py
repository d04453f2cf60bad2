"""Statistics for few seeds and few places: exact tests, effects, and what a number of runs can show.

The Mann-Whitney test's outcomes (Mann and Whitney, 1947), Holm's step-down correction (1979), Vargha and
Delaney's effect size (2000) with Newcombe's interval (2006), the test's power, and the uncertainty of a
printed FPR95 from its test pairs alone. The tests and intervals themselves are scipy's, and stand in the
notebooks' cells.
"""

from collections.abc import Sequence
from itertools import combinations, product

import numpy as np
import pandas as pd
import scipy
from numpy.typing import ArrayLike

from lib.arrays import as_array
from lib.data.scenes.sets import place_of

CONFIDENCE = 0.95
# Chance to find an effect, at which a number of places counts as enough.
POWER = 0.8
# Number of non-matching pairs in each of UBC PhotoTour's test sets.
NEGATIVES = 50_000


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
    # Each split has the runs of the lower method first.
    splits = [[*own, *sorted({*runs} - {*own})] for own in combinations(runs, lower)]
    groups = np.split(patterns[:, splits], [lower], axis=2)
    forms = {}
    for form, continuity in (("normal, continuity + ties", True), ("normal, ties", False)):
        for sides, alternative in ((1, "less"), (2, "two-sided")):
            with np.errstate(invalid="ignore", divide="ignore"):
                tested = scipy.stats.mannwhitneyu(
                    *groups,
                    use_continuity=continuity,
                    alternative=alternative,
                    axis=2,
                    method="asymptotic",
                )
            # NaN is the p of runs that are all equal.
            forms[form, sides] = np.nan_to_num(tested.pvalue, nan=1.0)
    u = tested.statistic
    at_most = scipy.stats.rankdata(u, "max", axis=1) / len(splits)
    at_least = 1 - (scipy.stats.rankdata(u, "min", axis=1) - 1) / len(splits)
    forms["exact", 1] = at_most
    forms["exact", 2] = np.minimum(1, 2 * np.minimum(at_most, at_least))
    groups_of_ties = []
    for pattern in patterns:
        sizes = np.bincount(pattern)
        groups_of_ties.append(sorted(sizes[sizes > 1], reverse=True))
    columns = {
        "u": u.ravel(),
        "at_most": at_most.ravel(),
        "at_least": at_least.ravel(),
        "tied": np.repeat([sum(sizes) for sizes in groups_of_ties], len(splits)),
        "ties": np.repeat(["+".join(map(str, sizes)) for sizes in groups_of_ties], len(splits)),
    }
    order = ["tied", "ties", "u", "at_most", "at_least"]
    outcomes = pd.DataFrame(columns).drop_duplicates().sort_values(order)
    p = pd.DataFrame({form: values.ravel() for form, values in forms.items()})
    return outcomes, p.loc[outcomes.index]


def _row(values: ArrayLike, what: str, advice: str) -> np.ndarray:
    """Return (n,) float values; refuse any other shape, with a message that says what the values are."""
    row = as_array(values, float)
    if row.ndim != 1:
        raise ValueError(f"{what} must be one row, got {row.shape}: {advice}")
    return row


def holm(p_values: ArrayLike) -> np.ndarray:
    """Adjust p for several hypotheses by Holm's step-down method (1979), for the family-wise error.

    Args:
        p_values: (m,) in [0, 1].

    Returns:
        (m,) in the same order; reject a hypothesis where it is at most the level. NaN is a hypothesis
        that was not tested: it stays NaN and does not count.

    Raises:
        ValueError: a value is below 0 or above 1, or they are no single row.
    """
    p = _row(p_values, "p-values", "which hypotheses belong together?")
    outside = p[(p < 0) | (p > 1)]
    if len(outside):
        raise ValueError(f"p-values must be from 0 to 1, got {outside[0]}")
    adjusted = np.full_like(p, np.nan)
    tested = np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    # The smallest p is multiplied by m, the next by m − 1, and so on.
    multiplied = p[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(1, np.maximum.accumulate(multiplied))
    return adjusted


def vargha_delaney(a: ArrayLike, b: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compute the probability that a run of `a` is higher than one of `b` (Vargha and Delaney, 2000).

    With FPR95, lower is better: pass the baseline as `a` to get the probability that the method `b`
    beats it. The values of the two orders add up to 1.

    Args:
        a: (n,) runs, two or more; or (n, c), columns of runs that are compared each for itself.
        b: (m,) or (m, c), m two or more.

    Returns:
        A = P(a > b) + P(a = b) / 2 over all pairs of runs, and the two ends of Newcombe's interval
        (2006, method 5), each a number, or (c,). The interval is wide even where the runs separate
        completely; a bootstrap of the runs has no width there. All are NaN where a run is.

    Raises:
        ValueError: there are fewer than two runs of `a` or `b`, they differ in their columns, or two
            frames have the same columns in another order.
    """
    heads = [list(runs.columns) for runs in (a, b) if isinstance(runs, pd.DataFrame)]
    # Columns are compared by their place.
    if len(heads) == 2 and set(heads[0]) == set(heads[1]) and heads[0] != heads[1]:
        raise ValueError(f"columns {heads[0]} and {heads[1]} are in another order: give b[a.columns]")
    a, b = as_array(a, float), as_array(b, float)
    if a.shape[1:] != b.shape[1:]:
        raise ValueError(f"runs of {a.shape} and {b.shape} are no columns to compare each for itself")
    if min(len(a), len(b)) < 2:
        raise ValueError(f"give two or more runs of each method, got {len(a)} and {len(b)}")
    higher = a[:, None] > b
    equal = a[:, None] == b
    value = (higher + 0.5 * equal).mean(axis=(0, 1))
    lacking = np.isnan(a).any(axis=0) | np.isnan(b).any(axis=0)
    value = np.where(lacking, np.nan, value)
    low, high = np.vectorize(_newcombe, otypes=[float, float])(value, len(a), len(b))
    # Vectors of runs give numbers, not arrays without dimensions.
    return value[()], low[()], high[()]


def _newcombe(value: float, runs_a: int, runs_b: int) -> tuple[float, float]:
    """Find the values that are z standard errors from the estimate, with errors at those values."""
    if np.isnan(value):
        return np.nan, np.nan
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


def power(
    effects: Sequence[float], *, runs: int = 5, alpha: float = 0.05, simulations: int = 20_000
) -> pd.Series:
    """Simulate the power of the exact one-sided test for normal values.

    Args:
        effects: (e,) differences of the means in units of the standard deviation over seeds, which is
            the same for both methods; 0 gives the size of the test.
        runs: number of runs of each method.
        alpha: level; for the strictest step of Holm's correction over six tests, 0.05 / 6.
        simulations: number of draws; every effect uses the same ones.

    Returns:
        The fraction of draws that the test rejects, by "effect"; NaN for an effect of NaN.

    Raises:
        ValueError: the effects are no single row.
    """
    effects = _row(effects, "effects", "give them in a list")
    draws = np.random.default_rng(0).normal(size=(2, simulations, runs))
    lower = draws[0] - effects[:, None, None]
    higher = draws[1]
    p = scipy.stats.mannwhitneyu(lower, higher, alternative="less", axis=-1, method="exact").pvalue
    rejected = (p <= alpha).mean(axis=-1)
    rejected[np.isnan(effects)] = np.nan
    return pd.Series(rejected, pd.Index(effects, name="effect"))


def binomial_error(rate: ArrayLike, pairs: int = NEGATIVES) -> np.ndarray:
    """Standard error of a false positive rate at a fixed threshold, from its non-matching pairs alone.

    Args:
        rate: any shape, in percent, 0 to 100.
        pairs: how many non-matching pairs there are; by default those of UBC PhotoTour's test sets.

    Returns:
        The same shape, in percent. It is a lower bound, because it ignores the threshold's own error and
        that pairs share points.
    """
    share = as_array(rate, float) / 100
    return 100 * np.sqrt(share * (1 - share) / pairs)


def effect_sizes(compared: pd.DataFrame, runs: int = 5) -> pd.Series:
    """Difference of the means in pooled standard deviations, corrected for few runs (Hedges, 1981).

    Args:
        compared: one row per comparison, with "lower_mean", "lower_std", "higher_mean" and "higher_std".
            Standard deviations are those of a sample, with divisor n - 1, as of pandas or of
            `np.std(…, ddof=1)`. NumPy's default makes an effect larger by √(n / (n - 1)), 12% for n = 5.
        runs: number n of runs of each method, two or more.

    Returns:
        One a comparison; NaN where runs have no spread, in units of which there is no effect.

    Raises:
        ValueError: there are fewer than two runs, which have no standard deviation.
    """
    if runs < 2:
        raise ValueError(f"a standard deviation needs two or more runs of each method, got {runs}")
    pooled = np.sqrt((compared["lower_std"] ** 2 + compared["higher_std"] ** 2) / 2)
    few = 1 - 3 / (4 * (2 * runs - 2) - 1)
    apart = compared["higher_mean"] - compared["lower_mean"]
    # The standard deviation of equal values is a rounding error rather than 0.
    rounding = 1e-12 * compared[["lower_mean", "higher_mean"]].abs().max(axis=1)
    return (few * apart / pooled.where(pooled > rounding)).rename("effect")


def effect_by_place(cells: pd.DataFrame) -> pd.Series:
    """Return a comparison's effect at each place to train on: the mean over the places tested on.

    Args:
        cells: (train place, test place) differences of log FPR95 or of points, a row a train place; NaN
            where a network was not tested, such as on its own place.

    Raises:
        ValueError: a train place has several rows, such as one a seed, which would count as places.
    """
    if not cells.index.is_unique:
        repeated = cells.index[cells.index.duplicated()][0]
        raise ValueError(f"{repeated!r} has several rows, which are one place: take their mean first")
    return cells.mean(axis=1).dropna()


def student_interval(values: ArrayLike, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return Student's interval of the mean of (n,) values, n at least 2.

    Where all values are equal it has no width; scipy's is NaN there.

    Raises:
        ValueError: the values are no single row.
    """
    values = _row(values, "values", "give those of each mean by themselves")
    error = values.std(ddof=1) / np.sqrt(len(values))
    reach = scipy.stats.t.ppf((1 + confidence) / 2, len(values) - 1) * error
    return float(values.mean() - reach), float(values.mean() + reach)


def jackknife(cells: pd.DataFrame) -> tuple[float, float]:
    """Compute a 95% interval of the mean effect at other places, by leaving out one place at a time.

    A place is left out as the one to train on and the one to test on at once, with its wide pairs and
    its photographs ("castle-wide" and "castle-images" of "castle"). The interval of `effect_by_place`
    takes the test places for given: effects that depend on the test place are the same for all its
    values. Here they count (Quenouille, 1956; Tukey, 1958).

    Args:
        cells: as in `effect_by_place`; two train places at least.

    Raises:
        ValueError: a place's name begins or ends with a blank, so that it would not be known for the
            same in rows and columns.
    """
    for name in (*cells.index, *cells.columns):
        if name != name.strip():
            raise ValueError(f"the place {name!r} begins or ends with a blank: take it away")
    places = effect_by_place(cells).index
    # A place that networks are trained on may itself be called "court-images".
    tested = cells.columns.where(cells.columns.isin(cells.index), cells.columns.map(place_of))
    n = len(places)
    mean = effect_by_place(cells).mean()
    without = []
    for place in places:
        others = cells.loc[cells.index != place, tested != place]
        without.append(effect_by_place(others).mean())
    pseudo = n * mean - (n - 1) * np.array(without)
    low, high = student_interval(pseudo)
    # About the mean itself, which that of the pseudo-values differs from where places weigh unequally.
    shift = mean - pseudo.mean()
    return float(low + shift), float(high + shift)


def chance_to_find(effect: float, spread: float, places: int) -> float:
    """Return the power of a two-sided t-test at 5% on the effects at so many places.

    Args:
        effect: the mean effect that is to be found.
        spread: standard deviation of the effects at single places.
        places: two or more.

    Returns:
        The power, 1 for effects that are equal at all places; NaN if the effect or the spread is.

    Raises:
        ValueError: the spread is below 0, or there are fewer than two places.
    """
    if spread < 0:
        raise ValueError(f"a spread must be 0 or more, got {spread}")
    if places < 2:
        raise ValueError(f"a spread needs two places or more, got {places}")
    if np.isnan(effect) or np.isnan(spread):
        return np.nan
    # scipy's noncentral F is wrong at 0, where it is F itself.
    if effect == 0:
        return 1 - CONFIDENCE
    # Beyond a thousand standard errors scipy's noncentral F may be NaN, and the power is 1.
    if np.sqrt(places) * abs(effect) > 1000 * spread:
        return 1.0
    # The square of a noncentral t is a noncentral F.
    beyond = scipy.stats.f.ppf(CONFIDENCE, 1, places - 1)
    return float(scipy.stats.ncf.sf(beyond, 1, places - 1, places * (effect / spread) ** 2))


def places_needed(effect: float, spread: float, most: int = 1000) -> float | None:
    """Return the fewest places at which an effect is found with a chance of `POWER`; None above `most`.

    Two are the fewest that have a spread. It is NaN if the effect or the spread is; raises as
    `chance_to_find`.

    Args:
        effect: the one to find, such as the printed one; never the one observed, which luck has made.
        spread: standard deviation of the effects at single places.
        most: how many places are tried.
    """
    chance = chance_to_find(effect, spread, most)
    if np.isnan(chance):
        return np.nan
    if chance < POWER:
        return None
    low, high = 1, most
    while high - low > 1:
        middle = (low + high) // 2
        found = chance_to_find(effect, spread, middle) >= POWER
        low, high = (low, middle) if found else (middle, high)
    return high


def detectable(spread: float, places: int) -> float:
    """Return the smallest effect that is found at so many places with a chance of `POWER`.

    It is 0 for a spread of 0, and NaN for one of NaN; raises as `chance_to_find`.

    Args:
        spread: standard deviation of the effects at single places.
        places: two or more.
    """

    def lacking(effect: float) -> float:
        return chance_to_find(effect, spread, places) - POWER

    # Both also refuse what no spread or number of places can be.
    if np.isnan(lacking(1.0)) or spread == 0:
        return float(spread)
    return float(scipy.optimize.brentq(lacking, 0, 100 * spread))
