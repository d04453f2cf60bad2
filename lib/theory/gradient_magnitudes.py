"""|∂L/∂θ| of each triplet loss by the positive's angle and by the negative's (HyNet, Sec. 2.3).

It is ‖x‖ ‖∂L/∂x‖ of a descriptor x before normalisation. The losses are those of
`lib.theory.loss_shapes`, at its state of training: one angle goes through all its values, the other
distance stays at the state's mean.
"""

import math

import numpy as np
import torch
from torch import Tensor, nn

from lib.theory import Computed
from lib.theory.loss_shapes import CASES, Case, gaussian_state, joined, pull_and_push


def compute(points: int = 90, triplets: int = 1023) -> Computed:
    """Magnitudes of each of `CASES`.

    Args:
        points: angles between 0 and π.
        triplets: of the state.

    Returns:
        Numbers: "cases", rows of "key" and "label"; "means", the state's mean d_pos and d_neg as angles
        in radians. Arrays, float32: "theta" (P,), and by key "positive_…" and "negative_…" (P,).
    """
    state, arrays = gaussian_state(triplets), {}
    for case in CASES:
        loss = case.loss()
        # What a loss knows of earlier batches, it knows of the state.
        pull_and_push(case, loss, state, state)
        arrays["theta"], curves = by_angle(case, loss, state, points)
        arrays |= {f"{kind}_{case.key}": curve for kind, curve in curves.items()}
    means = (2 * (state.mean(dim=0) / 2).asin()).tolist()
    rows = [{"key": case.key, "label": case.label} for case in CASES]
    return {"cases": rows, "means": means}, {k: v.astype(np.float32) for k, v in arrays.items()}


def by_angle(
    case: Case, loss: nn.Module, state: Tensor, points: int
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """|∂L/∂θ| along both angles.

    Args:
        case: whose distance and weights are taken.
        loss: of that case, that has seen the state; it is left as it is.
        state: (m, 2) d_pos and d_neg, Euclidean, float64; a few triplets at a time join it.
        points: angles between 0 and π.

    Returns:
        (P,) radians, and by "positive" and "negative" (P,) magnitudes.
    """
    theta = (torch.arange(points, dtype=torch.float64) + 0.5) * (math.pi / points)
    curves = {}
    for column, kind in enumerate(("positive", "negative")):
        triplets = state.mean(dim=0).repeat(points, 1)
        triplets[:, column] = 2 * (theta / 2).sin()
        curves[kind] = joined(slopes, case, loss, triplets, state)[column].numpy()
    return theta.numpy(), curves


def slopes(case: Case, loss: nn.Module, batch: Tensor, state: Tensor) -> Tensor:
    """|∂L/∂θ| by the angle of the positive and by that of the negative, (2, n); arguments as of
    `lib.theory.loss_shapes.pull_and_push`. ∂d/∂θ = cos(θ/2)."""
    return pull_and_push(case, loss, batch, state).abs() * (1 - (batch.T / 2) ** 2).sqrt()
