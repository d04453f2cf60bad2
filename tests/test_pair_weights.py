"""AdaSample's re-weighting scalar, w_i ∝ 1/d (Eq. 13)."""

from __future__ import annotations

import math

import oracles
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lib.losses.pair_weights import inverse_distance

SCALES = pytest.mark.parametrize("scale", ["batch_mean", "raw", "class"])
distances = st.lists(st.floats(0.02, math.pi), min_size=1, max_size=12)


def tensor(values, dtype=torch.float64) -> torch.Tensor:
    return torch.tensor(values, dtype=dtype)


@given(d=distances)
def test_weights_are_inverse_distances_scaled_to_a_batch_mean_of_one(d):
    weights = inverse_distance(tensor(d), None, scale="batch_mean")
    assert weights.tolist() == pytest.approx(oracles.inverse_distance_weights(d))
    assert weights.mean().item() == pytest.approx(1)


@given(d=distances)
def test_raw_weights_are_inverse_distances(d):
    weights = inverse_distance(tensor(d), None, scale="raw")
    assert weights.tolist() == pytest.approx([1 / x for x in d])


@given(
    classes=st.lists(
        st.tuples(st.floats(0.1, 3), st.lists(st.floats(0.1, 3), min_size=1, max_size=14)),
        min_size=1,
        max_size=8,
    ),
    exponent=st.floats(0, 20),
)
def test_class_weights_are_scaled_by_each_class_normaliser(classes, exponent):
    drawn = [d for d, _ in classes]
    sums = [sum(x**exponent for x in [d, *others]) for d, others in classes]
    weights = inverse_distance(tensor(drawn), tensor(sums).log(), scale="class")
    assert weights.tolist() == pytest.approx(oracles.inverse_distance_weights(drawn, sums), rel=1e-6)


@SCALES
def test_weights_carry_no_gradient(scale):
    d = tensor([0.5, 1.0]).requires_grad_()
    z = tensor([0.1, 0.2]).requires_grad_()
    assert not inverse_distance(d, z, scale=scale).requires_grad


@SCALES
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_identical_descriptors_have_the_finite_weight_of_distance_one_hundredth(scale, dtype):
    z = torch.zeros(3, dtype=dtype)
    zero = inverse_distance(tensor([0.0, 0.5, 1.0], dtype), z, scale=scale)
    floor = inverse_distance(tensor([0.01, 0.5, 1.0], dtype), z, scale=scale)
    assert torch.isfinite(zero).all()
    assert (zero > 0).all()
    torch.testing.assert_close(zero, floor)
    assert (zero[0] / zero[2]).item() == pytest.approx(100, rel=0.05)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_normalisers_of_every_magnitude_leave_class_weights_finite(dtype):
    z = tensor([1e12, -1e12, 0.0, 88.0, -1e30], dtype)
    weights = inverse_distance(torch.full((5,), 0.5, dtype=dtype), z, scale="class")
    assert torch.isfinite(weights).all()
    assert weights.sum().item() == pytest.approx(5)
