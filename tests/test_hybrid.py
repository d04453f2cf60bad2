"""HyNet's hybrid similarity (Eq. 6) and its normalising factor Z."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from lib import objective, parts
from lib.descriptions import Descriptions
from lib.distances import euclidean, hybrid
from lib.recipes import HYNET, SOSNET, largest_gradient
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
def test_divided_by_z_its_largest_slope_by_the_angle_is_one(alpha):
    theta = torch.linspace(1e-4, math.pi, 20_001, dtype=torch.float64, requires_grad=True)
    distance = hybrid.build(alpha, largest_gradient(alpha), epsilon=0.0)
    (slope,) = torch.autograd.grad(distance.of_similarity(theta.cos()).sum(), theta)
    assert slope.abs().max().item() == pytest.approx(1, abs=1e-6)


def test_without_similarity_it_is_the_euclidean_distance():
    s = torch.linspace(-1, 1, 101)
    assert torch.equal(hybrid.build(0.0).of_similarity(s), euclidean.build().of_similarity(s))


def test_without_distance_it_has_no_root():
    s = torch.tensor([1.0, -1.0], requires_grad=True)
    values = hybrid.build(math.inf).of_similarity(s)
    values.sum().backward()
    assert values.tolist() == [0.0, 2.0]
    assert s.grad.tolist() == [-1.0, -1.0]


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


@pytest.mark.parametrize("alpha", [-1.0, -math.inf, math.nan])
def test_a_negative_alpha_is_refused(alpha):
    with pytest.raises(ValueError, match="α must be 0 or more"):
        hybrid.build(alpha)


@pytest.mark.parametrize("z", [0.0, -2.0, math.inf, math.nan])
def test_a_z_that_is_not_positive_and_finite_is_refused(z):
    with pytest.raises(ValueError, match="Z must be positive and finite"):
        hybrid.build(z=z)


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


def descriptions(n: int) -> Descriptions:
    raw = torch.randn(2, n, 16, generator=torch.Generator().manual_seed(1)).double()
    return Descriptions(raw, F.normalize(raw, dim=-1))


@EVERY
def test_whatever_alpha_the_same_negatives_are_chosen(alpha):
    """Both parts grow with the angle."""
    of = descriptions(20)
    chosen, euclidean = (
        objective.build(recipe).triplets(of).negatives for recipe in (on_hybrid(HYNET, alpha), SOSNET)
    )
    assert torch.equal(chosen.query, euclidean.query)
    assert torch.equal(chosen.patch, euclidean.patch)


def test_without_z_a_margin_larger_by_z_gives_the_loss_times_z():
    of, z = descriptions(20), largest_gradient(2.0)
    losses = []
    for recipe in (on_hybrid(HYNET, 2.0, 1.2), on_hybrid(HYNET, 2.0, 1.2 * z, 1.0)):
        made = objective.build(recipe)
        losses.append(made.loss(made.triplets(of)))
    assert losses[0].max() > 0
    torch.testing.assert_close(losses[1], z * losses[0])


def test_of_a_batch_of_two_the_other_pair_holds_the_negatives():
    made, of = objective.build(HYNET), descriptions(2)
    triplets = made.triplets(of)
    distance = parts.build("distance", HYNET.distance)
    crossing = torch.stack([distance.matrix(x, y) for x in of.value for y in of.value])
    between = torch.stack([crossing[:, 0, 1], crossing[:, 1, 0]])
    torch.testing.assert_close(triplets.negative, between.min(dim=1).values)
