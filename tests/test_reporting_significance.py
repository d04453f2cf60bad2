"""Tables and figures of AdaSample's Table 3, against values computed by hand and by enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from lib.statistics.intervals import Measured
from lib.study.audit import p_values
from lib.study.report import significance
from lib.study.report.papers import adasample_significance as adasample
from lib.study.report.papers.adasample_significance import HIGHER, LEVELS, LOWER
from lib.study.report.phototour import COLUMN_NAMES


def runs_of(lower: np.ndarray, higher: np.ndarray) -> pd.DataFrame:
    keys = [
        (key, key.upper(), seed)
        for key, of in ((HIGHER, higher), (LOWER, lower))
        for seed in range(len(of))
    ]
    index = pd.MultiIndex.from_tuples(keys, names=["key", "label", "seed"])
    frame = pd.DataFrame(np.concatenate([higher, lower]), index=index, columns=list(COLUMN_NAMES))
    return frame.assign(Mean=frame.mean(axis=1))


@pytest.fixture(scope="module")
def paper() -> pd.DataFrame:
    return p_values.comparisons()


@pytest.fixture(scope="module")
def runs() -> pd.DataFrame:
    """AdaSample wins all 25 pairs in the first column, one fewer in each of the next."""
    lower = np.array([[1.0, 2.0, 3.0, 4.0, 5.5 + column] for column in range(6)]).T
    higher = np.array([[6.0, 7.0, 8.0, 9.0, 10.0]] * 6).T
    return runs_of(lower, higher)


# Table 3


def test_our_columns_are_summarised_as_the_papers_are(runs):
    found = adasample.our_comparisons(*adasample.both_methods(runs))
    first = found.loc["Ntr>Lib"]
    assert first["lower_mean"] == pytest.approx(3.1)
    assert first["higher_std"] == pytest.approx(math.sqrt(2.5))
    assert first["gain"] == pytest.approx(100 * (8 - 3.1) / 8)
    assert first["p"] == pytest.approx(1 / 252)


def test_the_table_puts_each_value_under_its_own_head(paper, runs):
    found = adasample.table3(paper, adasample.our_comparisons(*adasample.both_methods(runs))).loc[
        "Lib>Ntr"
    ]
    assert found[("HardNet+*, paper", "mean")] == 0.406
    assert found[("AdaSample+*, paper", "std")] == 0.016
    assert found[("HardNet+*, ours", "mean")] == pytest.approx(8)
    assert found[("AdaSample+*, ours", "mean")] == pytest.approx(3.5)
    assert found[("gain (%)", "paper")] == 1.58
    assert found[("p", "printed")] == 0.337
    assert found[("p", "exact")] == pytest.approx(
        adasample.our_comparisons(*adasample.both_methods(runs)).loc["Lib>Ntr", "p"]
    )


def test_runs_without_a_spread_or_a_method_are_refused(runs):
    with pytest.raises(ValueError, match="two seeds"):
        adasample.both_methods(runs.xs(0, level="seed", drop_level=False))
    with pytest.raises(ValueError, match="two seeds or more of adasample_aug_gen"):
        adasample.both_methods(runs.loc[[HIGHER]])


# Tests of our runs


def test_the_exact_p_is_that_of_all_252_splits_and_holm_multiplies_by_the_rank(runs):
    found = significance.p_table(*adasample.both_methods(runs))
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


def test_the_effect_is_the_share_of_pairs_that_adasample_wins_within_its_interval(runs):
    found = significance.p_table(*adasample.both_methods(runs))
    assert found[("effect", "A")].to_numpy() == pytest.approx(np.array([25, 24, 23, 22, 21, 20]) / 25)
    assert (found[("A, 95%", "from")] <= found[("effect", "A")]).all()
    assert (found[("effect", "A")] <= found[("A, 95%", "to")]).all()
    assert 0.6 < found.loc["Ntr>Lib", ("A, 95%", "from")] < 0.7


def test_what_survives_is_counted_by_each_rule(paper, runs):
    tested = {"quick": significance.p_table(*adasample.both_methods(runs))}
    found = adasample.table3_rejected(p_values.holm_table(paper), tested)
    # Where ties leave the exact p between 0.020 and 0.052, it may or may not be rejected.
    assert found["rejected"].tolist()[:4] == ["5", "1", "4 or 5", "2"]
    assert found.loc["paper, p as printed", "not rejected"] == "Lib>Ntr"
    assert "Yos>Ntr" not in found.loc["paper, Holm on them", "not rejected"]
    # U of 0 to 4 is rejected alone; by Holm 6/252, 10/252 and then 4 · 4/252, which is above 5%.
    assert found["rejected"].tolist()[4:] == ["5", "2"]
    lenient = adasample.table3_rejected(p_values.holm_table(paper), tested, level=0.5)
    assert (lenient["rejected"] == "6").all()
    assert (lenient["not rejected"] == "none").all()


# What the tests leave


def measured(over_tests: dict[str, float], seeds: int = 2) -> dict[str, Measured]:
    """By method runs whose resamples in the c-th column scatter by c times a standard error, of the
    first seed; by twice that, of the second."""
    scatter = np.array([-1.0, 1.0, -1.0, 1.0])
    scatter /= scatter.std(ddof=1)
    columns, by_seed = np.arange(6), np.arange(1, seeds + 1)
    sizes = by_seed[:, None] * columns
    return {
        key: Measured(
            np.ones((seeds, 6)), (error * sizes[..., None] * scatter)[None], cells=COLUMN_NAMES
        )
        for key, error in over_tests.items()
    }


def test_the_errors_of_seeds_are_joined_by_their_mean_square(paper, runs):
    ours = adasample.our_comparisons(*adasample.both_methods(runs))
    found = adasample.table3_tests(paper, ours, measured({HIGHER: 0.1, LOWER: 0.3}))
    joined = math.sqrt((1**2 + 2**2) / 2)
    of_columns = joined * 0.1 * np.arange(6)
    assert found["HardNet+*, ours", "tests"].tolist() == pytest.approx(of_columns.tolist())
    assert found["AdaSample+*, ours", "tests"].tolist() == pytest.approx((3 * of_columns).tolist())
    assert found.loc["Ntr>Lib", ("HardNet+*, paper", "tests")] == pytest.approx(0.050964, abs=1e-6)
    assert found.loc["Ntr>Lib", ("HardNet+*, paper", "seeds")] == 0.044
    assert found.loc["Ntr>Lib", ("HardNet+*, ours", "seeds")] == pytest.approx(math.sqrt(2.5))


def test_in_most_printed_cells_the_pairs_leave_more_than_the_seeds_whatever_the_divisor(paper, runs):
    ours = adasample.our_comparisons(*adasample.both_methods(runs))
    errors = adasample.table3_tests(paper, ours, measured({HIGHER: 0.1, LOWER: 9.0}))
    found = adasample.table3_tests_larger({"quick": errors, "evening": errors})
    # Of ours, AdaSample's in all columns but the first, where resamples do not scatter.
    assert found["tests > seeds"].tolist() == [11, 9, 5, 5]
    assert found.index.tolist()[2:] == ["ours (quick)", "ours (evening)"]
    assert found["of"].tolist() == [12] * 4


# Power


def test_an_effect_is_the_difference_in_pooled_deviations_shrunk_for_five_runs(paper):
    found = significance.effect_sizes(paper)
    pooled = math.sqrt((0.012**2 + 0.010**2) / 2)
    assert found["Yos>Ntr"] == pytest.approx((0.671 - 0.627) / pooled * (1 - 3 / 31))
    assert significance.effect_sizes(paper, runs=50)["Yos>Ntr"] > found["Yos>Ntr"]


def test_power_grows_with_the_effect_the_runs_and_the_level():
    effects = pd.Series({"none": 0.0, "one": 1.0, "two": 2.0}).rename_axis("train>test")
    found = significance.power_table(effects, LEVELS, (5, 8), simulations=500)
    alone, corrected = (found[level] for level in ("one test at 5%", "first of six by Holm"))
    assert (alone.loc[list(effects.index)].diff().iloc[1:] > 0).all().all()
    assert (alone["n=8"] > alone["n=5"])[["one", "two"]].all()
    assert (alone > corrected)[:3].all().all()
    assert alone.loc["sum"].tolist() == pytest.approx(alone.iloc[:3].sum().tolist())
    assert found["", "effect"].tolist()[:3] == [0, 1, 2]
    # More runs need a smaller effect.
    assert 1 < alone.loc["for 80%", "n=8"] < alone.loc["for 80%", "n=5"] < 2.2


def test_a_power_that_no_effect_has_is_missing():
    found = significance.power_table(pd.Series({"x": 1.0}), {"never": 0.001}, (5,), simulations=50)
    assert math.isnan(found.loc["for 80%", ("never", "n=5")])


# Figures


def test_every_seed_is_a_dot_and_the_papers_values_get_axes_of_their_own_on_other_data(paper, runs):
    figure = adasample.table3_figure(
        *adasample.both_methods(runs), paper, ours_name="ours (quick, mini)", same_data=False
    )
    assert len(figure.axes) == 12
    for name, ours, printed in zip(COLUMN_NAMES, figure.axes[:6], figure.axes[6:], strict=True):
        dots = np.concatenate([line.get_ydata() for line in ours.lines if line.get_marker() in "o^"])
        assert sorted(dots) == sorted(runs[name])
        means = [bars[0].get_ydata()[0] for bars in printed.containers]
        assert means == paper.loc[name, ["higher_mean", "lower_mean"]].tolist()
    assert "mini" in figure.axes[0].get_ylabel()
    assert "%" in figure.axes[6].get_ylabel()


def test_on_the_papers_own_data_its_values_have_our_axes(paper, runs):
    figure = adasample.table3_figure(
        *adasample.both_methods(runs), paper, ours_name="ours (paper, ubc)", same_data=True
    )
    for ours, printed in zip(figure.axes[:6], figure.axes[6:], strict=True):
        assert ours.get_ylim() == printed.get_ylim()
