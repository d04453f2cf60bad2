"""Losses of single triplets and whole objectives of HardNet, HT and AHT."""

from __future__ import annotations

import math
from dataclasses import replace

import oracles
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from lib.losses import hinges
from lib.losses.descriptions import Descriptions, Triplets, drawn
from lib.losses.distances import angular, euclidean
from lib.losses.negatives import Hardest
from lib.losses.topology import Pair
from lib.objective import Objective
from lib.objective import build as build_objective
from lib.recipes import SOSNET, part

distances = st.floats(0, 2)
# Loss -> (ours, the paper's formula of d⁺ and d⁻); s = 1 − d²/2.
LOSSES = {
    "hinge": (hinges.Hinge(margin=0.7), lambda p, n: oracles.hinge(p, n, 0.7, 1)),
    "SOSNet's": (hinges.SquaredHinge(), lambda p, n: max(0, 1 + p - n) ** 2),
    "L_A": (hinges.MixedHinge(), lambda p, n: max(0, 1 + p**2 / 2 - n)),
    "L_B": (
        hinges.StackedHinge(),
        lambda p, n: 2 * max(0, 0.9 + (1 - n**2 / 2) - (1 - p**2 / 2)) + max(0, 1.2 + p - n),
    ),
    "softplus": (hinges.Softplus(3.0), lambda p, n: math.log(1 + math.exp(3 * (p - n))) / 3),
}
EVERY = pytest.mark.parametrize("loss", LOSSES)
SATURATED = sorted(set(LOSSES) - {"softplus"})
# name: (distance, literal distance, power, scope)
OBJECTIVES = {
    "HardNet": (euclidean, oracles.euclidean, 1, "across"),
    "HT": (euclidean, oracles.euclidean, 2, "within"),
    "AHT": (angular, oracles.angular, 2, "within"),
    "AHT over all blocks": (angular, oracles.angular, 2, "all"),
}
seeds = st.integers(0, 2**31)


