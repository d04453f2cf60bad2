"""Statistics of few seeds against enumeration and hand, and the test behind AdaSample's printed p."""

from __future__ import annotations

import itertools
import math
import statistics
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from lib.evaluation.fpr95 import counts_by_distance, fpr95
from lib.reporting import printed_p_values as forensic
from lib.reporting.printed import printed
from lib.significance import (
    binomial_error,
    difference,
    fpr95_error,
    holm,
    mann_whitney,
    power,
    vargha_delaney,
)

coarse = st.integers(0, 6).map(float)
runs = st.lists(coarse, min_size=2, max_size=5)
fives = st.lists(coarse, min_size=5, max_size=5)
SCIPY_DEFAULT = "normal, continuity and ties corrected"


def u_by_hand(lower, higher) -> float:
    return sum((a > b) + 0.5 * (a == b) for a in lower for b in higher)


def exact_by_hand(lower, higher) -> float:
    pooled, observed = [*lower, *higher], u_by_hand(lower, higher)
    as_low = []
    for chosen in itertools.combinations(range(len(pooled)), len(lower)):
        left = [pooled[i] for i in chosen]
        right = [pooled[i] for i in range(len(pooled)) if i not in chosen]
        as_low.append(u_by_hand(left, right) <= observed)
    return sum(as_low) / len(as_low)


def normal_by_hand(lower, higher, continuity: float) -> float:
    n, m = len(lower), len(higher)
    pooled = [*lower, *higher]
    ties = sum(t**3 - t for t in (pooled.count(v) for v in set(pooled)))
    variance = n * m / 12 * ((n + m + 1) - ties / ((n + m) * (n + m - 1)))
    if variance < 1e-12:
        return 1.0
    z = (u_by_hand(lower, higher) - n * m / 2 + continuity) / math.sqrt(variance)
    return statistics.NormalDist().cdf(z)


# The test


def test_complete_separation_of_five_and_five_has_the_values_known_by_hand():
    found = mann_whitney([1, 2, 3, 4, 5], [6, 7, 8, 9, 10])
    assert found.u == 0
    assert found.exact == pytest.approx(1 / 252)
    assert found.asymptotic == pytest.approx(0.00451, abs=5e-6)  # z = 12.5 / sqrt(275 / 12)
    assert found.continuity == pytest.approx(0.00609, abs=5e-6)  # z = 12 / sqrt(275 / 12)
    assert found.exact == pytest.approx(1 / 252), "one split of ten runs into five and five"


@given(lower=runs, higher=runs)
@settings(deadline=None, max_examples=60)
def test_every_p_is_that_of_literal_enumeration_and_of_the_formula_ties_or_not(lower, higher):
    found = mann_whitney(lower, higher)
    assert found.u == u_by_hand(lower, higher)
    assert found.exact == pytest.approx(exact_by_hand(lower, higher))
    assert found.asymptotic == pytest.approx(normal_by_hand(lower, higher, 0.0))
    assert found.continuity == pytest.approx(normal_by_hand(lower, higher, 0.5))


@given(seed=st.integers(0, 2**31))
@settings(deadline=None, max_examples=20)
def test_without_ties_too_the_exact_p_is_that_of_enumeration(seed):
    values = np.random.default_rng(seed).permutation(9).astype(float)
    assert mann_whitney(values[:4], values[4:]).exact == pytest.approx(
        exact_by_hand(values[:4], values[4:])
    )


def test_the_exact_p_rises_with_u_through_all_its_values():
    by_u = {}
    for chosen in itertools.combinations(range(10), 5):
        rest = [i for i in range(10) if i not in chosen]
        by_u.setdefault(u_by_hand(chosen, rest), (chosen, rest))
    p = [mann_whitney(*by_u[u]).exact for u in sorted(by_u)]
    assert sorted(by_u) == list(range(26))
    assert all(0 < a < b for a, b in itertools.pairwise(p))
    assert p[-1] == 1


