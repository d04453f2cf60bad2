"""HyNet's hybrid similarity (Eq. 6) and its normalising factor Z."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from lib import parts
from lib.distances import hybrid
from lib.recipes import HYNET, largest_gradient
from lib.recipes import hybrid as on_hybrid

ALPHAS = [0.0, 0.5, 1.0, 2.0, 3.0, math.inf]
EVERY = pytest.mark.parametrize("alpha", ALPHAS)
angles = st.floats(0, math.pi)


def at(theta: float, alpha: float, z: float) -> float:
    """s_H(θ) as printed; at α = ∞ without d."""
    if math.isinf(alpha):
        return (1 - math.cos(theta)) / z
    return (alpha * (1 - math.cos(theta)) + math.sqrt(2 * (1 - math.cos(theta)))) / z


@EVERY
@given(theta=angles, z=st.floats(0.5, 4))
@settings(deadline=None, max_examples=25)
def test_it_is_the_papers_formula_of_the_angle(alpha, theta, z):
    pair = torch.tensor([[1.0, 0.0], [math.cos(theta), math.sin(theta)]], dtype=torch.float64)
    found = hybrid.build(alpha, z, epsilon=0.0).paired(pair[0], pair[1])
    assert found.item() == pytest.approx(at(theta, alpha, z), abs=1e-7)


@pytest.mark.parametrize(
    ("alpha", "expected"), [(0.0, 1.0), (1.0, 1.760), (2.0, 2.736), (3.0, 3.727), (math.inf, 1.0)]
)
def test_z_is_the_largest_slope_on_a_dense_grid(alpha, expected):
    theta = torch.linspace(0, math.pi, 200_001, dtype=torch.float64)
    of_similarity, of_distance = theta.sin(), (theta / 2).cos()
    slope = of_similarity if math.isinf(alpha) else alpha * of_similarity + of_distance
    assert largest_gradient(alpha) == pytest.approx(slope.abs().max().item(), abs=1e-9)
    assert largest_gradient(alpha) == pytest.approx(expected, abs=5e-4)


@EVERY
def test_the_maximum_is_that_of_opposite_descriptors(alpha):
    distance = hybrid.build(alpha, z=1.5, epsilon=0.0)
    x = F.normalize(torch.randn(3, 8, generator=torch.Generator().manual_seed(0)).double(), dim=1)
    torch.testing.assert_close(distance.paired(x, -x), torch.full_like(x[:, 0], distance.maximum))
    assert (distance.matrix(x, x) <= distance.maximum).all()


@EVERY
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_identical_descriptors_have_finite_values_and_gradients(alpha, dtype):
    """Also where rounding puts their inner product above 1."""
    inner = torch.tensor([1.0, 1.0078125, -1.0, 0.0], dtype=dtype, requires_grad=True)
    values = hybrid.build(alpha).of_similarity(inner)
    values.sum().backward()
    assert torch.isfinite(values).all()
    assert torch.isfinite(inner.grad).all()


@EVERY
def test_its_gradient_is_that_of_differences(alpha):
    x, y = (torch.randn(4, 5, generator=torch.Generator().manual_seed(seed)).double() for seed in (0, 1))
    distance = hybrid.build(alpha, 2.0)

    def matrix(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return distance.matrix(F.normalize(x, dim=1), F.normalize(y, dim=1))

    assert torch.autograd.gradcheck(matrix, [x.requires_grad_(), y.requires_grad_()])


@EVERY
def test_a_recipe_on_it_has_the_floor_of_the_same_angle(alpha):
    """What is skipped as a false negative is the same for every α: pairs with d < 0.008."""
    recipe = on_hybrid(HYNET, alpha=alpha)
    distance = parts.build("distance", recipe.distance)
    floor = recipe.negatives.options["floor"]
    apart = torch.tensor([0.0079, 0.0081], dtype=torch.float64)
    values = [at(2 * math.asin(d / 2), alpha, largest_gradient(alpha)) for d in apart.tolist()]
    assert values[0] < floor < values[1]
    # The ε under the root hides the first millimetres; without it the built distance says the same.
    exact = hybrid.build(**recipe.distance.options, epsilon=0.0)
    assert exact.of_similarity(1 - apart**2 / 2).tolist() == pytest.approx(values, abs=1e-9)
    assert distance.maximum == exact.maximum
