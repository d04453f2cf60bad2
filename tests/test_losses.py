"""The hinge triplet loss, alone and as the whole objective of HardNet, HT and AHT."""

from __future__ import annotations

import oracles
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.descriptions import Descriptions, drawn
from lib.distances import angular, euclidean
from lib.losses import hinge
from lib.negatives import hardest
from lib.objective import Objective
from lib.positives import pair

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


def whole(name: str, floor: float = 0.0, **options: object) -> Objective:
    module, _, power, scope = OBJECTIVES[name]
    distance = module.build(power=power, **options)
    mine = hardest.build(scope=scope, floor=floor)
    return Objective(distance, pair.build(distance), mine, hinge.build(margin=1.0))


def objective(name: str, anchors: torch.Tensor, positives: torch.Tensor, weights=None) -> torch.Tensor:
    raw = torch.stack([anchors, positives])
    of, parts = Descriptions(raw, F.normalize(raw, dim=-1)), whole(name, epsilon=0.0)
    return parts.total(parts.loss(parts.triplets(of)), of, weights)


def hinge_of(d_pos: torch.Tensor, d_neg: torch.Tensor, margin: float = 1.0) -> torch.Tensor:
    return hinge.build(margin=margin)(drawn(d_pos, d_neg))


@given(
    pairs=st.lists(st.tuples(st.floats(0, 2), st.floats(0, 2)), min_size=1, max_size=8),
    margin=st.floats(0, 2),
    power=st.sampled_from([1, 2]),
)
@settings(deadline=None, max_examples=60)
def test_each_triplet_has_the_papers_loss(pairs, margin, power):
    d_pos, d_neg = torch.tensor(pairs, dtype=torch.float64).T
    losses = hinge_of(d_pos**power, d_neg**power, margin)
    expected = [oracles.hinge(p, n, margin, power) for p, n in pairs]
    assert losses.tolist() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", sorted(OBJECTIVES))
@given(seed=seeds, n=st.integers(2, 6), k=st.integers(2, 8))
@settings(deadline=None, max_examples=20)
def test_the_whole_objective_is_the_papers(name, seed, n, k):
    _, literal, power, scope = OBJECTIVES[name]
    anchors, positives = raw(seed, n, k), raw(seed + 1, n, k)
    weights = torch.rand(n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    found = objective(name, anchors, positives, weights).item()
    expected = oracles.batch_loss(
        anchors.tolist(),
        positives.tolist(),
        literal,
        scope=scope,
        power=power,
        t=1.0,
        weights=weights.tolist(),
    )
    assert found == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("name", sorted(OBJECTIVES))
def test_the_gradient_of_the_whole_objective_is_the_slope_of_the_papers(name):
    _, literal, power, scope = OBJECTIVES[name]
    n, k = 3, 4
    anchors, positives = raw(5, n, k).requires_grad_(), raw(6, n, k).requires_grad_()
    objective(name, anchors, positives).backward()

    def of_flat(values: list[float]) -> float:
        rows = [values[i * k : (i + 1) * k] for i in range(2 * n)]
        return oracles.batch_loss(rows[:n], rows[n:], literal, scope=scope, power=power, t=1.0)

    at = anchors.flatten().tolist() + positives.flatten().tolist()
    found = torch.cat([anchors.grad.flatten(), positives.grad.flatten()]).tolist()
    assert found == pytest.approx(oracles.slope(of_flat, at), abs=1e-6)
    assert max(map(abs, found)) > 0.01


def test_a_saturated_triplet_has_neither_loss_nor_gradient():
    d_pos = torch.tensor([0.1, 0.1], requires_grad=True)
    d_neg = torch.tensor([1.2, 0.5], requires_grad=True)
    losses = hinge_of(d_pos, d_neg)
    losses.sum().backward()
    assert losses[0].item() == 0
    assert d_pos.grad.tolist() == [0, 1]
    assert d_neg.grad.tolist() == [0, -1]


@pytest.mark.parametrize("name", sorted(OBJECTIVES))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("kind", ["identical", "opposite"])
def test_identical_and_opposite_pairs_leave_loss_and_gradient_finite(name, dtype, kind):
    anchors = F.normalize(raw(9, 4, 8), dim=1)
    anchors = torch.cat([anchors, anchors]).to(dtype).requires_grad_()
    positives = (anchors if kind == "identical" else -anchors).detach().clone().requires_grad_()
    both, parts = torch.stack([anchors, positives]), whole(name, floor=0.008)
    losses = parts.loss(parts.triplets(Descriptions(both, both)))
    losses.mean().backward()
    for tensor in (losses, anchors.grad, positives.grad):
        assert torch.isfinite(tensor).all()