@given(lower=fives, higher=fives)
@settings(deadline=None, max_examples=30)
def test_a_monotone_map_of_the_values_changes_neither_p_nor_effect(lower, higher):
    mapped = [np.expm1(np.array(x)) * 3 - 7 for x in (lower, higher)]
    one, other = mann_whitney(lower, higher), mann_whitney(*mapped)
    assert one == other
    for p in (one.exact, one.asymptotic, one.continuity):
        assert 0 <= p <= 1
    assert vargha_delaney(lower, higher, resamples=9).value == vargha_delaney(*mapped, resamples=9).value


def test_columns_are_tested_each_by_itself_even_if_one_only_has_ties():
    draw = np.random.default_rng(0)
    lower, higher = draw.normal(size=(5, 3)), draw.normal(size=(4, 3)) + 1
    lower[:, 1], higher[:, 1] = lower[:, 1].round(), higher[:, 1].round()
    found = mann_whitney(lower, higher)
    for column in range(3):
        alone = mann_whitney(lower[:, column], higher[:, column])
        for name in ("u", "exact", "asymptotic", "continuity"):
            assert getattr(found, name)[column] == pytest.approx(getattr(alone, name))


def test_runs_that_cannot_be_tested_are_refused():
    with pytest.raises(ValueError, match="not finite"):
        mann_whitney([1, math.nan], [2, 3])
    with pytest.raises(ValueError, match="do not go together"):
        mann_whitney(np.zeros((5, 2)), np.zeros((5, 3)))
    with pytest.raises(ValueError, match="no runs"):
        mann_whitney([], [1.0])
    with pytest.raises(ValueError, match="splits"):
        mann_whitney(np.zeros(11), np.zeros(11))


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


@pytest.mark.parametrize("p", [[0.1, 1.1], [-0.1], [math.nan], [[0.1, 0.2]]])
def test_holm_refuses_what_is_no_vector_of_p_values(p):
    with pytest.raises(ValueError, match="p-values"):
        holm(p)


# Effect size


@given(a=runs, b=runs)
@settings(deadline=None, max_examples=40)
def test_the_effect_is_the_share_of_pairs_and_the_two_orders_add_up_to_one(a, b):
    found, turned = vargha_delaney(a, b, resamples=99), vargha_delaney(b, a, resamples=99)
    assert found.value == pytest.approx(u_by_hand(a, b) / (len(a) * len(b)))
    assert found.value + turned.value == pytest.approx(1)
    assert found.score_low == pytest.approx(1 - turned.score_high, abs=1e-9)
    assert 0 <= found.low <= found.high <= 1
    assert 0 <= found.score_low <= found.value <= found.score_high <= 1


def test_a_worse_baseline_given_first_has_an_effect_above_one_half():
    assert vargha_delaney([2.0, 3.0, 5.0], [1.0, 3.0, 4.0]).value == pytest.approx(5.5 / 9)


def test_the_bootstrap_interval_is_that_of_literal_resampling_and_follows_its_seed():
    a, b = [1.0, 4.0, 5.0, 7.0, 9.0], [0.0, 2.0, 4.0, 6.0, 8.0]
    draw = np.random.default_rng(1)
    values = [
        u_by_hand(draw.choice(a, 5).tolist(), draw.choice(b, 5).tolist()) / 25 for _ in range(4000)
    ]
    found = vargha_delaney(a, b, resamples=4000, seed=3)
    assert [found.low, found.high] == pytest.approx(np.quantile(values, [0.025, 0.975]), abs=0.03)
    assert found == vargha_delaney(a, b, resamples=4000, seed=3)
    assert vargha_delaney(a, b, resamples=4000, confidence=0.5).low > found.low


