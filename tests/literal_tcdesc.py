"""TCDesc's formulas, transcribed literally: loops, float64, nothing vectorised over the batch.

An oracle written from the paper and the list of choices alone. Equation numbers are the paper's.

Descriptors come as one array `x` of shape (2, n, dim): x[0] the anchors a_i, x[1] the positives p_i. A
neighbourhood is a matrix N of shape (dim, k) whose columns are the neighbours, nearest first.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from literal_dsm import MovingHistogram

Array = np.ndarray


@dataclass(frozen=True)
class Options:
    """All choices of TCDesc; the defaults are the study's for TCDesc-HN.

    `eps` is added to the squared Euclidean distances between the sets (d_E, d⁻), `kernel_eps` to the
    squared distances within a set that the hard weight and the heat kernel take.
    """

    k: int = 16
    weights: Literal["linear", "lle", "hard", "heat", "none"] = "linear"
    ridge: float = 0.0
    t: float = 1.0
    kernel_on: Literal["d", "d2"] = "d"
    kernel_eps: float = 0.0
    detached: bool = False
    matches: Literal["shared", "mutual"] = "shared"
    lam: Literal["sample", "batch_mean"] | float = "sample"
    gamma: float = 1.0
    eps: float = 1e-6
    margin: float = 1.0
    bins: int = 512


# √(2(1 − s + 1e-6)): the ε of the DSM recipes.
DSM_EPSILON = 2e-6
# Closer negatives count as false negatives.
FLOOR = 0.008


@dataclass(frozen=True)
class Frozen:
    """Values that the gradient takes as constant, all from one base point.

    `neighbours` is (2, n, k) int and `lam` (n,). `negatives` holds per pair the (row, column) of
    d(a_row, p_column), or None. `weights` (n,) are DSM's, or None if not requested. `base` is the
    base point.
    """

    neighbours: Array
    lam: Array
    negatives: list[tuple[int, int] | None]
    weights: Array | None
    base: Array


# Distances and neighbours


def squared_distance(u: Array, v: Array) -> float:
    """‖u − v‖², component by component (the distance of Eq. 3, 4 and 10, squared)."""
    total = 0.0
    for first, second in zip(u, v, strict=True):
        total += (float(first) - float(second)) ** 2
    return total


def euclidean(u: Array, v: Array, eps: float = 1e-6) -> float:
    """d_E of Eq. 10: √(‖u − v‖² + eps), which is √(2 − 2 u·v + eps) only on the unit sphere.

    Off it the two differ, and so do their gradients with respect to free u, by a multiple of u.
    """
    return math.sqrt(squared_distance(u, v) + eps)


def neighbours(points: Array, k: int) -> Array:
    """N(a_i) of Section III-B as indices (n, k): nearest first, without i, ties to the smaller j."""
    n = len(points)
    indices = []
    for i in range(n):
        nearest = sorted((squared_distance(points[i], points[j]), j) for j in range(n) if j != i)
        indices.append([j for _, j in nearest[:k]])
    return np.array(indices, dtype=np.int64)


def neighbour_gaps(points: Array, k: int) -> Array:
    """(n,): distance of neighbour k + 1 minus that of neighbour k; if small, float32 may swap them."""
    n = len(points)
    gaps = []
    for i in range(n):
        distances = sorted(math.sqrt(squared_distance(points[i], points[j])) for j in range(n) if j != i)
        gaps.append(distances[k] - distances[k - 1] if k < n - 1 else math.inf)
    return np.array(gaps)


# Topology weights: one centre, one neighbourhood


def least_squares(centre: Array, hood: Array, ridge: float = 0.0) -> Array:
    """Eq. 4 to 6 by numpy's lstsq: w minimising ‖a − N w‖² + ridge ‖w‖²; no intercept, unconstrained."""
    k = hood.shape[1]
    rows = np.concatenate([hood, math.sqrt(ridge) * np.eye(k)])
    return np.linalg.lstsq(rows, np.concatenate([centre, np.zeros(k)]), rcond=None)[0]


def sum_to_one(centre: Array, hood: Array) -> Array:
    """Eq. 4 with Σw = 1 (LLE): plain least squares gives all weights but the last, 1 − their sum."""
    k = hood.shape[1]
    if k == 1:
        return np.ones(1)
    last = hood[:, k - 1]
    rows = np.stack([hood[:, j] - last for j in range(k - 1)], axis=1)
    others = np.linalg.lstsq(rows, centre - last, rcond=None)[0]
    return np.append(others, 1.0 - others.sum())


def heat_kernel(centre: Array, hood: Array, t: float, on: str = "d", eps: float = 0.0) -> Array:
    """Eq. 3: exp(−d/t), or exp(−d²/t) with `on` = "d2"; d² = ‖a − a_j‖² + eps in both."""
    weights = []
    for j in range(hood.shape[1]):
        squared = squared_distance(centre, hood[:, j]) + eps
        if on == "d":
            weights.append(math.exp(-math.sqrt(squared) / t))
        elif on == "d2":
            weights.append(math.exp(-squared / t))
        else:
            raise ValueError(on)
    return np.array(weights)


