"""Hamming distance of codes (DSM, Eq. 3): of signs a count of bits, of tanh what has a gradient."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from lib import objective
from lib.distances import hamming
from lib.negatives import hardest
from lib.recipes import RECIPES

SCALES = {"2D/k": 2.0, "D/k": 1.0, "bits": None}
EVERY = pytest.mark.parametrize("scale", sorted(SCALES))
seeds = st.integers(0, 2**31)


def in_one_bit(scale: str, k: int) -> float:
    return (SCALES[scale] or k) / k


def signs(seed: int, *shape: int) -> Tensor:
    draw = torch.Generator().manual_seed(seed)
    return torch.randint(0, 2, shape, generator=draw).float() * 2 - 1


def proxies(seed: int, *shape: int) -> Tensor:
    draw = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=draw, dtype=torch.float64).tanh()


@EVERY
@given(seed=seeds, n=st.integers(1, 5), m=st.integers(1, 5), k=st.sampled_from([8, 64, 256]))
@settings(deadline=None, max_examples=20)
def test_of_signs_it_is_exactly_the_number_of_bits_that_differ(scale, seed, n, m, k):
    x, y = signs(seed, n, k), signs(seed + 1, m, k)
    matrix = hamming.build(scale, k).matrix(x, y)
    assert matrix.shape == (n, m)
    packed = [np.packbits(codes.numpy() > 0, axis=1) for codes in (x, y)]
    for i in range(n):
        for j in range(m):
            bits = int(np.unpackbits(packed[0][i] ^ packed[1][j]).sum())
            assert matrix[i, j].item() == bits * in_one_bit(scale, k)


@EVERY
@given(seed=seeds, n=st.integers(1, 5), k=st.sampled_from([8, 256]))
@settings(deadline=None, max_examples=20)
def test_of_tanh_it_is_equation_3_literally(scale, seed, n, k):
    x, y = proxies(seed, n, k), proxies(seed + 1, n, k)
    distance = hamming.build(scale, k)
    for i, found in enumerate(distance.paired(x, y).tolist()):
        product = 0.0
        for a, b in zip(x[i].tolist(), y[i].tolist(), strict=True):
            product += a * b
        assert found == pytest.approx((k - product) / 2 * in_one_bit(scale, k))
    torch.testing.assert_close(distance.paired(x, y), distance.matrix(x, y).diagonal())


@EVERY
def test_it_runs_from_zero_for_equal_codes_to_the_maximum_for_opposite_ones(scale):
    x, distance = signs(0, 3, 256), hamming.build(scale)
    assert distance.paired(x, x).tolist() == [0.0] * 3
    assert distance.paired(x, -x).tolist() == [distance.maximum] * 3
    assert distance.maximum == (SCALES[scale] or 256)
    values = 2 * torch.rand(9, 256) - 1
    assert distance.matrix(values, values).min() >= 0
    assert distance.matrix(values, values).max() <= distance.maximum


@EVERY
def test_the_gradient_is_the_other_code_and_finite_everywhere(scale):
    distance, k = hamming.build(scale, 16), 16
    x, y = proxies(1, 4, k).requires_grad_(), proxies(2, 4, k).requires_grad_()
    assert torch.autograd.gradcheck(distance.paired, (x, y))
    distance.paired(x, y).sum().backward()
    torch.testing.assert_close(x.grad, -y.detach() / 2 * in_one_bit(scale, k))
    same = x.detach().clone().requires_grad_()
    distance.paired(same, same).sum().backward()
    assert torch.isfinite(same.grad).all()


def test_negatives_closer_than_two_bits_are_skipped_and_of_ties_the_first_is_taken():
    recipe = RECIPES["dsm_binary_aug"]
    made = objective.build(recipe)
    base = torch.ones(256)

    def flipped(*bits: int) -> Tensor:
        return base.index_fill(0, torch.tensor(bits), -1.0)

    # From a_0 and p_0, which are equal: p_1 differs in one bit, a_1 and all of pair 2 in two.
    codes = torch.stack(
        [
            torch.stack([base, flipped(0, 1), flipped(4, 5)]),
            torch.stack([base, flipped(0), flipped(2, 3)]),
        ]
    )
    negatives = made.mine(codes, made.distance)
    assert (negatives.query[0].item(), negatives.patch[0].item()) == (0, 3 + 2)
    assert negatives.distances(codes, made.distance)[0].item() == 2 * 2 / 256
    keeping = hardest.build("across", floor=0.0)(codes, made.distance)
    assert (keeping.query[0].item(), keeping.patch[0].item()) == (0, 3 + 1)
