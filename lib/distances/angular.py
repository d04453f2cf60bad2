"""Angle between unit descriptors, θ = arccos(s) (AdaSample, Eq. 15), and its square.

Written as θ = 2 atan2(‖x − y‖, ‖x + y‖) with ‖x ∓ y‖ = √(2 ∓ 2s + ε): arccos itself has an infinite
gradient at ±1, where identical and opposite descriptors lie. The ε moves θ by at most √ε = 0.001 rad.
"""

import math

import torch
from torch import Tensor

from lib.distances import Distance, checked_power


def build(power: int = 1, epsilon: float = 1e-6, unit: bool = True) -> Distance:
    """Angle in radians, 0 to π, or its square, from inner products.

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

    checked_power(power)
    return Distance(angle if power == 1 else squared, power, math.pi**power, unit)
