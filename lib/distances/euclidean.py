"""Euclidean distance, d² = x·x + y·y − 2 x·y, which is 2 − 2s for unit descriptors, and its square.

HardNet and DSM (Eq. 1) take the distance, AdaSample's hinge triplet loss (Eq. 14) its square.
"""

from torch import Tensor

from lib.distances import Distance, checked_power


def build(power: int = 1, epsilon: float = 1e-6, unit: bool = True) -> Distance:
    """Euclidean distance from inner products.

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

    checked_power(power)
    return Distance(root if power == 1 else squared, power, 2.0**power, unit)