def raw(seed: int, n: int, k: int) -> torch.Tensor:
    return torch.randn(n, k, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def assemble(name: str, floor: float = 0.0, **options: object) -> Objective:
    distance_of, _, power, scope = OBJECTIVES[name]
    distance = distance_of(power=power, **options)
    mine = Hardest(scope=scope, floor=floor)
    return Objective(distance, Pair(distance), mine, hinges.Hinge(margin=1.0))


def objective(name: str, anchors: torch.Tensor, positives: torch.Tensor, weights=None) -> torch.Tensor:
    raw = torch.stack([anchors, positives])
    descriptions, built = Descriptions(raw, F.normalize(raw, dim=-1)), assemble(name, epsilon=0.0)
    return built.total(built.loss(built.triplets(descriptions)), descriptions, weights)


@EVERY
@given(pairs=st.lists(st.tuples(distances, distances), min_size=1, max_size=8))
def test_each_triplet_has_the_papers_loss(loss, pairs):
    criterion, literal = LOSSES[loss]
    losses = criterion(drawn(*torch.tensor(pairs, dtype=torch.float64).T))
    assert losses.tolist() == pytest.approx([literal(*pair) for pair in pairs], abs=1e-7)
    if loss in ("SOSNet's", "L_A", "L_B"):
        zero_share = sum(value == 0 for value in losses.tolist()) / len(pairs)
        assert criterion.seen["zero_share"].item() == pytest.approx(zero_share)


@EVERY
def test_the_gradient_is_that_of_differences(loss):
    draw = torch.Generator().manual_seed(0)
    pairs = (0.1 + 1.7 * torch.rand(2, 20, generator=draw).double()).requires_grad_()
    assert torch.autograd.gradcheck(lambda d: LOSSES[loss][0](drawn(*d)), pairs)


@pytest.mark.parametrize("loss", SATURATED)
def test_a_saturated_triplet_has_neither_loss_nor_gradient(loss):
    pairs = torch.tensor([[0.0, 0.5], [2.0, 0.5]], requires_grad=True)
    losses = LOSSES[loss][0](drawn(*pairs))
    losses.sum().backward()
    assert losses[0].item() == 0
    assert pairs.grad[:, 0].tolist() == [0, 0]
    assert (pairs.grad[:, 1] != 0).all()


@EVERY
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_equals_float32_up_to_rounding(loss, dtype):
    pairs = 2 * torch.rand(2, 16, generator=torch.Generator().manual_seed(0))
    halved, full = (LOSSES[loss][0](drawn(*values)) for values in (pairs.to(dtype), pairs))
    torch.testing.assert_close(halved.float(), full, atol=0.1, rtol=0.05)


@pytest.mark.parametrize("difference", [-256.0, 256.0])
def test_softplus_of_bit_distances_keeps_its_gradient_and_does_not_overflow(difference):
    d_pos = torch.tensor([difference], dtype=torch.float64, requires_grad=True)
    losses = hinges.Softplus()(drawn(d_pos, torch.zeros(1, dtype=torch.float64)))
    losses.sum().backward()
    assert losses.item() == pytest.approx(max(difference, 0))
    assert d_pos.grad.item() == pytest.approx(float(difference > 0))


# The hardest fraction


@given(
    differences=st.lists(st.floats(-2, 2), min_size=1, max_size=9),
    fraction=st.sampled_from([1 / 8, 1 / 4, 1 / 3, 1.0]),
)
def test_the_loss_is_the_mean_of_the_hardest_and_the_others_have_no_gradient(differences, fraction):
    d_pos = torch.tensor(differences, dtype=torch.float64, requires_grad=True)
    loss = hinges.HardestFraction(fraction)
    losses = loss(drawn(d_pos, torch.zeros(len(differences), dtype=torch.float64)))
    losses.mean().backward()
    count = max(1, round(fraction * len(differences)))
    largest = sorted(differences, reverse=True)[:count]
    assert losses.mean().item() == pytest.approx(sum(largest) / count, abs=1e-9)
    gradients = sorted(d_pos.grad.tolist())
    assert gradients == pytest.approx([0.0] * (len(differences) - count) + [1 / count] * count)
    assert loss.seen["margin"].item() == -largest[-1]


def test_hardness_is_measured_on_the_codes_and_ties_keep_the_first_triplets():
    positive, mined = torch.tensor([0.1, 0.9, 0.2, 0.3]), torch.tensor([0.5, 0.25, 0.5, 0.5])
    triplets = Triplets(None, positive, torch.zeros(4), None, mined=mined)
    assert hinges.HardestFraction(1 / 2)(triplets).tolist() == pytest.approx([0.2, 0.0, 0.4, 0.0])


def test_a_fraction_of_one_is_the_hinge_that_never_truncates():
    """Sec. 3.1: a margin of 2 is at least as large as any difference of unit descriptors."""
    d_pos, d_neg = 2 * torch.rand(2, 20, generator=torch.Generator().manual_seed(0))
    losses = hinges.HardestFraction(1.0)(drawn(d_pos, d_neg))
    torch.testing.assert_close(hinges.Hinge(margin=2.0)(drawn(d_pos, d_neg)), 2 + losses)


# Whole objectives


@pytest.mark.parametrize("name", sorted(OBJECTIVES))
@given(seed=seeds, n=st.integers(2, 6), k=st.integers(2, 8))
def test_the_whole_objective_equals_the_papers(name, seed, n, k):
    _, literal, power, scope = OBJECTIVES[name]
    anchors, positives = raw(seed, n, k), raw(seed + 1, n, k)
    weights = torch.rand(n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    measured = objective(name, anchors, positives, weights).item()
    expected = oracles.batch_loss(
        anchors.tolist(),
        positives.tolist(),
        literal,
        scope=scope,
        power=power,
        t=1.0,
        weights=weights.tolist(),
    )
    assert measured == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("name", sorted(OBJECTIVES))
def test_the_gradient_of_the_whole_objective_equals_the_papers_slope(name):
    _, literal, power, scope = OBJECTIVES[name]
    n, k = 3, 4
    anchors, positives = raw(5, n, k).requires_grad_(), raw(6, n, k).requires_grad_()
    objective(name, anchors, positives).backward()

    def flat_loss(values: list[float]) -> float:
        rows = [values[i * k : (i + 1) * k] for i in range(2 * n)]
        return oracles.batch_loss(rows[:n], rows[n:], literal, scope=scope, power=power, t=1.0)

    point = anchors.flatten().tolist() + positives.flatten().tolist()
    gradient = torch.cat([anchors.grad.flatten(), positives.grad.flatten()]).tolist()
    assert gradient == pytest.approx(oracles.slope(flat_loss, point), abs=1e-6)
    assert max(map(abs, gradient)) > 0.01


@pytest.mark.parametrize("name", sorted(OBJECTIVES))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("kind", ["identical", "opposite"])
def test_identical_and_opposite_pairs_have_finite_loss_and_gradient(name, dtype, kind):
    anchors = F.normalize(raw(9, 4, 8), dim=1)
    anchors = torch.cat([anchors, anchors]).to(dtype).requires_grad_()
    positives = (anchors if kind == "identical" else -anchors).detach().clone().requires_grad_()
    descriptors, built = torch.stack([anchors, positives]), assemble(name, floor=0.008)
    losses = built.loss(built.triplets(Descriptions(descriptors, descriptors)))
    losses.mean().backward()
    for tensor in (losses, anchors.grad, positives.grad):
        assert torch.isfinite(tensor).all()


@pytest.mark.parametrize("loss", ["squared_hinge", "mixed_hinge", "stacked_hinge"])
def test_identical_descriptors_have_finite_gradients_under_sosnets_negatives(loss):
    built = build_objective(replace(SOSNET, loss=part(loss)))
    batch = torch.ones(2, 3, 8, requires_grad=True)
    built.loss(built.triplets(Descriptions(batch, F.normalize(batch, dim=-1)))).sum().backward()
    assert torch.isfinite(batch.grad).all()
