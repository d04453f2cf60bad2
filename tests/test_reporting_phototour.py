"""FPR95 in the six columns of PhotoTour's protocol: roles, columns, paper beside ours."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from reporting_records import with_fpr95

from lib.study.printed import printed
from lib.study.report.frames import (
    COLUMN_NAMES,
    by_column,
    fpr95_beside,
    printed_by_column,
)

SETS = ("fountain", "wall", "street")


def six_columns(name: str, seed: int, offset: float) -> list:
    return [
        with_fpr95(name, "fountain", seed, wall=offset + 3, street=offset + 5),
        with_fpr95(name, "wall", seed, fountain=offset + 1, street=offset + 6),
        with_fpr95(name, "street", seed, fountain=offset + 2, wall=offset + 4),
    ]


def values(frame: pd.DataFrame, key: str) -> list[float]:
    return frame.xs(key, level="key").iloc[0].tolist()


def test_records_fall_into_the_six_columns_of_table_1():
    frame = by_column(six_columns("hardnet", 0, 10.0), SETS)
    assert tuple(frame.columns) == (*COLUMN_NAMES, "Mean")
    assert frame.index.tolist() == [("hardnet", "HARDNET", 0)]
    assert values(frame, "hardnet") == [11, 12, 13, 14, 15, 16, 13.5]


def test_an_untrained_descriptor_fills_both_columns_of_a_test_set():
    sift = with_fpr95("sift", None, None, fountain=1.0, wall=2.0, street=3.0)
    assert values(by_column([sift], SETS), "sift") == [1, 1, 2, 2, 3, 3, 2]


def test_a_mean_is_given_only_where_all_columns_are():
    complete = six_columns("hardnet", 0, 0.0)
    frame = by_column([*complete, *six_columns("other", 0, 0.0)[:2]], SETS)
    assert np.isnan(frame.xs("other", level="key")["Mean"].iloc[0])
    assert frame.xs("hardnet", level="key")["Mean"].iloc[0] == 3.5


def test_columns_that_no_trained_method_has_are_left_out():
    sift = with_fpr95("sift", None, None, fountain=1.0, wall=2.0, street=3.0)
    runs = [sift, *six_columns("hardnet", 0, 10.0)[:1]]
    frame = by_column(runs, SETS)
    assert list(frame) == ["Lib>Ntr", "Lib>Yos", "Mean"]
    assert values(frame, "hardnet") == [13, 15, 14]
    assert values(frame, "sift") == [2, 3, 2.5]
    table = fpr95_beside("adasample", "table1", runs, SETS)
    assert table.loc["AdaSample+*", ("Mean", "paper")] == pytest.approx((0.40 + 1.40) / 2)


def test_the_train_set_itself_is_not_a_test_column():
    runs = six_columns("hardnet", 0, 0.0)
    runs[0].content["metrics"]["fountain"] = {"fpr95": {"expected": 99.0}}
    assert 99.0 not in by_column(runs, SETS).to_numpy()


def test_a_set_for_tests_alone_has_a_column_beside_the_papers():
    run = with_fpr95("hardnet_aug", "fountain", 0, wall=1.0, street=2.0, castle=6.0, bridge=50.0)
    table = by_column([run], (*SETS, "castle"))
    assert list(table) == ["Lib>Ntr", "Lib>Yos", "Lib>castle", "Mean"]
    assert values(table, "hardnet_aug") == [1.0, 2.0, 6.0, 3.0]
    rows = fpr95_beside("adasample", "table1", [run], (*SETS, "castle"))
    paper = rows.loc["HardNet+", [("Lib>Ntr", "paper"), ("Lib>Yos", "paper")]]
    assert rows.loc["HardNet+", ("Mean", "paper")] == pytest.approx(paper.mean())
    assert ("Lib>castle", "paper") not in rows


def test_the_printed_table_is_laid_out_with_its_own_means():
    table = printed_by_column(printed("adasample", "table1"))
    assert values(table, "adasample_aug_gen") == [1.25, 2.21, 0.40, 0.63, 1.40, 1.14, 1.17]
    assert values(table, "sift") == [29.84, 29.84, 22.53, 22.53, 27.29, 27.29, 26.55]
    assert table.notna().to_numpy().all()


def beside() -> pd.DataFrame:
    records = [r for seed in range(3) for r in six_columns("hardnet_gen", seed, 10.0 + seed)]
    records.append(with_fpr95("orb", None, None, label="ORB", fountain=20.0, wall=21.0, street=22.0))
    return fpr95_beside("adasample", "table1", records, SETS)


def test_paper_and_ours_are_side_by_side_with_the_spread_over_seeds():
    table = beside()
    assert table.index[-1] == "ORB"
    assert len(table) == 19
    row = table.loc["HardNet*"]
    assert row[("", "dim")] == 128
    assert row[("Ntr>Lib", "paper")] == 1.80
    assert row[("wall > fountain", "ours")] == 12.0
    assert row[("Mean", "ours")] == pytest.approx(14.5)
    assert row[("ours", "sd")] == pytest.approx(1.0)
    assert row[("ours", "n")] == 3
    assert np.isnan(table.loc["MatchNet", ("Mean", "ours")])
