"""Rows that are measured by signs, and HPatches' tasks, from tidy frames made by hand."""

import pandas as pd
import pytest

from lib.study import open_study, tables
from lib.study.store import METRICS


def frame(rows: list[tuple]) -> pd.DataFrame:
    """Return a tidy frame of rows (method, label, seed, test, measure, value)."""
    columns = ["method", "label", "seed", "test", "measure", "value"]
    return pd.DataFrame(rows, columns=columns).reindex(columns=METRICS).assign(train="a")


@pytest.fixture
def runs() -> pd.DataFrame:
    rows = []
    for seed, value in ((0, 10.0), (1, 14.0)):
        about = ("hardnet_aug", "HardNet+", seed)
        rows.append((*about, "b", "fpr95", value))
        rows.append((*about, "b", "fpr95 by sign", 2 * value))
        for task, key in enumerate(tables.PROTOCOLS):
            rows.append((*about, "hp", f"hpatches.{key}", value + task))
            rows.append((*about, "hp", f"hpatches by sign.{key}", value - task))
    rows.append(("sift", "SIFT", None, "hp", "hpatches.verification", 30.0))
    return frame(rows)


def test_signs_are_further_methods_with_the_measures_of_the_others(runs):
    signs = tables.by_sign(runs)
    assert set(signs["method"]) == {"hardnet_aug by sign"}
    assert set(signs["label"]) == {"HardNet+ by sign"}
    assert signs.query("measure == 'fpr95'")["value"].tolist() == [20, 28]
    assert not runs["method"].str.contains("sign").any()


def test_tasks_have_a_row_a_method_and_a_column_a_protocol(runs):
    every = pd.concat([runs, tables.by_sign(runs)])
    table = tables.by_task(tables.numbers(every, "hpatches"))
    assert list(table.index) == ["HardNet+", "SIFT", "HardNet+ by sign"]
    matching = table[tables.PROTOCOLS["matching"]]
    assert matching["mean"].tolist()[::2] == [13, 11]
    assert matching["sd"].iloc[0] == pytest.approx(8**0.5)
    assert table["", "n"].tolist() == [2, 1, 2]
    assert table[tables.PROTOCOLS["verification"], "mean"]["SIFT"] == 30


def test_with_one_seed_there_is_no_deviation(runs):
    table = tables.by_task(tables.numbers(runs.query("seed == 0"), "hpatches"))
    assert "sd" not in table.columns.get_level_values(1)


@pytest.fixture
def on_places() -> pd.DataFrame:
    name = ("hardnet_aug, shared, SGD", "HardNet+")
    rows = [
        (*name, 0, "b", "fpr95", 1.0, "a"),
        (*name, 0, "c", "fpr95", 4.0, "a"),
        (*name, 0, "c-wide", "fpr95", 50.0, "a"),
        (*name, 1, "a", "fpr95", 8.0, "b"),
        ("sift", "SIFT", None, "a", "fpr95", 9.0, None),
        ("sift", "SIFT", None, "b", "fpr95", 4.0, None),
    ]
    columns = ["method", "label", "seed", "test", "measure", "value", "train"]
    return pd.DataFrame(rows, columns=columns)


def test_fpr95_by_place_has_a_row_a_train_place_and_its_geometric_mean(on_places):
    table = tables.by_place(on_places)
    assert table.loc[("hardnet_aug", "HardNet+", "a"), ["b", "c", "Mean"]].tolist() == [1, 4, 2]
    assert table.loc[("hardnet_aug", "HardNet+", "b"), "Mean"] == pytest.approx(8)
    assert table.loc[("sift", "SIFT", ""), "Mean"] == pytest.approx(6)


def test_by_place_the_printed_mean_stands_beside_each_train_place(on_places):
    study = open_study("", "half", "free")
    table = tables.fpr95_beside("dsm", "table1", on_places, study)
    assert list(table.index) == ["SIFT", "HardNet+"]
    ours = table.xs("ours", axis=1, level=1).loc["HardNet+"]
    assert ours.tolist() == pytest.approx([2, 8])
    assert table["ours", "mean"].tolist() == pytest.approx([6, 4])
    assert table["paper", "Mean"]["HardNet+"] == pytest.approx(1.51, abs=0.02)


def test_the_mean_fpr95_of_a_run_is_geometric_over_the_random_pairs_of_the_places_tested_on(on_places):
    study = open_study("", "half", "free")
    own = dict(zip("abc", study.tests, strict=False)) | {"c-wide": f"{study.tests[2]}-wide"}
    mean = tables.mean_fpr95(on_places.assign(test=on_places["test"].map(own)), study)
    assert mean.loc["hardnet_aug", "HardNet+"].tolist() == pytest.approx([2, 8])
    assert mean.loc["sift"].tolist() == pytest.approx([6])
