"""AdaSample's theory: identities against enumeration and hand."""

from __future__ import annotations

import itertools
import json
import math
from functools import cache
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.theory import hinge_against_distance, output_gradient, theorems, unbiasedness

QUICK = {
    "unbiasedness": {"draws": 2000, "exponents": (1, 8, 10)},
    "theorems": {"exponents": (1, 3, 10), "starts": 2},
}


@cache
def computed(name: str) -> tuple[dict, dict]:
    return import_module(f"lib.theory.{name}").compute(**QUICK.get(name, {}))


def few_pairs() -> unbiasedness.Pairs:
    return unbiasedness.draw((2, 3, 2, 3), seed=5)


simplices = st.lists(st.floats(0.05, 1.0), min_size=6, max_size=6).map(lambda v: np.array(v) / sum(v))


def test_computations_are_json_repeat_and_fit_a_probe():
    numbers, arrays = computed("unbiasedness")
    again, arrays_again = unbiasedness.compute(**QUICK["unbiasedness"])
    assert json.dumps(numbers, allow_nan=False) == json.dumps(again, allow_nan=False)
    for key, array in arrays.items():
        np.testing.assert_array_equal(array, arrays_again[key])
    for name in ("theorems", "unbiasedness", "output_gradient"):
        assert sum(array.nbytes for array in computed(name)[1].values()) < 200_000


def test_the_problem_is_least_squares_and_its_offset_leads_to_the_optimum():
    problem = theorems.draw(7, 1)
    # The first input is the intercept, 1 in all samples.
    residuals = problem.gradients[:, 0]
    inputs = problem.gradients / residuals[:, None]
    np.testing.assert_allclose(problem.losses, residuals**2 / 2)
    at_optimum = residuals - inputs @ problem.offset
    np.testing.assert_allclose(inputs.T @ at_optimum, 0, atol=1e-12)


# Theorem 1


@given(simplices, st.lists(st.floats(0.1, 5), min_size=6, max_size=6), st.floats(0.001, 2))
@settings(max_examples=60, deadline=None)
def test_theorem_1_holds_for_any_probabilities_weights_and_rate(p, w, rate):
    problem = theorems.draw(6, 2)
    by_hand, mean, second_moment = 0.0, np.zeros(3), 0.0
    for i in range(6):
        g = w[i] * problem.gradients[i]
        by_hand -= p[i] * (sum((problem.offset - rate * g) ** 2) - sum(problem.offset**2))
        mean += p[i] * g
        second_moment += p[i] * sum(g**2)
    variance_by_hand = second_moment - sum(mean**2)
    gain, drift, square, noise, spread = theorems.terms(problem, p, np.array(w), rate)
    scale = abs(drift) + abs(square) + abs(noise)
    assert gain == pytest.approx(by_hand, abs=1e-9 * scale)
    assert drift + square + noise == pytest.approx(by_hand, abs=1e-9 * scale)
    assert spread == pytest.approx(variance_by_hand, rel=1e-6, abs=1e-9 * second_moment)


def test_with_unbiased_weights_the_gain_falls_with_the_variance_at_the_squared_rate():
    numbers, arrays = computed("theorems")
    numbers = numbers["gains"]
    slope, offset = np.polyfit(arrays["trace_variance"], arrays["gain"], 1)
    assert slope == pytest.approx(-(numbers["rate"] ** 2), rel=1e-6)
    assert offset == pytest.approx(numbers["drift"][0] + numbers["mean_square"][0], rel=1e-6)
    assert numbers["largest_error"] < 1e-12
    assert arrays["gain"].argmax() == numbers["name"].index("p ∝ ‖∇L‖ (stated)")


# Theorem 2


@given(simplices, st.sampled_from([1.0, 1.5, 2.0, 4.0]))
@settings(max_examples=60, deadline=None)
def test_no_probabilities_have_less_variance_than_theorem_2s(p, alpha):
    problem = theorems.draw(6, 3)
    scale, stated = theorems.needed_scale(problem, alpha), problem.stated_probabilities(alpha)
    least, other = (theorems.variance_at(q, problem, scale) for q in (stated, p))
    assert least <= other * (1 + 1e-9)
    assert stated.sum() == pytest.approx(1)


def test_the_needed_scale_is_eq_9_and_the_stated_probabilities_eq_17():
    problem = theorems.Problem(np.array([2, 0.5]), np.array([[6.0, 8.0], [0.0, 1.0]]), np.zeros(2))
    np.testing.assert_allclose(theorems.needed_scale(problem, 3), [3 / 2 * 4, 3 / 2 * 0.25])
    np.testing.assert_allclose(problem.stated_probabilities(3), np.array([40.0, 0.25]) / 40.25)


def test_the_search_finds_cauchy_and_schwarzs_point_from_afar():
    factor = np.array([1.0, 3.0, 6.0])
    found = theorems.search(factor, np.array([0.98, 0.01, 0.01]))
    np.testing.assert_allclose(found, [0.1, 0.3, 0.6], atol=1e-6)


# Eq. 10


def test_every_pair_of_a_class_is_there_with_its_own_loss_and_gradient():
    pairs = few_pairs()
    expected = [
        (c, a, i)
        for c, first, size in ((0, 0, 2), (1, 2, 3), (2, 5, 2), (3, 7, 3))
        for a, i in itertools.permutations(range(first, first + size), 2)
    ]
    assert list(zip(pairs.class_of, pairs.anchor, pairs.positive, strict=True)) == expected
    of_class = np.repeat(np.arange(4), (2, 3, 2, 3))
    for q, (c, a, i) in enumerate(expected):
        x = pairs.descriptors
        d = math.dist(x[a], x[i])
        nearest = min(math.dist(x[a], x[j]) for j in range(10) if of_class[j] != c)
        assert pairs.distance[q] == pytest.approx(d)
        assert pairs.hinge[q] == pytest.approx(max(1 + d**2 - nearest**2, 0))


