"""Tables and figures of AdaSample's Table 3, against values computed by hand and by enumeration."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from lib.reporting import printed_p_tables as of_paper
from lib.reporting import significance_tables as both
from lib.reporting.significance_figures import power_figure, seeds_figure
from lib.reporting.significance_tables import HIGHER, LOWER
from lib.reporting.tables import COLUMN_NAMES
from lib.significance import fpr95_error

SETS = ("a", "b", "c")


def runs_of(lower: np.ndarray, higher: np.ndarray) -> pd.DataFrame:
    keys = [(HIGHER, seed) for seed in range(len(higher))] + [
        (LOWER, seed) for seed in range(len(lower))
    ]
    index = pd.MultiIndex.from_tuples(keys, names=["key", "seed"])
    frame = pd.DataFrame(np.concatenate([higher, lower]), index=index, columns=list(COLUMN_NAMES))
    return frame.assign(Mean=frame.mean(axis=1))


@pytest.fixture(scope="module")
def paper() -> pd.DataFrame:
    return both.paper_comparisons()


@pytest.fixture(scope="module")
def runs() -> pd.DataFrame:
    """AdaSample wins all 25 pairs in the first column, one fewer in each of the next."""
    lower = np.array([[1.0, 2.0, 3.0, 4.0, 5.5 + column] for column in range(6)]).T
    higher = np.array([[6.0, 7.0, 8.0, 9.0, 10.0]] * 6).T
    return runs_of(lower, higher)


# Table 3


def test_the_papers_columns_keep_their_values_under_the_short_names(paper):
    assert list(paper.index) == list(COLUMN_NAMES)
    assert paper.loc["Yos>Ntr"].tolist() == [0.627, 0.012, 0.671, 0.010, 6.62, 0.006]
    # Sec. 5.4 names Notre Dame to Liberty as the one that is not significant.
    assert paper.index[paper["p"] > 0.05].tolist() == ["Lib>Ntr"]


def test_our_columns_are_summarised_as_the_papers_are(runs):
    found = both.our_comparisons(runs)
    first = found.loc["Ntr>Lib"]
    assert first["lower_mean"] == pytest.approx(3.1)
    assert first["higher_std"] == pytest.approx(math.sqrt(2.5))
    assert first["gain"] == pytest.approx(100 * (8 - 3.1) / 8)
    assert first["p"] == pytest.approx(1 / 252)


def test_the_table_puts_each_value_under_its_own_head(paper, runs):
    found = both.table3(paper, both.our_comparisons(runs)).loc["Lib>Ntr"]
    assert found[("HardNet+*, paper", "mean")] == 0.406
    assert found[("AdaSample+*, paper", "std")] == 0.016
    assert found[("HardNet+*, ours", "mean")] == pytest.approx(8)
    assert found[("AdaSample+*, ours", "mean")] == pytest.approx(3.5)
    assert found[("gain (%)", "paper")] == 1.58
    assert found[("p", "printed")] == 0.337
    assert found[("p", "exact")] == pytest.approx(both.our_comparisons(runs).loc["Lib>Ntr", "p"])


def test_runs_without_a_spread_or_a_method_are_refused(runs):
    with pytest.raises(ValueError, match="two seeds"):
        both.our_comparisons(runs.loc[pd.IndexSlice[:, [0]], :])
    with pytest.raises(ValueError, match="no runs of adasample_aug_gen"):
        both.tests_table(runs.loc[[HIGHER]])


# Tests of our runs


def test_the_exact_p_is_that_of_all_252_splits_and_holm_multiplies_by_the_rank(runs):
    found = both.tests_table(runs)
    wins = [25, 24, 23, 22, 21, 20]
    assert found[("", "U")].tolist() == [25 - won for won in wins]
    for name, column in zip(COLUMN_NAMES, range(6), strict=True):
        values = runs[COLUMN_NAMES[column]].to_numpy()
        as_low = [
            sum(a > b for a in values[list(chosen)] for b in np.delete(values, chosen))
            <= found.loc[name, ("", "U")]
            for chosen in itertools.combinations(range(10), 5)
        ]
        assert found.loc[name, ("one-sided p", "exact")] == pytest.approx(np.mean(as_low))
    p = found[("one-sided p", "exact")].to_numpy()
    assert np.all(np.diff(p) > 0)
    by_hand = np.maximum.accumulate(np.minimum(1, p * np.arange(6, 0, -1)))
    assert found[("over six", "Holm")].to_numpy() == pytest.approx(by_hand)
    z = (0 - 12.5) / math.sqrt(275 / 12)
    first = found.loc["Ntr>Lib"]
    assert first[("one-sided p", "asympt.")] == pytest.approx(stats.norm.cdf(z))
    assert first[("one-sided p", "contin.")] == pytest.approx(
        stats.norm.cdf(z + 0.5 / math.sqrt(275 / 12))
    )


def test_the_effect_is_the_share_of_pairs_that_adasample_wins_within_both_intervals(runs):
    found = both.tests_table(runs)
    assert found[("effect", "A")].to_numpy() == pytest.approx(np.array([25, 24, 23, 22, 21, 20]) / 25)
    for interval in ("A, bootstrap", "A, Newcombe"):
        assert (found[(interval, "from")] <= found[("effect", "A")]).all()
        assert (found[("effect", "A")] <= found[(interval, "to")]).all()
    first = found.loc["Ntr>Lib"]
    assert first[("A, bootstrap", "from")] == 1
    assert 0.6 < first[("A, Newcombe", "from")] < 0.7


def test_at_five_runs_the_bootstrap_misses_a_large_effect_and_newcombes_interval_does_not():
    found = both.coverage_table((0.0, 3.0), draws=300, resamples=199)
    assert found["true A"].tolist() == pytest.approx([0.5, stats.norm.cdf(3 / math.sqrt(2))])
    assert found.loc[3.0, "bootstrap"] < 0.5
    assert (found["Newcombe"] > 0.89).all()


# The printed p-values


def test_one_form_alone_gives_four_p_without_ties_and_0031_only_with_nine_tied_runs(paper):
    found = of_paper.forms_table(paper)
    best = found.iloc[0]
    assert found.index[0] == ("normal, continuity + ties", 1)
    assert best[list(COLUMN_NAMES)].tolist() == ["3.5 (4+3+2)", "2", "10 (2+2)", "0", "3", "1"]
    others = found.iloc[1:]
    assert (others.loc[others["fits"] == 6, "untied"] == 0).all()
    assert found.loc[("exact", 1), "fits"] == 1


def test_the_signed_rank_row_is_that_of_scipys_exact_test(paper):
    found = of_paper.forms_table(paper)
    row = found.loc[("signed-rank, exact", 1), list(COLUMN_NAMES)]
    assert row.dropna().to_dict() == {"Ntr>Lib": "W = 0"}
    every_sign = itertools.product((-1, 1), repeat=5)
    differences = [np.arange(1, 6) * sign for sign in every_sign]
    for sides, alternative in ((1, "less"), (2, "two-sided")):
        p = {round(stats.wilcoxon(d, alternative=alternative).pvalue, 6) for d in differences}
        hits = {value for value in paper["p"] if any(abs(value - one) <= 0.0005 for one in p)}
        fits = found.loc[("signed-rank, exact", sides), "fits"]
        assert fits == len(hits)


def test_no_t_test_fits_more_than_one_printed_p(paper):
    found = of_paper.t_table(paper)
    assert found["fits"].max() == 1
    assert found.loc[("Welch's t, variance / 4", 2), "Yos>Lib"] == "0.0247–0.0288"


def test_plausibility_leaves_out_forms_that_never_give_a_p_and_ranks_the_rest_by_the_product(paper):
    found = of_paper.plausibility_table(paper, draws=1000)
    assert found.index[0] == ("normal, continuity + ties", 1)
    assert found["together"].iloc[0] == 1
    assert found["together"].iloc[1] < 0.02
    assert "exact" not in found.index.get_level_values("form")
    assert (found["Ntr>Lib"] < 0.005).all()
    explained = [name for name in COLUMN_NAMES if name != "Ntr>Lib"]
    ratio = found[explained].iloc[1].prod() / found[explained].iloc[0].prod()
    assert found["together"].iloc[1] == pytest.approx(ratio)


def test_holm_on_the_printed_p_by_hand(paper):
    found = of_paper.holm_table(paper)
    assert found[("as printed", "Holm")].tolist() == pytest.approx(
        [0.090, 0.072, 0.337, 0.036, 0.090, 0.055]
    )
    exact = found[("exact, at most", "p")]
    assert exact["Yos>Ntr"] == pytest.approx(1 / 252)
    assert exact["Ntr>Yos"] == pytest.approx(2 / 252)
    # The third smallest is 4 / 252, which four times is above 5%.
    assert found.loc["Ntr>Yos", ("exact, at most", "Holm")] == pytest.approx(5 * 2 / 252)
    assert found.loc["Yos>Lib", ("exact, at most", "Holm")] == pytest.approx(4 * 4 / 252)


def test_what_survives_is_counted_by_each_rule(paper, runs):
    found = both.survivors_table(of_paper.holm_table(paper), both.tests_table(runs))
    assert found["rejected"].tolist()[:4] == [5, 1, 4, 2]
    assert found.loc["paper, p as printed", "not rejected"] == "Lib>Ntr"
    assert "Yos>Ntr" not in found.loc["paper, Holm on them", "not rejected"]
    # U of 0 to 4 is rejected alone; by Holm 6/252, 10/252 and then 4 · 4/252, which is above 5%.
    assert found["rejected"].tolist()[4:] == [5, 2]
    lenient = both.survivors_table(of_paper.holm_table(paper), both.tests_table(runs), level=0.5)
    assert (lenient["rejected"] == 6).all()
    assert (lenient["not rejected"] == "none").all()


# The test pairs


@dataclass
class Job:
    name: str
    seed: int
    train_set: str
    test_sets: tuple[str, ...]

    def sets_of(self, measure: str) -> tuple[str, ...]:
        assert measure == "fpr95"
        return self.test_sets


@dataclass
class Record:
    job: Job
    counts: dict = field(default_factory=dict)

    def fpr95(self, test_set: str) -> float:
        return 100 * ord(test_set)

    def probe(self, name: str, test_set: str) -> dict:
        assert name == "distance_histogram"
        return self.counts[test_set]


def histogram(shift: float) -> dict:
    bins = np.arange(40)
    return {
        "matching": np.rint(4000 * stats.norm.pdf(bins, 10, 3)).astype(int),
        "non_matching": np.rint(4000 * stats.norm.pdf(bins, 18 + shift, 3)).astype(int),
    }


def some_records(seeds: int = 2) -> list[Record]:
    records = []
    for key, seed, train in itertools.product((HIGHER, LOWER), range(seeds), SETS):
        tests = tuple(name for name in SETS if name != train)
        counts = {name: histogram(seed + 2 * (key == LOWER) + SETS.index(name)) for name in tests}
        records.append(Record(Job(key, seed, train, tests), counts))
    return records


def test_each_runs_error_is_that_of_its_own_histogram_under_its_own_column():
    found = both.pair_errors(some_records(), SETS)
    assert len(found) == 24
    probe = histogram(1 + 2 + 0)
    error = fpr95_error(probe["matching"], probe["non_matching"])
    row = found.loc[(LOWER, 1, "Ntr>Lib")]
    assert row["from_bins"] == error.value
    assert row["standard_error"] == error.standard_error
    assert row["recorded"] == 100 * ord("a")


def test_the_errors_of_seeds_are_joined_by_their_mean_square(paper, runs):
    errors = both.pair_errors(some_records(), SETS)
    found = both.errors_table(paper, both.our_comparisons(runs), errors)
    two = errors.loc[[(HIGHER, seed, "Lib>Yos") for seed in (0, 1)], "standard_error"]
    joined = math.sqrt((two**2).mean())
    assert found.loc["Lib>Yos", ("HardNet+*, ours", "pairs")] == pytest.approx(joined)
    assert found.loc["Ntr>Lib", ("HardNet+*, paper", "pairs")] == pytest.approx(0.050964, abs=1e-6)
    assert found.loc["Ntr>Lib", ("HardNet+*, paper", "seeds")] == 0.044
    assert found.loc["Ntr>Lib", ("HardNet+*, ours", "seeds")] == pytest.approx(math.sqrt(2.5))


def test_in_most_printed_cells_the_pairs_leave_more_than_the_seeds_whatever_the_divisor(paper, runs):
    errors = both.pair_errors(some_records(), SETS)
    found = both.larger_table(both.errors_table(paper, both.our_comparisons(runs), errors))
    assert found["pairs > seeds"].tolist()[:2] == [11, 9]
    assert found["of"].tolist() == [12] * 3


# Power


def test_an_effect_is_the_difference_in_pooled_deviations_shrunk_for_five_runs(paper):
    found = both.effect_sizes(paper)
    pooled = math.sqrt((0.012**2 + 0.010**2) / 2)
    assert found["Yos>Ntr"] == pytest.approx((0.671 - 0.627) / pooled * (1 - 3 / 31))
    assert both.effect_sizes(paper, runs=50)["Yos>Ntr"] > found["Yos>Ntr"]


def test_power_grows_with_the_effect_the_runs_and_the_level():
    found = both.power_curves([0.0, 1.0, 2.0], (5, 8), simulations=500)
    assert list(found.columns) == [
        (level, n) for level in ("one test at 5%", "first of six by Holm") for n in (5, 8)
    ]
    assert (found.diff().iloc[1:] > 0).all().all()
    assert (found[("one test at 5%", 8)] > found[("one test at 5%", 5)]).iloc[1:].all()
    assert (found["one test at 5%"] > found["first of six by Holm"]).all().all()


def test_power_is_read_off_between_the_points_of_a_curve_in_both_directions():
    columns = pd.MultiIndex.from_tuples([("alone", 5), ("weak", 5)])
    curves = pd.DataFrame([[0.0, 0.0], [0.5, 0.1], [1.0, 0.2]], index=[0.0, 1.0, 2.0], columns=columns)
    effects = pd.Series({"x": 0.5, "y": 1.5}).rename_axis("train>test")
    found = both.power_table(curves, effects)
    assert found[("alone", "n=5")].tolist() == pytest.approx([0.25, 0.75, 1.0, 1.6])
    assert found.loc["sum", ("weak", "n=5")] == pytest.approx(0.2)
    assert math.isnan(found.loc["for 80%", ("weak", "n=5")])
    assert found[("", "effect")].tolist()[:2] == [0.5, 1.5]


# Figures


def test_every_seed_is_a_dot_and_the_papers_values_get_axes_of_their_own_on_other_data(paper, runs):
    figure = seeds_figure(runs, paper, ours_name="ours (quick, mini)", same_data=False)
    assert len(figure.axes) == 12
    for name, ours, printed in zip(COLUMN_NAMES, figure.axes[:6], figure.axes[6:], strict=True):
        dots = np.concatenate([line.get_ydata() for line in ours.lines if line.get_marker() in "o^"])
        assert sorted(dots) == sorted(runs[name])
        means = [bars[0].get_ydata()[0] for bars in printed.containers]
        assert means == paper.loc[name, ["higher_mean", "lower_mean"]].tolist()
    assert "mini" in figure.axes[0].get_ylabel()
    assert "%" in figure.axes[6].get_ylabel()


def test_on_the_papers_own_data_its_values_share_our_axes(paper, runs):
    figure = seeds_figure(runs, paper, ours_name="ours (paper, ubc)", same_data=True)
    assert len(figure.axes) == 6
    assert all(len(axes.containers) == 2 for axes in figure.axes)


def test_power_is_drawn_as_it_is_and_an_effect_beyond_the_curves_is_counted_at_the_edge():
    curves = both.power_curves([0.0, 1.0, 2.0], (5, 8), simulations=50)
    found = {"paper": pd.Series({"x": 0.5, "y": 2.5, "z": 3.0})}
    figure = power_figure(curves, found)
    for axes, level in zip(figure.axes, ("one test at 5%", "first of six by Holm"), strict=True):
        assert axes.get_title(loc="left") == level
        lines = {line.get_label(): line for line in axes.lines}
        for n in (5, 8):
            drawn = lines[f"{n} runs a method"].get_ydata()
            assert list(drawn) == curves[(level, n)].tolist()
        (strokes,) = (line for line in axes.lines if line.get_marker() == "|")
        assert list(strokes.get_xdata()) == [0.5]
        assert [text.get_text() for text in axes.texts] == ["2"]
    with pytest.raises(ValueError, match="no effects"):
        power_figure(curves, {})
