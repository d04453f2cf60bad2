"""Intervals of differences between methods: over seeds and, jointly, over what they were tested on.

Another study would have other seeds of training, and other 3D points or sequences in its test sets. The
variance of a difference is the sum of these two parts, each with its own degrees of freedom, and its
interval is Student's with those of Satterthwaite (1946); the scenes stay fixed. Methods are paired by
seed, on the seeds that all of them have, so that a rival with one is compared with the same one. Where
seeds are not named, or none is common, those with different numbers of them are independent groups
(Welch, 1947). Points come as resamples of which the b-th is the same for all methods
(`lib.probes.resampled_fpr95`).
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

# `scipy.stats` has the same functions, and takes a notebook half a second to import.
from scipy.special import fdtri, stdtr, stdtrit

CONFIDENCE = 0.95
# Half of one pair of 50,000, in percent: what stands for a rate of 0 where its logarithm is taken.
LEAST_RATE = 1e-3
# The standard deviation of a run that method and seed leave, and its degrees of freedom.
Residual = tuple[float, int]


@dataclass(frozen=True)
class Measured:
    """A method's values, and what they would be on other test points or sequences.

    Attributes:
        values: (seeds, cells), or (cells,) of a method without seeds. A cell is a column of a table or a
            point of a figure.
        resampled: (1, *values.shape, B), the values on B resamples, the same for every method. Or
            (2, …), second with the non-matching pairs alone drawn anew: their variance is counted two
            times too often by the first. None where nothing was drawn.
        freedom: degrees of freedom of the resamples, one less than the things drawn if these are few.
        cells: the cells' names, or none.
        label: the method's name for readers, or none.
        units: what was drawn anew, for readers.
        seeds: the seeds of the first axis, or none where they are not named.
        pairs: of rates the non-matching pairs behind each cell, or none where that is unknown.

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
        """One cell alone."""
        return self.of_cells([cell])

    def of_cells(self, some: Sequence[int]) -> "Measured":
        """Some of its cells alone, by their places, in the order given."""
        cells, pairs = (tuple(own[i] for i in some if own) for own in (self.cells, self.pairs))
        all_seeds = [slice(None)] * (self.values.ndim - 1)
        return self._part(*all_seeds, list(some), cells=cells, pairs=pairs)

    def runs(self) -> list["Measured"]:
        """Each seed's values by themselves, as those of a method without seeds."""
        if self.values.ndim == 1:
            return [self]
        return [self._part(run, seeds=()) for run in range(len(self.values))]

    def _part(self, *index: int | Sequence[int] | slice, **changes: tuple) -> "Measured":
        """What stands at an index of the values' axes, with other fields changed."""
        drawn = None if self.resampled is None else self.resampled[:, *index]
        return replace(self, values=self.values[index], resampled=drawn, **changes)

    def logarithm(self) -> "Measured":
        """Logarithms of rates, of which a `contrast` is one of ratios: spreads of FPR95 are alike there.
        A rate below `LEAST_RATE` is taken for that."""
        drawn = None if self.resampled is None else np.log(self.resampled.clip(min=LEAST_RATE))
        return replace(self, values=np.log(self.values.clip(min=LEAST_RATE)), resampled=drawn)


