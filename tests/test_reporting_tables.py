"""Tables: roles, columns, text that repeats to the letter, CSV that is whole or absent."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd
import pytest

from lib.reporting.printed import printed
from lib.reporting.tables import (
    COLUMN_NAMES,
    as_text,
    fpr95_by_column,
    paper_beside_ours,
    printed_by_column,
    roles_of,
    save_table,
    show,
)

SETS = ("fountain", "wall", "street")


def record(name: str, train: str | None, seed: int | None, **fpr95: float) -> dict:
    metrics = {test: {"fpr95": {"expected": value}} for test, value in fpr95.items()}
    return {"name": name, "train_set": train, "seed": seed, "metrics": metrics}


def six_columns(name: str, seed: int, offset: float) -> list[dict]:
    return [
        record(name, "fountain", seed, wall=offset + 3, street=offset + 5),
        record(name, "wall", seed, fountain=offset + 1, street=offset + 6),
        record(name, "street", seed, fountain=offset + 2, wall=offset + 4),
    ]


def test_the_ith_set_of_a_source_stands_in_the_ith_role():
    assert roles_of(SETS) == {"fountain": "liberty", "wall": "notredame", "street": "yosemite"}
    with pytest.raises(ValueError, match="three different"):
        roles_of(("a", "b", "a"))


def test_records_fall_into_the_six_columns_of_table_1():
    frame = fpr95_by_column(six_columns("hardnet", 0, 10.0), SETS)
    assert tuple(frame.columns) == (*COLUMN_NAMES, "Mean")
    assert frame.loc[("hardnet", 0)].tolist() == [11, 12, 13, 14, 15, 16, 13.5]


def test_a_descriptor_that_is_not_trained_fills_both_columns_of_a_test_set():
    frame = fpr95_by_column([record("sift", None, None, fountain=1.0, wall=2.0, street=3.0)], SETS)
    assert frame.loc[("sift", 0)].tolist() == [1, 1, 2, 2, 3, 3, 2]


def test_a_mean_stands_only_where_all_six_columns_do():
    frame = fpr95_by_column(six_columns("hardnet", 0, 0.0)[:2], SETS)
    assert np.isnan(frame.loc[("hardnet", 0), "Mean"])
    assert frame.loc[("hardnet", 0)].isna().sum() == 3


def test_the_train_set_itself_is_no_test_column():
    runs = six_columns("hardnet", 0, 0.0)
    runs[0]["metrics"]["fountain"] = {"fpr95": {"expected": 99.0}}
    assert 99.0 not in fpr95_by_column(runs, SETS).to_numpy()


def test_what_else_a_run_was_measured_on_is_no_column():
    runs = six_columns("hardnet", 0, 0.0)
    before = fpr95_by_column(runs, SETS)
    runs[0]["metrics"]["walls"] = {"hpatches": {"matching": 50.0}}
    pd.testing.assert_frame_equal(fpr95_by_column(runs, SETS), before)


def test_two_records_of_one_value_and_unknown_sets_are_refused():
    runs = six_columns("hardnet", 0, 0.0)
    with pytest.raises(ValueError, match="two records of hardnet, seed 0"):
        fpr95_by_column([*runs, runs[0]], SETS)
    with pytest.raises(ValueError, match="names the set 'castle'"):
        fpr95_by_column([record("hardnet", "castle", 0, wall=1.0)], SETS)


def test_the_printed_table_is_laid_out_with_its_own_means():
    table = printed_by_column(printed("adasample", "table1"))
    assert table.loc["adasample_aug_gen"].tolist() == [1.25, 2.21, 0.40, 0.63, 1.40, 1.14, 1.17]
    assert table.loc["sift"].tolist() == [29.84, 29.84, 22.53, 22.53, 27.29, 27.29, 26.55]
    assert table.notna().to_numpy().all()


def beside() -> pd.DataFrame:
    records = [r for seed in range(3) for r in six_columns("hardnet_gen", seed, 10.0 + seed)]
    records.append(record("rootsift", None, None, fountain=20.0, wall=21.0, street=22.0))
    ours = fpr95_by_column(records, SETS)
    return paper_beside_ours(printed("adasample", "table1"), ours, {"rootsift": "RootSIFT"})


def test_paper_and_ours_stand_side_by_side_with_the_spread_over_seeds():
    table = beside()
    assert table.index[-1] == "RootSIFT"
    assert len(table) == 19
    row = table.loc["HardNet*"]
    assert row[("Ntr>Lib", "paper")] == 1.80
    assert row[("Ntr>Lib", "ours")] == 12.0
    assert row[("Mean", "ours")] == pytest.approx(14.5)
    assert row[("ours", "sd")] == pytest.approx(1.0)
    assert row[("ours", "n")] == 3
    assert np.isnan(table.loc["MatchNet", ("Mean", "ours")])


def test_a_method_without_a_label_is_refused_by_its_key():
    ours = fpr95_by_column([record("orb", None, None, fountain=1.0, wall=1.0, street=1.0)], SETS)
    with pytest.raises(ValueError, match="no label for orb"):
        paper_beside_ours(printed("adasample", "table1"), ours)


def test_table_1_prints_within_120_columns_with_aligned_columns():
    lines = as_text(beside()).splitlines()
    assert max(map(len, lines)) <= 120
    assert lines[0].split() == [*COLUMN_NAMES, "Mean", "ours"]
    ends = lines[1].index("dim") + 3
    assert all(line[:ends].endswith(("128", "4096", "256", "·", "dim")) for line in lines[1:])


def test_the_text_of_a_small_table_is_exactly_this(capsys):
    table = pd.DataFrame(
        {"value": [1.005, -0.001, np.nan], "n": pd.array([1, None, 30], dtype="Int64")},
        index=pd.Index(["a", "bb", "λ"], name="method"),
    )
    show(table)
    assert capsys.readouterr().out == (
        "method  value   n\na        1.00   1\nbb       0.00   ·\nλ           ·  30\n"
    )
    show(table, decimals={"value": 1})
    assert "1.0 " in capsys.readouterr().out


def test_heads_that_are_wider_than_their_columns_keep_the_columns_apart():
    columns = pd.MultiIndex.from_tuples(
        [("a very wide head", "x"), ("a very wide head", "y"), ("b", "z")]
    )
    table = pd.DataFrame([[1, 2, 3]], columns=columns, index=pd.Index(["m"], name="k"))
    head, second, row = as_text(table).splitlines()
    assert head.index("b") >= head.index("head") + 4
    assert [second.index(c) for c in "yz"] == [row.index(c) for c in "23"]


def test_a_saved_table_reads_back_and_saving_twice_gives_the_same_bytes(tmp_path):
    path = save_table(beside(), tmp_path, "adasample/table1")
    assert path == tmp_path / "tables" / "adasample" / "table1.csv"
    first = path.read_bytes()
    save_table(beside(), tmp_path, "adasample/table1")
    assert path.read_bytes() == first
    assert os.listdir(path.parent) == ["table1.csv"]
    back = pd.read_csv(path)
    assert list(back.columns[:4]) == ["Method", "dim", "Ntr>Lib paper", "Ntr>Lib ours"]
    assert back.loc[back["Method"] == "HardNet*", "Mean ours"].item() == 14.5


def test_without_a_folder_nothing_is_saved(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert save_table(beside(), None, "adasample/table1") is None
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["../table1", "/table1", "", "a//b", "a/..", "a\\b"])
def test_a_name_that_leads_out_of_the_folder_is_refused(tmp_path, name):
    with pytest.raises(ValueError, match="artefact name"):
        save_table(beside(), tmp_path, name)
    assert not any(tmp_path.iterdir())
