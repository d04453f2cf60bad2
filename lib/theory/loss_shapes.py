"""|∂L/∂θ| of each triplet loss by the positive's angle and by the negative's (HyNet, Sec. 2.3), which is
‖x‖ ‖∂L/∂x‖ of a descriptor x before normalisation.

A triplet's own loss L_i is a function of the Euclidean distances d_pos and d_neg of unit descriptors,
0 to 2; losses of squares and of angles are differentiated through these by the chain rule. A loss may
look at the whole batch: DSM's weight at the distribution of recent ones, the hardest eighth at the
others' order, AdaSample's w_i = 1/d is scaled to their mean. So there is a state, a batch of triplets
that the loss has seen once before, and the triplets that are asked about join it, so few at a time that
they hardly move it.
"""

import copy
import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from lib.descriptions import drawn
from lib.distances import Distance, angular, euclidean, hybrid
from lib.losses import cdf, hardest_fraction, hinge, mixed_hinge, softplus, squared_hinge, stacked_hinge
from lib.pair_weights.inverse_distance import inverse_distance
from lib.theory import Computed

_ROOT = euclidean.build(power=1, epsilon=0.0)
_SQUARE = euclidean.build(power=2, epsilon=0.0)
_ANGLE = angular.build(power=1, epsilon=0.0)
_ANGLE_SQUARE = angular.build(power=2, epsilon=0.0)
_HYBRID = hybrid.build(2.0, 2.736, epsilon=0.0)
# Triplets that join a state of a thousand at once.
JOINING = 16


@dataclass(frozen=True)
class Case:
    """A loss of the papers.

    Attributes:
        label: its name for readers.
        loss: of triplets; whoever lets it see any takes a copy.
        distance: of descriptors, at the power that the loss takes.
        drawn_by: the distance d of w_i = 1/d, scaled to a mean of 1 over the state; None weighs all 1.
    """

    label: str
    loss: nn.Module
    distance: Distance = _ROOT
    drawn_by: Distance | None = None


# By key of records.
CASES = {
    "hinge_1": Case("hinge, margin 1 (HardNet)", hinge.build(1.0)),
    "hinge_0.375": Case("hinge, margin 0.375", hinge.build(0.375)),
    "softplus": Case("softplus, β = 1", softplus.build(1.0)),
    "hardest_eighth": Case("the hardest 1/8", hardest_fraction.build(1 / 8)),
    "dsm": Case("DSM", cdf.build()),
    "dsm_positive": Case("DSM, PDF of d_pos", cdf.build(of="positive")),
    "ht": Case("AdaSample, HT, w = 1/d", hinge.build(1.0), _SQUARE, _ROOT),
    "aht": Case("AdaSample, AHT, w = 1/d", hinge.build(1.0), _ANGLE_SQUARE, _ANGLE),
    "squared_hinge": Case("squared hinge, margin 1 (SOSNet)", squared_hinge.build(1.0)),
    "hynet": Case("HyNet, s_H of α = 2", hinge.build(1.2), _HYBRID),
    "mixed_hinge": Case("HyNet's L_A", mixed_hinge.build(1.0)),
    "stacked_hinge": Case("HyNet's L_B", stacked_hinge.build(2.0, 0.9, 1.2)),
}


def compute(angles: int = 90, triplets: int = 1023) -> Computed:
    """Magnitudes of each of `CASES` `by_angle`.

    Args:
        angles: between 0 and π.
        triplets: of the `gaussian_state`.

    Returns:
        Numbers: "cases", rows of "key" and "label". Arrays, float32: "theta" (A,), and
        "positive_<key>" and "negative_<key>" (A,), the magnitudes.
    """
    state, arrays = gaussian_state(triplets), {}
    for key, case in CASES.items():
        case = copy.deepcopy(case)
        # What a loss knows of earlier batches, it knows of the state.
        _losses(case, state)
        arrays["theta"], curves = by_angle(case, state, angles)
        arrays |= {f"{kind}_{key}": curve for kind, curve in curves.items()}
    rows = [{"key": key, "label": case.label} for key, case in CASES.items()]
    return {"cases": rows}, {name: array.numpy().astype(np.float32) for name, array in arrays.items()}


def gaussian_state(triplets: int) -> Tensor:
    """d_pos and d_neg (T, 2), float64, of a state like that of a network that has learned for a while.

    Means are 0.6 and 1.0, deviations 0.2 and 0.1, their correlation 0.2, and distances are cut to 0.01
    to 1.99: a margin of 1 leaves out next to none of the triplets, one of 0.375 about half.
    """
    positive, negative, correlation = 0.2, 0.1, 0.2
    common = correlation * positive * negative
    covariance = [[positive * positive, common], [common, negative * negative]]
    distances = np.random.default_rng(0).multivariate_normal((0.6, 1.0), covariance, triplets)
    return torch.from_numpy(distances.clip(0.01, 1.99))


def by_angle(case: Case, state: Tensor, points: int) -> tuple[Tensor, dict[str, Tensor]]:
    """|∂L/∂θ| along both angles; one goes through all its values, the other distance stays at its mean.

    Args:
        case: whose loss has seen the state.
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
        joined = [torch.cat([state, some]) for some in triplets.split(JOINING)]
        parts = [slopes(case, batch, state)[column, len(state) :] for batch in joined]
        curves[kind] = torch.cat(parts)
    return theta, curves


def slopes(case: Case, batch: Tensor, state: Tensor) -> Tensor:
    """|∂L_i/∂θ| by the angle of the positive and by that of the negative, (2, n); ∂d/∂θ = cos(θ/2).

    Args:
        case: its loss is left as it is.
        batch: (n, 2) d_pos and d_neg, Euclidean, float64.
        state: (m, 2) likewise, whose mean scales weights.
    """
    leaf = batch.clone().requires_grad_()
    losses = _losses(copy.deepcopy(case), leaf)
    if case.drawn_by is not None:
        weights, of_state = (
            inverse_distance(case.drawn_by.of_similarity(1 - d[:, 0] ** 2 / 2), None, scale="raw")
            for d in (batch, state)
        )
        losses = losses * (weights / of_state.mean())
    (gradient,) = torch.autograd.grad(losses.sum(), leaf)
    return gradient.T.abs() * (1 - (batch.T / 2) ** 2).sqrt()


def _losses(case: Case, batch: Tensor) -> Tensor:
    return case.loss(drawn(*case.distance.of_similarity(1 - batch**2 / 2).unbind(1)))
