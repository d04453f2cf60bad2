"""What each triplet loss listens to: its pull on d_pos and its push on d_neg, at one state of training.

The pull is ∂L_i/∂d_pos and the push −∂L_i/∂d_neg of a triplet's own loss L_i by Euclidean distances of
unit descriptors, 0 to 2; losses of squares and of angles are differentiated through these by the chain
rule. A loss may look at the whole batch: DSM's weight at the distribution of recent ones, the hardest
eighth at the others' order, AdaSample's w_i = 1/d is scaled to their mean. So there is a state, a batch
of triplets that the loss has seen once before, and the triplets that are asked about join it, so few at
a time that they hardly move it.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from lib.descriptions import drawn
from lib.distances import Distance, angular, euclidean, hybrid
from lib.losses import (
    cdf,
    hardest_fraction,
    hinge,
    mixed_hinge,
    softplus,
    squared_hinge,
    stacked_hinge,
)
from lib.pair_weights.inverse_distance import inverse_distance

_ROOT = euclidean.build(power=1, epsilon=0.0)
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
    Case(
        "ht",
        "AdaSample, HT, w = 1/d",
        lambda: hinge.build(1.0),
        euclidean.build(power=2, epsilon=0.0),
        _ROOT,
    ),
    Case(
        "aht",
        "AdaSample, AHT, w = 1/d",
        lambda: hinge.build(1.0),
        angular.build(power=2, epsilon=0.0),
        angular.build(power=1, epsilon=0.0),
    ),
    Case("squared_hinge", "squared hinge, margin 1 (SOSNet)", lambda: squared_hinge.build(1.0)),
    Case(
        "hynet",
        "HyNet, s_H of α = 2",
        lambda: hinge.build(1.2),
        hybrid.build(2.0, 2.736, epsilon=0.0),
    ),
    Case("mixed_hinge", "HyNet's L_A", lambda: mixed_hinge.build(1.0)),
    Case(
        "stacked_hinge",
        "HyNet's L_B",
        lambda: stacked_hinge.build(alpha=2.0, similarity_margin=0.9, distance_margin=1.2),
    ),
)


def compute(
    points: int = 41,
    triplets: int = 1023,
    positive: tuple[float, float] = (0.6, 0.2),
    negative: tuple[float, float] = (1.0, 0.1),
    correlation: float = 0.2,
    seed: int = 0,
) -> tuple[dict[str, object], dict[str, np.ndarray]]:
    """Pull and push of each of `CASES` over the plane of the two distances, and at the state's triplets.

    The state is Gaussian, by default like a network's that has learned for a while: a margin of 1 leaves
    out next to none of its triplets, one of 0.375 about half.

    Args:
        points: of the plane, along either distance.
        triplets: of the state.
        positive, negative: mean and standard deviation of d_pos and d_neg; cut to 0.01 to 1.99.
        correlation: of the two.
        seed: of the state.

    Returns:
        Numbers: "state", mean and deviation of d_pos − d_neg; "cases", rows of "key", "label", "pull"
        and "push" (means over the state), "none" (share of it without any), "hardest" (share of the
        whole pull that its hardest quarter gets, by d_pos − d_neg), and "by_positive" and
        "by_negative", Pearson's correlation of the pull with d_pos and d_neg (None where it is
        constant). Arrays, float32: "distance" (P,), evenly from 0.02 to 1.98; "pull_<key>" and
        "push_<key>" (P, P), rows d_neg and columns d_pos; "positive" and "negative" (T,) of the state,
        and "state_<key>" (T,), the pull there.
    """
    state = gaussian_state(triplets, positive, negative, correlation, seed)
    along = torch.linspace(0.02, 1.98, points, dtype=torch.float64)
    plane = torch.cartesian_prod(along, along).flip(1)
    difference = state[:, 0] - state[:, 1]
    arrays = {"distance": along, "positive": state[:, 0], "negative": state[:, 1]}
    rows = []
    for case in CASES:
        loss = case.loss()
        there = pull_and_push(case, loss, state, state)
        asked = [
            pull_and_push(case, copy.deepcopy(loss), torch.cat([state, some]), state)[:, triplets:]
            for some in plane.split(JOINING)
        ]
        pull, push = torch.cat(asked, dim=1).view(2, points, points)
        arrays |= {f"pull_{case.key}": pull, f"push_{case.key}": push, f"state_{case.key}": there[0]}
        row = _row(*there.numpy(), *state.T.numpy())
        rows.append({"key": case.key, "label": case.label, **row})
    numbers = {"state": [float(difference.mean()), float(difference.std())], "cases": rows}
    return numbers, {name: of.numpy().astype(np.float32) for name, of in arrays.items()}


def gaussian_state(
    triplets: int,
    positive: tuple[float, float] = (0.6, 0.2),
    negative: tuple[float, float] = (1.0, 0.1),
    correlation: float = 0.2,
    seed: int = 0,
) -> Tensor:
    """d_pos and d_neg (T, 2), float64, of a state as `compute` takes it."""
    random = np.random.default_rng(seed)
    means, (a, b) = (positive[0], negative[0]), (positive[1], negative[1])
    covariance = [[a * a, correlation * a * b], [correlation * a * b, b * b]]
    return torch.from_numpy(random.multivariate_normal(means, covariance, triplets).clip(0.01, 1.99))


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


def _weights(case: Case, batch: Tensor) -> Tensor:
    return inverse_distance(case.drawn_by.of_similarity(1 - batch[:, 0] ** 2 / 2), None, scale="raw")


def _row(
    pull: np.ndarray, push: np.ndarray, positive: np.ndarray, negative: np.ndarray
) -> dict[str, float | None]:
    difference = positive - negative
    hardest = difference >= np.quantile(difference, 0.75)
    even = np.ptp(pull) < 1e-9 * pull.max()
    by = [None if even else float(np.corrcoef(pull, of)[0, 1]) for of in (positive, negative)]
    return {
        "pull": float(pull.mean()),
        "push": float(push.mean()),
        "none": float(((pull == 0) & (push == 0)).mean()),
        "hardest": float(pull[hardest].sum() / pull.sum()),
        "by_positive": by[0],
        "by_negative": by[1],
    }
