"""A slow, literal float64 transcription of the loss of "Learning Local Descriptors With a CDF-Based
Dynamic Soft Margin" (Zhang and Rusinkiewicz): Equations 1, 3, 4 and 5, Sections 3.2, 4.2 and 5.6, one
scalar at a time.

Everywhere, `values` (2, n, k) are a batch of n matching pairs: values[0][i] is anchor a_i, values[1][i]
its positive p_i. They are real unit vectors, or for binary descriptors the outputs of tanh. `codes`
(2, n, k) serve to mine the negatives: the same unit vectors, or for binary descriptors the signs of the
values, -1 or 1.

A triplet's negative pair is written (side, j): ("row", j) is (a_i, p_j) and ("column", j) is (a_j, p_i).
"""

import math
from dataclasses import dataclass

import numpy as np

LOWEST, HIGHEST = -2.0, 2.0  # the range of the differences of two distances in [0, 2]
EPSILON = 2e-6  # √(2 (1 − s + 1e-6))
CLOSEST_REAL, CLOSEST_BITS = 0.008, 2.0  # closer negatives count as false

# --------------------------------------------------------------------------------------------- distances


def dot(x, y):
    """x · y of vectors (k,), summed from the first to the last."""
    total = 0.0
    for component in range(len(x)):
        total += float(x[component]) * float(y[component])
    return total


def euclidean(x, y, epsilon):
    """Eq. 1 of unit vectors (k,): √(max(0, 2 − 2 x·y) + epsilon)."""
    return math.sqrt(max(0.0, 2.0 - 2.0 * dot(x, y)) + epsilon)


def euclidean_gradient(x, y, epsilon):
    """∂/∂x of Eq. 1, (k,), x a free vector: −y / d, or 0 unless 2 − 2 x·y > 0. For ∂/∂y swap x and y."""
    gradient = np.zeros(len(x), dtype=np.float64)
    if 2.0 - 2.0 * dot(x, y) > 0.0:
        for component in range(len(x)):
            gradient[component] = -float(y[component]) / euclidean(x, y, epsilon)
    return gradient


def unit(k, scale):
    """The distance that one differing bit adds: 1 ("D", Eq. 3 in bits) or 2/k ("2D/k")."""
    return {"D": 1.0, "2D/k": 2.0 / k}[scale]


def hamming(x, y, scale="D"):
    """Eq. 3 of vectors (k,), -1 and 1 or tanh's values: D = (k − x·y) / 2, on one of `unit`'s scales."""
    k = len(x)
    return (k - dot(x, y)) / 2.0 * unit(k, scale)


def hamming_gradient(x, y, scale="D"):
    """∂/∂x of Eq. 3, (k,): −y/2 in bits, −y/k for 2D/k."""
    k = len(x)
    gradient = np.zeros(k, dtype=np.float64)
    for component in range(k):
        gradient[component] = -float(y[component]) / 2.0 * unit(k, scale)
    return gradient


def signs(values):
    """Sec. 3.2: (2, n, k) of -1 and 1. The text leaves the sign of 0 open; here it is 1."""
    codes = np.zeros(values.shape, dtype=np.float64)
    for side in range(values.shape[0]):
        for pair in range(values.shape[1]):
            for component in range(values.shape[2]):
                codes[side][pair][component] = 1.0 if values[side][pair][component] >= 0.0 else -1.0
    return codes


# ----------------------------------------------------------------------------------- mining and triplets


def hardest_negatives(codes, distance, floor):
    """Sec. 3.1: the hardest negatives of the pairs of codes (2, n, k), a list of n (side, j).

    The hardest has the smallest `distance(x, y)` not below `floor` among (a_i, p_j) and (a_j, p_i) with
    j ≠ i. Ties take the first: all (a_i, p_j) by j before all (a_j, p_i) by j. ValueError for a pair
    that has none.
    """
    anchors, positives = codes
    n = len(anchors)
    hardest = []
    for i in range(n):
        negative, smallest = None, math.inf
        for j in range(n):
            d = distance(anchors[i], positives[j])
            if j != i and d >= floor and d < smallest:
                negative, smallest = ("row", j), d
        for j in range(n):
            d = distance(anchors[j], positives[i])
            if j != i and d >= floor and d < smallest:
                negative, smallest = ("column", j), d
        if negative is None:
            raise ValueError(f"pair {i} has no negative at {floor} or farther")
        hardest.append(negative)
    return hardest


