"""Descent directions of inner products and L2 distances, by autograd (HyNet, Eq. 2 and 3, Fig. 1).

A positive pair (+) is to become more similar, a negative one (−) less; similar is a large s and a small
d. So the descent direction Δ by x is ∂s/∂x or −∂d/∂x of a positive pair, and its opposite of a negative
one. Δ = Δ∥ + Δ⊥, along the descriptor and across it.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from lib.theory import Computed

Pair = Callable[[Tensor, Tensor], Tensor]
# The plane's x and y: their lengths, and their directions from the first axis.
LENGTHS, DEGREES = (1.0, 1.4), (20.0, 80.0)


def _length(x: Tensor) -> Tensor:
    return x.norm(dim=-1, keepdim=True)


def _inner(x: Tensor, y: Tensor) -> Tensor:
    return (x * y).sum(-1, keepdim=True)


# Eq. 2, by key of records: s̄ and d̄ of raw descriptors, s and d of normalised ones.
MEASURES: dict[str, Pair] = {
    "s_raw": _inner,
    "d_raw": lambda x, y: _length(x - y),
    "s": lambda x, y: _inner(x, y) / (_length(x) * _length(y)),
    "d": lambda x, y: _length(x / _length(x) - y / _length(y)),
}
# Eq. 3 as printed: by x; by y the two change places.
CLOSED_FORMS: dict[str, Pair] = {
    "s_raw": lambda x, y: y,
    "d_raw": lambda x, y: (x - y) / _length(x - y),
    "s": lambda x, y: (y - _inner(x, y) / _length(x) ** 2 * x) / (_length(x) * _length(y)),
    "d": lambda x, y: (
        (_inner(x, y) / _length(x) ** 2 * x - y) / (MEASURES["d"](x, y) * _length(x) * _length(y))
    ),
}
# Which way Δ goes along the gradient of the measure, of a positive pair.
UPHILL = {"s_raw": 1.0, "d_raw": -1.0, "s": 1.0, "d": -1.0}


def compute(pairs: int = 1000) -> Computed:
    """Directions at a pair of the plane, which Figure 1 draws; and Eq. 3 against autograd at many pairs.

    Args:
        pairs: drawn for the comparison, Gaussian in 128 dimensions with lengths that vary.

    Returns:
        Numbers: "measures", a row each of `MEASURES` with "key", "deviation", the largest
        ‖autograd − Eq. 3‖ over ‖Eq. 3‖ over the pairs drawn, by x and by y, and "cosine", the largest
        |cos| between descriptor and gradient there. Arrays, float64: "descriptors"
        (2, 2), x and y of the plane; "direction", "parallel" and "orthogonal" (4, 2, 2, 2), Δ and its
        parts by measure, kind of pair (positive, negative), descriptor (x, y) and coordinate.
    """
    angle = np.deg2rad(DEGREES)
    plane = torch.from_numpy(np.array(LENGTHS)[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1))
    random = np.random.default_rng(0)
    drawn = random.normal(size=(2, pairs, 128)) * random.uniform(0.5, 2, size=(2, pairs, 1))
    # Half of the pairs lie as close as matching ones.
    drawn[1, ::2] = drawn[0, ::2] + 0.5 * drawn[1, ::2]
    drawn, rows, directions = torch.from_numpy(drawn), [], []
    for key, measure in MEASURES.items():
        gradient, stated = by_autograd(measure, drawn), closed_form(key, drawn)
        deviation = (_length(gradient - stated) / _length(stated)).max()
        cosine = (_inner(drawn, gradient) / (_length(drawn) * _length(gradient))).abs()
        rows.append({"key": key, "deviation": float(deviation), "cosine": float(cosine.max())})
        descent = UPHILL[key] * by_autograd(measure, plane[:, None])[:, 0]
        directions.append(torch.stack([descent, -descent]))
    direction = torch.stack(directions)
    parallel = _inner(direction, plane) / _length(plane) ** 2 * plane
    arrays = {"descriptors": plane, "direction": direction, "parallel": parallel}
    arrays["orthogonal"] = direction - parallel
    return {"measures": rows}, {name: array.numpy() for name, array in arrays.items()}


def by_autograd(measure: Pair, pair: Tensor) -> Tensor:
    """∂ψ/∂x and ∂ψ/∂y, (2, n, k), of n pairs of descriptors (2, n, k)."""
    leaf = pair.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(measure(*leaf).sum(), leaf)
    return gradient


def closed_form(key: str, pair: Tensor) -> Tensor:
    """Eq. 3 of a measure, (2, n, k), of n pairs of descriptors (2, n, k)."""
    x, y = pair
    return torch.stack([CLOSED_FORMS[key](x, y), CLOSED_FORMS[key](y, x)])
