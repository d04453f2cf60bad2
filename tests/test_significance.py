"""Statistics of few seeds against enumeration and hand, and the test behind AdaSample's printed p."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mann_whitney_oracle import exact_by_hand, normal_by_hand, u_by_hand

from lib.statistics.significance import (
    binomial_error,
    holm,
    mann_whitney,
    power,
    vargha_delaney,
)

coarse = st.integers(0, 6).map(float)
runs = st.lists(coarse, min_size=2, max_size=5)
fives = st.lists(coarse, min_size=5, max_size=5)


# The test


def test_complete_separation_of_five_and_five_has_the_values_known_by_hand():
    result = mann_whitney([1, 2, 3, 4, 5], [6, 7, 8, 9, 10])
    assert result["u"] == 0
    assert result["exact"] == pytest.approx(1 / 252), "one split of ten runs into five and five"
    assert result["asymptotic"] == pytest.approx(0.00451, abs=5e-6)  # z = 12.5 / sqrt(275 / 12)
    assert result["continuity"] == pytest.approx(0.00609, abs=5e-6)  # z = 12 / sqrt(275 / 12)


@given(lower=runs, higher=runs)
@settings(deadline=None, max_examples=60)
def test_every_p_is_that_of_enumeration_or_the_formula_with_and_without_ties(lower, higher):
    result = mann_whitney(lower, higher)
    assert result["u"] == u_by_hand(lower, higher)
    assert result["exact"] == pytest.approx(exact_by_hand(lower, higher))
    assert result["asymptotic"] == pytest.approx(normal_by_hand(lower, higher, 0.0))
    assert result["continuity"] == pytest.approx(normal_by_hand(lower, higher, 0.5))


def test_each_column_is_tested_by_itself_even_if_only_one_has_ties():
    draw = np.random.default_rng(0)
    lower, higher = draw.normal(size=(5, 3)), draw.normal(size=(4, 3)) + 1
    lower[:, 1], higher[:, 1] = lower[:, 1].round(), higher[:, 1].round()
    result = mann_whitney(lower, higher)
    for column in range(3):
        alone = mann_whitney(lower[:, column], higher[:, column])
        for name in ("u", "exact", "asymptotic", "continuity"):
            assert result[name][column] == pytest.approx(alone[name])


# Holm's correction


def test_holm_by_hand_on_the_papers_six_p_values_leaves_one_of_five_at_five_percent():
    p = [0.031, 0.018, 0.337, 0.006, 0.030, 0.011]
    # Ascending 0.006·6, 0.011·5, 0.018·4, 0.030·3, then 0.031·2 = 0.062 raised to 0.090, and 0.337.
    assert holm(p) == pytest.approx([0.090, 0.072, 0.337, 0.036, 0.090, 0.055])


@given(p=st.lists(st.floats(0, 1), min_size=1, max_size=8), alpha=st.floats(0.001, 0.5))
@settings(deadline=None, max_examples=60)
def test_holm_rejects_what_the_step_down_rule_rejects(p, alpha):
    adjusted = holm(p)
    assert ((adjusted >= p) & (adjusted <= 1)).all()
    stopped = False
    for step, i in enumerate(np.argsort(p, kind="stable")):
        bound = p[i] * (len(p) - step)
        stopped = stopped or min(1, bound) > alpha
        assert (adjusted[i] > alpha) == stopped


# Effect size


@given(a=runs, b=runs)
@settings(deadline=None, max_examples=40)
def test_the_effect_is_the_share_of_pairs_and_the_two_orders_add_up_to_one(a, b):
    (value, low, high), (swapped, _, upper) = vargha_delaney(a, b), vargha_delaney(b, a)
    assert value == pytest.approx(u_by_hand(a, b) / (len(a) * len(b)))
    assert value + swapped == pytest.approx(1)
    assert low == pytest.approx(1 - upper, abs=1e-9)
    assert 0 <= low <= value <= high <= 1


def test_newcombes_interval_has_a_width_where_the_runs_separate():
    value, t, high = vargha_delaney([6, 7, 8, 9, 10], [1, 2, 3, 4, 5])
    assert (value, high) == (1, 1)
    # The limit t has (1 - t)² = z² t (1 - t) (1 + 4 ((1 - t) / (2 - t) + t / (1 + t))) / 25.
    z = 1.959964
    assert 0.6 < t < 0.7
    spread = 1 + 4 * ((1 - t) / (2 - t) + t / (1 + t))
    assert (1 - t) ** 2 == pytest.approx(z**2 * t * (1 - t) * spread / 25, rel=1e-5)


# Power


def test_power_without_effect_is_the_size_and_grows_with_effect_and_runs():
    powers = power([0.0, 1.0, 2.0], simulations=4000)
    # U of 4 or less: 12 of 252 splits, the most below 5%.
    assert powers.loc[0.0] == pytest.approx(12 / 252, abs=0.012)
    assert powers.is_monotonic_increasing
    more = power([1.0], runs=8, simulations=4000)
    assert more.item() > powers.loc[1.0] + 0.1


# FPR95's own error


def test_the_binomial_error_of_a_printed_rate_is_known_by_hand():
    # 1.316% of 50 000: sqrt(0.01316 · 0.98684 / 50 000) = 0.00050964.
    assert binomial_error(1.316) == pytest.approx(0.050964, abs=1e-6)
    assert binomial_error([0.0, 50.0, 100.0]) == pytest.approx([0, 0.223607, 0], abs=1e-6)
