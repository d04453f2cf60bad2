"""Gradient magnitudes by the angle: g_s, g_d (HyNet, Eq. 4, Fig. 2b) and g_H (Eq. 6, Fig. 5b).

Derivatives by θ are autograd's. θ goes around twice, from 0 to 4π, so that a period of 2π can be seen.
Where two descriptors are one, at θ = 0, d has a kink; no angle of the grid lies there.
"""

import math

import torch
from torch import Tensor

from lib.distances import hybrid
from lib.theory import Computed

# Ratios of 1 − s to d in s_H, by key of records.
ALPHAS = {"0": 0.0, "1": 1.0, "2": 2.0, "3": 3.0, "infinite": math.inf}


def compute(points: int = 720) -> Computed:
    """g_s = |s'(θ)|, g_d = |d'(θ)| and g_H = |s_H'(θ)| over Z, the largest of each.

    Args:
        points: angles from 0 to 2π, a multiple of 4.

    Returns:
        Numbers: "periods", of "s" and "d" the shortest of π/2, π and 2π after which the magnitude comes
        again, in units of π (None if none is); "hybrid", rows of "key", "alpha" (None is ∞) and "z",
        the largest |α sin θ + cos(θ/2)|. Arrays, float64, once around: "theta" (P,), "s", "d" and by key
        of the rows "hybrid_…" (P,).
    """
    # θ = 0 lies between the grid's angles.
    theta = (torch.arange(2 * points, dtype=torch.float64) + 0.5) * (2 * math.pi / points)
    leaf = theta.clone().requires_grad_()
    # Eq. 4.
    arrays = {"s": _slope(leaf.cos(), leaf), "d": _slope((2 * (1 - leaf.cos())).sqrt(), leaf)}
    periods, rows = {name: _period(slope) for name, slope in arrays.items()}, []
    for key, alpha in ALPHAS.items():
        # The ε of training would show at small angles.
        similarity = hybrid.build(alpha, 1.0, epsilon=0.0)
        slope = _slope(similarity.of_similarity(leaf.cos()), leaf)
        z = float(slope[: points // 2].max())
        rows.append({"key": key, "alpha": None if math.isinf(alpha) else alpha, "z": z})
        arrays[f"hybrid_{key}"] = slope / z
    arrays = {"theta": theta} | arrays
    once = {name: array[:points].numpy() for name, array in arrays.items()}
    return {"periods": periods, "hybrid": rows}, once


def _slope(value: Tensor, theta: Tensor) -> Tensor:
    (slope,) = torch.autograd.grad(value.sum(), theta)
    return slope.abs()


def _period(values: Tensor) -> float | None:
    """The shortest of π/2, π and 2π after which values on 0 to 4π come again, in units of π."""
    around = len(values) // 2
    for later in (around // 4, around // 2, around):
        if torch.allclose(values[:around], values[later : later + around], atol=1e-9):
            return 2.0 * later / around
    return None
