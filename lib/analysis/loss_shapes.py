"""|∂L/∂θ| of each triplet loss by the angle of the positive and of the negative (HyNet, Sec. 2.3).

It equals ‖x‖ ‖∂L/∂x‖ for a descriptor x before normalisation.

A triplet's loss L_i is a function of two Euclidean distances of unit descriptors, d_pos and d_neg, 0 to
2. Losses of squared distances or angles are differentiated through these distances by the chain rule. A
loss may depend on the whole batch: DSM's weight on the distribution of recent triplets, the hardest
eighth on the order of the other triplets, and AdaSample's w_i = 1/d on the mean weight. So each loss
first sees a batch of triplets, the state. The triplets under study then join the state, so few at a time
that they hardly change it.
"""

import copy
import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from lib.analysis import Computed
from lib.losses import cdf, hinges
from lib.losses.descriptions import drawn
from lib.losses.distances import Distance, angular, euclidean, hybrid_similarity
from lib.losses.pair_weights import inverse_distance
from lib.recipes import largest_gradient

_ROOT = euclidean(power=1, epsilon=0.0)
_SQUARE = euclidean(power=2, epsilon=0.0)
_ANGLE = angular(power=1, epsilon=0.0)
_ANGLE_SQUARE = angular(power=2, epsilon=0.0)
_HYBRID = hybrid_similarity(2.0, largest_gradient(2.0), epsilon=0.0)
# Number of triplets that join a state of a thousand at a time.
JOINING = 16


@dataclass(frozen=True)
class Case:
    """A loss of the papers.

    Attributes:
        label: its name for readers.
        loss: loss of triplets. It may keep statistics of the batches it sees, so copy it before use.
        distance: distance of descriptors, at the power that the loss takes.
        drawn_by: the distance d in w_i = 1/d, scaled to a mean of 1 over the state; None sets all
            weights to 1.
    """

    label: str
    loss: nn.Module
    distance: Distance = _ROOT
    drawn_by: Distance | None = None


# Key in the records -> case.
CASES = {
    "hinge_1": Case("hinge, margin 1 (HardNet)", hinges.Hinge(1.0)),
    "hinge_0.375": Case("hinge, margin 0.375", hinges.Hinge(0.375)),
    "softplus": Case("softplus, β = 1", hinges.Softplus(1.0)),
    "hardest_eighth": Case("the hardest 1/8", hinges.HardestFraction(1 / 8)),
    "dsm": Case("DSM", cdf.dynamic_soft_margin()),
    "dsm_positive": Case("DSM, PDF of d_pos", cdf.dynamic_soft_margin(of="positive")),
    "ht": Case("AdaSample, HT, w = 1/d", hinges.Hinge(1.0), _SQUARE, _ROOT),
    "aht": Case("AdaSample, AHT, w = 1/d", hinges.Hinge(1.0), _ANGLE_SQUARE, _ANGLE),
    "squared_hinge": Case("squared hinge, margin 1 (SOSNet)", hinges.SquaredHinge(1.0)),
    "hynet": Case("HyNet, s_H of α = 2", hinges.Hinge(1.2), _HYBRID),
    "mixed_hinge": Case("HyNet's L_A", hinges.MixedHinge(1.0)),
    "stacked_hinge": Case("HyNet's L_B", hinges.StackedHinge(2.0, 0.9, 1.2)),
}


def compute(angles: int = 90, triplets: int = 1023) -> Computed:
    """Compute the magnitudes of each of `CASES` with `by_angle`.

    Args:
        angles: number of angles between 0 and π.
        triplets: number of triplets of the `gaussian_state`.

    Returns:
        Numbers: "cases", rows with "key" and "label". Arrays, float32: "theta" (A,), and
        "positive_<key>" and "negative_<key>" (A,), the magnitudes.
    """
    state = gaussian_state(triplets)
    arrays = {}
    for key, case in CASES.items():
        case = copy.deepcopy(case)
        # A loss that remembers earlier batches must have seen the state.
        _losses(case, state)
        arrays["theta"], curves = by_angle(case, state, angles)
        arrays |= {f"{kind}_{key}": curve for kind, curve in curves.items()}
    rows = [{"key": key, "label": case.label} for key, case in CASES.items()]
    return {"cases": rows}, {name: array.numpy().astype(np.float32) for name, array in arrays.items()}


def gaussian_state(triplets: int) -> Tensor:
    """Draw d_pos and d_neg, (T, 2), float64, as in a network that has trained for a while.

    The means are 0.6 and 1.0, the standard deviations 0.2 and 0.1, and the correlation is 0.2. Distances
    are clipped to 0.01 to 1.99. A margin of 1 leaves out almost no triplet, one of 0.375 about half.
    """
    positive, negative, correlation = 0.2, 0.1, 0.2
    common = correlation * positive * negative
    covariance = [[positive * positive, common], [common, negative * negative]]
    distances = np.random.default_rng(0).multivariate_normal((0.6, 1.0), covariance, triplets)
    return torch.from_numpy(distances.clip(0.01, 1.99))


def by_angle(case: Case, state: Tensor, points: int) -> tuple[Tensor, dict[str, Tensor]]:
    """Compute |∂L/∂θ| along each of the two angles, with the other distance at its mean.

    Args:
        case: its loss has already seen the state.
        state: (m, 2) d_pos and d_neg, Euclidean, float64; a few triplets at a time join it.
        points: number of angles between 0 and π.

    Returns:
        The angles, (P,) radians, and the magnitudes, (P,) each, under "positive" and "negative".
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
    """Compute |∂L_i/∂θ|, (2, n), by the angle of the positive and of the negative; ∂d/∂θ = cos(θ/2).

    Args:
        case: its loss is copied, so that it stays unchanged.
        batch: (n, 2) d_pos and d_neg, Euclidean, float64.
        state: (m, 2) likewise; weights are scaled by their mean over it.
    """
    leaf = batch.clone().requires_grad_()
    losses = _losses(copy.deepcopy(case), leaf)
    if case.drawn_by is not None:
        losses = losses * (_weights(case.drawn_by, batch) / _weights(case.drawn_by, state).mean())
    (gradient,) = torch.autograd.grad(losses.sum(), leaf)
    return gradient.T.abs() * (1 - (batch.T / 2) ** 2).sqrt()


def _similarity(distances: Tensor) -> Tensor:
    """Return the inner products of unit descriptors at Euclidean distances of any shape."""
    return 1 - distances**2 / 2


def _weights(drawn_by: Distance, batch: Tensor) -> Tensor:
    """Return w_i = 1/d (n,) of triplets (n, 2)."""
    distances = drawn_by.of_similarity(_similarity(batch[:, 0]))
    return inverse_distance(distances, None, scale="raw")


def _losses(case: Case, batch: Tensor) -> Tensor:
    """Return the losses (n,) of triplets (n, 2)."""
    positive, negative = case.distance.of_similarity(_similarity(batch)).unbind(1)
    return case.loss(drawn(positive, negative))
