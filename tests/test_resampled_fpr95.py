"""FPR95 over test points: against pairs written out one by one, and the spread that is known."""

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
    """Distances, labels and points of pairs that share points; few levels make ties."""
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
def test_resamples_are_fpr95_of_the_pairs_that_the_drawn_points_write_out(monkeypatch, levels):
    distances, match, shown = made_pairs(1, 60, 9, levels)
    kept, draw = [], module._times_drawn

    def overheard(*args):
        kept.append(draw(*args))
        return kept[-1]

    monkeypatch.setattr(module, "_times_drawn", overheard)
    rates, pair_rates = resampled(distances, match, shown, resamples=35)
    # One draw that left no pair would have added a table.
    assert len(kept) == 70
    by_points, by_pairs = (np.array(part).T for part in (kept[:35], kept[35:]))
    for b in range(35):
        times = [
            by_points[i, b] if same else by_points[i, b] * by_points[j, b]
            for i, j, same in zip(*shown, match, strict=True)
        ]
        written = fpr95(np.repeat(distances, times), np.repeat(match, times)).expected
        assert rates[b] == pytest.approx(written)
        times = np.ones(60, dtype=int)
        times[~match] = by_pairs[:, b]
        written = fpr95(np.repeat(distances, times), np.repeat(match, times)).expected
        assert pair_rates[b] == pytest.approx(written)


def test_a_draw_without_pairs_of_a_kind_is_replaced():
    shown = np.array([[0, 1, 2], [0, 1, 3]])
    match = np.array([True, True, False])
    rates, _ = resampled(np.array([1.0, 2.0, 1.5]), match, shown, resamples=200)
    assert np.isfinite(rates).all()
    assert set(rates) == {0.0, 100.0}


def test_where_pairs_share_no_points_the_spread_is_that_of_independent_pairs():
    pairs = 8_000
    distances, match, _ = made_pairs(2, pairs, 5)
    shown = np.stack([np.arange(pairs), np.arange(pairs) + np.where(match, 0, pairs)])
    rates, pair_rates = resampled(distances, match, shown, resamples=2_000)
    # For normal distances about 1 and 3 the threshold is 1 + z; its own error is that of a quantile.
    threshold = 1 + norm.ppf(0.95)
    rate = norm.cdf(threshold - 3)
    binomial = rate * (1 - rate) / (pairs / 2)
    of_threshold = 0.95 * 0.05 / (pairs / 2) * (norm.pdf(threshold - 3) / norm.pdf(threshold - 1)) ** 2
    assert pair_rates.std() / 100 == pytest.approx(np.sqrt(binomial), rel=0.06)
    assert variance(rates, pair_rates) / 100**2 == pytest.approx(binomial + of_threshold, rel=0.2)
    # What the product of weights alone would say, three times the binomial part, is well off.
    assert rates.var() / 100**2 > 1.1 * (binomial + of_threshold)


def test_where_pairs_share_points_that_differ_the_spread_is_that_of_sets_made_anew():
    """Points have a distinctness of their own, so their pairs' distances go together."""
    rates = []
    found = None
    for seed in range(150):
        random = np.random.default_rng(seed)
        points, pairs = 200, 4_000
        hardness = random.normal(0, 0.7, points)
        match = np.arange(pairs) % 2 == 0
        shown = random.integers(points, size=(2, pairs))
        shown[1] = np.where(match, shown[0], (shown[0] + random.integers(1, points, pairs)) % points)
        apart = 3 - hardness[shown[0]] - hardness[shown[1]]
        distances = random.normal(np.where(match, 1 + hardness[shown[0]], apart), 0.7)
        rates.append(fpr95(distances, match).expected)
        if seed == 0:
            found = resampled(distances, match, shown)
            alone = np.arange(pairs), np.arange(pairs) + np.where(match, 0, pairs)
            unshared = resampled(distances, match, np.stack(alone))
    over_points, over_pairs = (np.sqrt(variance(*of)) for of in (found, unshared))
    assert over_points == pytest.approx(np.std(rates), rel=0.4)
    assert over_points > 1.5 * over_pairs


def test_resamples_are_the_same_for_every_descriptor():
    distances, match, shown = made_pairs(3, 400, 30)
    again = resampled(distances, match, shown)
    # A descriptor that orders all pairs alike has the same rates, by the same draws.
    for one, other in zip(again, resampled(np.exp(distances), match, shown), strict=True):
        assert (one == other).all()
    worse = distances + np.random.default_rng(0).normal(0, 0.3, 400)
    both = np.corrcoef(again[0], resampled(worse, match, shown)[0])[0, 1]
    assert both > 0.7
