"""SOSNet's second order regulariser against its definition, and what it asks for."""

from __future__ import annotations

import math

import literal_hynet
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from lib.descriptions import Descriptions
from lib.regularizers import sosr


def unit(n: int, k: int, seed: int = 0) -> Tensor:
    draw = torch.Generator().manual_seed(seed)
    return F.normalize(torch.randn(2, n, k, generator=draw, dtype=torch.float64), dim=-1)


def penalty(value: Tensor, **options: object) -> Tensor:
    return sosr.build(**options)(Descriptions(value, value))


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("across", [False, True])
@given(seed=st.integers(0, 2**31), n=st.integers(2, 9), k=st.integers(1, 8))
@settings(deadline=None, max_examples=20)
def test_it_is_the_paper_s_mean_over_the_neighbours_of_both_sets(symmetric, across, seed, n, k):
    value, k = unit(n, 5, seed), min(k, n - 1)
    options = {"neighbours": k, "symmetric": symmetric, "across": across}
    found = penalty(value, **options)
    literal = literal_hynet.sosr(
        value.numpy(), k, symmetric=symmetric, cross=across, eps_root=1e-6, eps_unit=0.0
    )
    assert found.item() == pytest.approx(literal[0], abs=1e-9)
    assert penalty(value, weight=3.0, **options).item() == pytest.approx(3 * found.item())
    assert penalty(value, reduction="sum", **options).item() == pytest.approx(n * found.item())


def test_the_options_look_at_more_pairs_each():
    value = unit(40, 6)
    plain, symmetric, across = (
        penalty(value, neighbours=3, **more).item()
        for more in ({}, {"symmetric": True}, {"across": True})
    )
    assert plain < symmetric
    assert plain < across


@given(seed=st.integers(0, 2**31))
@settings(deadline=None, max_examples=10)
def test_sets_that_are_rotated_copies_cost_nothing(seed):
    """Their distances within are equal, however far a pair lies apart."""
    value = unit(12, 6, seed)
    turn, _ = torch.linalg.qr(unit(6, 6, seed + 1)[0])
    value[1] = value[0] @ turn
    assert penalty(value).item() == pytest.approx(math.sqrt(1e-6), rel=1e-4)
    assert (value[0] - value[1]).norm(dim=-1).mean() > 0.5


def test_none_is_its_own_neighbour_and_of_equally_near_ones_the_first_are_taken():
    distances = torch.tensor(
        [[0.0, 1.0, 1.0, 1.0], [1.0, 0.0, 0.5, 1.0], [1.0, 0.5, 0.0, 1.0], [0.0] * 4]
    )
    assert sosr.nearest(distances, 2).tolist() == [
        [False, True, True, False],
        [True, False, True, False],
        [True, True, False, False],
        [True, True, False, False],
    ]
    assert distances.diagonal().eq(0).all(), "what is looked at is left as it was"


def test_its_gradient_is_that_of_differences():
    def of_raw(raw: Tensor) -> Tensor:
        return penalty(F.normalize(raw, dim=-1), neighbours=2)

    for n in (3, 6):
        assert torch.autograd.gradcheck(of_raw, unit(n, 4, n).requires_grad_())


def test_in_a_batch_of_two_each_is_the_other_s_neighbour():
    value = unit(2, 4)
    apart = [torch.dist(*side).item() for side in value]
    assert penalty(value, neighbours=1).item() == pytest.approx(abs(apart[0] - apart[1]), abs=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_identical_descriptors_have_finite_gradients(dtype):
    """All alike; and two sets that are alike, whose differences are zero."""
    alike, twice = torch.ones(2, 10, 16) / 4, unit(10, 16).float()
    twice[1] = twice[0]
    for value in (alike, twice):
        leaf = value.to(dtype).requires_grad_()
        found = penalty(leaf)
        found.backward()
        assert torch.isfinite(found)
        assert torch.isfinite(leaf.grad).all()


@pytest.mark.parametrize("k", [0, -3])
def test_a_number_of_neighbours_that_is_not_positive_is_refused(k):
    with pytest.raises(ValueError, match=f"neighbours must be 1 or more, got {k}"):
        sosr.build(neighbours=k)


@pytest.mark.parametrize("n", [2, 7, 8])
def test_a_batch_that_has_not_so_many_neighbours_is_refused(n):
    with pytest.raises(ValueError, match=f"a batch of {n} pairs has no 8 neighbours"):
        penalty(unit(n, 4))


def test_another_reduction_is_refused():
    with pytest.raises(ValueError, match="'mean' or 'sum', got 'max'"):
        sosr.build(reduction="max")
