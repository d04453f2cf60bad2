"""Distances between descriptors: one module each, with `build(**options)` returning a `Distance`.

TCDesc's topology distance depends on the whole batch and is in `lib.positives.topology`.
"""

from collections.abc import Callable
from dataclasses import dataclass

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
    """

    between: Callable[[Tensor, Tensor | float, Tensor | float], Tensor]
    power: int
    maximum: float
    unit: bool = True

    def of_similarity(self, similarity: Tensor) -> Tensor:
        """Distances of unit descriptors from their inner products in [-1, 1], any shape."""
        return self.between(similarity, 1.0, 1.0)

    def paired(self, x: Tensor, y: Tensor) -> Tensor:
        """Distances (…) between ``x`` and ``y``, (…, k) of shapes that broadcast."""
        inner = (x * y).sum(-1)
        if self.unit:
            return self.of_similarity(inner)
        return self.between(inner, x.square().sum(-1), y.square().sum(-1))

    def matrix(self, x: Tensor, y: Tensor) -> Tensor:
        """Distances (n, m) between all rows of ``x`` (n, k) and of ``y`` (m, k)."""
        inner = x @ y.mT
        if self.unit:
            return self.of_similarity(inner)
        return self.between(inner, x.square().sum(-1)[:, None], y.square().sum(-1))

    def root(self, distances: Tensor) -> Tensor:
        """The distance itself, from distances at the loss's power."""
        return distances if self.power == 1 else distances.clamp(min=0).sqrt()


def checked_power(power: int) -> int:
    """Return ``power`` if it is 1 or 2.

    Raises:
        ValueError: it is neither.
    """
    if power not in (1, 2):
        raise ValueError(f"power must be 1 (the distance) or 2 (its square), got {power!r}")
    return power