def test_where_the_runs_separate_the_bootstrap_has_no_width_but_newcombes_interval_has():
    found = vargha_delaney([6, 7, 8, 9, 10], [1, 2, 3, 4, 5])
    assert (found.value, found.low, found.high, found.score_high) == (1, 1, 1, 1)
    # The limit t has (1 - t)² = z² t (1 - t) (1 + 4 ((1 - t) / (2 - t) + t / (1 + t))) / 25.
    t, z = found.score_low, 1.959964
    assert 0.6 < t < 0.7
    spread = 1 + 4 * ((1 - t) / (2 - t) + t / (1 + t))
    assert (1 - t) ** 2 == pytest.approx(z**2 * t * (1 - t) * spread / 25, rel=1e-5)


def test_newcombes_interval_holds_the_true_effect_about_as_often_as_it_says():
    draw = np.random.default_rng(2)
    for shift in (0.0, 1.0, 2.0):
        truth = stats.norm.cdf(shift / math.sqrt(2))
        found = vargha_delaney(
            draw.normal(size=(5, 600)) + shift, draw.normal(size=(5, 600)), resamples=9
        )
        inside = (found.score_low <= truth) & (truth <= found.score_high)
        assert 0.90 < inside.mean() < 0.99


# Power


def test_power_without_effect_is_the_size_and_grows_with_effect_and_runs():
    found = power([0.0, 1.0, 2.0], simulations=4000)
    # U of 4 or less: 12 of 252 splits, the most below 5%.
    assert found["exact"].loc[0.0] == pytest.approx(12 / 252, abs=0.012)
    assert found["exact"].is_monotonic_increasing
    more = power([1.0], runs=8, simulations=4000)
    assert more["exact"].item() > found["exact"].loc[1.0] + 0.1


def test_power_is_that_of_testing_each_draw_by_itself():
    draws = np.random.default_rng(5).normal(size=(2, 150, 5))
    tests = [mann_whitney(a - 1.5, b) for a, b in zip(*draws, strict=True)]
    found = power([1.5], alpha=0.02, simulations=150, seed=5)
    for name in ("exact", "asymptotic", "continuity"):
        assert found[name].item() == np.mean([getattr(test, name) <= 0.02 for test in tests])


def test_fewer_than_four_runs_cannot_reject_at_five_percent_after_holm_over_six():
    assert power([9.0], runs=4, alpha=0.05 / 6, simulations=50)["exact"].item() == 0
    assert power([9.0], runs=5, alpha=0.05 / 6, simulations=50)["exact"].item() == 1


# FPR95's own error


def test_the_binomial_error_of_a_printed_rate_is_known_by_hand():
    # 1.316% of 50 000: sqrt(0.01316 · 0.98684 / 50 000) = 0.00050964.
    assert binomial_error(1.316) == pytest.approx(0.050964, abs=1e-6)
    assert binomial_error([0.0, 50.0, 100.0], 100) == pytest.approx([0, 5, 0])
    for rate, negatives in ((101, 10), (-1, 10), (math.nan, 10), (5, 0)):
        with pytest.raises(ValueError, match="percent"):
            binomial_error(rate, negatives)


levelled = st.lists(st.tuples(coarse, st.booleans()), min_size=2, max_size=30).filter(
    lambda pairs: {m for _, m in pairs} == {True, False}
)


@given(pairs=levelled, recall=st.sampled_from([0.2, 0.5, 0.95, 1.0]))
@settings(deadline=None, max_examples=60)
def test_the_rate_from_counts_is_that_from_distances(pairs, recall):
    distances, match = map(np.array, zip(*pairs, strict=True))
    _, *counts = counts_by_distance(distances, match)
    assert (sum(counts[0]), sum(counts[1])) == (match.sum(), (~match).sum())
    found = fpr95_error(*counts, recall=recall, resamples=20)
    assert found.value == pytest.approx(fpr95(distances, match, recall).expected)
    assert 0 <= found.low <= found.high <= 100


