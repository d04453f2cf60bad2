"""Intervals of differences between methods: over seeds and, jointly, over test points or sequences.

Another study would have other training seeds, and other 3D points or sequences in its test sets; the
scenes stay fixed. The variance of a difference is the sum of these two parts, each with its own degrees
of freedom. Its interval is Student's, with Satterthwaite's degrees of freedom (1946). Methods are paired
by seed, on the seeds that all of them have, so that a rival with one seed is compared on that seed. If
seeds are not named or none is common, methods with different numbers of seeds are independent groups
(Welch, 1947). Test points come as resamples; the b-th resample is the same for all methods
(`lib.probes.resampled_fpr95`).
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

# `scipy.stats` has the same functions, but its import takes half a second in a notebook.
from scipy.special import fdtri, stdtr, stdtrit

CONFIDENCE = 0.95
# Half of one pair in 50,000, in percent: the floor of rates before taking logarithms.
LEAST_RATE = 1e-3
# Standard deviation of a run without the effects of method and seed, and its degrees of freedom.
Residual = tuple[float, int]


@dataclass(frozen=True)
class Measured:
    """A method's values, and their resamples on other test points or sequences.

    Attributes:
        values: (seeds, cells), or (cells,) for a method without seeds. A cell is a column of a table or
            a point of a figure.
        resampled: (1, *values.shape, B), the values on B resamples, which are the same for every method.
            Or (2, …), where the second resamples only the non-matching pairs: the first counts their
            variance two times too often. None if nothing was resampled.
        freedom: degrees of freedom of the resamples; if few units were resampled, one less than their
            number.
        cells: names of the cells, or empty.
        label: the method's name for readers, or empty.
        units: name of the resampled units, for readers.
        seeds: the seeds of the first axis, or empty if they are not named.
        pairs: for rates, the number of non-matching pairs behind each cell, or empty if unknown.

    Raises:
        ValueError: a value is not finite.
    """

    values: np.ndarray
    resampled: np.ndarray | None = field(default=None, repr=False)
    freedom: float = math.inf
    cells: tuple[str, ...] = ()
    label: str = ""
    units: str = "tests"
    seeds: tuple[int, ...] = ()
    pairs: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        values = np.asarray(self.values, dtype=np.float64)
        object.__setattr__(self, "values", values)
        if not np.isfinite(values).all():
            raise ValueError("values hold one that is not finite")

    def one(self, cell: int) -> "Measured":
        """Return one cell alone."""
        return self.of_cells([cell])

    def of_cells(self, some: Sequence[int]) -> "Measured":
        """Return some of the cells alone, by index, in the order given."""
        cells, pairs = (tuple(own[i] for i in some if own) for own in (self.cells, self.pairs))
        all_seeds = [slice(None)] * (self.values.ndim - 1)
        return self._part(*all_seeds, list(some), cells=cells, pairs=pairs)

    def runs(self) -> list["Measured"]:
        """Return the values of each seed as those of a method without seeds."""
        if self.values.ndim == 1:
            return [self]
        return [self._part(run, seeds=()) for run in range(len(self.values))]

    def _part(self, *index: int | Sequence[int] | slice, **changes: tuple) -> "Measured":
        """Return the part at an index of the values' axes, with other fields changed."""
        drawn = None if self.resampled is None else self.resampled[:, *index]
        return replace(self, values=self.values[index], resampled=drawn, **changes)

    def logarithm(self) -> "Measured":
        """Return the logarithms of rates, of which a `contrast` is one of ratios.

        FPR95 has similar spreads on this scale. A rate below `LEAST_RATE` counts as `LEAST_RATE`.
        """
        drawn = None if self.resampled is None else np.log(self.resampled.clip(min=LEAST_RATE))
        return replace(self, values=np.log(self.values.clip(min=LEAST_RATE)), resampled=drawn)


def side_by_side(parts: Sequence[Measured]) -> Measured:
    """Join cells of one method with the same seeds; resamples are kept if all parts have them."""
    drawn = [part.resampled for part in parts if part.resampled is not None]
    return Measured(
        np.concatenate([part.values for part in parts], axis=-1),
        np.concatenate(drawn, axis=-2) if len(drawn) == len(parts) else None,
        min(part.freedom for part in parts),
        tuple(cell for part in parts for cell in part.cells),
        seeds=parts[0].seeds,
        pairs=tuple(count for part in parts for count in part.pairs),
    )


