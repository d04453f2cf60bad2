"""Effective rank, first share and mean cosine separate spread descriptors from all others."""

from __future__ import annotations

import numpy as np
import pytest

from lib.benchmarks.descriptor_spread import spread


def unit(values: np.ndarray) -> np.ndarray:
    return values / np.linalg.norm(values, axis=1, keepdims=True)


def test_descriptors_along_all_axes_have_full_rank() -> None:
    measured = spread(np.concatenate([np.eye(8), -np.eye(8)]))
    assert measured["effective_rank"] == pytest.approx(8)
    assert measured["first_share"] == pytest.approx(1 / 8)
    # Each has one opposite among 15 others.
    assert measured["mean_cosine"] == pytest.approx(-1 / 15)


def test_equal_descriptors_have_rank_one() -> None:
    measured = spread(np.tile(unit(np.ones((1, 8))), (5, 1)))
    assert measured == pytest.approx({"effective_rank": 1.0, "first_share": 1.0, "mean_cosine": 1.0})


def test_the_rank_is_the_number_of_directions_that_vary() -> None:
    coordinates = np.random.default_rng(0).normal(size=(4000, 3))
    measured = spread(unit(np.concatenate([coordinates, np.zeros((4000, 13))], axis=1)))
    assert measured["effective_rank"] == pytest.approx(3, abs=0.05)


def test_the_mean_cosine_is_over_all_pairs() -> None:
    descriptors = unit(np.random.default_rng(1).normal(1.0, 1.0, size=(30, 5)))
    cosines = [descriptors[i] @ descriptors[j] for i in range(30) for j in range(30) if i != j]
    assert spread(descriptors)["mean_cosine"] == pytest.approx(np.mean(cosines))