@pytest.mark.parametrize("levels", [None, 6])
@pytest.mark.parametrize("recall", [0.6, 0.95])
def test_the_bootstrap_of_the_rate_is_distributed_as_literal_resampling_of_the_pairs(levels, recall):
    draw = np.random.default_rng(4)
    matching, other = draw.normal(0, 1, 80), draw.normal(2, 1, 120)
    if levels:
        matching, other = (np.clip(np.rint(x), -2, levels - 3) for x in (matching, other))
    match = np.arange(200) < 80
    literal = [
        fpr95(
            np.concatenate([draw.choice(matching, 80), draw.choice(other, 120)]), match, recall
        ).expected
        for _ in range(3000)
    ]
    _, *counts = counts_by_distance(np.concatenate([matching, other]), match)
    found = fpr95_error(*counts, recall=recall, resamples=20_000)
    assert found.standard_error == pytest.approx(np.std(literal), rel=0.06)
    low, high = np.quantile(literal, [0.025, 0.975])
    assert found.low == pytest.approx(low, abs=0.25 * found.standard_error)
    assert found.high == pytest.approx(high, abs=0.25 * found.standard_error)


def test_a_fine_histogram_gives_the_error_that_the_pairs_give_and_more_than_the_binomial():
    draw = np.random.default_rng(6)
    matching = draw.normal(0.75, 0.22, 4000).clip(0, 2)
    other = draw.normal(1.35, 0.12, 4000).clip(0, 2)
    match = np.arange(8000) < 4000
    pairs = fpr95_error(*counts_by_distance(np.concatenate([matching, other]), match)[1:])
    bins = fpr95_error(*(np.histogram(x, 80, (0, 2))[0] for x in (matching, other)))
    assert bins.standard_error == pytest.approx(pairs.standard_error, rel=0.15)
    assert pairs.standard_error > 1.2 * binomial_error(pairs.value, 4000)


def test_where_all_pairs_are_equally_distant_the_rate_is_certain():
    # Two of three matching pairs are needed, and half the others precede the second of three on average.
    found = fpr95_error([0, 3, 0], [0, 4, 0], recall=0.5, resamples=50)
    assert found.value == found.low == found.high == 50
    assert found.standard_error == 0


def test_counts_without_one_kind_of_pair_are_refused():
    with pytest.raises(ValueError, match="both kinds"):
        fpr95_error([0, 0], [1, 2])
    with pytest.raises(ValueError, match="negative"):
        fpr95_error([3, -1], [1, 2])
    with pytest.raises(ValueError, match="do not go together"):
        fpr95_error([3, 1], [1, 2, 3])


# The printed p-values


@pytest.fixture(scope="module")
def table3():
    return forensic.comparisons(printed("adasample", "table3"))


def test_the_comparisons_are_the_tables_rows(table3):
    row = table3.loc["yosemite → notredame"]
    assert row.tolist() == [0.627, 0.012, 0.671, 0.010, 6.62, 0.006]
    assert len(table3) == 6


@given(lower=fives, higher=fives)
@settings(deadline=None, max_examples=40)
def test_each_form_gives_the_p_that_the_values_themselves_have(lower, higher):
    found = forensic.outcomes(np.array([lower]), np.array([higher]))
    exact, above = exact_by_hand(lower, higher), exact_by_hand(higher, lower)
    normal = {c: normal_by_hand(lower, higher, c) for c in (0.0, 0.5)}
    tied = len({*lower, *higher}) < 10
    by_hand = {
        "exact": exact,
        "exact, mid-p": (exact + 1 - above) / 2,
        "exact, ties ignored": stats.mannwhitneyu(
            lower, higher, alternative="less", method="exact"
        ).pvalue,
        SCIPY_DEFAULT: normal[0.5],
        "normal, ties corrected": normal[0.0],
        "exact without ties, else normal with both (R, scipy since 1.7)": normal[0.5] if tied else exact,
    }
    for form, p in by_hand.items():
        assert forensic.p_value(form, 1, found).item() == pytest.approx(p)
    z = (u_by_hand(lower, higher) - 12.5) / math.sqrt(275 / 12)
    uncorrected = forensic.p_value("normal, uncorrected", 2, found).item()
    assert uncorrected == pytest.approx(2 * statistics.NormalDist().cdf(-abs(z)))
    assert uncorrected == pytest.approx(stats.ranksums(lower, higher).pvalue)
    both_tails = min(1, 2 * min(exact, above))
    assert forensic.p_value("exact", 2, found).item() == pytest.approx(both_tails)
    two_sided = stats.mannwhitneyu(lower, higher, method="asymptotic").pvalue
    assert forensic.p_value(SCIPY_DEFAULT, 2, found).item() == pytest.approx(two_sided)