def test_algorithm_1s_probabilities_are_a_random_class_a_random_anchor_and_eq_13():
    pairs = few_pairs()
    found, _ = unbiasedness.drawn_and_weighted(pairs, 3.0, "raw")
    for q in range(len(found)):
        same = [r for r in range(len(found)) if pairs.anchor[r] == pairs.anchor[q]]
        z = sum(pairs.distance[r] ** 3 for r in same)
        by_hand = 1 / 4 / pairs.sizes[pairs.class_of[q]] * pairs.distance[q] ** 3 / z
        assert found[q] == pytest.approx(by_hand)


@pytest.mark.parametrize("scheme", ["batch_mean", "class"])
@pytest.mark.parametrize("batch", [1, 2, 3])
def test_scaling_by_the_batch_is_enumerated_as_a_loop_over_all_batches_would(scheme, batch):
    pairs, exponent = few_pairs(), 2.0
    drawn = unbiasedness.drawn_and_weighted(pairs, exponent, scheme)[0] * 4
    z = [sum(pairs.distance[pairs.anchor == a] ** exponent) for a in pairs.anchor]
    weight = [(z[q] if scheme == "class" else 1) / d for q, d in enumerate(pairs.distance)]
    members = [[q for q in range(len(drawn)) if pairs.class_of[q] == c] for c in range(4)]
    by_hand, groups = np.zeros(len(drawn)), list(itertools.combinations(range(4), batch))
    for group in groups:
        for outcome in itertools.product(*(members[c] for c in group)):
            chance = math.prod(drawn[q] for q in outcome) / len(groups)
            mean = sum(weight[q] for q in outcome) / batch
            for q in outcome:
                by_hand[q] += chance * weight[q] / mean / batch
    found = unbiasedness.coefficients(pairs, exponent, scheme, batch)
    np.testing.assert_allclose(found, by_hand, rtol=1e-12)
    assert found.sum() == pytest.approx(1)


@given(st.floats(0, 12))
@settings(max_examples=20, deadline=None)
def test_one_normaliser_gives_eq_10_and_z_over_d_restores_it_in_classes_of_one_size(exponent):
    pairs = unbiasedness.draw((3, 3, 3), seed=1)
    needed = pairs.distance ** (exponent - 1)
    for scheme in ("one Z, 1/d", "class, raw"):
        ratio = unbiasedness.coefficients(pairs, exponent, scheme, 2) / needed
        np.testing.assert_allclose(ratio, ratio[0], rtol=1e-9)


def test_the_librarys_sampler_and_weights_come_out_at_the_enumerated_expectation():
    numbers, _ = computed("unbiasedness")
    assert [row["scheme"] for row in numbers["monte_carlo"]] == ["batch_mean", "raw", "class"]
    for row in numbers["monte_carlo"]:
        assert row["largest_z"] < 4.5


# Eq. 24


def in_closed_form(key: str, theta: np.ndarray, phi: float) -> np.ndarray:
    """Norms by hand; of a negative close to the positive seen at a right angle to the anchor."""
    return {
        "ht": 4 * np.sin(theta / 2),
        "ht_inner": np.full_like(theta, 2),
        "ht_normalised": 2 * np.sin(theta),
        "root": np.ones_like(theta),
        "root_normalised": np.cos(theta / 2),
        "aht": 2 * theta / np.sin(theta),
        "aht_normalised": 2 * theta,
        "angle_normalised": np.ones_like(theta),
        "ht_positive": 2 * np.sqrt(2 - 2 * np.cos(theta) * np.cos(phi)),
        "ht_normalised_positive": 2 * np.hypot(np.sin(theta), np.sin(phi)),
        "aht_normalised_positive": 2 * np.hypot(theta, phi),
    }[key]


@pytest.mark.parametrize("case", output_gradient.CASES, ids=lambda case: case.key)
def test_each_closed_form_is_the_gradient_that_autograd_gives(case):
    theta = np.linspace(0.2, 2.5, 20)
    for phi in (0.4, 1.4):
        norms = output_gradient.norms(case, 2 * np.sin(theta / 2), 2 * math.sin(phi / 2))
        np.testing.assert_allclose(norms, in_closed_form(case.key, theta, phi), rtol=1e-8)


# Eq. 12 and footnote 5


@given(st.floats(0, 3), st.floats(-0.9, 0.9))
@settings(max_examples=30, deadline=None)
def test_the_correlations_formula_is_that_of_a_difference(ratio, rho):
    cases = np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1]])
    p = np.array([1 + rho, 1 - rho, 1 - rho, 1 + rho]) / 4
    x, y = cases[:, 0], cases[:, 0] - ratio * cases[:, 1]
    if p @ y**2 < 1e-3:
        return
    by_hand = (p @ (x * y)) / math.sqrt((p @ x**2) * (p @ y**2))
    found = hinge_against_distance.correlation_by_formula(ratio, rho)
    assert found == pytest.approx(by_hand, abs=1e-9)


@given(st.floats(1.05, 1.9))
@settings(max_examples=30, deadline=None)
def test_at_the_distance_that_is_given_the_hinge_just_closes(negative):
    zero = hinge_against_distance.zero_below(np.array([negative]))
    phi, theta = (2 * math.asin(d / 2) for d in (negative, min(zero["AHT"][0], 2)))
    assert 1 + zero["HardNet"][0] - negative == pytest.approx(0, abs=1e-9)
    assert 1 + zero["HT"][0] ** 2 - negative**2 == pytest.approx(0, abs=1e-9)
    assert 1 + theta**2 - phi**2 == pytest.approx(0, abs=1e-6)
