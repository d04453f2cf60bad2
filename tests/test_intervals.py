"""Intervals over seeds and test points jointly: their parts by hand, how often they hold the truth."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from lib.statistics.intervals import (
    Estimate,
    Measured,
    contrast,
    relative_gain,
    side_by_side,
    spread_ratio,
)

COLUMNS = ("Lib>Ntr", "Lib>Yos", "Ntr>Lib", "Ntr>Yos", "Yos>Lib", "Yos>Ntr")


def drawn(seed: int, shape: tuple[int, ...], centre: float = 0.0, spread: float = 1.0) -> np.ndarray:
    return np.random.default_rng(seed).normal(centre, spread, shape)


def difference(a: Measured, b: Measured) -> Estimate:
    return contrast([(1.0, a), (-1.0, b)])


def test_over_seeds_alone_the_interval_is_the_paired_t_tests_over_means_of_cells():
    a, b = drawn(0, (5, 6)), drawn(1, (5, 6), 0.5)
    found = difference(Measured(a), Measured(b))
    expected = stats.ttest_rel(a.mean(axis=1), b.mean(axis=1)).confidence_interval(0.95)
    assert found.limits() == pytest.approx((expected.low, expected.high))
    assert found.limits(0.99)[0] < expected.low


def test_methods_with_different_numbers_of_seeds_are_compared_by_welchs_test():
    a, b = drawn(0, (5, 1)), drawn(1, (3, 1), 0.5, 3.0)
    expected = stats.ttest_ind(a[:, 0], b[:, 0], equal_var=False).confidence_interval(0.95)
    found = difference(Measured(a), Measured(b)).limits()
    assert found == pytest.approx((expected.low, expected.high))


def test_a_method_of_one_seed_is_compared_with_the_same_seed_of_the_other():
    # Seed 7 is bad for all: on its own seed the first is lower, over the mean of three it would not be.
    draws = drawn(0, (1, 3, 1, 50))
    three = Measured(np.array([[1.0], [2.0], [9.0]]), draws, seeds=(3, 5, 7))
    one = Measured(np.array([[8.0]]), draws[:, :1], seeds=(5,))
    found = difference(three, one)
    assert found.value == 2.0 - 8.0
    assert found.limits() == (-math.inf, math.inf)
    assert found.over_units == difference(three.runs()[1], one).over_units > 0
    assert relative_gain(three, one).value == pytest.approx(75)
    # Where they share none, or it is not known which are whose, all are taken.
    for other in (replace(one, seeds=(8,)), replace(one, seeds=())):
        assert difference(three, other).value == 4.0 - 8.0


def test_a_method_without_seeds_adds_nothing_and_one_seed_leaves_the_interval_without_ends():
    a = drawn(0, (5, 2))
    against_sift = difference(Measured(a), Measured(np.array([1.0, 2.0])))
    expected = stats.ttest_1samp(a.mean(axis=1), 1.5).confidence_interval(0.95)
    assert against_sift.limits() == pytest.approx((expected.low - 1.5, expected.high - 1.5))
    one = difference(Measured(a[:1]), Measured(a[1:2]))
    assert one.limits() == (-math.inf, math.inf)
    without = difference(Measured(np.array([1.0])), Measured(np.array([3.0])))
    assert without.limits() == (-2.0, -2.0)


def test_the_parts_of_seeds_and_points_add_up_in_variance_with_satterthwaites_freedom():
    values, draws = drawn(0, (5, 1)), drawn(1, (1, 5, 1, 400))
    found = contrast([(1.0, Measured(values, draws, freedom=9))])
    seeds, units = values.var(ddof=1) / 5, draws.mean(axis=(0, 1, 2)).var(ddof=1)
    of_units = 1 / (1 / 9 + 1 / 399)
    freedom = (seeds + units) ** 2 / (seeds**2 / 4 + units**2 / of_units)
    half = stats.t.ppf(0.975, freedom) * np.sqrt(seeds + units)
    assert found.limits() == pytest.approx((values.mean() - half, values.mean() + half))


def test_resamples_that_go_together_cancel_from_a_difference():
    common = drawn(1, (1, 5, 2, 400), spread=5.0)
    a, b = (Measured(drawn(seed, (5, 2)), common) for seed in (2, 3))
    alone = difference(Measured(a.values), Measured(b.values))
    assert difference(a, b).limits() == pytest.approx(alone.limits())
    assert contrast([(1.0, a)]).over_units > 1


def test_what_pairs_have_for_themselves_is_taken_off_twice_and_never_below_a_third():
    twice = np.stack([drawn(0, (1, 2000), spread=2.0), drawn(1, (1, 2000), spread=1.0)])
    found = contrast([(1.0, Measured(np.zeros(1), twice))]).over_units
    assert found == pytest.approx(np.sqrt(2.0), rel=0.1)
    noisy = np.stack([drawn(0, (1, 2000), spread=2.0), drawn(1, (1, 2000), spread=1.9)])
    found = contrast([(1.0, Measured(np.zeros(1), noisy))]).over_units
    assert found == pytest.approx(2 / np.sqrt(3), rel=0.05)


@pytest.mark.parametrize(("seeds", "over_units"), [(5, 0.0), (5, 0.3), (3, 1.0), (5, 3.0)])
def test_the_joint_interval_holds_the_true_difference_in_95_of_100_studies(seeds, over_units):
    random, held, studies = np.random.default_rng(seeds), 0, 800
    for _ in range(studies):
        # A seed moves all cells of a method, and both methods somewhat alike; points move both runs.
        shared = random.normal(size=(seeds, 1))
        points = over_units * random.normal(size=2)
        draws = over_units * random.normal(size=(2, 400))
        both = [
            Measured(
                values=truth + shared + random.normal(size=(seeds, 3)) + points[which],
                resampled=np.broadcast_to(draws[which], (1, seeds, 3, 400)),
            )
            for which, truth in enumerate((2.0, 1.0))
        ]
        low, high = difference(*both).limits()
        held += low <= 1.0 <= high
    assert 0.925 <= held / studies <= 0.985


def test_a_ratio_of_rates_is_paired_by_seed_on_logarithms():
    a, b = np.exp(drawn(0, (5, 6), 1.0, 0.3)), np.exp(drawn(1, (5, 6), 1.2, 0.3))
    change = (np.log(a) - np.log(b)).mean(axis=1)
    expected = stats.ttest_1samp(change, 0.0).confidence_interval(0.95)
    rates = [Measured(values, seeds=range(5)).logarithm() for values in (a, b)]
    found = difference(*rates)
    assert (found.value, *found.limits()) == pytest.approx((change.mean(), *expected))


def test_a_rate_of_0_counts_as_half_a_pair_in_a_ratio():
    none, some = (Measured(np.array([rate])).logarithm() for rate in (0.0, 0.01))
    assert difference(none, some).value == pytest.approx(np.log(0.1))


def test_a_gain_in_percent_is_that_of_the_means_and_its_interval_the_delta_methods():
    b = drawn(1, (400, 1), 4.0, 0.2)
    a = 0.9 * b + drawn(2, (400, 1), 0.0, 0.1)
    found = relative_gain(Measured(a), Measured(b))
    assert found.value == pytest.approx(100 * (1 - a.mean() / b.mean()))
    random = np.random.default_rng(0)
    again = [random.integers(400, size=400) for _ in range(2000)]
    gains = [100 * (1 - a[some].mean() / b[some].mean()) for some in again]
    assert found.over_seeds == pytest.approx(np.std(gains), rel=0.1)


def test_a_ratio_of_spreads_has_fishers_interval():
    a, b = drawn(0, (5, 1)), drawn(1, (5, 1), 0, 2.0)
    found = spread_ratio(Measured(a), Measured(b))
    f = a.var(ddof=1) / b.var(ddof=1)
    expected = np.sqrt(f / stats.f.ppf([0.975, 0.025], 4, 4))
    assert found.value == pytest.approx(np.sqrt(f))
    assert found.limits() == pytest.approx(tuple(expected))
    assert spread_ratio(Measured(a[:1]), Measured(b[:1])).limits() == (0.0, math.inf)


@pytest.mark.parametrize("seeds", [3, 5])
@pytest.mark.parametrize("scale", [(1, 1, 1), (1, 2, 3)])
@pytest.mark.parametrize("common", [0.0, 0.5, 1.0])
def test_the_interval_of_a_ratio_of_spreads_misses_no_more_than_5_of_100_studies(seeds, scale, common):
    random, held, studies = np.random.default_rng(0), 0, 600
    for _ in range(studies):

        def runs() -> Measured:
            # Both columns of a train set are of the same networks.
            shared, own = random.normal(size=(seeds, 1)), random.normal(size=(seeds, 3))
            values = np.array(scale) * (math.sqrt(common) * shared + math.sqrt(1 - common) * own)
            return Measured(np.repeat(values, 2, axis=1), cells=COLUMNS)

        low, high = spread_ratio(runs(), runs()).limits()
        held += low <= 1 <= high
    # Two standard errors of 600 studies.
    assert held / studies >= 0.95 - 0.018


def test_cells_runs_and_methods_side_by_side_keep_their_resamples():
    whole = Measured(drawn(0, (5, 3)), drawn(1, (2, 5, 3, 7)), 8, ("x", "y", "z"))
    cell = whole.one(1)
    assert cell.cells == ("y",)
    assert (cell.values[:, 0] == whole.values[:, 1]).all()
    assert (cell.resampled[:, :, 0] == whole.resampled[:, :, 1]).all()
    run = whole.runs()[3]
    assert (run.values == whole.values[3]).all()
    assert (run.resampled == whole.resampled[:, 3]).all()
    again = side_by_side([whole.one(0), whole.one(1), whole.one(2)])
    assert again.cells == whole.cells
    assert (again.resampled == whole.resampled).all()
    assert side_by_side([whole, Measured(whole.values, cells=whole.cells)]).resampled is None


def test_values_that_are_not_finite_and_resamples_of_some_alone_are_refused():
    with pytest.raises(ValueError, match="not finite"):
        Measured(np.array([[1.0, np.nan]]))
    with pytest.raises(ValueError, match="resamples of all methods"):
        difference(Measured(np.zeros(1), np.zeros((1, 1, 9))), Measured(np.zeros(1)))


def test_p_is_the_paired_t_test_s_and_fits_the_interval_that_ends_at_the_bound():
    a, b = drawn(0, (5, 6)), drawn(1, (5, 6), 0.5)
    found = difference(Measured(a), Measured(b))
    assert found.p_value() == pytest.approx(stats.ttest_rel(a.mean(axis=1), b.mean(axis=1)).pvalue)
    for confidence in (0.5, 0.95, 0.999):
        for end in found.limits(confidence):
            assert replace(found, value=found.value - end).p_value() == pytest.approx(1 - confidence)


def test_p_without_any_spread_is_0_or_1_and_1_where_one_seed_leaves_it_unknown():
    sure = Estimate(2.0)
    assert (sure.p_value(), Estimate(0.0).p_value()) == (0.0, 1.0)
    assert Estimate(2.0, over_seeds=math.inf, seed_freedom=0.0).p_value() == 1.0
