"""Distances between descriptors, each a function that returns a `Distance` for some options.

TCDesc's topology distance depends on the whole batch and is in `lib.losses.topology`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Distance:
    """A distance and the power at which the loss takes it.

    Attributes:
        between: maps inner products x·y and squared norms x·x and y·y, of shapes that broadcast, to
            distances at the loss's power; differentiable with finite gradients.
        power: 1 or 2; AdaSample's losses take the square (Eq. 14), HardNet's and DSM's the
            distance itself.
        maximum: the largest value between unit descriptors, that of opposite ones, at that power; it
            is the negative's distance where there is no negative.
        unit: whether descriptors have unit length, so that norms need not be computed; otherwise
            (TFeat's, or raw descriptors) they are.
        length: k, the only length of descriptors that have this distance; None if any length does.
    """

    between: Callable[[Tensor, Tensor | float, Tensor | float], Tensor]
    power: int
    maximum: float
    unit: bool = True
    length: int | None = None

    def of_similarity(self, similarity: Tensor) -> Tensor:
        """Distances of unit descriptors from their inner products in [-1, 1], any shape."""
        return self.between(similarity, 1.0, 1.0)

    def paired(self, x: Tensor, y: Tensor) -> Tensor:
        """Distances (…) between ``x`` and ``y``, (…, k) of shapes that broadcast.

        Raises:
            ValueError: the descriptors have another length than `length`.
        """
        self._check_length(x)
        inner = (x * y).sum(-1)
        if self.unit:
            return self.of_similarity(inner)
        return self.between(inner, x.square().sum(-1), y.square().sum(-1))

    def matrix(self, x: Tensor, y: Tensor) -> Tensor:
        """Distances (n, m) between all rows of ``x`` (n, k) and of ``y`` (m, k).

        Raises:
            ValueError: the descriptors have another length than `length`.
        """
        self._check_length(x)
        inner = x @ y.mT
        if self.unit:
            return self.of_similarity(inner)
        return self.between(inner, x.square().sum(-1)[:, None], y.square().sum(-1))

    def root(self, distances: Tensor) -> Tensor:
        """The distance itself, from distances at the loss's power."""
        return distances if self.power == 1 else distances.clamp(min=0).sqrt()

    def _check_length(self, descriptors: Tensor) -> None:
        length = descriptors.shape[-1]
        if self.length not in (None, length):
            raise ValueError(f"codes of {length} values, but the distance is of {self.length} bits")


def without_own(distances: Tensor) -> Tensor:
    """Return distances (n, n) of descriptors of one set with infinity where one meets itself."""
    own = torch.eye(len(distances), dtype=torch.bool, device=distances.device)
    return distances.masked_fill(own, torch.inf)


def euclidean(power: int = 1, epsilon: float = 1e-6, unit: bool = True) -> Distance:
    """Euclidean distance, d² = x·x + y·y − 2 x·y, which is 2 − 2s for unit descriptors, and its square.

    HardNet and DSM (Eq. 1) take the distance, AdaSample's hinge triplet loss (Eq. 14) its square.

    Args:
        power: 1 or 2.
        epsilon: added under the square root, whose gradient at zero is infinite (HardNet's code);
            the square needs none.
        unit: whether descriptors have unit length.

    Raises:
        ValueError: ``power`` is neither 1 nor 2.
    """

    def squared(inner: Tensor, x: Tensor | float, y: Tensor | float) -> Tensor:
        return x + y - 2 * inner

    def root(inner: Tensor, x: Tensor | float, y: Tensor | float) -> Tensor:
        # Rounding can put s a little above 1, and the root would be NaN.
        return (squared(inner, x, y).clamp(min=0) + epsilon).sqrt()

    _check_power(power)
    return Distance(root if power == 1 else squared, power, 2.0**power, unit)


def angular(power: int = 1, epsilon: float = 1e-6, unit: bool = True) -> Distance:
    """Angle in radians, θ = arccos(s) (AdaSample, Eq. 15), 0 to π, or its square.

    Written as θ = 2 atan2(‖x − y‖, ‖x + y‖) with ‖x ∓ y‖ = √(2 ∓ 2s + ε): arccos itself has an infinite
    gradient at ±1, where identical and opposite descriptors lie. The ε moves θ by at most
    √ε = 0.001 rad.

    Args:
        power: 1 or 2.
        epsilon: added under both square roots, and under that of the product of the norms.
        unit: whether descriptors have unit length.

    Raises:
        ValueError: ``power`` is neither 1 nor 2.
    """

    def angle(inner: Tensor, x: Tensor | float, y: Tensor | float) -> Tensor:
        similarity = inner if unit else inner / (x * y + epsilon).sqrt()
        difference = ((2 - 2 * similarity).clamp(min=0) + epsilon).sqrt()
        total = ((2 + 2 * similarity).clamp(min=0) + epsilon).sqrt()
        return 2 * torch.atan2(difference, total)

    def squared(inner: Tensor, x: Tensor | float, y: Tensor | float) -> Tensor:
        return angle(inner, x, y) ** 2

    _check_power(power)
    return Distance(angle if power == 1 else squared, power, math.pi**power, unit)


def hybrid_similarity(alpha: float | str = 2.0, z: float = 1.0, epsilon: float = 1e-6) -> Distance:
    """HyNet's hybrid similarity s_H(θ) = [α (1 − s) + d] / Z of unit descriptors (Eq. 6), a distance.

    s = cos θ is the inner product and d = √(2 − 2s) the Euclidean distance. 1 − s is steepest where a
    pair is far apart, at θ = π/2, and d where it is close, which suits positives and negatives
    (Sec. 2.3).

    Args:
        alpha: α of Eq. 6; 0 gives d / Z, and ``math.inf`` gives (1 − s) / Z, which has no root. A recipe
            writes "inf", because its values go into JSON.
        z: Z of Eq. 6, the largest |α sin θ + cos(θ/2)| (`lib.recipes.largest_gradient`). The default is
            1, as in the authors' code, which is not Eq. 6.
        epsilon: added under the root, whose gradient at zero is infinite.

    Raises:
        ValueError: α is below 0, or Z not positive and finite.
    """
    alpha = float(alpha)
    if not alpha >= 0:
        raise ValueError(f"α must be 0 or more, got {alpha}")
    if not 0 < z < math.inf:
        raise ValueError(f"Z must be positive and finite, got {z}")
    distance = euclidean(power=1, epsilon=epsilon)

    def cosine(inner: Tensor, x: Tensor | float, y: Tensor | float) -> Tensor:
        return (1 - inner) / z

    def mixed(inner: Tensor, x: Tensor | float, y: Tensor | float) -> Tensor:
        return (alpha * (1 - inner) + distance.between(inner, x, y)) / z

    if math.isinf(alpha):
        return Distance(cosine, power=1, maximum=2 / z)
    return Distance(mixed, power=1, maximum=(2 * alpha + 2) / z)


def hamming(scale: str = "2D/k", length: int = 256) -> Distance:
    """Hamming distance D = (k − x·y) / 2 of codes of k values (DSM, Eq. 3).

    For signs −1 and 1 it counts those that differ. For values between them, such as those of tanh, it
    replaces that count where a gradient is needed (Sec. 3.2). It has no root, so its gradient is finite.

    Args:
        scale: "2D/k", 0 to 2, as DSM's loss takes it; "D/k", 0 to 1, as its loss with a static margin
            does; or "bits", 0 to k.
        length: k, a multiple of 8.

    Raises:
        ValueError: an unknown scale, or a length that cannot be packed into bytes.
    """
    maxima = {"2D/k": 2.0, "D/k": 1.0, "bits": float(length)}
    if scale not in maxima:
        raise ValueError(f"scale must be one of {', '.join(maxima)}, got {scale!r}")
    if length < 8 or length % 8:
        raise ValueError(f"length must be a multiple of 8, so that bits fill bytes, got {length}")
    maximum = maxima[scale]

    def between(inner: Tensor, x: Tensor | float, y: Tensor | float) -> Tensor:
        # (k − x·y) / 2 is at most k.
        return (length - inner) * (maximum / (2 * length))

    return Distance(between, power=1, maximum=maximum, length=length)


def _check_power(power: int) -> None:
    if power not in (1, 2):
        raise ValueError(f"power must be 1 (the distance) or 2 (its square), got {power!r}")