def negative_pair(i, hardest):
    """The indices (anchor, positive) of pair i's negative pair; `hardest` is one (side, j)."""
    side, j = hardest
    return (i, j) if side == "row" else (j, i)


def triplet_distances(values, hardest, distance):
    """d_pos and d_neg, lists of n, of values (2, n, k); `hardest` is the list of n (side, j)."""
    anchors, positives = values
    d_pos, d_neg = [], []
    for i in range(len(anchors)):
        d_pos.append(distance(anchors[i], positives[i]))
        anchor, positive = negative_pair(i, hardest[i])
        d_neg.append(distance(anchors[anchor], positives[positive]))
    return d_pos, d_neg


# -------------------------------------------------------------------------------------- moving densities


class MovingHistogram:
    """Sec. 4.2: a moving histogram that sums to 1, of nodes −2 + j · 4 / (bins − 1), j = 0 … bins − 1.

    `lookup` "floor" takes the cumulative sum up to and including the node below a value. "interpolated"
    takes the straight line between the cumulative sums of the nodes below and above it.
    """

    def __init__(self, bins=512, momentum=0.1, lookup="floor"):
        self.bins, self.momentum, self.lookup = bins, momentum, lookup
        self.histogram = None

    def place(self, value):
        """The node at or below the value, clamped into ±2, and the share in [0, 1) of the node above."""
        clamped = min(max(float(value), LOWEST), HIGHEST)
        position = (clamped - LOWEST) * (self.bins - 1) / (HIGHEST - LOWEST)
        lower = math.floor(position)
        return lower, position - lower

    def batch_histogram(self, values):
        """The histogram (bins,) of one batch: each of n values adds 1/n, shared by its two nodes."""
        histogram = np.zeros(self.bins, dtype=np.float64)
        for value in values:
            lower, share = self.place(value)
            histogram[lower] += (1.0 - share) / len(values)
            if lower + 1 < self.bins:
                histogram[lower + 1] += share / len(values)
        return histogram

    def update(self, values):
        """The first batch replaces; each later one weighs `momentum`, what there was 1 − `momentum`."""
        batch = self.batch_histogram(values)
        if self.histogram is None:
            self.histogram = batch
            return
        moved = np.zeros(self.bins, dtype=np.float64)
        for j in range(self.bins):
            moved[j] = (1.0 - self.momentum) * self.histogram[j] + self.momentum * batch[j]
        self.histogram = moved

    def cumulative(self, node):
        """The sum of the nodes 0 … node."""
        total = 0.0
        for j in range(node + 1):
            total += float(self.histogram[j])
        return total

    def cdf(self, value):
        """CDF(value) of Eq. 5."""
        lower, share = self.place(value)
        if self.lookup == "floor" or lower + 1 == self.bins:
            return self.cumulative(lower)
        return (1.0 - share) * self.cumulative(lower) + share * self.cumulative(lower + 1)

    def state(self):
        """A copy of the histogram, (bins,)."""
        return self.histogram.copy()


class MovingGaussian:
    """Sec. 5.6, "Gaussian": a running mean and (biased) variance, and the normal distribution's CDF.

    A batch's variance is about the batch's own mean, as in batch normalisation.
    """

    def __init__(self, momentum=0.1):
        self.momentum = momentum
        self.mean = self.variance = None

    def update(self, values):
        """The first batch replaces; each later one weighs `momentum`, what there was 1 − `momentum`."""
        mean = 0.0
        for value in values:
            mean += float(value) / len(values)
        variance = 0.0
        for value in values:
            variance += (float(value) - mean) ** 2 / len(values)
        if self.mean is None:
            self.mean, self.variance = mean, variance
        else:
            self.mean = (1.0 - self.momentum) * self.mean + self.momentum * mean
            self.variance = (1.0 - self.momentum) * self.variance + self.momentum * variance

    def cdf(self, value):
        """½ (1 + erf((x − μ) / (σ √2)))."""
        deviation = float(value) - self.mean
        return 0.5 * (1.0 + math.erf(deviation / (math.sqrt(self.variance) * math.sqrt(2.0))))

    def state(self):
        """(μ, σ²)."""
        return self.mean, self.variance


# ---------------------------------------------------------------------------------------------- the loss


