"""What each triplet loss listens to: its pull on d_pos and its push on d_neg, at one state of training;
and |∂L/∂θ| by the positive's angle and by the negative's (HyNet, Sec. 2.3), which is ‖x‖ ‖∂L/∂x‖ of a
descriptor x before normalisation.

The pull is ∂L_i/∂d_pos and the push −∂L_i/∂d_neg of a triplet's own loss L_i by Euclidean distances of
unit descriptors, 0 to 2; losses of squares and of angles are differentiated through these by the chain
rule. A loss may look at the whole batch: DSM's weight at the distribution of recent ones, the hardest
eighth at the others' order, AdaSample's w_i = 1/d is scaled to their mean. So there is a state, a batch
of triplets that the loss has seen once before, and the triplets that are asked about join it, so few at
a time that they hardly move it.
"""

import copy
import math
from collections.abc import Callable
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
        key: names the case in records.
        label: its name for readers.
        loss: makes it anew.
        distance: of descriptors, at the power that the loss takes.
        drawn_by: the distance d of w_i = 1/d, scaled to a mean of 1 over the state; None weighs all 1.
    """

    key: str
    label: str
    loss: Callable[[], nn.Module]
    distance: Distance = _ROOT
    drawn_by: Distance | None = None


CASES = (
    Case("hinge_1", "hinge, margin 1 (HardNet)", lambda: hinge.build(1.0)),
    Case("hinge_0.375", "hinge, margin 0.375", lambda: hinge.build(0.375)),
    Case("softplus", "softplus, β = 1", lambda: softplus.build(1.0)),
    Case("hardest_eighth", "the hardest 1/8", lambda: hardest_fraction.build(1 / 8)),
    Case("dsm", "DSM", cdf.build),
    Case("dsm_positive", "DSM, PDF of d_pos", lambda: cdf.build(of="positive")),
    Case("ht", "AdaSample, HT, w = 1/d", lambda: hinge.build(1.0), _SQUARE, _ROOT),
    Case("aht", "AdaSample, AHT, w = 1/d", lambda: hinge.build(1.0), _ANGLE_SQUARE, _ANGLE),
    Case("squared_hinge", "squared hinge, margin 1 (SOSNet)", lambda: squared_hinge.build(1.0)),
    Case("hynet", "HyNet, s_H of α = 2", lambda: hinge.build(1.2), _HYBRID),
    Case("mixed_hinge", "HyNet's L_A", lambda: mixed_hinge.build(1.0)),
    Case("stacked_hinge", "HyNet's L_B", lambda: stacked_hinge.build(2.0, 0.9, 1.2)),
)


def compute(points: int = 41, angles: int = 90, triplets: int = 1023) -> Computed:
    """Pull and push of each of `CASES` over the plane of the two distances, and at the state's triplets;
    and its magnitudes `by_angle`.

    Args:
        points: of the plane, along either distance.
        angles: between 0 and π.
        triplets: of the `gaussian_state`.

    Returns:
        Numbers: "state", mean and deviation of d_pos − d_neg; "means", the state's mean d_pos and d_neg
        as angles in radians; "cases", rows of "key", "label", "pull"
        and "push" (means over the state), "none" (share of it without any), "hardest" (share of the
        whole pull that its hardest quarter gets, by d_pos − d_neg), and "by_positive" and
        "by_negative", Pearson's correlation of the pull with d_pos and d_neg (None where it is
        constant). Arrays, float32: "distance" (P,), evenly from 0.02 to 1.98; "pull_<key>" and
        "push_<key>" (P, P), rows d_neg and columns d_pos; "positive" and "negative" (T,) of the state,
        and "state_<key>" (T,), the pull there; "theta" (A,), and "positive_<key>" and "negative_<key>"
        (A,), the magnitudes.
    """
    state = gaussian_state(triplets)
    along = torch.linspace(0.02, 1.98, points, dtype=torch.float64)
    plane = torch.cartesian_prod(along, along).flip(1)
    difference = state[:, 0] - state[:, 1]
    arrays = {"distance": along, "positive": state[:, 0], "negative": state[:, 1]}
    rows = []
    for case in CASES:
        loss = case.loss()
        # What a loss knows of earlier batches, it knows of the state.
        at_state = pull_and_push(case, loss, state, state)
        pull, push = joined(pull_and_push, case, loss, plane, state).view(2, points, points)
        arrays |= {f"pull_{case.key}": pull, f"push_{case.key}": push, f"state_{case.key}": at_state[0]}
        arrays["theta"], curves = by_angle(case, loss, state, angles)
        arrays |= {f"{kind}_{case.key}": curve for kind, curve in curves.items()}
        row = _row(*at_state.numpy(), *state.T.numpy())
        rows.append({"key": case.key, "label": case.label, **row})
    means = (2 * (state.mean(dim=0) / 2).asin()).tolist()
    moments = [float(difference.mean()), float(difference.std())]
    numbers = {"state": moments, "means": means, "cases": rows}
    return numbers, {name: array.numpy().astype(np.float32) for name, array in arrays.items()}


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


def pull_and_push(case: Case, loss: nn.Module, batch: Tensor, state: Tensor) -> Tensor:
    """∂L_i/∂d_pos and −∂L_i/∂d_neg of a batch that the loss is given, (2, n).

    Args:
        case: whose distance and weights are taken.
        loss: of that case; a state that it keeps moves.
        batch: (n, 2) d_pos and d_neg, Euclidean, float64.
        state: (m, 2) likewise, whose mean scales weights.
    """
    leaf = batch.clone().requires_grad_()
    distances = case.distance.of_similarity(1 - leaf**2 / 2)
    losses = loss(drawn(*distances.unbind(1)))
    if case.drawn_by is not None:
        losses = losses * (_weights(case, batch) / _weights(case, state).mean())
    (gradient,) = torch.autograd.grad(losses.sum(), leaf)
    return gradient.T * torch.tensor([[1.0], [-1.0]])


def joined(
    measure: Callable[..., Tensor], case: Case, loss: nn.Module, triplets: Tensor, state: Tensor
) -> Tensor:
    """(2, n) what `pull_and_push`, or a measure like it, gives triplets (n, 2) that join the state few
    at a time; the loss is left as it is."""
    parts = [
        measure(case, copy.deepcopy(loss), torch.cat([state, some]), state)[:, len(state) :]
        for some in triplets.split(JOINING)
    ]
    return torch.cat(parts, dim=1)


def by_angle(
    case: Case, loss: nn.Module, state: Tensor, points: int
) -> tuple[Tensor, dict[str, Tensor]]:
    """|∂L/∂θ| along both angles; one goes through all its values, the other distance stays at its mean.

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
        curves[kind] = joined(slopes, case, loss, triplets, state)[column]
    return theta, curves


