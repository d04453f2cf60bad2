"""Hardest-in-batch negatives over the three sets of competing patches, and TFeat's random ones."""

from __future__ import annotations

import math

import oracles
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.losses.descriptions import Descriptions
from lib.losses.distances import Distance, angular, euclidean
from lib.losses.hinges import Hinge
from lib.losses.negatives import Hardest, Negatives, Random
from lib.losses.topology import Pair
from lib.objective import Objective

SCOPES = pytest.mark.parametrize("scope", ["across", "within", "all"])
METRICS = {"euclidean": (euclidean, oracles.euclidean), "angular": (angular, oracles.angular)}
seeds = st.integers(0, 2**31)


def descriptors(seed: int, n: int, k: int, dtype=torch.float64) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return F.normalize(torch.randn(n, k, generator=generator, dtype=torch.float64), dim=1).to(dtype)


def hardest(anchors: torch.Tensor, positives: torch.Tensor, distance, **options) -> Negatives:
    return Hardest(**options)(torch.stack([anchors, positives]), distance)


def on_circle(*degrees: float) -> torch.Tensor:
    turn = torch.tensor(degrees, dtype=torch.float64).deg2rad()
    return torch.stack([turn.cos(), turn.sin()], dim=1)


@SCOPES
@pytest.mark.parametrize("metric", sorted(METRICS))
@pytest.mark.parametrize("power", [1, 2])
@given(seed=seeds, n=st.integers(2, 7), k=st.integers(2, 6), floor=st.sampled_from([0.0, 0.008, 0.7]))
def test_the_negative_is_the_literal_minimum_over_all_other_pairs(
    scope, metric, power, seed, n, k, floor
):
    distance_of, literal = METRICS[metric]
    distance = distance_of(power=power, epsilon=0.0)
    anchors, positives = descriptors(seed, n, k), descriptors(seed + 1, n, k)
    both = torch.cat([anchors, positives]).tolist()
    negatives = hardest(anchors, positives, distance, scope=scope, floor=floor)
    d_neg = negatives.distances(torch.stack([anchors, positives]), distance)
    for i in range(n):
        sides = anchors.tolist(), positives.tolist()
        expected = oracles.hardest_negative(*sides, i, scope, literal, floor)
        if expected is None and scope == "all":
            expected = oracles.hardest_negative(*sides, i, scope, literal, 0.0)
        assert negatives.found[i].item() == (expected is not None)
        if expected is None:
            assert d_neg[i].item() == distance.maximum
            continue
        query, patch = negatives.query[i].item(), negatives.patch[i].item()
        assert d_neg[i].item() == pytest.approx(expected[0] ** power, abs=1e-7)
        assert literal(both[query], both[patch]) == pytest.approx(expected[0], abs=1e-7)


def test_each_scope_finds_the_negative_that_the_others_must_not_see():
    anchors, positives = on_circle(0, 10, 120), on_circle(60, 125, 190)
    distance = angular(epsilon=0.0)
    # Pair 0: a_0 to a_1 is 10°, p_0 to p_1 65°; across, a_1 to p_0 50° and a_2 to p_0 60°.
    negatives = {
        scope: hardest(anchors, positives, distance, scope=scope, floor=0.0)
        for scope in ("across", "within", "all")
    }
    assert (negatives["within"].query[0].item(), negatives["within"].patch[0].item()) == (0, 1)
    assert (negatives["across"].query[0].item(), negatives["across"].patch[0].item()) == (3, 1)
    # Pair 2: a_2 to p_1 is 5° and only across sees it; p_2 to p_1 65° is the closest within.
    assert (negatives["across"].query[2].item(), negatives["across"].patch[2].item()) == (2, 4)
    assert (negatives["within"].query[2].item(), negatives["within"].patch[2].item()) == (5, 4)
    assert (negatives["all"].query[2].item(), negatives["all"].patch[2].item()) == (2, 4)
    d_neg = negatives["across"].distances(torch.stack([anchors, positives]), distance)
    assert d_neg[2].item() == pytest.approx(math.radians(5))


@SCOPES
def test_the_first_of_equally_close_negatives_is_taken(scope):
    anchors = positives = torch.eye(4, dtype=torch.float64)
    negatives = hardest(anchors, positives, euclidean(), scope=scope, floor=0.0)
    patch_side = 4 if scope == "across" else 0
    assert negatives.query.tolist() == [0, 1, 2, 3]
    assert negatives.patch.tolist() == [patch_side + j for j in (1, 0, 0, 0)]


@SCOPES
@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("metric", sorted(METRICS))
def test_negatives_closer_than_the_floor_count_as_false(scope, power, metric):
    distance = METRICS[metric][0](power=power)
    anchors = positives = on_circle(0, 0.4, 40)  # 0.4° = 0.00698 < 0.008
    skipping = hardest(anchors, positives, distance, scope=scope, floor=0.008)
    assert (skipping.patch[:2] % 3).tolist() == [2, 2]
    keeping = hardest(anchors, positives, distance, scope=scope, floor=0.005)
    assert (keeping.patch[:2] % 3).tolist() == [1, 0]


