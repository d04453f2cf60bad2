"""Joint intervals over seeds and test points: their parts by hand, and how often they hold."""

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


def test_the_interval_over_seeds_alone_is_the_paired_t_tests_over_means_of_cells():
    a, b = drawn(0, (5, 6)), drawn(1, (5, 6), 0.5)
    estimate = difference(Measured(a), Measured(b))
    expected = stats.ttest_rel(a.mean(axis=1), b.mean(axis=1)).confidence_interval(0.95)
    assert estimate.limits() == pytest.approx((expected.low, expected.high))
    assert estimate.limits(0.99)[0] < expected.low


def test_methods_with_different_numbers_of_seeds_are_compared_by_welchs_test():
    a, b = drawn(0, (5, 1)), drawn(1, (3, 1), 0.5, 3.0)
    expected = stats.ttest_ind(a[:, 0], b[:, 0], equal_var=False).confidence_interval(0.95)
    interval = difference(Measured(a), Measured(b)).limits()
    assert interval == pytest.approx((expected.low, expected.high))


def test_a_method_with_one_seed_is_compared_with_the_same_seed_of_the_other():
    # Seed 7 is bad for the first, so that its mean, 4, is far from 2, its value on the shared seed 5.
    draws = drawn(0, (1, 3, 1, 50))
    three_seeds = Measured(np.array([[1.0], [2.0], [9.0]]), draws, seeds=(3, 5, 7))
    one_seed = Measured(np.array([[8.0]]), draws[:, :1], seeds=(5,))
    estimate = difference(three_seeds, one_seed)
    assert estimate.value == 2.0 - 8.0
    assert estimate.limits() == (-math.inf, math.inf)
    assert estimate.over_units == difference(three_seeds.runs()[1], one_seed).over_units > 0
    assert relative_gain(three_seeds, one_seed).value == pytest.approx(75)
    # All seeds are used if none are shared, or if the seeds are unknown.
    for unpaired in (replace(one_seed, seeds=(8,)), replace(one_seed, seeds=())):
        assert difference(three_seeds, unpaired).value == 4.0 - 8.0


def test_a_method_without_seeds_adds_no_spread_and_one_seed_gives_an_unbounded_interval():
    a = drawn(0, (5, 2))
    against_sift = difference(Measured(a), Measured(np.array([1.0, 2.0])))
    expected = stats.ttest_1samp(a.mean(axis=1), 1.5).confidence_interval(0.95)
    assert against_sift.limits() == pytest.approx((expected.low - 1.5, expected.high - 1.5))
    one_seed = difference(Measured(a[:1]), Measured(a[1:2]))
    assert one_seed.limits() == (-math.inf, math.inf)
    no_seeds = difference(Measured(np.array([1.0])), Measured(np.array([3.0])))
    assert no_seeds.limits() == (-2.0, -2.0)


def test_variances_of_seeds_and_points_add_up_with_satterthwaites_freedom():
    values, draws = drawn(0, (5, 1)), drawn(1, (1, 5, 1, 400))
    estimate = contrast([(1.0, Measured(values, draws, freedom=9))])
    seeds, units = values.var(ddof=1) / 5, draws.mean(axis=(0, 1, 2)).var(ddof=1)
    unit_freedom = 1 / (1 / 9 + 1 / 399)
    freedom = (seeds + units) ** 2 / (seeds**2 / 4 + units**2 / unit_freedom)
    half = stats.t.ppf(0.975, freedom) * np.sqrt(seeds + units)
    assert estimate.limits() == pytest.approx((values.mean() - half, values.mean() + half))


def test_common_resamples_cancel_from_a_difference():
    common = drawn(1, (1, 5, 2, 400), spread=5.0)
    a, b = (Measured(drawn(seed, (5, 2)), common) for seed in (2, 3))
    alone = difference(Measured(a.values), Measured(b.values))
    assert difference(a, b).limits() == pytest.approx(alone.limits())
    assert contrast([(1.0, a)]).over_units > 1


def test_the_variance_of_pairs_alone_is_subtracted_twice_down_to_a_third():
    resamples = np.stack([drawn(0, (1, 2000), spread=2.0), drawn(1, (1, 2000), spread=1.0)])
    error = contrast([(1.0, Measured(np.zeros(1), resamples))]).over_units
    assert error == pytest.approx(np.sqrt(2.0), rel=0.1)
    noisy = np.stack([drawn(0, (1, 2000), spread=2.0), drawn(1, (1, 2000), spread=1.9)])
    error = contrast([(1.0, Measured(np.zeros(1), noisy))]).over_units
    assert error == pytest.approx(2 / np.sqrt(3), rel=0.05)


@pytest.mark.parametrize(("seeds", "over_units"), [(5, 0.0), (5, 0.3), (3, 1.0), (5, 3.0)])
def test_the_joint_interval_holds_the_true_difference_in_95_of_100_studies(seeds, over_units):
    random, covered, studies = np.random.default_rng(seeds), 0, 800
    for _ in range(studies):
        # A seed moves all cells of a method, and partly both methods; points move all runs of a method.
        shared = random.normal(size=(seeds, 1))
        points = over_units * random.normal(size=2)
        draws = over_units * random.normal(size=(2, 400))
        methods = [
            Measured(
                values=truth + shared + random.normal(size=(seeds, 3)) + points[method],
                resampled=np.broadcast_to(draws[method], (1, seeds, 3, 400)),
            )
            for method, truth in enumerate((2.0, 1.0))
        ]
        low, high = difference(*methods).limits()
        covered += low <= 1.0 <= high
    assert 0.925 <= covered / studies <= 0.985