def topology_weights(centre: Array, hood: Array, options: Options) -> Array:
    """W_i by Eq. 3, 6 or 12, by the LLE form, or zeros ("none": the control without topology)."""
    if options.weights == "linear":
        return least_squares(centre, hood, options.ridge)
    if options.weights == "lle":
        return sum_to_one(centre, hood)
    if options.weights == "hard":
        # Eq. 12: its differentiable stand-in is a heat kernel with t = 10³.
        return heat_kernel(centre, hood, 1e3, options.kernel_on, options.kernel_eps)
    if options.weights == "heat":
        return heat_kernel(centre, hood, options.t, options.kernel_on, options.kernel_eps)
    if options.weights == "none":
        return np.zeros(hood.shape[1])
    raise ValueError(options.weights)


# Topology vectors and their distance


def topology_vector(indices: Array, weights: Array, n: int) -> Array:
    """Eq. 7: T_i in Rⁿ with the weight of neighbour j at index j, its pair's number, and 0 elsewhere."""
    vector = np.zeros(n)
    for j, weight in zip(indices, weights, strict=True):
        vector[j] = weight
    return vector


def topology_vectors(points: Array, hoods: Array, options: Options, base: Array | None = None) -> Array:
    """(n, n): T_i of every point of one set, over the neighbours given as indices (n, k).

    With `base`, neighbours are points of `base` and only the centres are of `points`.
    """
    values = points if base is None else base
    rows = []
    for i in range(len(points)):
        hood = np.stack([values[j] for j in hoods[i]], axis=1)
        weights = topology_weights(points[i], hood, options)
        rows.append(topology_vector(hoods[i], weights, len(points)))
    return np.array(rows)


def topology_distance(first: Array, second: Array, k: int) -> float:
    """Eq. 8: d_T = ‖Tᵃ − Tᵖ‖₁ / k of one pair."""
    total = 0.0
    for a, p in zip(first, second, strict=True):
        total += abs(float(a) - float(p))
    return total / k


# Matched neighbours and λ


def shared_matches(hood_a: Array, hood_p: Array) -> int:
    """m of Eq. 11 for one pair: the number of j with a_j in N(a_i) and p_j in N(p_i)."""
    count = 0
    for j in hood_a:
        if j in list(hood_p):
            count += 1
    return count


def nearest_among(point: Array, others: Array, candidates: list[int]) -> int:
    """The candidate whose row of `others` is nearest to the point; ties to the smaller index."""
    return min((squared_distance(point, others[j]), j) for j in candidates)[1]


def mutual_matches(x: Array, hood_a: Array, hood_p: Array) -> int:
    """m of Eq. 11 read as mutual matches: pairs (a_j in N(a_i), p_l in N(p_i)) that are each
    other's nearest in these neighbourhoods. j = l is not required.
    """
    among_a, among_p = [int(j) for j in hood_a], [int(j) for j in hood_p]
    count = 0
    for j in among_a:
        partner = nearest_among(x[0, j], x[1], among_p)
        if nearest_among(x[1, partner], x[0], among_a) == j:
            count += 1
    return count


def matched_neighbours(x: Array, hoods: Array, options: Options) -> Array:
    """m(N(a_i), N(p_i)) of Eq. 11 for every pair, (n,) of int."""
    counts = []
    for i in range(x.shape[1]):
        if options.matches == "shared":
            counts.append(shared_matches(hoods[0, i], hoods[1, i]))
        elif options.matches == "mutual":
            counts.append(mutual_matches(x, hoods[0, i], hoods[1, i]))
        else:
            raise ValueError(options.matches)
    return np.array(counts, dtype=np.int64)


def lambdas(matches: Array, options: Options) -> Array:
    """λ of Eq. 11 for every pair, (n,): its own ("sample"), the mean over pairs ("batch_mean"), or a
    fixed number.
    """
    n = len(matches)
    if not isinstance(options.lam, str):
        return np.full(n, float(options.lam))
    values = [min((int(m) / options.k) ** options.gamma, 0.5) for m in matches]
    if options.lam == "sample":
        return np.array(values)
    if options.lam == "batch_mean":
        return np.full(n, sum(values) / n)
    raise ValueError(options.lam)


# Negatives


def hardest_negatives(x: Array, options: Options) -> list[tuple[int, int] | None]:
    """d⁻ of Eq. 9, Euclidean: for pair i the smallest of d(a_i, p_j) and d(a_j, p_i), j ≠ i.

    Each is the (row, column) of d(a_row, p_column), or None if all are skipped: distances below the
    floor are, one equal to it is not. Ties go to the row before the column, then to the smaller j.
    """
    n = x.shape[1]
    negatives: list[tuple[int, int] | None] = []
    for i in range(n):
        best = math.inf
        negative = None
        pairs = [(i, j) for j in range(n) if j != i] + [(j, i) for j in range(n) if j != i]
        for row, column in pairs:
            d = euclidean(x[0, row], x[1, column], options.eps)
            if d >= FLOOR and d < best:
                best = d
                negative = (row, column)
        negatives.append(negative)
    return negatives


