"""Tables and figures of AdaSample's Table 3, against values computed by hand and by enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from lib.statistics.intervals import Measured, errors_over_tests
from lib.statistics.significance import effect_sizes
from lib.study.report import adasample
from lib.study.report.frames import COLUMN_NAMES


@pytest.fixture(scope="module")
def paper() -> pd.DataFrame:
    return adasample.comparisons()


@pytest.fixture(scope="module")
def runs() -> tuple[pd.DataFrame, pd.DataFrame]:
    """AdaSample wins all 25 pairs in the first column, one fewer in each of the next."""
    lower = np.array([[1.0, 2.0, 3.0, 4.0, 5.5 + column] for column in range(6)]).T
    higher = np.array([[6.0, 7.0, 8.0, 9.0, 10.0]] * 6).T
    return pd.DataFrame(lower, columns=COLUMN_NAMES), pd.DataFrame(higher, columns=COLUMN_NAMES)


# Tests of our runs


def test_the_exact_p_is_that_of_all_252_splits_and_holm_multiplies_by_the_rank(runs):
    table = adasample.p_table(*runs)
    wins = [25, 24, 23, 22, 21, 20]
    assert table[("", "U")].tolist() == [25 - won for won in wins]
    for name, column in zip(COLUMN_NAMES, range(6), strict=True):
        values = np.concatenate([frame[COLUMN_NAMES[column]] for frame in runs])
        as_low = [
            sum(a > b for a in values[list(chosen)] for b in np.delete(values, chosen))
            <= table.loc[name, ("", "U")]
            for chosen in itertools.combinations(range(10), 5)
        ]
        assert table.loc[name, ("one-sided p", "exact")] == pytest.approx(np.mean(as_low))
    p = table[("one-sided p", "exact")].to_numpy()
    assert np.all(np.diff(p) > 0)
    by_hand = np.maximum.accumulate(np.minimum(1, p * np.arange(6, 0, -1)))
    assert table[("over six", "Holm")].to_numpy() == pytest.approx(by_hand)
    z = (0 - 12.5) / math.sqrt(275 / 12)
    first = table.loc["Ntr>Lib"]
    assert first[("one-sided p", "asympt.")] == pytest.approx(stats.norm.cdf(z))
    assert first[("one-sided p", "contin.")] == pytest.approx(
        stats.norm.cdf(z + 0.5 / math.sqrt(275 / 12))
    )


def test_the_effect_is_the_share_of_pairs_that_adasample_wins_within_its_interval(runs):
    table = adasample.p_table(*runs)
    assert table[("effect", "A")].to_numpy() == pytest.approx(np.array([25, 24, 23, 22, 21, 20]) / 25)
    assert (table[("A, 95%", "from")] <= table[("effect", "A")]).all()
    assert (table[("effect", "A")] <= table[("A, 95%", "to")]).all()
    assert 0.6 < table.loc["Ntr>Lib", ("A, 95%", "from")] < 0.7


# Errors over tests


def test_the_errors_of_seeds_are_joined_by_their_mean_square():
    """Resamples of the c-th column scatter by c times a tenth, and for the second seed twice that."""
    scatter = np.array([-1.0, 1.0, -1.0, 1.0])
    sizes = np.array([[1], [2]]) * np.arange(1, 7)
    drawn = 0.1 * sizes[..., None] * scatter / scatter.std(ddof=1)
    errors = errors_over_tests(Measured(np.ones((2, 6)), drawn[None]))
    assert errors == pytest.approx(math.sqrt((1**2 + 2**2) / 2) * 0.1 * np.arange(1, 7))
    assert np.isnan(errors_over_tests(Measured(np.ones((2, 6))))).all()


# Power


def test_an_effect_is_the_difference_in_pooled_deviations_shrunk_for_five_runs(paper):
    effects = effect_sizes(paper)
    pooled = math.sqrt((0.012**2 + 0.010**2) / 2)
    assert effects["Yos>Ntr"] == pytest.approx((0.671 - 0.627) / pooled * (1 - 3 / 31))
    assert effect_sizes(paper, runs=50)["Yos>Ntr"] > effects["Yos>Ntr"]


def test_power_grows_with_the_effect_the_runs_and_the_level():
    effects = pd.Series({"none": 0.0, "one": 1.0, "two": 2.0}).rename_axis("train>test")
    table = adasample.power_table(effects)
    alone, corrected = (table[level] for level in ("one test at 5%", "first of six by Holm"))
    assert (alone.loc[list(effects.index)].diff().iloc[1:] > 0).all().all()
    assert (alone["n=10"] > alone["n=5"])[["one", "two"]].all()
    assert (alone >= corrected)[:3].all().all()
    assert alone.loc["sum"].tolist() == pytest.approx(alone.iloc[:3].sum().tolist())
    assert table["", "effect"].tolist()[:3] == [0, 1, 2]
    # More runs need a smaller effect.
    assert 1 < alone.loc["for 80%", "n=10"] < alone.loc["for 80%", "n=5"] < 2.2
