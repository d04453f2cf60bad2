"""TFeat's negatives: another pair's positive at random, and anchor swapping."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.descriptions import Descriptions
from lib.distances import Distance, euclidean
from lib.losses import hinge
from lib.negatives import Negatives
from lib.negatives import random as module
from lib.objective import Objective
from lib.positives import pair

RAW = euclidean.build(unit=False, epsilon=0.0)
SWAPS = pytest.mark.parametrize("swap", [False, True])
seeds = st.integers(0, 2**31)


def descriptors(seed: int, n: int, k: int = 6) -> torch.Tensor:
    return torch.randn(2, n, k, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def drawn(of: torch.Tensor, swap: bool, seed: int = 0, distance: Distance = RAW) -> Negatives:
    torch.manual_seed(seed)
    return module.build(swap=swap)(of, distance)


@SWAPS
@given(seed=seeds, n=st.integers(2, 9))
@settings(deadline=None, max_examples=30)
def test_the_negative_is_the_positive_of_another_pair(swap: bool, seed: int, n: int) -> None:
    negatives = drawn(descriptors(seed, n), swap, seed)
    assert ((negatives.patch >= n) & (negatives.patch < 2 * n)).all()
    assert (negatives.patch % n != torch.arange(n)).all()
    assert (negatives.query % n).tolist() == list(range(n))
    assert negatives.found.all()
    assert swap or negatives.query.tolist() == list(range(n))


def test_every_other_pair_is_drawn_equally_often() -> None:
    n, rounds = 5, 4000
    of = descriptors(0, n)
    torch.manual_seed(1)
    counts = torch.zeros(n, n)
    for _ in range(rounds):
        counts[torch.arange(n), module.build()(of, RAW).patch - n] += 1
    expected = rounds / (n - 1)
    away = counts[~torch.eye(n, dtype=torch.bool)] - expected
    assert (counts.diagonal() == 0).all()
    assert away.abs().max() < 5 * math.sqrt(expected)


@SWAPS
def test_loss_and_gradient_are_those_of_torchs_triplet_loss(swap: bool) -> None:
    of = descriptors(3, 6).requires_grad_()
    whole = Objective(RAW, pair.build(RAW), module.build(swap), hinge.build(margin=2.0))
    torch.manual_seed(4)
    triplets = whole.triplets(Descriptions(of, of))
    losses = whole.loss(triplets)
    other = of.flatten(0, 1)[triplets.negatives.patch]
    expected = F.triplet_margin_loss(of[0], of[1], other, 2.0, eps=0, swap=swap, reduction="none")
    torch.testing.assert_close(losses, expected)
    (found,) = torch.autograd.grad(losses.sum(), of, retain_graph=True)
    (slope,) = torch.autograd.grad(expected.sum(), of)
    torch.testing.assert_close(found, slope)


@SWAPS
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_identical_and_half_precision_descriptors_leave_loss_and_gradient_finite(swap, dtype) -> None:
    of = torch.ones(2, 3, 4, dtype=dtype, requires_grad=True)
    distance = euclidean.build(unit=False)
    negatives = drawn(of.detach(), swap, distance=distance)
    d_neg = negatives.distances(of, distance)
    d_neg.sum().backward()
    assert torch.isfinite(d_neg).all()
    assert torch.isfinite(of.grad).all()