def test_a_ratio_of_rates_is_paired_by_seed_on_logarithms():
    a, b = np.exp(drawn(0, (5, 6), 1.0, 0.3)), np.exp(drawn(1, (5, 6), 1.2, 0.3))
    change = (np.log(a) - np.log(b)).mean(axis=1)
    expected = stats.ttest_1samp(change, 0.0).confidence_interval(0.95)
    rates = [Measured(values, seeds=range(5)).logarithm() for values in (a, b)]
    estimate = difference(*rates)
    assert (estimate.value, *estimate.limits()) == pytest.approx((change.mean(), *expected))


def test_a_rate_of_0_counts_as_half_a_pair_in_a_ratio():
    zero, positive = (Measured(np.array([rate])).logarithm() for rate in (0.0, 0.01))
    assert difference(zero, positive).value == pytest.approx(np.log(0.1))


def test_a_gain_in_percent_is_that_of_the_means_with_the_delta_methods_interval():
    b = drawn(1, (400, 1), 4.0, 0.2)
    a = 0.9 * b + drawn(2, (400, 1), 0.0, 0.1)
    gain = relative_gain(Measured(a), Measured(b))
    assert gain.value == pytest.approx(100 * (1 - a.mean() / b.mean()))
    random = np.random.default_rng(0)
    resamples = [random.integers(400, size=400) for _ in range(2000)]
    gains = [100 * (1 - a[rows].mean() / b[rows].mean()) for rows in resamples]
    assert gain.over_seeds == pytest.approx(np.std(gains), rel=0.1)


def test_a_ratio_of_spreads_has_fishers_interval():
    a, b = drawn(0, (5, 1)), drawn(1, (5, 1), 0, 2.0)
    ratio = spread_ratio(Measured(a), Measured(b))
    f = a.var(ddof=1) / b.var(ddof=1)
    expected = np.sqrt(f / stats.f.ppf([0.975, 0.025], 4, 4))
    assert ratio.value == pytest.approx(np.sqrt(f))
    assert ratio.limits() == pytest.approx(tuple(expected))
    assert spread_ratio(Measured(a[:1]), Measured(b[:1])).limits() == (0.0, math.inf)


@pytest.mark.parametrize("seeds", [3, 5])
@pytest.mark.parametrize("scale", [(1, 1, 1), (1, 2, 3)])
@pytest.mark.parametrize("common", [0.0, 0.5, 1.0])
def test_the_interval_of_a_ratio_of_spreads_misses_no_more_than_5_of_100_studies(seeds, scale, common):
    random, covered, studies = np.random.default_rng(0), 0, 600
    for _ in range(studies):

        def runs() -> Measured:
            # Both columns of a train set have the same networks.
            shared, separate = random.normal(size=(seeds, 1)), random.normal(size=(seeds, 3))
            values = np.array(scale) * (math.sqrt(common) * shared + math.sqrt(1 - common) * separate)
            return Measured(np.repeat(values, 2, axis=1), cells=COLUMNS)

        low, high = spread_ratio(runs(), runs()).limits()
        covered += low <= 1 <= high
    # Two standard errors of 600 studies.
    assert covered / studies >= 0.95 - 0.018


def test_cells_runs_and_methods_side_by_side_keep_their_resamples():
    whole = Measured(drawn(0, (5, 3)), drawn(1, (2, 5, 3, 7)), 8, ("x", "y", "z"))
    cell = whole.one(1)
    assert cell.cells == ("y",)
    assert (cell.values[:, 0] == whole.values[:, 1]).all()
    assert (cell.resampled[:, :, 0] == whole.resampled[:, :, 1]).all()
    run = whole.runs()[3]
    assert (run.values == whole.values[3]).all()
    assert (run.resampled == whole.resampled[:, 3]).all()
    rejoined = side_by_side([whole.one(0), whole.one(1), whole.one(2)])
    assert rejoined.cells == whole.cells
    assert (rejoined.resampled == whole.resampled).all()
    assert side_by_side([whole, Measured(whole.values, cells=whole.cells)]).resampled is None


def test_values_that_are_not_finite_and_resamples_of_one_method_are_refused():
    with pytest.raises(ValueError, match="not finite"):
        Measured(np.array([[1.0, np.nan]]))
    with pytest.raises(ValueError, match="resamples of all methods"):
        difference(Measured(np.zeros(1), np.zeros((1, 1, 9))), Measured(np.zeros(1)))


def test_p_is_the_paired_t_tests_and_fits_the_interval_that_ends_at_the_bound():
    a, b = drawn(0, (5, 6)), drawn(1, (5, 6), 0.5)
    estimate = difference(Measured(a), Measured(b))
    assert estimate.p_value() == pytest.approx(stats.ttest_rel(a.mean(axis=1), b.mean(axis=1)).pvalue)
    for confidence in (0.5, 0.95, 0.999):
        for end in estimate.limits(confidence):
            assert replace(estimate, value=estimate.value - end).p_value() == pytest.approx(
                1 - confidence
            )


def test_p_is_0_or_1_without_spread_and_1_where_one_seed_leaves_it_unknown():
    exact = Estimate(2.0)
    assert (exact.p_value(), Estimate(0.0).p_value()) == (0.0, 1.0)
    assert Estimate(2.0, over_seeds=math.inf, seed_freedom=0.0).p_value() == 1.0
