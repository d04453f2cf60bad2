"""HyNet's R_L2 (Eq. 5) against its definition, and what it asks for."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from lib.descriptions import Descriptions
from lib.regularizers import norm


def drawn(n: int, k: int, seed: int = 0) -> Tensor:
    draw = torch.Generator().manual_seed(seed)
    return 3 * torch.randn(2, n, k, generator=draw, dtype=torch.float64)


def penalty(raw: Tensor, **options: object) -> Tensor:
    return norm.build(**options)(Descriptions(raw, F.normalize(raw, dim=-1)))


@given(seed=st.integers(0, 2**31), n=st.integers(1, 6), k=st.integers(1, 9))
@settings(deadline=None, max_examples=30)
def test_it_is_the_papers_mean_of_squared_differences_of_lengths(seed, n, k):
    raw = drawn(n, k, seed)
    lengths = [[math.hypot(*x) for x in side] for side in raw.tolist()]
    expected = sum((x - y) ** 2 for x, y in zip(*lengths, strict=True)) / n
    assert penalty(raw, weight=1.0).item() == pytest.approx(expected, rel=1e-3, abs=1e-4)
    assert penalty(raw).item() == pytest.approx(0.1 * penalty(raw, weight=1.0).item())
    summed = penalty(raw, weight=1.0, reduction="sum")
    assert summed.item() == pytest.approx(n * penalty(raw, weight=1.0).item())


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_its_gradient_is_that_of_differences(reduction):
    for n in (1, 2, 5):
        raw = drawn(n, 3).requires_grad_()
        assert torch.autograd.gradcheck(lambda raw: penalty(raw, reduction=reduction), raw)


def test_identical_descriptors_cost_nothing_and_have_no_gradient():
    raw = drawn(1, 8).expand(2, 3, 8).contiguous()
    raw[1] = raw[0]
    raw.requires_grad_()
    found = penalty(raw)
    found.backward()
    assert (found.item(), raw.grad.abs().max().item()) == (0, 0)


def test_a_raw_descriptor_of_no_length_is_reported():
    raw = drawn(4, 8)
    raw[1, 2] = 0
    with pytest.raises(FloatingPointError, match="1 raw descriptors are zero"):
        penalty(raw)