def slopes(case: Case, loss: nn.Module, batch: Tensor, state: Tensor) -> Tensor:
    """|∂L/∂θ| by the angle of the positive and by that of the negative, (2, n); arguments as of
    `pull_and_push`. ∂d/∂θ = cos(θ/2)."""
    return pull_and_push(case, loss, batch, state).abs() * (1 - (batch.T / 2) ** 2).sqrt()


def _weights(case: Case, batch: Tensor) -> Tensor:
    return inverse_distance(case.drawn_by.of_similarity(1 - batch[:, 0] ** 2 / 2), None, scale="raw")


def _row(pull: np.ndarray, push: np.ndarray, *distances: np.ndarray) -> dict[str, float | None]:
    difference = distances[0] - distances[1]
    hardest = difference >= np.quantile(difference, 0.75)
    row = {"pull": pull.mean(), "push": push.mean(), "none": ((pull == 0) & (push == 0)).mean()}
    row = {name: float(value) for name, value in row.items()}
    row["hardest"] = float(pull[hardest].sum() / pull.sum())
    even = np.ptp(pull) < 1e-9 * pull.max()
    for name, distance in zip(("by_positive", "by_negative"), distances, strict=True):
        row[name] = None if even else float(np.corrcoef(pull, distance)[0, 1])
    return row
