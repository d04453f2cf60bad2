"""Searches of learning rates as they are shown: valleys, own rates, and how descriptors spread."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from lib.study.catalogue import SEARCHED
from lib.study.open import open_study
from lib.study.report import rates
from lib.study.report.rates import FPR95

WAYS = ("reserve-a", "reserve-b")
STAGES = ("0.0", "0.5", "1.0")


def measured(rank: float, share: float, cosine: float) -> dict[str, float]:
    """Untrained networks spread wide; from the middle of training on they spread as told."""
    first = {"effective_rank.0.0": 60.0, "first_share.0.0": 0.1, "mean_cosine.0.0": 0.6}
    later = {"effective_rank": rank, "first_share": share, "mean_cosine": cosine}
    return first | {f"{name}.{of}": value for of in STAGES[1:] for name, value in later.items()}


def searched(means: dict[float, float], recipe: str = "A", gap: float = 2.0) -> pd.DataFrame:
    """Two ways, `gap` apart, and two seeds, one point apart, of each rate."""
    rows = [
        {
            **{"recipe": recipe, "rate": rate, "train_set": way, "seed": seed},
            FPR95: mean + gap * (place - 0.5) + seed - 0.5,
            "spread": measured(10 / rate, 0.2, 0.3),
        }
        for rate, mean in means.items()
        for place, way in enumerate(WAYS)
        for seed in (0, 1)
    ]
    return pd.DataFrame(rows)


MEANS = {0.1: 21.0, 0.2: 30.0, 0.5: 21.9, 1.0: 20.0, 2.0: 22.1, 5.0: 21.0}


def test_a_valley_ends_at_the_first_rate_that_is_a_tenth_worse_though_a_farther_one_is_not():
    assert rates.valley(pd.Series(MEANS)) == (0.5, 1.0)
    assert rates.valley(pd.Series(MEANS), tolerance=0.2) == (0.5, 5.0)
    assert rates.valley(pd.Series({0.1: 20.0, 0.2: 21.0})) == (0.1, 0.2)
    assert rates.valley(pd.Series({0.1: 20.0})) == (0.1, 0.1)


def test_the_own_rate_is_that_of_the_lowest_mean_and_its_error_is_over_seeds_alone():
    row = rates.sensitivity(searched(MEANS, gap=8.0)).loc["A"]
    assert (row["own"], row["valley"], row["tried"], row["open"]) == ("1", "0.5 to 1", 6, "")
    assert row["FPR95"] == pytest.approx(20)
    assert row["width"] == pytest.approx(2)
    # Seeds one point apart have variance 1/2; two seeds of either of two ways.
    assert row["s.e."] == pytest.approx(np.sqrt(0.5 / 4))


def test_one_seed_has_no_error_and_a_valley_at_the_grid_s_end_is_open():
    runs = searched({0.1: 20.0, 0.2: 21.0, 0.5: 30.0})
    row = rates.sensitivity(runs[runs["seed"] == 0]).loc["A"]
    assert np.isnan(row["s.e."])
    assert row["open"] == "below"


def test_two_recipes_are_compared_where_both_were_tried_and_each_at_its_own():
    runs = pd.concat([searched({0.1: 20.0, 1.0: 30.0}, "A"), searched({0.1: 21.0, 1.0: 19.0}, "B")])
    runs = pd.concat([runs, searched({2.0: 5.0}, "C")])
    table = rates.compared(runs, "A", "B")
    assert table.index.tolist() == ["0.1", "1", "own"]
    assert table["difference"].tolist() == pytest.approx([-1, 11, 1])
    assert table["is lower"].tolist() == ["4 of 4", "0 of 4", "0 of 4"]


def test_what_comes_nearest_to_a_collapse_is_named_and_counted():
    runs = searched({0.1: 20.0, 1.0: 30.0})
    runs.at[5, "spread"] = measured(1.5, 0.9, 0.97)
    spread = rates.spread(runs)
    assert len(spread) == len(runs) * len(STAGES)
    table = rates.nearest_to_collapse(spread)
    # Nine tenths of the way from rank 60 to 1 is 6.9, from a share of 0.1 to 1 it is 0.91.
    assert table["near"].tolist() == ["1 of 8", "0 of 8", "1 of 8"]
    assert table["of"].tolist() == ["A 1", "none", "A 1"]
    assert table["nearest"].tolist() == [1.5, 0.9, 0.97]
    assert set(table["rate"]) == {"1"}
    assert table["FPR95"].tolist() == pytest.approx([runs.loc[5, FPR95]] * 3)
    assert table["untrained"].tolist() == pytest.approx([60, 0.1, 0.6])


def test_a_run_without_a_finite_loss_has_fpr95_and_no_spread():
    runs = searched({0.1: 20.0, 1.0: 30.0})
    runs.at[7, "spread"] = {}
    assert len(rates.spread(runs)) == 7 * len(STAGES)
    assert rates.sensitivity(runs).loc["A", "own"] == "0.1"


def test_searches_on_record_are_shown_in_the_order_of_the_recipes(monkeypatch):
    run = {"rate": 1.0, "seed": 0, "train_set": "reserve-a", "test_set": "reserve-b", "fpr95": 20.0}
    monkeypatch.setattr(rates, "searched", lambda profile: ["adasample_gen", "hardnet", "of_old"])
    monkeypatch.setattr(
        rates, "read_search", lambda _, name: {"label": SEARCHED[name].label, "runs": [run]}
    )
    runs = rates.runs(open_study())
    assert runs["recipe"].tolist() == ["HardNet", "AdaSample*"]
    assert runs["spread"].tolist() == [{}, {}]
    assert list(runs[FPR95]) == [20.0, 20.0]