def on_common_seeds(methods: Sequence[Measured]) -> list[Measured]:
    """Restrict methods to the named seeds that all of them have.

    Methods stay unchanged if their seeds agree or none is common. Methods without seeds never change.
    """
    seeds = {method.seeds for method in methods if method.values.ndim == 2}
    common = sorted(set.intersection(*map(set, seeds))) if len(seeds) > 1 else []
    return [
        method._part([method.seeds.index(seed) for seed in common], seeds=tuple(common))
        if common and method.seeds
        else method
        for method in methods
    ]


@dataclass(frozen=True)
class Estimate:
    """A weighted sum of means, and its standard errors.

    Attributes:
        value: the sum.
        over_seeds: standard error from the seeds, with `seed_freedom` degrees of freedom; infinite if a
            method with seeds has only one, 0 if no method has seeds.
        over_units: standard error from the test points or sequences, with `unit_freedom`; 0 if none were
            resampled.
        seeds: number of seeds of the method with the fewest.
    """

    value: float
    over_seeds: float = 0.0
    seed_freedom: float = math.inf
    over_units: float = 0.0
    unit_freedom: float = math.inf
    seeds: int = 1

    def limits(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """Return the ends of the two-sided interval, infinite if one seed leaves the spread unknown."""
        error, freedom = self._error()
        half = error and float(stdtrit(freedom, (1 + confidence) / 2) * error)
        return self.value - half, self.value + half

    def p_value(self) -> float:
        """Return the two-sided p of the hypothesis that the sum is 0.

        It is 1 minus the confidence of the interval that ends at 0, or 1 if a single seed leaves the
        spread unknown.
        """
        error, freedom = self._error()
        return float(2 * stdtr(freedom, -abs(self.value) / error)) if error else float(self.value == 0)

    def _error(self) -> tuple[float, float]:
        """Return the standard error of the sum and its degrees of freedom."""
        variances = np.array([self.over_seeds, self.over_units]) ** 2
        total = variances.sum()
        if total in (0, math.inf):
            return math.sqrt(total), 1.0
        inverse = float((variances**2 / [self.seed_freedom, self.unit_freedom]).sum() / total**2)
        return math.sqrt(total), 1 / inverse if inverse else math.inf


def resampled_means(parts: np.ndarray, groups: Sequence[str], resamples: int) -> tuple[np.ndarray, int]:
    """Return how far means move when the groups that their parts belong to are resampled.

    Deviations of n groups are widened by √(n / (n − 1)). The same groups are drawn for every row.

    Args:
        parts: (runs, parts), NaN where one is missing; the mean over the second axis is resampled.
        groups: the group of each part.
        resamples: number of resamples.

    Returns:
        (runs, resamples) deviations from the mean, and the number of groups.
    """
    if not parts.size:
        return np.zeros((len(parts), resamples)), 0
    names, group = np.unique(np.asarray(groups, dtype=str), return_inverse=True)
    number, member = len(names), np.eye(len(names))[group]
    random = np.random.default_rng([resamples, number])
    times = random.multinomial(number, np.full(number, 1 / number), resamples).T
    there = np.isfinite(parts)
    means = (np.where(there, parts, 0) @ member @ times) / (there @ member @ times)
    return math.sqrt(number / max(1, number - 1)) * (means - means.mean(axis=1, keepdims=True)), number


def difference(a: Measured, b: Measured, pooled: Residual | None = None) -> Estimate:
    """Return the `contrast` a − b of two methods."""
    return contrast([(1.0, a), (-1.0, b)], pooled)


def contrast(terms: Sequence[tuple[float, Measured]], pooled: Residual | None = None) -> Estimate:
    """Return the weighted sum of methods' means over common seeds and cells, e.g. with weights 1 and −1.

    Args:
        terms: weights and methods.
        pooled: a `residual` that replaces the sum's own spread over seeds. It is for methods with the
            same seeds and weights that add up to 0.

    Raises:
        ValueError: some methods have resamples and others not, or not as many.
    """
    weights, methods = zip(*terms, strict=True)
    terms = list(zip(weights, on_common_seeds(methods), strict=True))
    groups: dict[int, np.ndarray | float] = {}
    for weight, method in terms:
        if method.values.ndim == 2:
            runs = method.values.mean(axis=1)
            groups[len(runs)] = groups.get(len(runs), 0.0) + weight * runs
    variances = [runs.var(ddof=1) / n if n > 1 else math.inf for n, runs in groups.items()]
    over_seeds, freedom = math.sqrt(sum(variances)), min(groups, default=math.inf) - 1
    if pooled and all(method.values.ndim == 2 for method in methods):
        spread, freedom = pooled
        over_seeds = spread * math.sqrt(sum(weight**2 for weight in weights) / min(groups))
    elif 0 < over_seeds < math.inf:
        squares = sum(v**2 / (n - 1) for v, n in zip(variances, groups, strict=True))
        freedom = sum(variances) ** 2 / squares
    value = float(sum(weight * method.values.mean() for weight, method in terms))
    return Estimate(value, over_seeds, freedom, *_over_units(terms), min(groups, default=1))


def residual(methods: Iterable[Measured]) -> Residual:
    """Return the standard deviation of runs without method and seed effects, and its freedom.

    It is that of a run's mean over cells. All methods share it, because a pair by itself has only two
    degrees of freedom with three seeds. It is valid if methods have the same spread, as FPR95 has in
    `Measured.logarithm`.

    Args:
        methods: two or more methods with the same seeds, two or more.
    """
    runs = np.stack([method.values.mean(axis=1) for method in methods])
    left = runs - runs.mean(axis=0) - runs.mean(axis=1, keepdims=True) + runs.mean()
    freedom = (runs.shape[0] - 1) * (runs.shape[1] - 1)
    return math.sqrt((left**2).sum() / freedom), freedom


def relative_gain(a: Measured, b: Measured) -> Estimate:
    """Return by how many percent the mean of `a` is below `b`'s, (b − a) / b, by the delta method."""
    a, b = on_common_seeds((a, b))
    mean_a, mean_b = a.values.mean(), b.values.mean()
    linear = contrast([(-100 / mean_b, a), (100 * mean_a / mean_b**2, b)])
    return replace(linear, value=float(100 * (mean_b - mean_a) / mean_b))


@dataclass(frozen=True)
class SpreadRatio:
    """The ratio of one method's standard deviation over seeds to another's.

    Attributes:
        value: root of the ratio of the mean variances over the cells; NaN with one seed.
        seeds: number of seeds of each method.
        over_seeds, over_units: as in `Estimate`: whether it varies with seeds or with test points.
    """

    value: float
    seeds: tuple[int, int]
    over_seeds: float = 1.0
    over_units: float = 0.0

    def limits(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """Return the interval's ends for normal values (Fisher's F); 0 to infinity with one seed."""
        if math.isnan(self.value):
            return 0.0, math.inf
        freedoms = [seeds - 1 for seeds in self.seeds]
        ends = fdtri(*freedoms, [(1 + confidence) / 2, (1 - confidence) / 2])
        return tuple(float(self.value / math.sqrt(end)) for end in ends)


def spread_ratio(a: Measured, b: Measured) -> SpreadRatio:
    """Compare how much `a` and `b` vary over seeds, over all cells.

    A seed has one degree of freedom, because the cells of its runs are correlated, and five seeds are
    too few to tell how strongly. If the cells are independent, the interval is too wide.

    Args:
        a, b: methods with seeds; `b` varies over them.
    """
    seeds = len(a.values), len(b.values)
    if min(seeds) < 2:
        return SpreadRatio(math.nan, seeds)
    variances = [method.values.var(axis=0, ddof=1).mean() for method in (a, b)]
    return SpreadRatio(math.sqrt(variances[0] / variances[1]), seeds)


def _over_units(terms: Sequence[tuple[float, Measured]]) -> tuple[float, float]:
    """Return the standard error from the resamples and its degrees of freedom."""
    drawn = [(weight, method) for weight, method in terms if method.resampled is not None]
    if not drawn:
        return 0.0, math.inf
    shapes = {(len(method.resampled), method.resampled.shape[-1]) for _, method in drawn}
    if len(drawn) < len(terms) or len(shapes) > 1:
        raise ValueError("give resamples of all methods, as many of each, or of none")
    sums = sum(
        weight * method.resampled.mean(axis=tuple(range(1, method.resampled.ndim - 1)), dtype=np.float64)
        for weight, method in drawn
    )
    variances = sums.var(axis=1, ddof=1)
    variance, noise = variances[0], variances[0] ** 2
    if len(variances) == 2:
        # At least a third, because the pairs' own variance is counted three times.
        variance = max(variances[0] - 2 * variances[1], variances[0] / 3)
        noise += 4 * variances[1] ** 2
    if variance == 0:
        return 0.0, math.inf
    inverse = 1 / min(method.freedom for _, method in drawn) + noise / variance**2 / (sums.shape[1] - 1)
    return math.sqrt(variance), 1 / inverse


def errors_over_tests(method: Measured) -> np.ndarray:
    """Return a run's standard error from test points, (cells,), as the root mean square over runs.

    NaN if no test points were resampled.
    """
    cells = range(method.values.shape[-1])
    errors = [[contrast([(1.0, run.one(cell))]).over_units for cell in cells] for run in method.runs()]
    joined = np.sqrt(np.square(errors).mean(axis=0))
    return np.where(joined > 0, joined, np.nan)
