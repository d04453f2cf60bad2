"""HyNet's measures of two descriptors and their gradients, by autograd.

Descent directions of inner products and L2 distances (Eq. 2 and 3, Fig. 1): training makes a positive
pair (+) more similar and a negative pair (−) less similar, where similar means a large s and a small d.
So the descent direction Δ by x is ∂s/∂x or −∂d/∂x for a positive pair, and the opposite for a negative
one. Δ = Δ∥ + Δ⊥, its parts along the descriptor and orthogonal to it.

Gradient magnitudes by the angle: g_s, g_d (Eq. 4, Fig. 2b) and g_H (Eq. 6, Fig. 5b). θ goes around
twice, from 0 to 4π, so that a period of 2π can be seen. At θ = 0 the two descriptors coincide and d has
a kink; no angle of the grid lies there.
"""

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from lib.analysis import Computed
from lib.losses.distances import hybrid_similarity

Pair = Callable[[Tensor, Tensor], Tensor]
# The descriptors x and y of the plane: their lengths, and their angles from the first axis.
LENGTHS = (1.0, 1.4)
DEGREES = (20.0, 80.0)
# Key in the records -> ratio α of 1 − s to d in s_H.
ALPHAS = {"0": 0.0, "1": 1.0, "2": 2.0, "3": 3.0, "infinite": math.inf}


def _length(x: Tensor) -> Tensor:
    return x.norm(dim=-1, keepdim=True)


def _inner(x: Tensor, y: Tensor) -> Tensor:
    return (x * y).sum(-1, keepdim=True)


# Eq. 2, key in the records -> measure: s̄ and d̄ of raw descriptors, s and d of normalised ones.
MEASURES: dict[str, Pair] = {
    "s_raw": _inner,
    "d_raw": lambda x, y: _length(x - y),
    "s": lambda x, y: _inner(x, y) / (_length(x) * _length(y)),
    "d": lambda x, y: _length(x / _length(x) - y / _length(y)),
}
# Eq. 3 as printed, by x. For the gradient by y, swap x and y.
CLOSED_FORMS: dict[str, Pair] = {
    "s_raw": lambda x, y: y,
    "d_raw": lambda x, y: (x - y) / _length(x - y),
    "s": lambda x, y: (y - _inner(x, y) / _length(x) ** 2 * x) / (_length(x) * _length(y)),
    "d": lambda x, y: (
        (_inner(x, y) / _length(x) ** 2 * x - y) / (MEASURES["d"](x, y) * _length(x) * _length(y))
    ),
}
# Sign of Δ along the measure's gradient, for a positive pair.
UPHILL = {"s_raw": 1.0, "d_raw": -1.0, "s": 1.0, "d": -1.0}


def compute(pairs: int = 1000, points: int = 720) -> Computed:
    """Compute descent directions, check Eq. 3 against autograd, and compute gradient magnitudes.

    The directions are at the pair of the plane that Figure 1 draws. Eq. 3 is checked at many pairs,
    Gaussian in 128 dimensions with varying lengths. The magnitudes are g_s = |s'(θ)|, g_d = |d'(θ)| and
    g_H = |s_H'(θ)| / Z, with Z the largest |s_H'(θ)|.

    Args:
        pairs: number of pairs drawn to compare Eq. 3 with autograd.
        points: number of angles from 0 to 2π, a multiple of 4.

    Returns:
        Numbers: "measures", rows with "key" of `MEASURES`, "deviation", the largest ‖autograd − Eq. 3‖
        over ‖Eq. 3‖ over the pairs drawn, by x and by y, and "cosine", the largest |cos| between
        descriptor and gradient there; "periods", for "s" and "d" the shortest of π/2, π and 2π after
        which the magnitude repeats, in units of π; "hybrid", rows with "key", "alpha" (None is ∞) and
        "z", the largest |α sin θ + cos(θ/2)|. Arrays, float64: "descriptors" (2, 2), x and y of the
        plane; "direction", "parallel" and "orthogonal" (4, 2, 2, 2), Δ and its parts by measure, kind of
        pair (positive, negative), descriptor (x, y) and coordinate; for θ from 0 to 2π, "theta" (P,),
        "s", "d" and, by key of the "hybrid" rows, "hybrid_…" (P,).
    """
    angle = np.deg2rad(DEGREES)
    directions = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    plane = torch.from_numpy(np.array(LENGTHS)[:, None] * directions)
    random = np.random.default_rng(0)
    drawn = random.normal(size=(2, pairs, 128)) * random.uniform(0.5, 2, size=(2, pairs, 1))
    # Half of the pairs are as close as matching ones.
    drawn[1, ::2] = drawn[0, ::2] + 0.5 * drawn[1, ::2]
    drawn = torch.from_numpy(drawn)
    measures, descents = [], []
    for key, measure in MEASURES.items():
        gradient = gradients(measure, drawn)
        stated = closed_form(key, drawn)
        deviation = (_length(gradient - stated) / _length(stated)).max()
        cosine = (_inner(drawn, gradient) / (_length(drawn) * _length(gradient))).abs()
        measures.append({"key": key, "deviation": float(deviation), "cosine": float(cosine.max())})
        descent = UPHILL[key] * gradients(measure, plane)
        descents.append(torch.stack([descent, -descent]))
    direction = torch.stack(descents)
    parallel = _inner(direction, plane) / _length(plane) ** 2 * plane
    parts = {"direction": direction, "parallel": parallel, "orthogonal": direction - parallel}

    # θ = 0 lies between the grid's angles.
    theta = (torch.arange(2 * points, dtype=torch.float64) + 0.5) * (2 * math.pi / points)
    theta.requires_grad_()
    s = theta.cos()
    # Eq. 4.
    curves, periods, hybrids = {"s": _slope(s, theta), "d": _slope((2 * (1 - s)).sqrt(), theta)}, {}, []
    for name, curve in curves.items():
        again = [torch.allclose(curve, curve.roll(points // part), atol=1e-9) for part in (4, 2, 1)]
        periods[name] = (0.5, 1.0, 2.0)[again.index(True)]
    for key, alpha in ALPHAS.items():
        # The ε of training would show at small angles.
        slope = _slope(hybrid_similarity(alpha, 1.0, epsilon=0.0).of_similarity(s), theta)
        z = float(slope[: points // 2].max())
        hybrids.append({"key": key, "alpha": None if math.isinf(alpha) else alpha, "z": z})
        curves[f"hybrid_{key}"] = slope / z
    curves = {"theta": theta.detach(), **curves}
    # The second round serves the periods alone.
    once = {name: curve[:points] for name, curve in curves.items()}
    arrays = {name: array.numpy() for name, array in {"descriptors": plane, **parts, **once}.items()}
    return {"measures": measures, "periods": periods, "hybrid": hybrids}, arrays


def gradients(measure: Pair, pair: Tensor) -> Tensor:
    """Compute ∂ψ/∂x and ∂ψ/∂y, (2, …, k), of a measure ψ at pairs of descriptors, (2, …, k)."""
    leaf = pair.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(measure(*leaf).sum(), leaf)
    return gradient


def closed_form(key: str, pair: Tensor) -> Tensor:
    """Evaluate Eq. 3 of a measure, (2, …, k), at pairs of descriptors, (2, …, k)."""
    x, y = pair
    return torch.stack([CLOSED_FORMS[key](x, y), CLOSED_FORMS[key](y, x)])


def _slope(value: Tensor, theta: Tensor) -> Tensor:
    (slope,) = torch.autograd.grad(value.sum(), theta, retain_graph=True)
    return slope.abs()
