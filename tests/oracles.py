"""Slow, literal transcriptions of the papers' equations: plain Python, float64, one loop per index.

Written from the papers' text and from the list of choices they leave open, not from `lib`. Vectors are
lists of floats, matrices are lists of vectors, images are lists of rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise, permutations

Vector = Sequence[float]
Metric = Callable[[Vector, Vector], float]


def inner(x: Vector, y: Vector) -> float:
    """x · y."""
    return sum(a * b for a, b in zip(x, y, strict=True))


def unit(x: Vector) -> list[float]:
    """x / ‖x‖."""
    length = math.sqrt(inner(x, x))
    return [a / length for a in x]


def euclidean(x: Vector, y: Vector, epsilon: float = 0.0) -> float:
    """‖x − y‖, with ε inside the root."""
    return math.sqrt(sum((a - b) ** 2 for a, b in zip(x, y, strict=True)) + epsilon)


def angular(x: Vector, y: Vector) -> float:
    """arccos(x · y), AdaSample Eq. 15."""
    return math.acos(max(-1.0, min(1.0, inner(x, y))))


def hinge(d_pos: float, d_neg: float, t: float, power: int) -> float:
    """max{t + d_pos^power − d_neg^power, 0}: AdaSample Eq. 14 with power 2, HardNet with power 1."""
    return max(t + d_pos**power - d_neg**power, 0.0)


def competitors(
    anchors: Sequence[Vector], positives: Sequence[Vector], i: int, scope: str, d: Metric
) -> list[tuple[float, int, int]]:
    """(distance, query, patch) of every patch that may be pair i's negative; n + j is positive j."""
    n = len(anchors)
    candidates = []
    for j in range(n):
        if j == i:
            continue
        if scope in ("within", "all"):
            candidates.append((d(anchors[i], anchors[j]), i, j))
            candidates.append((d(positives[i], positives[j]), n + i, n + j))
        if scope in ("across", "all"):
            candidates.append((d(anchors[i], positives[j]), i, n + j))
            candidates.append((d(anchors[j], positives[i]), n + i, j))
    return candidates


def hardest_negative(
    anchors: Sequence[Vector],
    positives: Sequence[Vector],
    i: int,
    scope: str,
    d: Metric,
    floor: float = 0.0,
) -> tuple[float, int, int] | None:
    """The closest competitor that is no closer than the floor, or None."""
    allowed = [c for c in competitors(anchors, positives, i, scope, d) if c[0] >= floor]
    return min(allowed, key=lambda c: c[0], default=None)


def batch_loss(
    anchors: Sequence[Vector],
    positives: Sequence[Vector],
    d: Metric,
    *,
    scope: str,
    power: int,
    t: float,
    weights: Sequence[float] | None = None,
) -> float:
    """(1/n) Σ_i w_i L_i with hardest-in-batch negatives, descriptors normalised first."""
    anchors = [unit(x) for x in anchors]
    positives = [unit(x) for x in positives]
    n = len(anchors)
    total = 0.0
    for i in range(n):
        d_neg = hardest_negative(anchors, positives, i, scope, d)[0]
        weight = 1.0 if weights is None else weights[i]
        total += weight * hinge(d(anchors[i], positives[i]), d_neg, t, power)
    return total / n


def slope(
    function: Callable[[list[float]], float], point: Sequence[float], step: float = 1e-6
) -> list[float]:
    """Gradient by central differences, one coordinate after the other."""
    result = []
    for i in range(len(point)):
        up, down = list(point), list(point)
        up[i] += step
        down[i] -= step
        result.append((function(up) - function(down)) / (2 * step))
    return result


def sampling_probabilities(distances: Sequence[float | None], exponent: float) -> list[float]:
    """p_i ∝ d_i^(λ / L_avg), i ≠ i0 (AdaSample Eq. 13); None marks the anchor and empty places."""
    powers = [0.0 if d is None else d**exponent for d in distances]
    return [power / sum(powers) for power in powers]


def average_loss(losses: Sequence[float], kind: str) -> float:
    """L_avg, the moving average of the history of losses."""
    if kind == "exponential":
        average = losses[0]
        for loss in losses[1:]:
            average = 0.9 * average + 0.1 * loss
        return average
    if kind == "windowed":
        losses = losses[-100:]
    return sum(losses) / len(losses)


