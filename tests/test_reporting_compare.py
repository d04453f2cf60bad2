"""Results against the reference: a missing artefact fails, a differing number is reported."""

from __future__ import annotations

import pytest

from lib.study.report.page import compare as module
from lib.study.report.page.compare import compare


@pytest.fixture
def folders(tmp_path):
    for name in ("results", "reference"):
        for kind, file, text in (
            ("tables", "adasample/table1.csv", "Method,Mean,n\nSIFT,26.55,1\nHardNet,,5\n"),
            ("figures", "adasample/table1.png", "picture"),
            ("records", "hardnet.json", "{}"),
        ):
            path = tmp_path / name / kind / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return tmp_path / "results", tmp_path / "reference"


def test_equal_folders_pass_without_a_difference(folders):
    outcome = compare(*folders)
    assert outcome.missing == outcome.extra == ()
    assert outcome.compared == (1, 6)
    assert outcome.differences.empty
    assert "No cell differs." in outcome.text()


@pytest.mark.parametrize("name", ["tables/adasample/table1.csv", "figures/adasample/table1.png"])
def test_a_missing_table_or_figure_fails_by_name(folders, name):
    results, reference = folders
    (results / name).unlink()
    outcome = compare(results, reference)
    assert outcome.missing == (name,)
    assert f"MISSING: {name}" in outcome.text()
    assert compare(results, reference, selected=["dsm/table1", "adasample/table"]).missing == ()
    assert compare(reference, results).extra == (name,)


def test_numbers_beyond_the_tolerance_are_reported_and_do_not_fail(folders):
    results, reference = folders
    table = results / "tables/adasample/table1.csv"
    table.write_text("Method,Mean,n\nSIFT,26.59,1\nHardNet,9.5,5\n", encoding="utf-8")
    outcome = compare(results, reference)
    assert outcome.missing == ()
    found = [(d.table, d.row, d.column, d.results) for d in outcome.differences.itertuples()]
    name = "tables/adasample/table1.csv"
    assert found == [(name, "SIFT", "Mean", "26.59"), (name, "HardNet", "Mean", "9.5")]
    assert outcome.differences["difference"].iloc[0] == pytest.approx(0.04)
    assert outcome.differences["difference"].isna().tolist() == [False, True]
    assert "2 cells differ" in outcome.text()
    assert "26.55 -> 26.59" in outcome.text()
    assert "and 1 more" in outcome.text(most=1)


def test_numbers_within_the_tolerance_agree(folders, monkeypatch):
    results, reference = folders
    table = results / "tables/adasample/table1.csv"
    table.write_text("Method,Mean,n\nSIFT,26.58,1\nHardNet,,5\n", encoding="utf-8")
    assert compare(results, reference).differences.empty
    monkeypatch.setattr(module, "RELATIVE", 0)
    assert len(compare(results, reference).differences) == 1


def test_changed_words_are_reported(folders):
    results, reference = folders
    table = results / "tables/adasample/table1.csv"
    table.write_text("Method,Mean,n\nRootSIFT,26.55,1\nHardNet,,5\n", encoding="utf-8")
    (row,) = compare(results, reference).differences.itertuples()
    assert (row.row, row.column, row.reference, row.results) == ("row 1", "Method", "SIFT", "RootSIFT")


def test_a_table_of_another_shape_is_one_difference(folders):
    results, reference = folders
    (results / "tables/adasample/table1.csv").write_text("Method,Mean\nSIFT,1\n", encoding="utf-8")
    (row,) = compare(results, reference).differences.itertuples()
    assert row.column == "(shape)"
    assert "(2, 3)" in row.reference
    assert "(1, 2)" in row.results


def test_bytes_of_figures_and_records_are_not_compared(folders):
    results, reference = folders
    (results / "figures/adasample/table1.png").write_text("another picture", encoding="utf-8")
    (results / "records/hardnet.json").unlink()
    outcome = compare(results, reference)
    assert outcome.missing == ()
    assert outcome.differences.empty
