"""The papers' printed values: complete, and the same where a paper prints them twice."""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal

import pytest

from lib.study.printed import printed

COLUMNS = {
    ("notredame", "liberty"),
    ("yosemite", "liberty"),
    ("liberty", "notredame"),
    ("yosemite", "notredame"),
    ("liberty", "yosemite"),
    ("notredame", "yosemite"),
}
TRAIN_FREE = {"sift", "deepdesc", "geodesc", "orb", "ldahash"}
ROWS = {"adasample": 18, "dsm": 20, "hynet": 7, "tcdesc": 14}
# The table of patch verification, where it is not the first.
VERIFICATION = {"tcdesc": "table2"}
TABLES_3_4 = ("table3", "table4")


def verification(paper: str):
    return printed(paper, VERIFICATION.get(paper, "table1"))


@pytest.mark.parametrize("paper", ROWS)
def test_table_1_holds_every_row_with_all_its_columns_and_its_mean(paper):
    table = verification(paper)
    assert table["key"].nunique() == table["label"].nunique() == ROWS[paper]
    for key, row in table.groupby("key"):
        values = row[row["statistic"] == "fpr95"]
        if key in TRAIN_FREE:
            assert list(values["test"]) == ["liberty", "notredame", "yosemite"]
            assert set(values["train"]) == {""}
        else:
            assert set(zip(values["train"], values["test"], strict=True)) == COLUMNS
            assert len(values) == 6
        assert (row["statistic"] == "column_mean").sum() == 1
        assert row["length"].nunique() == row["label"].nunique() == 1


def test_hynets_table_5_has_the_rows_of_its_table_1_and_sosr_loses_on_liberty_alone():
    first, fifth = (
        printed("hynet", name).set_index(["key", "train", "test"])["value"]
        for name in ("table1", "table5")
    )
    shared = fifth.index[fifth.index.get_level_values("key").isin(first.index.levels[0])]
    assert fifth[shared].equals(first[shared])
    change = fifth["hynet_sosr"] - fifth["hynet_aug"]
    assert {test for (_, test), points in change.items() if points > 0} == {"liberty"}


def test_dsms_ablations_repeat_its_rows_of_table_1_and_of_each_other():
    first = printed("dsm", "table1").set_index(["key", "train", "test"])["value"]
    third, fourth = (
        printed("dsm", name).set_index(["key", "test", "task"]).sort_index() for name in TABLES_3_4
    )
    for key in ("dsm_aug", "dsm_binary_aug"):
        mean = (first[key, "liberty", "notredame"] + first[key, "liberty", "yosemite"]) / 2
        assert third.loc[(key, "", ""), "value"] == pytest.approx(mean, abs=1e-9)
        assert third.loc[key, "value"].equals(fourth.loc[key, "value"])


def test_table_3_rounds_to_the_rows_of_table_1():
    first = printed("adasample", "table1").set_index(["key", "train", "test", "statistic"])
    third = printed("adasample", "table3")
    means = third[third["statistic"] == "seed_mean"]
    assert len(means) == 12
    for row in means.itertuples():
        table1_value = first.loc[(row.key, row.train, row.test, "fpr95"), "value"]
        table3_value = Decimal(f"{row.value:.3f}")
        assert abs(table3_value - Decimal(f"{table1_value:.2f}")) <= Decimal("0.005"), row


def test_tcdesc_has_the_same_row_in_all_its_ablations():
    rows = [
        tuple(frame.loc[frame["key"] == "tcdesc_dsm_aug", "value"])
        for frame in (printed("tcdesc", table) for table in ("table1", "table3", "table5"))
    ]
    assert set(rows) == {(0.37, 1.33, 0.85)}


def test_numbers_and_claims_are_imported_without_torch_and_without_matplotlib():
    code = (
        "import sys; import lib.study.printed, lib.study.claims, "
        "lib.study.claims.measured, lib.study.audit, lib.study.report.frames; "
        "print([name for name in ('torch', 'matplotlib', 'nbconvert') if name in sys.modules])"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "[]"
