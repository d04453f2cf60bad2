"""DOAP's loss and its binary row against the average precision of soft histograms, computed one query
and one node at a time."""

from __future__ import annotations

import oracles
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from lib import objective, recipes
from lib.losses.average_precision import AveragePrecision
from lib.losses.descriptions import Descriptions, Triplets
from lib.losses.distances import Distance, euclidean

seeds = st.integers(0, 2**31)
EXACT = euclidean(epsilon=0.0)


def random(seed: int, n: int, k: int = 4) -> Tensor:
    return torch.randn(2, n, k, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def losses(value: Tensor, bins: int = 10, distance: Distance = EXACT) -> Tensor:
    zeros = torch.zeros(value.shape[1])
    descriptions = Descriptions(value, value)
    return AveragePrecision(distance, bins)(Triplets(descriptions, zeros, zeros, None, zeros))


def raw_losses(raw: Tensor, bins: int = 10, distance: Distance = EXACT) -> Tensor:
    return losses(F.normalize(raw, dim=-1), bins, distance)


def literal(distances: list[list[float]], query: int, match: int, bins: int, longest: float) -> float:
    """AP of one query among all others, by distances from 0 to the longest."""
    width = longest / bins
    mass, match_mass = [0.0] * (bins + 1), [0.0] * (bins + 1)
    for candidate, d in enumerate(distances[query]):
        if candidate == query:
            continue
        for node in range(bins + 1):
            pulse = max(0.0, 1 - abs(d - node * width) / width)
            mass[node] += pulse
            if candidate == match:
                match_mass[node] += pulse
    total, cumulated, cumulated_match = 0.0, 0.0, 0.0
    for node in range(bins + 1):
        before, before_match = cumulated, cumulated_match
        cumulated, cumulated_match = cumulated + mass[node], cumulated_match + match_mass[node]
        total += match_mass[node] * (before_match + cumulated_match + 1) / (before + cumulated + 1)
    return total


def literal_losses(distances: list[list[float]], bins: int, longest: float) -> list[float]:
    """Minus the mean of a pair's two average precisions, by distances (2n, 2n)."""
    n = len(distances) // 2
    both = [
        (literal(distances, i, n + i, bins, longest), literal(distances, n + i, i, bins, longest))
        for i in range(n)
    ]
    return [-sum(pair) / 2 for pair in both]


@given(seed=seeds, n=st.integers(2, 6), bins=st.integers(1, 30))
def test_each_pair_has_minus_the_mean_of_its_two_average_precisions(seed: int, n: int, bins: int):
    value = F.normalize(random(seed, n), dim=-1)
    rows = value.flatten(0, 1).tolist()
    distances = [[oracles.euclidean(x, y) for y in rows] for x in rows]
    assert losses(value, bins).tolist() == pytest.approx(literal_losses(distances, bins, 2.0), abs=1e-7)


@pytest.mark.parametrize("bins", [2, 10, 256])
def test_a_perfectly_ranked_batch_has_minus_one(bins: int) -> None:
    # Matches coincide and all others are √2 apart, beyond the next node.
    side = torch.eye(6, dtype=torch.float64)
    torch.testing.assert_close(losses(torch.stack([side, side]), bins), -torch.ones(6).double())


def test_a_match_that_comes_last_has_the_precision_of_the_last_rank() -> None:
    side = torch.eye(6, dtype=torch.float64)
    actual = losses(torch.stack([side, -side]), bins=100)
    # Nine of the ten others are √2 away and nine before the match at 2; (0 + 1 + 1) / (10 + 11 + 1).
    torch.testing.assert_close(actual, torch.full((6,), -1 / 11).double())


def test_equally_distant_patches_share_the_precision_of_all_their_orders() -> None:
    # All descriptors coincide: one match among 2n − 1 ties has (0 + 1 + 1) / (0 + 2n − 1 + 1).
    same = torch.tensor([1.0, 0.0]).expand(2, 5, 2).double()
    torch.testing.assert_close(losses(same), torch.full((5,), -1 / 5).double())


def test_the_loss_passes_gradcheck_between_nodes() -> None:
    raw = random(3, 4).requires_grad_()
    assert torch.autograd.gradcheck(lambda raw: raw_losses(raw, distance=euclidean()), (raw,))


@pytest.mark.parametrize("power", [1, 2])
def test_the_range_is_that_of_the_distance(power: int) -> None:
    distance = euclidean(power=power, epsilon=0.0)
    side = torch.eye(4, dtype=torch.float64)
    opposite = losses(torch.stack([side, -side]), bins=7, distance=distance)
    assert torch.isfinite(opposite).all()
    torch.testing.assert_close(opposite, torch.full((4,), -1 / 7).double())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("kind", ["identical", "opposite", "pair"])
def test_ends_of_the_range_leave_loss_and_gradient_finite(kind: str, dtype) -> None:
    anchors = F.normalize(random(9, 2 if kind == "pair" else 5)[0], dim=-1).to(dtype)
    if kind == "identical":
        anchors = anchors[:1].repeat(5, 1)
    value = torch.stack([anchors, -anchors if kind == "opposite" else anchors]).requires_grad_()
    actual = losses(value, distance=euclidean())
    actual.sum().backward()
    assert actual.dtype == torch.float32
    assert torch.isfinite(actual).all()
    assert torch.isfinite(value.grad).all()
    assert (actual >= -1 - 1e-6).all()
    assert (actual <= 0).all()


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_a_descriptor_that_is_not_finite_makes_a_loss_nan(value: float) -> None:
    broken = random(5, 4)
    broken[0, 2, 1] = value
    assert torch.isnan(raw_losses(broken)).any()


BINARY = recipes.find("doap_binary_aug")
BITS = 256


def binary_losses(value: Tensor) -> Tensor:
    criterion = objective.build(BINARY)
    code = torch.where(value.detach() > 0, 1.0, -1.0)
    return criterion.loss(criterion.triplets(Descriptions(value, value, code)))


def test_tanh_values_are_ranked_by_their_hamming_distance() -> None:
    value = random(0, 4, BITS).tanh()
    value[1] = (value[0] + 0.6 * value[1]) / 1.6
    rows = value.flatten(0, 1).tolist()
    distances = [[(BITS - oracles.inner(x, y)) / 2 for y in rows] for x in rows]
    assert binary_losses(value).tolist() == pytest.approx(literal_losses(distances, 10, BITS), abs=1e-7)
    # Four values per code, each 64 times: numerical slopes of all 256 would take long.
    short = random(2, 3).tanh().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: binary_losses(x.repeat(1, 1, BITS // 4)), (short,))


def test_saturated_codes_that_match_are_ranked_perfectly_and_equal_ones_tie() -> None:
    signs = random(1, 5, BITS)[0].sign()
    torch.testing.assert_close(binary_losses(torch.stack([signs, signs])), -torch.ones(5).double())
    same = signs[:1].expand(2, 5, BITS)
    torch.testing.assert_close(binary_losses(same), torch.full((5,), -1 / 5).double())


def test_the_binary_row_ranks_compares_and_mines_in_bits() -> None:
    assert BINARY.loss.options["distance"] == BINARY.distance
    assert BINARY.negatives.options["floor"] * BITS / 2 == 2