def inverse_distance_weights(
    distances: Sequence[float], class_sums: Sequence[float] | None = None
) -> list[float]:
    """w_i ∝ 1/d_i (Eq. 13), or Z_i/d_i, scaled to a mean of one."""
    class_sums = class_sums or [1.0] * len(distances)
    weights = [z / d for z, d in zip(class_sums, distances, strict=True)]
    mean = sum(weights) / len(weights)
    return [w / mean for w in weights]


def false_positive_rate(labels_in_order: Sequence[bool], recall: float = 0.95) -> float:
    """Percent of non-matching pairs that rank before the recall is reached."""
    matching = sum(labels_in_order)
    seen = 0
    false_positives = 0
    for label in labels_in_order:
        if label:
            seen += 1
        else:
            false_positives += 1
        if seen >= recall * matching:
            break
    return 100 * false_positives / (len(labels_in_order) - matching)


def fpr95_over_tie_orders(
    distances: Sequence[float], match: Sequence[bool]
) -> tuple[float, float, float]:
    """Mean, least and largest rate over every order of the pairs that is sorted by distance."""
    rates = []
    for order in permutations(range(len(distances))):
        if all(distances[a] <= distances[b] for a, b in pairwise(order)):
            rates.append(false_positive_rate([match[i] for i in order]))
    return sum(rates) / len(rates), min(rates), max(rates)


def hardnet_fpr95(distances: Sequence[float], match: Sequence[bool]) -> float:
    """HardNet's convention: the pairs before the one that reaches the recall are below the threshold."""
    order = sorted(range(len(distances)), key=lambda i: distances[i])
    labels = [match[i] for i in order]
    first = next(i for i in range(len(labels)) if sum(labels[: i + 1]) >= 0.95 * sum(labels))
    below = sum(not label for label in labels[:first])
    above = sum(not label for label in labels[first:])
    return 100 * below / (below + above)


def halved(image: Sequence[Sequence[int]]) -> list[list[float]]:
    """Means of 2×2 blocks."""
    means, size = window_means(image), len(image)
    return [[means[row][column] for column in range(0, size, 2)] for row in range(0, size, 2)]


def window_means(image: Sequence[Sequence[int]]) -> list[list[float]]:
    """Means of 2×2 windows at all positions."""
    return [
        [
            (above[column] + above[column + 1] + below[column] + below[column + 1]) / 4
            for column in range(len(above) - 1)
        ]
        for above, below in pairwise(image)
    ]


def turned_and_halved(image: Sequence[Sequence[int]], angle: float) -> list[list[float]]:
    """Turn counter-clockwise as seen: trace each output centre back and read the 2×2 mean there.

    Rows count downwards, so a counter-clockwise turn by φ carries the point (x right, y down) to
    (x cos φ + y sin φ, −x sin φ + y cos φ). Between the four neighbouring positions of the 2×2 window
    the mean is interpolated bilinearly; beyond the outermost positions the border is reflected.
    """
    size = len(image)
    means, last = window_means(image), size - 2
    middle = last / 2

    def inside(position: float) -> float:
        position = abs(position)
        return 2 * last - position if position > last else position

    result = []
    for row in range(size // 2):
        line = []
        for column in range(size // 2):
            x, y = 2 * column - middle, 2 * row - middle
            from_x = inside(middle + x * math.cos(angle) - y * math.sin(angle))
            from_y = inside(middle + x * math.sin(angle) + y * math.cos(angle))
            left, top = min(int(from_x), last - 1), min(int(from_y), last - 1)
            right, down = from_x - left, from_y - top
            line.append(
                (1 - down) * ((1 - right) * means[top][left] + right * means[top][left + 1])
                + down * ((1 - right) * means[top + 1][left] + right * means[top + 1][left + 1])
            )
        result.append(line)
    return result


def standardised(image: Sequence[Sequence[float]]) -> list[list[float]]:
    """Zero mean and unit variance, the standard deviation unbiased, plus 1e-7."""
    values = [value for line in image for value in line]
    mean = sum(values) / len(values)
    std = math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))
    return [[(value - mean) / (std + 1e-7) for value in line] for line in image]
