"""Euclidean, angular, hybrid (HyNet, Eq. 6) and Hamming distances (DSM, Eq. 3) by their formulas."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import numpy as np
import oracles
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from lib import objective, parts
from lib.losses.distances import Distance, angular, euclidean, hamming, hybrid_similarity
from lib.losses.negatives import Hardest
from lib.recipes import HYNET, RECIPES, hybrid, largest_gradient

seeds = st.integers(0, 2**31)
sizes = st.integers(1, 6)
LENGTH = 8
ALPHAS = [0.0, 0.5, 2.0, 3.0, math.inf]
# The largest distance of each scale; None is the length.
SCALES = {"2D/k": 2.0, "D/k": 1.0, "bits": None}
DISTANCES = {"euclidean": (euclidean, oracles.euclidean), "angular": (angular, oracles.angular)}
EACH_DISTANCE = pytest.mark.parametrize("name", DISTANCES)
POWERS = pytest.mark.parametrize("power", [1, 2])


def hybrid_of(s: float, alpha: float, z: float) -> float:
    """s_H as printed; at α = ∞ without d."""
    if math.isinf(alpha):
        return (1 - s) / z
    return (alpha * (1 - s) + math.sqrt(2 * max(1 - s, 0))) / z


def one_bit(scale: str, length: int) -> float:
    return (SCALES[scale] or length) / length


def test_the_similarity_is_where_the_page_on_use_says() -> None:
    page = (Path(__file__).resolve().parents[1] / "docs" / "use.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"^- HyNet's s_H .*$", page, flags=re.MULTILINE)
    example = re.search(r"is `(.+?)`", line)[1]
    imported = re.findall(r"`(\w+)` from `([\w.]+)`", line)
    names = {name: getattr(import_module(module), name) for name, module in imported}
    anchors, positives = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.6, 0.8]])
    value = eval(example, {**names, "anchors": anchors, "positives": positives})
    assert value.item() == pytest.approx(hybrid_of(0.6, 2.0, largest_gradient(2.0)), abs=1e-5)


@dataclass(frozen=True)
class Known:
    """A distance without ε, as a function of unit descriptors' inner product s, and its slope in s."""

    distance: Distance
    of: Callable[[float], float]
    slope: Callable[[float], float]


KNOWN = {
    "euclidean": Known(
        euclidean(epsilon=0.0),
        lambda s: oracles.euclidean([1, 0], [s, math.sqrt(max(1 - s * s, 0))]),
        lambda s: -1 / math.sqrt(2 - 2 * s),
    ),
    "squared euclidean": Known(euclidean(power=2), lambda s: 2 - 2 * s, lambda s: -2.0),
    "angular": Known(angular(epsilon=0.0), math.acos, lambda s: -1 / math.sqrt(1 - s * s)),
    "squared angular": Known(
        angular(power=2, epsilon=0.0),
        lambda s: math.acos(s) ** 2,
        lambda s: -2 * math.acos(s) / math.sqrt(1 - s * s),
    ),
    **{
        f"hybrid, α = {alpha}": Known(
            hybrid_similarity(alpha, 1.5, epsilon=0.0),
            lambda s, alpha=alpha: hybrid_of(s, alpha, 1.5),
            lambda s, alpha=alpha: (
                -1 / 1.5 if math.isinf(alpha) else -(alpha + 1 / math.sqrt(2 - 2 * s)) / 1.5
            ),
        )
        for alpha in ALPHAS
    },
    **{
        f"hamming, {scale}": Known(
            hamming(scale, LENGTH),
            lambda s, scale=scale: (LENGTH - s) / 2 * one_bit(scale, LENGTH),
            lambda s, scale=scale: -one_bit(scale, LENGTH) / 2,
        )
        for scale in SCALES
    },
}
EVERY = pytest.mark.parametrize("name", KNOWN)
OF_UNIT_LENGTH = pytest.mark.parametrize("name", [name for name in KNOWN if "hamming" not in name])