def test_the_outcomes_searched_are_all_that_any_five_and_five_values_can_have():
    found, groups = forensic._every_outcome(2, 3)
    listed = set(zip(found.u, groups, found.at_most.round(9), found.at_least.round(9), strict=True))
    met = set()
    for values in itertools.product(range(5), repeat=5):
        lower, higher = values[:2], values[2:]
        sizes = sorted((values.count(v) for v in set(values) if values.count(v) > 1), reverse=True)
        tails = exact_by_hand(lower, higher), exact_by_hand(higher, lower)
        met.add((u_by_hand(lower, higher), tuple(sizes), *(round(p, 9) for p in tails)))
    assert listed == met


def test_only_the_one_sided_normal_form_with_continuity_needs_no_ties_for_four_of_the_six(table3):
    found = forensic.explain(table3["p"].to_dict())
    best, second = found.iloc[0], found.iloc[1]
    assert (best["form"], best["sides"]) == (SCIPY_DEFAULT, "one-sided")
    assert (best["reproduced"], best["without_ties"], second["without_ties"]) == (6, 4, 0)
    assert best[list(table3.index)].tolist() == [
        "U = 3.5, ties 4+3+2",
        "U = 2",
        "U = 10, ties 2+2",
        "U = 0",
        "U = 3",
        "U = 1",
    ]
    exact = found[found["form"].isin(["exact", "exact, ties ignored"])]
    assert exact["reproduced"].max() == 1


def test_the_runs_that_an_explanation_speaks_of_have_the_printed_p_when_tested(table3):
    found = forensic.implied(table3["p"].to_dict(), SCIPY_DEFAULT)
    witnesses = {
        "notredame → liberty": ([1, 1, 1, 2, 2], [1, 3, 4, 4, 4]),
        "yosemite → liberty": ([1, 2, 3, 4, 7], [5, 6, 8, 9, 10]),
        "liberty → notredame": ([1, 2, 3, 6, 8], [2, 4, 5, 6, 7]),
        "yosemite → notredame": ([1, 2, 3, 4, 5], [6, 7, 8, 9, 10]),
        "liberty → yosemite": ([1, 2, 3, 4, 8], [5, 6, 7, 9, 10]),
        "notredame → yosemite": ([1, 2, 3, 4, 6], [5, 7, 8, 9, 10]),
    }
    for name, (lower, higher) in witnesses.items():
        tested, row = mann_whitney(lower, higher), found.loc[name]
        assert row["u"] == tested.u
        assert row["p"] == pytest.approx(tested.continuity)
        assert round(row["p"], 3) == row["printed"]
        assert row["exact_low"] - 1e-9 <= tested.exact <= row["exact_high"] + 1e-9
        assert row["superiority"] == pytest.approx(vargha_delaney(higher, lower, resamples=9).value)
    # Where the two tied pairs are decides the exact p: as above 87 of 252, elsewhere as few as 76.
    low, high = found.loc["liberty → notredame", ["exact_low", "exact_high"]]
    assert low == pytest.approx(mann_whitney([2, 3, 3, 5, 8], [1, 4, 6, 6, 7]).exact)
    assert high == pytest.approx(mann_whitney([1, 2, 3, 7, 8], [3, 4, 5, 6, 7]).exact)
    untied = found[found["ties"] == ""]
    assert (untied["exact_low"] * 252).round(9).tolist() == [4, 1, 7, 2]
    assert (untied["exact_low"] == untied["exact_high"]).all()


