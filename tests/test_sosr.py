"""SOSNet's second order regulariser against its definition, and what it asks for."""

from __future__ import annotations

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


@pytest.mark.parametrize("n", [2, 7, 8])
def test_a_batch_that_has_not_so_many_neighbours_is_refused(n):
    with pytest.raises(ValueError, match=f"a batch of {n} pairs has no 8 neighbours"):
        penalty(unit(n, 4))