def side_by_side(parts: Sequence[Measured]) -> Measured:
    """One method's cells after another's, of the same seeds; resamples where all have them."""
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
    """Methods whose named seeds differ, of those alone that all of them have, if any; else as they are,
    and those without seeds in any case."""
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
    """A sum of means, each with a weight, and its standard errors.

    Attributes:
        value: the sum.
        over_seeds: from the seeds, with `seed_freedom` degrees of freedom; infinite if a method that
            has seeds has but one, 0 if none has seeds.
        over_units: from the test points or sequences, with `unit_freedom`; 0 where none were drawn.
        seeds: how many, of the method with the fewest.
    """

    value: float
    over_seeds: float = 0.0
    seed_freedom: float = math.inf
    over_units: float = 0.0
    unit_freedom: float = math.inf
    seeds: int = 1

    def limits(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """The two-sided interval's ends, infinite where one seed leaves the spread unknown."""
        error, freedom = self._error()
        half = error and float(stdtrit(freedom, (1 + confidence) / 2) * error)
        return self.value - half, self.value + half

    def p_value(self) -> float:
        """Two-sided p of the hypothesis that the sum is 0: what the confidence of the interval that ends
        there leaves to 1. It is 1 where one seed leaves the spread unknown."""
        error, freedom = self._error()
        return float(2 * stdtr(freedom, -abs(self.value) / error)) if error else float(self.value == 0)

    def _error(self) -> tuple[float, float]:
        """The standard error of the sum, and its degrees of freedom."""
        variances = np.array([self.over_seeds, self.over_units]) ** 2
        total = variances.sum()
        if total in (0, math.inf):
            return math.sqrt(total), 1.0
        inverse = float((variances**2 / [self.seed_freedom, self.unit_freedom]).sum() / total**2)
        return math.sqrt(total), 1 / inverse if inverse else math.inf


def resampled_means(parts: np.ndarray, groups: Sequence[str], resamples: int) -> tuple[np.ndarray, int]:
    """By how much means move when the groups that their parts belong to are drawn anew.

    Deviations of n groups are widened by √(n / (n − 1)). The same groups are drawn for every row.

    Args:
        parts: (runs, parts) whose mean over the second axis is resampled, NaN where one is missing.
        groups: of each part its group.
        resamples: how many.

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
    """The `contrast` of two methods."""
    return contrast([(1.0, a), (-1.0, b)], pooled)


def contrast(terms: Sequence[tuple[float, Measured]], pooled: Residual | None = None) -> Estimate:
    """Of methods' means over common seeds and cells the sum, each times its weight, e.g. 1 and −1.

    Args:
        terms: weights and methods.
        pooled: of `residual`, by which a sum of methods is judged that all have the same seeds and whose
            weights add up to 0, in place of its own spread over them.

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
    """The standard deviation of a run's mean over cells once its method and its seed are taken off, one
    for all methods, and its degrees of freedom: of three seeds a pair by itself has but two.

    Honest where methods have the same spread, as `Measured.logarithm` has of FPR95.

    Args:
        methods: two or more, with the same seeds, two or more.
    """
    runs = np.stack([method.values.mean(axis=1) for method in methods])
    left = runs - runs.mean(axis=0) - runs.mean(axis=1, keepdims=True) + runs.mean()
    freedom = (runs.shape[0] - 1) * (runs.shape[1] - 1)
    return math.sqrt((left**2).sum() / freedom), freedom


def relative_gain(a: Measured, b: Measured) -> Estimate:
    """By how many percent the mean of `a` is below that of `b`: (b − a) / b, by the delta method."""
    a, b = on_common_seeds((a, b))
    mean_a, mean_b = a.values.mean(), b.values.mean()
    linear = contrast([(-100 / mean_b, a), (100 * mean_a / mean_b**2, b)])
    return replace(linear, value=float(100 * (mean_b - mean_a) / mean_b))


@dataclass(frozen=True)
class SpreadRatio:
    """The standard deviation over seeds of one method over that of another.

    Attributes:
        value: root of the ratio of the mean variances over the cells; NaN with one seed.
        seeds: of either method.
        over_seeds, over_units: as of `Estimate`, whether it varies with seeds or with test points.
    """

    value: float
    seeds: tuple[int, int]
    over_seeds: float = 1.0
    over_units: float = 0.0

    def limits(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """As of `Estimate`, for normal values (Fisher's F); 0 to infinity with one seed."""
        if math.isnan(self.value):
            return 0.0, math.inf
        freedoms = [seeds - 1 for seeds in self.seeds]
        ends = fdtri(*freedoms, [(1 + confidence) / 2, (1 - confidence) / 2])
        return tuple(float(self.value / math.sqrt(end)) for end in ends)


def spread_ratio(a: Measured, b: Measured) -> SpreadRatio:
    """Whether `a` varies less over seeds than `b`, over all cells.

    A seed has one degree of freedom, since the cells of its runs go together: five seeds say too little
    of how far. Where the cells are independent the interval is too wide.

    Args:
        a, b: methods with seeds; `b` varies over them.
    """
    seeds = len(a.values), len(b.values)
    if min(seeds) < 2:
        return SpreadRatio(math.nan, seeds)
    variances = [method.values.var(axis=0, ddof=1).mean() for method in (a, b)]
    return SpreadRatio(math.sqrt(variances[0] / variances[1]), seeds)


def _over_units(terms: Sequence[tuple[float, Measured]]) -> tuple[float, float]:
    """The standard error from the resamples, and its degrees of freedom."""
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
        # Never less than a third: what belongs to the pairs alone is counted three times.
        variance = max(variances[0] - 2 * variances[1], variances[0] / 3)
        noise += 4 * variances[1] ** 2
    if variance == 0:
        return 0.0, math.inf
    inverse = 1 / min(method.freedom for _, method in drawn) + noise / variance**2 / (sums.shape[1] - 1)
    return math.sqrt(variance), 1 / inverse


def errors_over_tests(method: Measured) -> np.ndarray:
    """(cells,) what test points leave of a run's standard error, the root mean square over runs.

    NaN where none were drawn anew.
    """
    cells = range(method.values.shape[-1])
    errors = [[contrast([(1.0, run.one(cell))]).over_units for cell in cells] for run in method.runs()]
    joined = np.sqrt(np.square(errors).mean(axis=0))
    return np.where(joined > 0, joined, np.nan)
