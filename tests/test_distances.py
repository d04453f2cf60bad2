"""Euclidean and angular distances of unit descriptors, and their squares."""

from __future__ import annotations

import math

import oracles
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.distances import angular, euclidean

MODULES = {"euclidean": (euclidean, oracles.euclidean), "angular": (angular, oracles.angular)}
EVERY = pytest.mark.parametrize("name", sorted(MODULES))
POWERS = pytest.mark.parametrize("power", [1, 2])
sizes = st.integers(1, 6)
seeds = st.integers(0, 2**31)


def descriptors(seed: int, *shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return F.normalize(torch.randn(*shape, generator=generator, dtype=torch.float64), dim=-1)


@EVERY
@POWERS
@given(seed=seeds, n=sizes, m=sizes, k=st.integers(2, 9))
@settings(deadline=None, max_examples=20)
def test_every_entry_of_the_matrix_is_the_papers_distance(name, power, seed, n, m, k):
    module, literal = MODULES[name]
    x, y = descriptors(seed, n, k), descriptors(seed + 1, m, k)
    matrix = module.build(power=power, epsilon=0.0).matrix(x, y)
    assert matrix.shape == (n, m)
    for i in range(n):
        for j in range(m):
            expected = literal(x[i].tolist(), y[j].tolist()) ** power
            assert matrix[i, j].item() == pytest.approx(expected, abs=1e-7)


@EVERY
@POWERS
@given(seed=seeds, n=sizes, k=st.integers(2, 9))
@settings(deadline=None, max_examples=20)
def test_paired_distances_are_the_diagonal_of_the_matrix(name, power, seed, n, k):
    distance = MODULES[name][0].build(power=power)
    x, y = descriptors(seed, n, k), descriptors(seed + 1, n, k)
    torch.testing.assert_close(distance.paired(x, y), distance.matrix(x, y).diagonal())


@EVERY
def test_the_default_epsilon_lies_inside_the_root_and_moves_no_distance_by_more_than_its_root(name):
    module, _ = MODULES[name]
    s = torch.linspace(-1, 1, 2001, dtype=torch.float64)
    with_it = module.build().of_similarity(s)
    without = module.build(epsilon=0.0).of_similarity(s)
    assert (with_it - without).abs().max() <= 1e-3 + 1e-12
    assert with_it[-1].item() == pytest.approx(1e-3, rel=1e-3)
    if name == "euclidean":
        for similarity, d in zip(s.tolist(), with_it.tolist(), strict=True):
            assert d == pytest.approx(math.sqrt(max(2 - 2 * similarity, 0) + 1e-6), rel=1e-12)


def test_the_squared_euclidean_distance_has_no_epsilon():
    s = torch.linspace(-1, 1, 21, dtype=torch.float64)
    torch.testing.assert_close(euclidean.build(power=2, epsilon=0.1).of_similarity(s), 2 - 2 * s)


ANALYTIC = {
    ("euclidean", 1): lambda s: -1 / math.sqrt(2 - 2 * s),
    ("euclidean", 2): lambda s: -2.0,
    ("angular", 1): lambda s: -1 / math.sqrt(1 - s * s),
    ("angular", 2): lambda s: -2 * math.acos(s) / math.sqrt(1 - s * s),
}


@EVERY
@POWERS
def test_derivatives_by_similarity_are_the_analytic_ones(name, power):
    s = torch.linspace(-0.999, 0.999, 41, dtype=torch.float64, requires_grad=True)
    MODULES[name][0].build(power=power, epsilon=0.0).of_similarity(s).sum().backward()
    for similarity, slope in zip(s.tolist(), s.grad.tolist(), strict=True):
        assert slope == pytest.approx(ANALYTIC[name, power](similarity), rel=1e-9)


@EVERY
@POWERS
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_identical_and_opposite_descriptors_have_finite_distances_and_gradients(name, power, dtype):
    distance = MODULES[name][0].build(power=power)
    # Rounding takes inner products a little beyond ±1.
    beyond = 1 + 2 * torch.finfo(dtype).eps
    s = torch.tensor([-beyond, -1.0, 1.0, beyond], dtype=dtype, requires_grad=True)
    d = distance.of_similarity(s)
    d.sum().backward()
    assert torch.isfinite(d).all()
    assert torch.isfinite(s.grad).all()
    assert d.dtype == dtype
    tolerance = 20 * torch.finfo(dtype).eps + 2e-3 * distance.maximum
    assert d[1].item() == pytest.approx(distance.maximum, abs=tolerance)
    assert d[2].item() == pytest.approx(0, abs=tolerance)


def test_the_square_of_the_angle_has_its_limit_slope_at_identical_descriptors():
    # d(θ²)/ds tends to −2, as for the squared Euclidean distance: near zero angle and chord agree.
    s = torch.ones(1, dtype=torch.float64, requires_grad=True)
    angular.build(power=2).of_similarity(s).sum().backward()
    assert s.grad.item() == pytest.approx(-2, rel=1e-4)


@EVERY
@POWERS
def test_the_largest_distance_is_that_of_opposite_descriptors(name, power):
    module, literal = MODULES[name]
    distance = module.build(power=power)
    assert distance.power == power
    assert distance.maximum == pytest.approx(literal([1.0, 0.0], [-1.0, 0.0]) ** power)
    x = descriptors(0, 200, 3)
    assert distance.matrix(x, -x).max().item() <= distance.maximum + 1e-5


@EVERY
def test_the_root_undoes_the_power(name):
    module, _ = MODULES[name]
    s = torch.linspace(-1, 0.99, 50, dtype=torch.float64)
    once, twice = module.build(power=1, epsilon=0.0), module.build(power=2, epsilon=0.0)
    torch.testing.assert_close(once.root(once.of_similarity(s)), once.of_similarity(s))
    torch.testing.assert_close(twice.root(twice.of_similarity(s)), once.of_similarity(s))
    assert twice.root(torch.tensor(-1e-7)).item() == 0


@EVERY
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_stays_near_the_papers_distance(name, dtype):
    module, literal = MODULES[name]
    x, y = descriptors(1, 8, 16), descriptors(2, 8, 16)
    matrix = module.build().matrix(x.to(dtype), y.to(dtype))
    for i in range(8):
        for j in range(8):
            expected = literal(x[i].tolist(), y[j].tolist())
            assert matrix[i, j].item() == pytest.approx(expected, abs=8 * torch.finfo(dtype).eps)
