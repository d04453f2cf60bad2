"""A table of UBC PhotoTour beside the printed one: common rows, and how far the orders agree."""

from __future__ import annotations

import numpy as np
import pytest
from reporting_records import with_fpr95
from scipy import stats

from lib.recipes import RECIPES
from lib.study.artefacts.adasample import TABLE1_RECIPES
from lib.study.claims.measured import fpr95_by_column
from lib.study.printed import printed
from lib.study.report import changes, frames

SETS = ("mini-a", "mini-b", "mini-c")


def one_scene(levels: dict[str, float], seeds: int) -> list:
    """Runs on the first scene, seeds one point apart around a recipe's level, and SIFT."""
    runs = [
        with_fpr95(name, "mini-a", seed, label=RECIPES[name].label, **{"mini-b": value, "mini-c": value})
        for name, level in levels.items()
        for seed in range(seeds)
        for value in [level + seed - (seeds - 1) / 2]
    ]
    return [*runs, with_fpr95("sift", None, None, label="SIFT", **dict.fromkeys(SETS, 30.0))]


def table1_values(records: list):
    return fpr95_by_column(frames.of_most_sets(records), SETS)


def table1_common(values):
    return changes.common_rows(printed("adasample", "table1"), values)


def runs(seeds: int = 1, order: int = 1):
    """Rows spaced by their rank in the paper's table, in its order or in reverse."""
    levels = {name: 10.0 - order * rank for rank, name in enumerate(TABLE1_RECIPES)}
    return table1_values(one_scene(levels, seeds))


def test_the_paper_is_compared_over_the_columns_of_our_table():
    common = table1_common(runs()).droplevel("label")
    assert runs()["hardnet"].cells == ("Lib>Ntr", "Lib>Yos")
    assert common.loc["adasample_aug_gen", "paper"] == pytest.approx((0.40 + 1.40) / 2)
    assert common.loc["sift"].tolist()[:2] == pytest.approx([(22.53 + 27.29) / 2, 30.0])
    assert common["paper"].is_monotonic_decreasing
    assert len(common) == len(TABLE1_RECIPES) + 1


def test_our_values_have_the_interval_over_their_seeds():
    three = table1_common(runs(3)).droplevel("label").loc["hardnet"]
    assert three["ours"] == 10
    assert three["to"] - 10 == pytest.approx(stats.t.ppf(0.975, 2) / 3**0.5)
    assert table1_common(runs(1)).droplevel("label").loc["hardnet", "to"] == np.inf


def test_baselines_on_fewer_sets_are_listed_and_take_no_column_from_the_others():
    records = [
        with_fpr95("hardnet", train, 0, label="HardNet", **{name: 9.0 for name in SETS if name != train})
        for train in SETS
    ]
    records.append(with_fpr95("l2net", "mini-a", 0, label="L2-Net", **{"mini-b": 8.0, "mini-c": 7.0}))
    records.append(with_fpr95("sift", None, None, label="SIFT", **dict.fromkeys(SETS, 30.0)))
    values = table1_values(records)
    assert list(values) == ["hardnet", "sift"]
    assert len(values["hardnet"].cells) == 6
    table = frames.fpr95_beside("adasample", "table1", records, SETS)
    ours = [("mini-a > mini-b", "ours"), ("mini-a > mini-c", "ours")]
    assert table.loc["L2-Net", ours].tolist() == [8, 7]
    assert np.isnan(table.loc["L2-Net", ("Mean", "ours")])