# DSM's weights on a first batch


def dsm_weights(values: Array, bins: int) -> Array:
    """w_i by the histogram of the batch itself (`literal_dsm`)."""
    histogram = MovingHistogram(bins)
    histogram.update(values)
    return np.array([histogram.cdf(value) for value in values])


def node_gap(values: Array, bins: int) -> float:
    """The smallest distance, in bins, from a value to a node; if small, rounding decides the floor bin.

    Clamped values do not count: they lie on the first or last node in any arithmetic.
    """
    width = 4.0 / (bins - 1)
    gaps = [math.inf]
    for value in values:
        if abs(value) < 2.0:
            position = (float(value) + 2.0) / width
            gaps.append(abs(position - round(position)))
    return min(gaps)


def topology_distances(x: Array, options: Options, frozen: Frozen) -> Array:
    """d_T(a_i, p_i) of Eq. 8 for every pair, (n,): Algorithm 1 over frozen neighbour indices."""
    vectors = [
        topology_vectors(
            x[s], frozen.neighbours[s], options, frozen.base[s] if options.detached else None
        )
        for s in (0, 1)
    ]
    return np.array([topology_distance(a, p, options.k) for a, p in zip(*vectors, strict=True)])


def euclidean_positives(x: Array, options: Options) -> Array:
    """d_E(a_i, p_i) for every pair, (n,)."""
    return np.array([euclidean(a, p, options.eps) for a, p in zip(x[0], x[1], strict=True)])


def positive_distances(x: Array, options: Options, frozen: Frozen | None = None) -> Array:
    """Eq. 10: d⁺_i = λ_i d_T + (1 − λ_i) d_E for every pair, (n,); "none" leaves (1 − λ_i) d_E."""
    frozen = frozen or freeze(x, options)
    topology = topology_distances(x, options, frozen)
    plain = euclidean_positives(x, options)
    return np.array(
        [lam * t + (1.0 - lam) * e for lam, t, e in zip(frozen.lam, topology, plain, strict=True)]
    )


def negative_distances(x: Array, options: Options, frozen: Frozen | None = None) -> Array:
    """d⁻_i of Eq. 9 for every pair, (n,), with the frozen negatives; infinite where there is none."""
    frozen = frozen or freeze(x, options)
    values = []
    for negative in frozen.negatives:
        if negative is None:
            values.append(math.inf)
        else:
            values.append(euclidean(x[0, negative[0]], x[1, negative[1]], options.eps))
    return np.array(values)


def freeze(x: Array, options: Options, with_dsm: bool = False) -> Frozen:
    """Compute neighbours, λ, negatives and, on request, DSM's weights at x."""
    x = np.array(x, dtype=np.float64)
    hoods = np.array([neighbours(x[0], options.k), neighbours(x[1], options.k)])
    lam = lambdas(matched_neighbours(x, hoods, options), options)
    frozen = Frozen(hoods, lam, hardest_negatives(x, options), None, x)
    if not with_dsm:
        return frozen
    weights = dsm_weights(dsm_hardness(x, options, frozen), options.bins)
    return Frozen(hoods, lam, frozen.negatives, weights, x)


def dsm_hardness(x: Array, options: Options, frozen: Frozen | None = None) -> Array:
    """The values that DSM's histogram counts, (n,): Eq. 10's d⁺ − d⁻."""
    frozen = frozen or freeze(x, options)
    return positive_distances(x, options, frozen) - negative_distances(x, options, frozen)


def loss_hn(x: Array, options: Options, frozen: Frozen | None = None) -> float:
    """Eq. 9 with Eq. 10: TCDesc-HN's loss, the mean of max(0, margin + d⁺_i − d⁻_i), which is 0 for a
    pair without a negative."""
    differences = dsm_hardness(x, options, frozen)
    return float(sum(max(0.0, options.margin + d) for d in differences) / x.shape[1])


def loss_dsm(x: Array, options: Options, frozen: Frozen | None = None) -> float:
    """TCDesc-DSM's loss on a first batch: (1/n) Σ w_i (d⁺_i − d⁻_i), not clamped."""
    frozen = frozen or freeze(x, options, with_dsm=True)
    differences = dsm_hardness(x, options, frozen)
    return float(sum(w * d for w, d in zip(frozen.weights, differences, strict=True)) / x.shape[1])


# Gradients


def slope_along(
    loss: Callable[[Array, Options, Frozen], float],
    x: Array,
    direction: Array,
    options: Options,
    step: float = 1e-5,
) -> float:
    """The derivative of a loss along a direction (2, n, dim), by central differences; the values
    in `Frozen` are constant."""
    frozen = freeze(x, options, with_dsm=True)
    above, below = (loss(x + sign * step * direction, options, frozen) for sign in (1, -1))
    return (above - below) / (2 * step)