def test_a_p_value_that_a_form_cannot_give_is_left_open():
    found = forensic.implied({"none": 0.031, "u0": 0.004}, "exact")
    assert math.isnan(found.loc["none", "u"])
    assert math.isnan(found.loc["none", "p"])
    assert found.loc["u0", "u"] == 0


def test_more_runs_than_can_be_enumerated_are_refused():
    with pytest.raises(ValueError, match="12 in all"):
        forensic.explain({"p": 0.05}, lower=7, higher=6)


def test_no_t_test_on_the_printed_means_gives_more_than_one_of_the_six(table3):
    found = forensic.explain_by_t(table3)
    assert len(found) == 8
    assert found["reproduced"].max() == 1
    # Complete separation by six standard errors: any t-test is far below the printed 0.006.
    largest = [float(text.partition("–")[2]) for text in found["yosemite → notredame"]]
    assert max(largest) < 0.001


def test_the_range_of_a_t_test_holds_the_p_of_runs_that_print_so(table3):
    draw = np.random.default_rng(8)
    compared, name = table3.copy(), "notredame → liberty"
    found = forensic.explain_by_t(compared.loc[[name]]).set_index(["form", "sides"])[name]
    for ddof in (0, 1):
        groups = []
        for which in ("lower", "higher"):
            mean, std = compared.loc[name, [f"{which}_mean", f"{which}_std"]]
            x = draw.normal(size=5)
            groups.append(mean + 4e-4 + (std - 4e-4) * (x - x.mean()) / x.std(ddof=ddof))
        for form, equal in (("Student's t", True), ("Welch's t", False)):
            for sides in ("less", "two-sided"):
                p = stats.ttest_ind(*groups, equal_var=equal, alternative=sides).pvalue
                key = f"{form}, variance / {5 - ddof}", "one-sided" if sides == "less" else sides
                low, _, high = found[key].partition("–")
                assert float(low) - 5e-5 <= p <= float(high) + 5e-5
                assert float(high) < 1.4 * float(low)


def test_runs_with_the_printed_means_nearly_always_give_0006_and_never_0031(table3):
    found = forensic.plausibility(table3, draws=2000).loc[(SCIPY_DEFAULT, "one-sided")]
    assert found["yosemite → notredame"] > 0.95
    assert found["notredame → liberty"] < 0.002
    others = ["yosemite → liberty", "liberty → yosemite", "notredame → yosemite"]
    assert found[others].between(0.2, 0.6).all()


@pytest.mark.parametrize("ddof", [0, 1])
def test_drawn_runs_print_the_mean_and_deviation_asked_for(ddof):
    random = np.random.default_rng(9)
    values = 0.002 * forensic._runs(0.671, 0.010, 5, ddof, 0.002, 0.0005, 500, random)
    assert values.shape == (500, 5)
    assert np.abs(values.mean(1) - 0.671).max() <= 0.0005 + 1e-9
    assert np.abs(values.std(1, ddof=ddof) - 0.010).max() <= 0.0005 + 1e-9


def test_five_values_of_two_decimals_cannot_have_the_mean_0671(table3):
    with pytest.raises(ValueError, match="hardly ever have mean 0"):
        forensic.plausibility(table3.loc[["yosemite → notredame"]], step=0.01, draws=50)


def test_the_statistics_need_no_torch():
    code = "import sys, lib.significance, lib.reporting.printed_p_values; print('torch' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "False"


def test_a_difference_has_welchs_error_to_which_a_single_run_adds_nothing():
    a, b = [1.0, 3.0, 5.0], [2.0, 2.5]
    gap, error = difference(a, b)
    assert gap == pytest.approx(0.75)
    assert error == pytest.approx(math.sqrt(4 / 3 + 0.125 / 2))
    assert difference(a, [2.0])[1] == pytest.approx(math.sqrt(4 / 3))
    assert difference([1.0], [2.0]) == (-1.0, None)