@pytest.mark.parametrize("scope", ["across", "within"])
@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("metric", sorted(METRICS))
def test_duplicates_alone_give_the_largest_distance_without_gradient(scope, power, metric):
    distance = METRICS[metric][0](power=power)
    anchors = on_circle(30, 30, 30).requires_grad_()
    positives = on_circle(30, 30, 30).requires_grad_()
    negatives = hardest(anchors, positives, distance, scope=scope, floor=0.008)
    assert not negatives.found.any()
    d_neg = negatives.distances(torch.stack([anchors, positives]), distance)
    assert d_neg.tolist() == pytest.approx([distance.maximum] * 3)
    d_neg.sum().backward()
    assert anchors.grad.eq(0).all()
    assert positives.grad.eq(0).all()


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("metric", sorted(METRICS))
def test_duplicates_alone_give_the_closest_of_all_four_blocks(power, metric):
    distance = METRICS[metric][0](power=power, epsilon=0.0)
    anchors = positives = on_circle(0, 0.1, 0.3)
    negatives = hardest(anchors, positives, distance, scope="all", floor=0.008)
    assert negatives.found.all()
    assert (negatives.patch % 3).tolist() == [1, 0, 1]


@SCOPES
@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("metric", sorted(METRICS))
@given(seed=seeds)
@settings(max_examples=10)
def test_a_floor_of_zero_does_not_skip_duplicates(scope, power, metric, seed):
    # In float32 the inner product of a descriptor with itself is often a little above one.
    x = descriptors(seed, 16, 128, torch.float32)
    x = torch.cat([x, x])
    negatives = hardest(x, x, METRICS[metric][0](power=power), scope=scope, floor=0.0)
    # Rounding decides which of two coinciding patches is found, but not that it coincides.
    both = torch.cat([x, x])
    gap = (both[negatives.query] - both[negatives.patch]).norm(dim=1)
    assert gap.max().item() == 0


def test_the_distances_carry_the_gradient_to_query_and_negative_alone():
    anchors, positives = on_circle(0, 10, 120), on_circle(60, 125, 190)
    anchors, positives = anchors.requires_grad_(), positives.requires_grad_()
    distance = angular()
    negatives = hardest(anchors, positives, distance, scope="within", floor=0.0)
    assert not negatives.query.requires_grad
    negatives.distances(torch.stack([anchors, positives]), distance)[0].backward()
    assert anchors.grad.abs().sum(dim=1).gt(0).tolist() == [True, True, False]
    assert positives.grad.eq(0).all()


def test_a_single_pair_is_refused():
    x = descriptors(1, 1, 8)
    with pytest.raises(ValueError, match="batch of 1 pair"):
        hardest(x, x, euclidean(), scope="across", floor=0.0)


# TFeat's negatives: another pair's positive at random, and anchor swapping

RAW = euclidean(unit=False, epsilon=0.0)
SWAPS = pytest.mark.parametrize("swap", [False, True])


def drawn_pairs(seed: int, n: int, k: int = 6) -> torch.Tensor:
    return torch.randn(2, n, k, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def random_negatives(
    pairs: torch.Tensor, swap: bool, seed: int = 0, distance: Distance = RAW
) -> Negatives:
    torch.manual_seed(seed)
    return Random(swap=swap)(pairs, distance)


@SWAPS
@given(seed=seeds, n=st.integers(2, 9))
def test_the_negative_is_the_positive_of_another_pair(swap: bool, seed: int, n: int) -> None:
    negatives = random_negatives(drawn_pairs(seed, n), swap, seed)
    assert ((negatives.patch >= n) & (negatives.patch < 2 * n)).all()
    assert (negatives.patch % n != torch.arange(n)).all()
    assert (negatives.query % n).tolist() == list(range(n))
    assert negatives.found.all()
    assert swap or negatives.query.tolist() == list(range(n))


def test_every_other_pair_is_drawn_equally_often() -> None:
    n, rounds = 5, 4000
    pairs = drawn_pairs(0, n)
    torch.manual_seed(1)
    counts = torch.zeros(n, n)
    for _ in range(rounds):
        counts[torch.arange(n), Random()(pairs, RAW).patch - n] += 1
    expected = rounds / (n - 1)
    deviations = counts[~torch.eye(n, dtype=torch.bool)] - expected
    assert (counts.diagonal() == 0).all()
    assert deviations.abs().max() < 5 * math.sqrt(expected)


@SWAPS
def test_loss_and_gradient_are_those_of_torchs_triplet_loss(swap: bool) -> None:
    pairs = drawn_pairs(3, 6).requires_grad_()
    objective = Objective(RAW, Pair(RAW), Random(swap), Hinge(margin=2.0))
    torch.manual_seed(4)
    triplets = objective.triplets(Descriptions(pairs, pairs))
    losses = objective.loss(triplets)
    negatives = pairs.flatten(0, 1)[triplets.negatives.patch]
    expected = F.triplet_margin_loss(
        pairs[0], pairs[1], negatives, 2.0, eps=0, swap=swap, reduction="none"
    )
    torch.testing.assert_close(losses, expected)
    (gradient,) = torch.autograd.grad(losses.sum(), pairs, retain_graph=True)
    (expected_gradient,) = torch.autograd.grad(expected.sum(), pairs)
    torch.testing.assert_close(gradient, expected_gradient)


@SWAPS
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_identical_and_half_precision_descriptors_leave_loss_and_gradient_finite(swap, dtype) -> None:
    pairs = torch.ones(2, 3, 4, dtype=dtype, requires_grad=True)
    distance = euclidean(unit=False)
    negatives = random_negatives(pairs.detach(), swap, distance=distance)
    d_neg = negatives.distances(pairs, distance)
    d_neg.sum().backward()
    assert torch.isfinite(d_neg).all()
    assert torch.isfinite(pairs.grad).all()
