"""Statistics of few seeds against enumeration and hand, and the test behind AdaSample's printed p."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st
from mann_whitney_oracle import exact_by_hand, normal_by_hand, u_by_hand

from lib.statistics import (
    POWER,
    binomial_error,
    chance_to_find,
    detectable,
    effect_by_place,
    effect_sizes,
    holm,
    jackknife,
    mann_whitney_outcomes,
    places_needed,
    power,
    student_interval,
    vargha_delaney,
)

coarse = st.integers(0, 6).map(float)
runs = st.lists(coarse, min_size=2, max_size=5)
fives = st.lists(coarse, min_size=5, max_size=5)


# The test's outcomes


@pytest.fixture(scope="module")
def outcomes() -> tuple[pd.DataFrame, pd.DataFrame]:
    return mann_whitney_outcomes(5, 5)


def outcome_of(lower: list[float], higher: list[float], outcomes: pd.DataFrame) -> pd.DataFrame:
    """The outcomes with the statistic and the groups of ties of these runs."""
    sizes = sorted(np.unique([*lower, *higher], return_counts=True)[1], reverse=True)
    ties = "+".join(str(size) for size in sizes if size > 1)
    return outcomes[(outcomes["u"] == u_by_hand(lower, higher)) & (outcomes["ties"] == ties)]


def test_complete_separation_of_five_and_five_has_the_values_known_by_hand(outcomes) -> None:
    listed, p = outcomes
    [row] = listed[(listed["u"] == 0) & (listed["tied"] == 0)].index
    assert p.loc[row, ("exact", 1)] == pytest.approx(1 / 252), "one split of ten into five and five"
    # z = 12.5 / sqrt(275 / 12), and 12 / sqrt(275 / 12) with the continuity correction.
    assert p.loc[row, ("normal, ties", 1)] == pytest.approx(0.00451, abs=5e-6)
    assert p.loc[row, ("normal, continuity + ties", 1)] == pytest.approx(0.00609, abs=5e-6)


@given(lower=fives, higher=fives)
@settings(deadline=None, max_examples=60)
def test_every_p_is_that_of_enumeration_or_the_formula(outcomes, lower, higher) -> None:
    listed, p = outcomes
    rows = outcome_of(lower, higher, listed)
    exact = exact_by_hand(lower, higher)
    [row] = rows[np.isclose(rows["at_most"], exact)].index[:1]
    assert p.loc[row, ("exact", 1)] == pytest.approx(exact)
    for form, correction in (("normal, ties", 0.0), ("normal, continuity + ties", 0.5)):
        assert p.loc[row, (form, 1)] == pytest.approx(normal_by_hand(lower, higher, correction))


def test_an_effect_of_one_standard_deviation_is_corrected_for_few_runs() -> None:
    compared = {"lower_mean": [1.0], "lower_std": [0.5], "higher_mean": [1.5], "higher_std": [0.5]}
    # Hedges' factor for five runs and five is 1 - 3 / 31.
    assert effect_sizes(pd.DataFrame(compared))[0] == pytest.approx(1 - 3 / 31)


def test_an_effect_is_hedges_g_of_the_runs_for_standard_deviations_with_divisor_n_minus_1() -> None:
    lower, higher = np.array([1.00, 1.05, 0.95, 1.02, 0.98]), np.array([1.10, 1.15, 1.05, 1.12, 1.09])

    def effect(ddof: int) -> float:
        stds = {"lower_std": [lower.std(ddof=ddof)], "higher_std": [higher.std(ddof=ddof)]}
        means = {"lower_mean": [lower.mean()], "higher_mean": [higher.mean()]}
        return effect_sizes(pd.DataFrame(means | stds))[0]

    squares = ((lower - lower.mean()) ** 2).sum() + ((higher - higher.mean()) ** 2).sum()
    hedges_g = (1 - 3 / 31) * (higher.mean() - lower.mean()) / np.sqrt(squares / (5 + 5 - 2))
    assert effect(ddof=1) == pytest.approx(hedges_g)
    assert effect(ddof=0) == pytest.approx(hedges_g * np.sqrt(5 / 4))


def test_runs_without_a_spread_have_no_effect_in_units_of_it() -> None:
    compared = {"lower_mean": [1.0, 1.0], "lower_std": 0.0, "higher_mean": [1.0, 2.0], "higher_std": 0.0}
    assert effect_sizes(pd.DataFrame(compared)).isna().all()


def test_a_spread_that_is_a_rounding_error_is_none() -> None:
    # The standard deviation of three equal numbers is 1.7e-17.
    spread = pd.Series([0.087] * 3).std()
    assert spread > 0
    compared = {"lower_mean": [0.087], "lower_std": spread, "higher_mean": [0.587], "higher_std": 0.0}
    assert effect_sizes(pd.DataFrame(compared), runs=3).isna().all()
    assert chance_to_find(0.087, spread, 3) == 1
    assert places_needed(0.087, spread) == 2


def test_runs_are_compared_column_by_column_only_where_both_have_columns() -> None:
    baseline, methods = np.arange(5.0), np.arange(15.0).reshape(5, 3)
    for a, b in ((baseline, methods), (methods, baseline), (baseline, methods[:, :1])):
        with pytest.raises(ValueError, match="no columns to compare each for itself"):
            vargha_delaney(a, b)


@pytest.mark.parametrize("statistic", [student_interval, holm, power])
@pytest.mark.parametrize("values", [np.full((3, 2), 0.5), np.full((1, 6), 0.5), 0.5])
def test_a_table_or_a_single_number_is_no_row_of_values(statistic, values) -> None:
    with pytest.raises(ValueError, match="must be one row, got"):
        statistic(values)
    with pytest.raises(ValueError, match="must be one row, got"):
        statistic(pd.DataFrame(np.atleast_2d(values)))


def test_masked_values_are_refused() -> None:
    runs = np.ma.masked_equal([6.1, 5.8, 100.0], 100)
    for statistic in (holm, student_interval, partial(vargha_delaney, [1, 2]), power, binomial_error):
        with pytest.raises(ValueError, match="masked values would count as values"):
            statistic(runs)
    # Without a masked value it is an array like any other.
    assert student_interval(np.ma.array([1.0, 2.0])) == student_interval([1.0, 2.0])


def test_single_runs_have_no_effect_size() -> None:
    compared = {"lower_mean": [1.0], "lower_std": [0.5], "higher_mean": [1.5], "higher_std": [0.5]}
    with pytest.raises(ValueError, match="two or more runs of each method, got 1"):
        effect_sizes(pd.DataFrame(compared), runs=1)
    for a, b in (([1], [2]), ([1, 2], [3]), ([], [1, 2])):
        with pytest.raises(ValueError, match=f"got {len(a)} and {len(b)}"):
            vargha_delaney(a, b)


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


def test_holm_takes_one_row_of_hypotheses():
    with pytest.raises(ValueError, match=r"one row, got \(2, 2\)"):
        holm([[0.01, 0.02], [0.03, 0.04]])


def test_holm_leaves_out_what_was_not_tested():
    adjusted = holm([0.03, math.nan, 0.04, math.nan])
    assert adjusted == pytest.approx([0.06, math.nan, 0.06, math.nan], nan_ok=True)


@pytest.mark.parametrize("p", [-0.01, 1.01, 5, math.inf, -math.inf])
def test_holm_refuses_what_is_no_p(p):
    with pytest.raises(ValueError, match=f"p-values must be from 0 to 1, got {float(p)}"):
        holm([0.03, math.nan, p])


# Effect size


def test_a_run_without_a_value_leaves_no_effect_size():
    assert np.isnan(vargha_delaney([1, 2, math.nan], [3, 4, 5])).all()
    value, low, high = vargha_delaney([[1, 1], [2, math.nan]], [[0, 0], [0, 0]])
    assert value.tolist() == pytest.approx([1, math.nan], nan_ok=True)
    assert np.isnan([low[1], high[1]]).all()
    assert np.isfinite([low[0], high[0]]).all()


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
    # Of 3,000 pairs.
    assert binomial_error(36.4, pairs=3000) == pytest.approx(0.878453, abs=1e-6)


def drawn_cells(
    rng: np.random.Generator, train: float, test: float, cell: float, places: int = 8, further: int = 2
) -> pd.DataFrame:
    """Draw effects without a mean that depend on the train place, the test place and both."""
    names = [f"p{number}" for number in range(places + further)]
    values = rng.normal(0, train, (places, 1)) + rng.normal(0, test, places + further)
    values = values + rng.normal(0, cell, values.shape)
    values[np.arange(places), np.arange(places)] = np.nan
    return pd.DataFrame(values, index=names[:places], columns=names)


def test_the_effect_at_a_place_is_the_mean_over_the_places_tested_on():
    cells = pd.DataFrame({"a": [np.nan, 1.0], "b": [2.0, np.nan], "c": [4.0, 5.0]}, index=["a", "b"])
    assert effect_by_place(cells).to_dict() == {"a": 3.0, "b": 3.0}


@settings(max_examples=30)
@given(st.integers(0, 2**31), st.integers(2, 6), st.integers(1, 3))
def test_the_jackknife_leaves_out_each_place_as_train_and_test_place(seed, places, further):
    cells = drawn_cells(np.random.default_rng(seed), 1, 1, 1, places, further)
    names = list(cells.index)

    def mean_of(rows: list[str], columns: list[str]) -> float:
        means = []
        for row in rows:
            values = [cells.loc[row, column] for column in columns if column != row]
            means.append(sum(values) / len(values))
        return sum(means) / len(means)

    whole = mean_of(names, list(cells.columns))
    pseudo = []
    for left_out in names:
        rows = [name for name in names if name != left_out]
        columns = [name for name in cells.columns if name != left_out]
        pseudo.append(places * whole - (places - 1) * mean_of(rows, columns))
    squares = sum((value - sum(pseudo) / places) ** 2 for value in pseudo)
    error = (squares / (places - 1) / places) ** 0.5
    reach = scipy.stats.t.ppf(0.975, places - 1) * error
    assert jackknife(cells) == pytest.approx((whole - reach, whole + reach))


def test_seeds_of_one_place_are_no_places_of_their_own():
    cells = pd.DataFrame({"c": [0.1, 0.2, 0.3]}, ["a", "b", "b"])
    for interval in (effect_by_place, jackknife):
        with pytest.raises(ValueError, match="'b' has several rows"):
            interval(cells)


def test_where_the_test_place_does_not_count_the_jackknife_is_students_interval():
    cells = drawn_cells(np.random.default_rng(0), train=1, test=0, cell=0)
    interval = scipy.stats.ttest_1samp(effect_by_place(cells), 0).confidence_interval()
    assert jackknife(cells) == pytest.approx((interval.low, interval.high))


@pytest.mark.parametrize("kind", ["-wide", "-images"])
def test_the_jackknife_leaves_out_all_sets_of_a_place_with_the_place(kind):
    cells = drawn_cells(np.random.default_rng(0), train=0.2, test=1, cell=0.2, further=0)
    assert jackknife(cells.add_suffix(kind)) == pytest.approx(jackknife(cells))
    # Each place's two sets have one effect, and so count as one.
    both = pd.concat([cells, cells.add_suffix(kind)], axis=1)
    assert jackknife(both) == pytest.approx(jackknife(cells))


def test_the_jackknife_takes_no_place_for_another_because_of_a_blank():
    cells = drawn_cells(np.random.default_rng(0), train=0.2, test=1, cell=0.2, further=0)
    with pytest.raises(ValueError, match="the place 'p0 ' begins or ends with a blank"):
        jackknife(cells.rename(columns={"p0": "p0 "}))


def test_of_other_test_places_only_the_jackknife_speaks():
    rng = np.random.default_rng(0)
    inside = {"t": 0, "jackknife": 0}
    for _ in range(400):
        cells = drawn_cells(rng, train=0.2, test=1, cell=0.2, further=0)
        low, high = scipy.stats.ttest_1samp(effect_by_place(cells), 0).confidence_interval()
        inside["t"] += low < 0 < high
        low, high = jackknife(cells)
        inside["jackknife"] += low < 0 < high
    assert inside["t"] < 0.8 * 400
    assert inside["jackknife"] > 0.9 * 400


def test_the_jackknife_knows_a_place_whatever_it_is_called():
    cells = drawn_cells(np.random.default_rng(0), train=0.2, test=1, cell=0.2, further=0)
    names = {
        place: f"{place}{end}"
        for place, end in zip(cells, ("-images", "-wide", "-1600px"), strict=False)
    }
    assert set(names) & set(cells.index)
    assert jackknife(cells.rename(index=names, columns=names)) == jackknife(cells)


@pytest.mark.parametrize(("effect", "places"), [(0.0, 5), (0.5, 8), (1.0, 8), (-1.0, 8), (2.0, 3)])
def test_the_chance_to_find_an_effect_is_that_of_simulated_places(effect, places):
    draws = np.random.default_rng(0).normal(effect, 1, (20_000, places))
    found = scipy.stats.ttest_1samp(draws, 0, axis=1).pvalue < 0.05
    assert chance_to_find(effect, 1.0, places) == pytest.approx(found.mean(), abs=0.01)


@given(st.floats(0.05, 3))
def test_the_places_needed_are_the_fewest_that_find_the_effect(effect):
    needed = places_needed(effect, 1.0, most=200)
    if needed is None:
        assert chance_to_find(effect, 1.0, 200) < POWER
        return
    assert chance_to_find(effect, 1.0, needed) >= POWER
    if needed > 2:
        assert chance_to_find(effect, 1.0, needed - 1) < POWER


@pytest.mark.parametrize(("effect", "spread"), [(math.nan, 1.0), (1.0, math.nan), (0.0, math.nan)])
def test_of_an_effect_or_a_spread_that_is_unknown_nothing_is_known(effect, spread):
    assert math.isnan(chance_to_find(effect, spread, 5))
    assert math.isnan(places_needed(effect, spread))
    assert math.isnan(detectable(math.nan, 5))
    powers = power([math.nan, 1.0], simulations=50)
    assert np.isnan(powers.to_numpy()).tolist() == [True, False]


@pytest.mark.parametrize("zero", [0.0, np.float64(0)])
def test_an_effect_that_is_equal_everywhere_is_found_at_two_places(zero):
    assert chance_to_find(-1.0, zero, 2) == 1
    assert places_needed(1.0, zero) == 2
    assert places_needed(0.0, zero) is None
    assert detectable(zero, 4) == 0


@pytest.mark.parametrize(
    ("spread", "places", "message"), [(-1.0, 5, "0 or more, got -1"), (1.0, 1, "two places or more")]
)
def test_a_spread_below_zero_or_of_one_place_is_refused(spread, places, message):
    with pytest.raises(ValueError, match=message):
        chance_to_find(1.0, spread, places)
    with pytest.raises(ValueError, match=message):
        detectable(spread, places)


def test_an_effect_is_detectable_at_the_places_that_it_needs():
    for places in (3, 8, 40):
        effect = detectable(0.7, places)
        assert chance_to_find(effect, 0.7, places) == pytest.approx(POWER)
        assert places_needed(1.001 * effect, 0.7) == places


def test_columns_of_two_frames_are_compared_in_one_order() -> None:
    ours = pd.DataFrame({"liberty": [1.9, 2.0, 2.1], "yosemite": [1.2, 1.25, 1.3]})
    theirs = pd.DataFrame({"yosemite": [1.0, 1.1, 1.15], "liberty": [2.2, 2.3, 2.4]})
    with pytest.raises(ValueError, match=r"in another order: give b\[a\.columns\]$"):
        vargha_delaney(ours, theirs)
    assert vargha_delaney(ours, theirs[ours.columns])[0].tolist() == [0, 1]
