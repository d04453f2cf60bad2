"""What the audit finds in the papers' own tables, and how its notebook shows it."""

from __future__ import annotations

import pandas as pd
import pytest

from lib.study.audit import sentences, showing
from lib.study.audit.cells import WEIGHTS, all_cells

CELLS = all_cells()
FOUND = showing.of_cells(CELLS)
# TCDesc's tables have a list of their own.
OURS = FOUND[FOUND["paper"] != "tcdesc"]


def told(weight: str) -> set[tuple[str, ...]]:
    of = OURS[OURS["weight"] == weight]
    return set(of[["rule", "paper", "row", "printed"]].itertuples(index=False, name=None))


def test_the_heaviest_findings_stand_first():
    weights = [WEIGHTS.index(of) for of in FOUND["weight"]]
    assert weights == sorted(weights)


def test_what_is_wrong_with_numbers_is_hynets_tfeat_and_its_names():
    assert {of for of in told("number") if of[0] != "names of rows"} == {
        ("means", "hynet", "TFeat", "6.64"),
        ("the same cell elsewhere", "hynet", "TFeat", "10.13"),
    }
    renamed = {of[2] for of in told("number") if of[0] == "names of rows"}
    assert {"HardNet", "L2-Net"} <= renamed <= {"HardNet", "L2-Net", "SOSNet"}


def test_most_digits_are_means_that_were_cut_off():
    means = {(paper, row) for rule, paper, row, _ in told("digit") if rule == "means"}
    assert means == {
        *(("adasample", row) for row in ("DeepDesc", "GeoDesc", "CS-L2-Net", "CS-L2-Net+", "HardNet+")),
        *(("adasample", "HardNet-GOR+"), ("dsm", "CS-L2-Net+"), ("hynet", "HardNet")),
    }
    assert {of[3] for of in told("digit") if of[0] == "p-values"} == {"0.031", "0.337"}
    assert {of[3] for of in told("digit") if of[0] == "relative gains"} == {"4.28", "1.58", "6.62"}


def test_two_papers_are_the_lowest_of_their_own_tables_and_not_of_all():
    assert {(paper, printed) for _, paper, _, printed in told("conclusion")} == {
        ("adasample", "1.17"),
        ("dsm", "1.18"),
    }
    assert OURS[OURS["weight"] == "conclusion"]["expected"].str.contains("SOSNet 1.03").all()


def test_no_bold_cell_is_wrong_and_no_rate_is_off_the_grid():
    assert not set(OURS["rule"]) & {"bold cells", "off the grid"}


def test_the_row_behind_a_finding_is_printed_whole():
    tfeat = FOUND[FOUND["printed"] == "10.13"].iloc[0]
    assert showing.row_of(tfeat, CELLS) == "7.39 10.13 3.06 3.80 8.06 7.24 6.64"


def test_a_sentence_is_told_with_its_cells_as_they_are_printed(capsys):
    judged = sentences.judged(CELLS).set_index("id", drop=False)
    showing.tell(judged.loc["hynet-t3-similarity-order"], CELLS)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "HyNet, Table 3: “by 1.87 and 0.78 respectively”"
    assert lines[1].startswith("Fails: s_H improves on s by more than on d")
    assert [line.split() for line in lines[2:4]] == [
        ["d,", "best", "margin", "s,", "best", "margin", "s_H,", "best", "margin"],
        ["52.10", "53.19", "53.97"],
    ]
    assert max(map(len, lines)) <= showing.WIDTH
    showing.tell(judged.loc["adasample-p-eq-24"], CELLS)
    assert "\nSo it is where" in capsys.readouterr().out


def test_counts_are_by_paper():
    frame = pd.DataFrame({"paper": ["a", "a", "b"], "weight": ["digit", "digit", "number"]})
    assert showing.counts(frame, "weight").to_dict() == {
        "digit": {"a": 2, "b": 0},
        "number": {"a": 0, "b": 1},
    }


@pytest.fixture(scope="module")
def axes():
    return showing.travels_figure(CELLS).axes[0]


def test_rows_that_travel_are_drawn_with_their_names_and_changes(axes):
    texts = {text.get_text() for text in axes.texts}
    assert {"HardNet+", "HardNet", "TFeat-M*", "10.31 → 10.13", "1.52 → 1.51"} <= texts
    # Two methods under one name, and one method with the numbers of another.
    assert {"SOSNet", "7 numbers", "those of CS-L2-Net"} <= texts
    # 7.0 and 6.99 are one value with fewer and with more digits.
    assert not any("6.99" in text for text in texts)
    # ORB stands in one paper alone.
    assert "ORB" not in texts


def test_marks_tell_another_number_and_another_name(axes):
    marks = {line.get_marker() for line in axes.lines}
    assert {"o", "s", "D"} <= marks