def descriptors(seed: int, *shape: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return F.normalize(torch.randn(*shape, generator=generator, dtype=torch.float64), dim=-1)


@EVERY
@given(seed=seeds, n=sizes, m=sizes)
def test_every_entry_of_the_matrix_is_the_papers_distance_and_pairs_are_its_diagonal(name, seed, n, m):
    known = KNOWN[name]
    x, y = descriptors(seed, n, LENGTH), descriptors(seed + 1, m, LENGTH)
    matrix = known.distance.matrix(x, y)
    products = [[max(-1.0, min(1.0, oracles.inner(a, b))) for b in y.tolist()] for a in x.tolist()]
    expected = torch.tensor([[known.of(s) for s in row] for row in products], dtype=torch.float64)
    torch.testing.assert_close(matrix, expected, rtol=0, atol=1e-7)
    count = min(n, m)
    torch.testing.assert_close(known.distance.paired(x[:count], y[:count]), matrix.diagonal())


@EVERY
def test_derivatives_by_similarity_are_the_analytic_ones(name):
    s = torch.linspace(-0.999, 0.999, 41, dtype=torch.float64, requires_grad=True)
    KNOWN[name].distance.of_similarity(s).sum().backward()
    assert s.grad.tolist() == pytest.approx([KNOWN[name].slope(x) for x in s.tolist()], rel=1e-9)


@OF_UNIT_LENGTH
def test_the_largest_distance_is_that_of_opposite_descriptors(name):
    distance = KNOWN[name].distance
    assert distance.maximum == pytest.approx(KNOWN[name].of(-1.0))
    x = descriptors(0, 200, 3)
    assert distance.matrix(x, -x).max().item() <= distance.maximum + 1e-5


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize(
    "distance",
    [
        *(distance_of(power=power) for distance_of, _ in DISTANCES.values() for power in (1, 2)),
        *(hybrid_similarity(alpha) for alpha in ALPHAS),
    ],
)
def test_identical_and_opposite_descriptors_have_finite_distances_and_gradients(distance, dtype):
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


@EACH_DISTANCE
def test_the_default_epsilon_lies_inside_the_root_and_moves_no_distance_by_more_than_its_root(name):
    distance_of, _ = DISTANCES[name]
    s = torch.linspace(-1, 1, 2001, dtype=torch.float64)
    with_epsilon = distance_of().of_similarity(s)
    exact = distance_of(epsilon=0.0).of_similarity(s)
    assert (with_epsilon - exact).abs().max() <= 1e-3 + 1e-12
    assert with_epsilon[-1].item() == pytest.approx(1e-3, rel=1e-3)
    if name == "euclidean":
        torch.testing.assert_close(with_epsilon, (2 - 2 * s + 1e-6).sqrt(), rtol=1e-12, atol=0)


def test_the_square_of_the_angle_has_its_limit_slope_at_identical_descriptors():
    # d(θ²)/ds tends to −2, as for the squared Euclidean distance: near zero angle and chord agree.
    s = torch.ones(1, dtype=torch.float64, requires_grad=True)
    angular(power=2).of_similarity(s).sum().backward()
    assert s.grad.item() == pytest.approx(-2, rel=1e-4)


@EACH_DISTANCE
def test_the_root_undoes_the_power(name):
    distance_of, _ = DISTANCES[name]
    s = torch.linspace(-1, 0.99, 50, dtype=torch.float64)
    linear, squared = distance_of(power=1, epsilon=0.0), distance_of(power=2, epsilon=0.0)
    torch.testing.assert_close(linear.root(linear.of_similarity(s)), linear.of_similarity(s))
    torch.testing.assert_close(squared.root(squared.of_similarity(s)), linear.of_similarity(s))
    assert squared.root(torch.tensor(-1e-7)).item() == 0


@EACH_DISTANCE
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_stays_near_the_papers_distance(name, dtype):
    distance_of, literal = DISTANCES[name]
    x, y = descriptors(1, 8, 16), descriptors(2, 8, 16)
    matrix = distance_of().matrix(x.to(dtype), y.to(dtype)).double()
    expected = torch.tensor([[literal(a, b) for b in y.tolist()] for a in x.tolist()]).double()
    torch.testing.assert_close(matrix, expected, rtol=0, atol=8 * torch.finfo(dtype).eps)


@EACH_DISTANCE
@POWERS
def test_distances_off_the_sphere_are_those_of_the_vectors(name, power: int) -> None:
    distance_of, literal = DISTANCES[name]
    a, p = 2.5 * torch.randn(2, 4, 3, generator=torch.Generator().manual_seed(0)).double()
    distance = distance_of(power=power, epsilon=0.0, unit=False)
    x, y = ([oracles.unit(v) if name == "angular" else v for v in side.tolist()] for side in (a, p))
    expected = torch.tensor([[literal(u, v) ** power for v in y] for u in x], dtype=torch.float64)
    torch.testing.assert_close(distance.matrix(a, p), expected)
    torch.testing.assert_close(distance.paired(a, p), expected.diagonal(), rtol=1e-9, atol=1e-9)


# HyNet's factor Z and the floor of its negatives


@pytest.mark.parametrize(
    ("alpha", "expected"), [(0.0, 1.0), (1.0, 1.760), (2.0, 2.736), (3.0, 3.727), (math.inf, 1.0)]
)
def test_z_is_the_largest_slope_on_a_dense_grid(alpha, expected):
    theta = torch.linspace(0, math.pi, 200_001, dtype=torch.float64)
    of_similarity, of_distance = theta.sin(), (theta / 2).cos()
    slope = of_similarity if math.isinf(alpha) else alpha * of_similarity + of_distance
    assert largest_gradient(alpha) == pytest.approx(slope.abs().max().item(), abs=1e-9)
    assert largest_gradient(alpha) == pytest.approx(expected, abs=5e-4)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_a_recipe_on_the_hybrid_has_the_floor_of_the_same_angle(alpha):
    """Every α skips the same pairs as false negatives: those with d < 0.008."""
    recipe = hybrid(HYNET, alpha=alpha)
    floor = recipe.negatives.options["floor"]
    nearer, farther = (hybrid_of(1 - d**2 / 2, alpha, largest_gradient(alpha)) for d in (0.0079, 0.0081))
    assert nearer < floor < farther
    # The ε under the root hides the smallest distances; without it the built distance agrees.
    exact = hybrid_similarity(**recipe.distance.options, epsilon=0.0)
    similarities = 1 - torch.tensor([0.0079, 0.0081], dtype=torch.float64) ** 2 / 2
    assert exact.of_similarity(similarities).tolist() == pytest.approx([nearer, farther], abs=1e-9)
    assert parts.build("distance", recipe.distance).maximum == exact.maximum


# Codes


def signs(seed: int, *shape: int) -> Tensor:
    rng = torch.Generator().manual_seed(seed)
    return torch.randint(0, 2, shape, generator=rng).float() * 2 - 1


@pytest.mark.parametrize("scale", SCALES)
@given(seed=seeds, n=sizes, m=sizes, k=st.sampled_from([8, 64, 256]))
def test_hamming_of_signs_is_exactly_the_number_of_differing_bits(scale, seed, n, m, k):
    x, y, distance = signs(seed, n, k), signs(seed + 1, m, k), hamming(scale, k)
    bits = (x.numpy()[:, None] != y.numpy()).sum(axis=2)
    np.testing.assert_array_equal(distance.matrix(x, y), np.float32(bits * one_bit(scale, k)))
    assert distance.paired(x, x).tolist() == [0.0] * n
    assert distance.paired(x, -x).tolist() == [distance.maximum] * n


def test_negatives_closer_than_two_bits_are_skipped_and_the_first_of_ties_is_taken():
    built, base = objective.build(RECIPES["dsm_binary_aug"]), torch.ones(256)

    def flipped(*bits: int) -> Tensor:
        return base.index_fill(0, torch.tensor(bits), -1.0)

    # From a_0 and p_0, which are equal: p_1 differs in one bit, a_1 and all of pair 2 in two.
    codes = torch.stack(
        [
            torch.stack([base, flipped(0, 1), flipped(4, 5)]),
            torch.stack([base, flipped(0), flipped(2, 3)]),
        ]
    )
    negatives = built.negatives(codes, built.distance)
    assert (negatives.query[0].item(), negatives.patch[0].item()) == (0, 3 + 2)
    assert negatives.distances(codes, built.distance)[0].item() == 2 * 2 / 256
    unfloored = Hardest("across", floor=0.0)(codes, built.distance)
    assert (unfloored.query[0].item(), unfloored.patch[0].item()) == (0, 3 + 1)
