"""Effective rank, first share and mean cosine tell descriptors that spread from those that do not."""

from __future__ import annotations

import numpy as np
import pytest

from lib.benchmarks.descriptor_spread import spread


def unit(values: np.ndarray) -> np.ndarray:
    return values / np.linalg.norm(values, axis=1, keepdims=True)


def test_descriptors_along_all_axes_alike_have_full_rank() -> None:
    found = spread(np.concatenate([np.eye(8), -np.eye(8)]))
    assert found["effective_rank"] == pytest.approx(8)
    assert found["first_share"] == pytest.approx(1 / 8)
    # Each meets its opposite once among 15 others.
    assert found["mean_cosine"] == pytest.approx(-1 / 15)


def test_descriptors_that_are_all_equal_have_rank_one() -> None:
    found = spread(np.tile(unit(np.ones((1, 8))), (5, 1)))
    assert found == pytest.approx({"effective_rank": 1.0, "first_share": 1.0, "mean_cosine": 1.0})


def test_the_rank_is_the_number_of_directions_that_vary() -> None:
    drawn = np.random.default_rng(0).normal(size=(4000, 3))
    found = spread(unit(np.concatenate([drawn, np.zeros((4000, 13))], axis=1)))
    assert found["effective_rank"] == pytest.approx(3, abs=0.05)


def test_the_mean_cosine_is_that_over_all_pairs() -> None:
    drawn = unit(np.random.default_rng(1).normal(1.0, 1.0, size=(30, 5)))
    pairs = [drawn[i] @ drawn[j] for i in range(30) for j in range(30) if i != j]
    assert spread(drawn)["mean_cosine"] == pytest.approx(np.mean(pairs))
