"""AdaSample's theory: identities against enumeration and hand."""

from __future__ import annotations

import itertools
import json
import math
from functools import cache
from importlib import import_module

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import sem

from lib.analysis import output_gradient, theorem_2, unbiasedness
from lib.losses.distances import euclidean
from lib.losses.pair_weights import inverse_distance
from lib.samplers import adasample
from lib.samplers.candidates import Pool

QUICK = {
    "unbiasedness": {"exponents": (1, 8, 10)},
    "theorem_2": {"exponents": (1, 3, 10)},
}


@cache
def computed(name: str) -> tuple[dict, dict]:
    return import_module(f"lib.analysis.{name}").compute(**QUICK.get(name, {}))


def few_pairs() -> unbiasedness.Pairs:
    return unbiasedness.draw((2, 3, 2, 3), seed=5)


simplices = st.lists(st.floats(0.05, 1.0), min_size=6, max_size=6).map(lambda v: np.array(v) / sum(v))


def test_computations_are_json_repeatable_and_fit_a_probe():
    numbers, arrays = computed("unbiasedness")
    numbers_again, arrays_again = unbiasedness.compute(**QUICK["unbiasedness"])
    assert json.dumps(numbers, allow_nan=False) == json.dumps(numbers_again, allow_nan=False)
    for key, array in arrays.items():
        np.testing.assert_array_equal(array, arrays_again[key])
    for name in ("theorem_2", "unbiasedness", "output_gradient"):
        assert sum(array.nbytes for array in computed(name)[1].values()) < 200_000


# Theorem 2


def test_the_problem_is_least_squares():
    losses, gradients = theorem_2.draw(7, 1)
    # The first input is the intercept, 1 in all samples.
    np.testing.assert_allclose(losses, gradients[:, 0] ** 2 / 2)


@given(simplices, st.sampled_from([1.0, 1.5, 2.0, 4.0]))
@settings(max_examples=60, deadline=None)
def test_no_probabilities_have_less_variance_than_theorem_2s(p, alpha):
    losses, gradients = theorem_2.draw(6, 3)
    scale = theorem_2.needed_scale(losses, alpha)
    stated = losses ** (alpha - 1) * np.linalg.norm(gradients, axis=1)
    least, variance = theorem_2.variance(np.array([stated / stated.sum(), p]), scale, gradients)
    assert least <= variance * (1 + 1e-9)
    estimates = [w / q * g for w, q, g in zip(scale, p, gradients, strict=True)]
    mean = sum(q * g for q, g in zip(p, estimates, strict=True))
    by_hand = sum(q * sum((g - mean) ** 2) for q, g in zip(p, estimates, strict=True))
    assert variance == pytest.approx(by_hand)


def test_the_needed_scale_is_eq_9():
    np.testing.assert_allclose(theorem_2.needed_scale(np.array([2, 0.5]), 3), [3 / 2 * 4, 3 / 2 * 0.25])


def test_the_search_finds_cauchy_and_schwarzs_point_from_afar():
    factor = np.array([1.0, 3.0, 6.0])
    optimum = theorem_2.search(factor, np.array([0.98, 0.01, 0.01]))
    np.testing.assert_allclose(optimum, [0.1, 0.3, 0.6], atol=1e-6)


# Eq. 10


def test_every_pair_of_a_class_is_listed_with_its_distance():
    pairs = few_pairs()
    expected = [
        (c, a, i)
        for c, first, size in ((0, 0, 2), (1, 2, 3), (2, 5, 2), (3, 7, 3))
        for a, i in itertools.permutations(range(first, first + size), 2)
    ]
    assert list(zip(pairs.class_of, pairs.anchor, pairs.positive, strict=True)) == expected
    for q, (_, a, i) in enumerate(expected):
        assert pairs.distance[q] == pytest.approx(math.dist(pairs.descriptors[a], pairs.descriptors[i]))


def test_algorithm_1s_probabilities_are_a_random_class_a_random_anchor_and_eq_13():
    pairs = few_pairs()
    probabilities, _ = unbiasedness.drawn_and_weighted(pairs, 3.0, unbiasedness.RAW)
    for q in range(len(probabilities)):
        same = [r for r in range(len(probabilities)) if pairs.anchor[r] == pairs.anchor[q]]
        z = sum(pairs.distance[r] ** 3 for r in same)
        by_hand = 1 / 4 / pairs.sizes[pairs.class_of[q]] * pairs.distance[q] ** 3 / z
        assert probabilities[q] == pytest.approx(by_hand)


@given(st.floats(0, 12))
@settings(max_examples=20, deadline=None)
def test_one_normaliser_gives_eq_10_and_z_over_d_restores_it_in_classes_of_one_size(exponent):
    pairs = unbiasedness.draw((3, 3, 3), seed=1)
    needed = pairs.distance ** (exponent - 1)
    for form in (unbiasedness.ONE_Z, unbiasedness.Z_OVER_D):
        ratio = np.prod(unbiasedness.drawn_and_weighted(pairs, exponent, form), axis=0) / needed
        np.testing.assert_allclose(ratio, ratio[0], rtol=1e-9)


def test_the_librarys_sampler_and_weights_have_the_enumerated_expectation():
    pairs, generator = unbiasedness.draw((3,) * 8, seed=0), torch.Generator().manual_seed(0)
    patch = 3 * torch.randint(8, (20_000, 1), generator=generator) + torch.arange(3)
    counts = torch.full((len(patch),), 3)
    pool = Pool(patch, torch.zeros(patch.shape), torch.ones_like(patch, dtype=torch.bool), counts)
    sampler = adasample.AdaSample(distance=euclidean(power=2), lam=10)
    sampler.observe(None, torch.ones(1, dtype=torch.float64))
    choice = sampler.choose(pool, lambda: torch.from_numpy(pairs.descriptors)[patch], generator)
    number = np.full((24, 24), -1)
    number[pairs.anchor, pairs.positive] = np.arange(len(pairs.anchor))
    rows = torch.arange(len(patch))
    gradients = pairs.gradients[number[patch[rows, choice.anchor], patch[rows, choice.positive]]]
    forms = {"raw": unbiasedness.RAW, "batch_mean": unbiasedness.RAW, "class": unbiasedness.Z_OVER_D}
    for scale, form in forms.items():
        coefficients = np.prod(unbiasedness.drawn_and_weighted(pairs, 10, form), axis=0)
        # In one large batch, scaling its weights to a mean of 1 divides by their expectation.
        exact = coefficients @ pairs.gradients / (1 if scale == "raw" else coefficients.sum())
        weight = inverse_distance(choice.distance, choice.log_normaliser, scale=scale).numpy()
        drawn = weight[:, None] * gradients
        assert np.abs((drawn.mean(axis=0) - exact) / sem(drawn)).max() < 4.5, scale


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