def hardness(d_pos, d_neg, pdf_of):
    """The PDF variable (Sec. 5.6, Table 4), a list of n: "difference", "positive" or "negative"."""
    variable = []
    for i in range(len(d_pos)):
        variable.append(
            {"difference": d_pos[i] - d_neg[i], "positive": d_pos[i], "negative": d_neg[i]}[pdf_of]
        )
    return variable


def weights(d_pos, d_neg, moving, pdf_of="difference"):
    """Eq. 5, a list of n weights: `moving` is first updated with this batch, and then looked up.

    CDF(d_pos − d_neg), CDF(d_pos), or 1 − CDF(d_neg): the closer a negative, the harder its triplet.
    """
    variable = hardness(d_pos, d_neg, pdf_of)
    moving.update(variable)
    result = []
    for value in variable:
        result.append(1.0 - moving.cdf(value) if pdf_of == "negative" else moving.cdf(value))
    return result


def weighted_loss(d_pos, d_neg, w):
    """Eq. 4: the mean over the n triplets of w_i (d_pos − d_neg)."""
    total = 0.0
    for i in range(len(d_pos)):
        total += w[i] * (d_pos[i] - d_neg[i])
    return total / len(d_pos)


def loss_gradient(values, hardest, w, distance_gradient):
    """The gradient (2, n, k) of Eq. 4 with respect to the values as free vectors; the weights w (n) and
    the mined indices are constants. `distance_gradient(x, y)` is ∂d(x, y)/∂x of a symmetric distance.
    """
    anchors, positives = values
    n = len(anchors)
    gradient = np.zeros(values.shape, dtype=np.float64)
    for i in range(n):
        for sign, (anchor, positive) in ((1.0, (i, i)), (-1.0, negative_pair(i, hardest[i]))):
            anchor_gradient = distance_gradient(anchors[anchor], positives[positive])
            positive_gradient = distance_gradient(positives[positive], anchors[anchor])
            for component in range(values.shape[2]):
                gradient[0][anchor][component] += sign * w[i] / n * anchor_gradient[component]
                gradient[1][positive][component] += sign * w[i] / n * positive_gradient[component]
    return gradient


@dataclass(frozen=True)
class Batch:
    """Results of `dsm_loss` for one batch of n pairs."""

    loss: float  # Eq. 4
    weights: np.ndarray  # (n,), Eq. 5
    hardest: list  # n ("row" or "column", j)
    d_pos: np.ndarray  # (n,), of the values
    d_neg: np.ndarray  # (n,), of the values
    variable: np.ndarray  # (n,), the variable of the PDF; for binary descriptors from the signs
    state: object  # after this batch's update: the histogram (bins,), or (μ, σ²)
    gradient: np.ndarray  # (2, n, k), of the loss with respect to the values


def dsm_loss(batches, kind, moving, pdf_of="difference", epsilon=EPSILON):
    """Eq. 4 and 5 over successive batches, each of values (2, n, k); returns a list of `Batch`.

    kind "real": unit vectors, Eq. 1; mining, PDF, lookup and loss all use this one distance. kind
    "binary": mining by the signs' distance in bits, PDF and lookup by the signs' 2D/k, loss by the
    values' 2D/k (Sec. 3.2). `moving` is a `MovingHistogram` or a `MovingGaussian`, which continues
    from its state.
    """
    floor = {"real": CLOSEST_REAL, "binary": CLOSEST_BITS}[kind]

    def distance(x, y):
        return euclidean(x, y, epsilon) if kind == "real" else hamming(x, y, "2D/k")

    def distance_gradient(x, y):
        return euclidean_gradient(x, y, epsilon) if kind == "real" else hamming_gradient(x, y, "2D/k")

    mined_by = {"real": distance, "binary": hamming}[kind]
    results = []
    for batch in batches:
        values = np.array(batch, dtype=np.float64)
        codes = values if kind == "real" else signs(values)
        hardest = hardest_negatives(codes, mined_by, floor)
        code_pos, code_neg = triplet_distances(codes, hardest, distance)
        w = weights(code_pos, code_neg, moving, pdf_of)
        d_pos, d_neg = triplet_distances(values, hardest, distance)
        results.append(
            Batch(
                loss=weighted_loss(d_pos, d_neg, w),
                weights=np.array(w),
                hardest=hardest,
                d_pos=np.array(d_pos),
                d_neg=np.array(d_neg),
                variable=np.array(hardness(code_pos, code_neg, pdf_of)),
                state=moving.state(),
                gradient=loss_gradient(values, hardest, w, distance_gradient),
            )
        )
    return results
