"""FPR95 over test points: against pairs written out one by one, and against known spreads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from lib.benchmarks.fpr95 import fpr95
from lib.probes import resampled_fpr95 as module
from lib.probes.resampled_fpr95 import repeated_fpr95, resampled


def made_pairs(seed: int, pairs: int, points: int, levels: int | None = None):
    """Draw distances, labels and points of pairs that share points; few levels make ties."""
    random = np.random.default_rng(seed)
    match = np.arange(pairs) % 2 == 0
    shown = random.integers(points, size=(2, pairs))
    shown[1] = np.where(match, shown[0], (shown[0] + random.integers(1, points, pairs)) % points)
    distances = random.normal(np.where(match, 1.0, 3.0), 1.0)
    if levels:
        distances = np.round(distances * levels / 4)
    return distances, match, shown


def variance(rates: np.ndarray, pair_rates: np.ndarray) -> float:
    return rates.var(ddof=1) - 2 * pair_rates.var(ddof=1)


@given(st.integers(0, 10_000), st.integers(2, 40), st.sampled_from([None, 3, 8]))
@settings(deadline=None, max_examples=40)
def test_pairs_taken_once_give_exactly_fpr95(seed, half, levels):
    distances, match, _ = made_pairs(seed, 2 * half, 5, levels)
    kinds = [np.sort(distances[kind]) for kind in (match, ~match)]
    matching, others = (np.ones(len(kind), dtype=int) for kind in kinds)
    rate = repeated_fpr95(*kinds, matching, others, [np.arange(len(others))], len(others))
    assert rate == fpr95(distances, match).expected


@pytest.mark.parametrize("levels", [None, 5])
def test_resamples_are_fpr95_of_the_pairs_repeated_by_the_drawn_points(monkeypatch, levels):
    distances, match, shown = made_pairs(1, 60, 9, levels)
    draws, draw = [], module._times_drawn

    def recorded(*args):
        draws.append(draw(*args))
        return draws[-1]

    monkeypatch.setattr(module, "_times_drawn", recorded)
    rates, pair_rates = resampled(distances, match, shown, resamples=35)
    # A draw that left no pair would have added another.
    assert len(draws) == 70
    by_points, by_pairs = (np.array(part).T for part in (draws[:35], draws[35:]))
    for b in range(35):
        repeats = [
            by_points[i, b] if matching else by_points[i, b] * by_points[j, b]
            for i, j, matching in zip(*shown, match, strict=True)
        ]
        expected = fpr95(np.repeat(distances, repeats), np.repeat(match, repeats)).expected
        assert rates[b] == pytest.approx(expected)
        repeats = np.ones(60, dtype=int)
        repeats[~match] = by_pairs[:, b]
        expected = fpr95(np.repeat(distances, repeats), np.repeat(match, repeats)).expected
        assert pair_rates[b] == pytest.approx(expected)


def test_a_draw_without_pairs_of_a_kind_is_replaced():
    shown = np.array([[0, 1, 2], [0, 1, 3]])
    match = np.array([True, True, False])
    rates, _ = resampled(np.array([1.0, 2.0, 1.5]), match, shown, resamples=200)
    assert np.isfinite(rates).all()
    assert set(rates) == {0.0, 100.0}


def test_pairs_without_shared_points_spread_like_independent_pairs():
    pairs = 8_000
    distances, match, _ = made_pairs(2, pairs, 5)
    shown = np.stack([np.arange(pairs), np.arange(pairs) + np.where(match, 0, pairs)])
    rates, pair_rates = resampled(distances, match, shown, resamples=2_000)
    # For normal distances about 1 and 3 the threshold is 1 + z; its own error is that of a quantile.
    threshold = 1 + norm.ppf(0.95)
    rate = norm.cdf(threshold - 3)
    binomial = rate * (1 - rate) / (pairs / 2)
    quantile = 0.95 * 0.05 / (pairs / 2) * (norm.pdf(threshold - 3) / norm.pdf(threshold - 1)) ** 2
    assert pair_rates.std() / 100 == pytest.approx(np.sqrt(binomial), rel=0.06)
    assert variance(rates, pair_rates) / 100**2 == pytest.approx(binomial + quantile, rel=0.2)
    # The product of weights alone, with three times the binomial part, is well off.
    assert rates.var() / 100**2 > 1.1 * (binomial + quantile)


def test_pairs_that_share_points_spread_like_sets_drawn_anew():
    """Each point has its own hardness, so the distances of its pairs correlate."""
    rates = []
    shared = None
    for seed in range(150):
        random = np.random.default_rng(seed)
        points, pairs = 200, 4_000
        hardness = random.normal(0, 0.7, points)
        match = np.arange(pairs) % 2 == 0
        shown = random.integers(points, size=(2, pairs))
        shown[1] = np.where(match, shown[0], (shown[0] + random.integers(1, points, pairs)) % points)
        non_matching = 3 - hardness[shown[0]] - hardness[shown[1]]
        distances = random.normal(np.where(match, 1 + hardness[shown[0]], non_matching), 0.7)
        rates.append(fpr95(distances, match).expected)
        if seed == 0:
            shared = resampled(distances, match, shown)
            separate = np.arange(pairs), np.arange(pairs) + np.where(match, 0, pairs)
            unshared = resampled(distances, match, np.stack(separate))
    over_points, over_pairs = (np.sqrt(variance(*resamples)) for resamples in (shared, unshared))
    assert over_points == pytest.approx(np.std(rates), rel=0.4)
    assert over_points > 1.5 * over_pairs


def test_resamples_are_the_same_for_every_descriptor():
    distances, match, shown = made_pairs(3, 400, 30)
    resamples = resampled(distances, match, shown)
    # A descriptor that orders all pairs equally has the same rates, by the same draws.
    for one, other in zip(resamples, resampled(np.exp(distances), match, shown), strict=True):
        assert (one == other).all()
    worse = distances + np.random.default_rng(0).normal(0, 0.3, 400)
    correlation = np.corrcoef(resamples[0], resampled(worse, match, shown)[0])[0, 1]
    assert correlation > 0.7
