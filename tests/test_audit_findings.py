"""The audit's lists follow from the printed cells: each rule recomputed, none missing or added."""

from __future__ import annotations

import itertools
import math
import re
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal

import pandas as pd

from lib.study.audit import listed
from lib.study.printed import all_cells, cell_columns
from lib.study.report import adasample

CELLS, FINDINGS, REPRINTED = all_cells(), listed("findings"), listed("reprinted")
CELL_KEY = ["paper", "table", "row", "printed"]
LOWER_IS_BETTER = ("fpr95", "fpr95_mean", "seed_mean", "seed_std", "reprojection_error")


def findings(rule: str, *columns: str) -> set[tuple[str, ...]]:
    rows = FINDINGS[FINDINGS["rule"] == rule]
    return set(rows[[*CELL_KEY, *columns]].itertuples(index=False, name=None))


def cell_key(cell: object, *more: str) -> tuple[str, ...]:
    return (cell.paper, cell.table, cell.row, cell.text, *more)


def rates() -> dict[tuple[str, str, str], dict[str, str]]:
    """Return FPR95 on PhotoTour and its mean by paper, key and row, from the table with most cells."""
    rows = {}
    for (paper, table, key), cells in CELLS.groupby(["paper", "table", "key"], sort=False):
        printed = cells[cells["statistic"].isin(["fpr95", "column_mean"])]
        if (printed["statistic"] == "fpr95").any():
            numbers = dict(zip(printed["train"] + ">" + printed["test"], printed["text"], strict=True))
            longest = rows.get((paper, key))
            if longest is None or len(longest[2]) < len(numbers):
                first = printed.iloc[0]
                name = first["label"] if first["row"].startswith("Ours") else first["row"]
                rows[paper, key] = (name, table, numbers)
    return {(paper, key, name): numbers for (paper, key), (name, _, numbers) in rows.items()}


def agree(one: str, other: str) -> bool:
    """Whether two cells can be the same value, printed with the same or with different digits."""
    digits = [len(text.partition(".")[2]) for text in (one, other)]
    slack = sum(Decimal(5).scaleb(-count - 1) for count in digits) if len(set(digits)) > 1 else 0
    return abs(Decimal(one) - Decimal(other)) <= slack


def differing(one: dict[str, str], other: dict[str, str]) -> list[str] | None:
    """List where two rows differ, at most one cell; None if they are not the same row."""
    shared = one.keys() & other.keys()
    unequal = [column for column in shared if not agree(one[column], other[column])]
    return unequal if len(shared) >= 3 and len(unequal) <= 1 else None


def test_findings_are_on_printed_rows_and_the_heaviest_come_first():
    assert FINDINGS["weight"].isin(["number", "digit"]).all()
    assert FINDINGS["weight"].is_monotonic_decreasing
    rows = set(CELLS[CELL_KEY[:3]].itertuples(index=False, name=None))
    assert set(FINDINGS[CELL_KEY[:3]].itertuples(index=False, name=None)) <= rows


def test_means_that_neither_rounding_of_their_columns_gives_are_listed():
    """Misprints of the columns are corrected first, because they are listed by a rule of their own."""
    misprints = FINDINGS[FINDINGS["rule"].isin(["the same cell elsewhere", "off the grid"])]
    corrections = misprints.set_index(CELL_KEY)["expected"].to_dict()
    expected = set()
    for mean in CELLS[CELLS["statistic"].isin(["column_mean", "fpr95_mean"])].itertuples():
        parts = CELLS[(CELLS["paper"] == mean.paper) & (CELLS["key"] == mean.key)]
        if mean.statistic == "column_mean":
            parts = parts[(parts["table"] == mean.table) & (parts["statistic"] != "column_mean")]
        else:
            parts = parts[(parts["statistic"] == "fpr95") & (parts["train"] == mean.train)]
            parts = parts[parts["table"] == parts["table"].min()]
        if len(parts):
            columns = [corrections.get(cell_key(cell), cell.text) for cell in parts.itertuples()]
            exact = sum(map(Decimal, columns)) / len(columns)
            unit = Decimal(1).scaleb(-mean.decimals)
            rounded = [exact.quantize(unit, mode) for mode in (ROUND_HALF_UP, ROUND_HALF_EVEN)]
            expected |= set() if Decimal(mean.text) in rounded else {cell_key(mean, f"{exact:.4f}")}
    assert expected == findings("means", "expected")


def test_gains_that_the_printed_means_do_not_give_are_listed():
    expected = set()
    for _, column in CELLS.query("paper == 'adasample' and table == 'table3'").groupby(
        ["train", "test"]
    ):
        [gain] = column[column["statistic"] == "relative_gain"].itertuples()
        means = column[column["statistic"] == "seed_mean"].set_index("key")["text"].map(Decimal)
        exact = 100 * (1 - means[gain.key] / means.drop(gain.key).item())
        expected |= (
            {cell_key(gain, f"{exact:.2f}")}
            if abs(exact - Decimal(gain.text)) > Decimal("0.005")
            else set()
        )
    assert expected == findings("relative gains", "expected")


def test_scores_that_no_count_of_matches_gives_are_listed():
    """Scores are over 500 keypoints in each of five image pairs."""
    scores = CELLS[CELLS["statistic"] == "matching_score"].itertuples()
    step = Decimal(100) / 2_500
    gaps = [(cell, abs(round(Decimal(cell.text) / step) * step - Decimal(cell.text))) for cell in scores]
    assert {cell_key(cell) for cell, gap in gaps if gap > Decimal("0.005")} == findings("off the grid")


def test_p_values_that_need_too_many_equal_runs_in_the_likeliest_test_are_listed():
    """Too many: over three times the most that normal rates in steps of 0.002 points have."""
    comparisons = adasample.comparisons()
    likeliest, expected = adasample.forms_table(comparisons).iloc[0], set()
    for column, paper in comparisons.iterrows():
        equal = sum(math.comb(int(size), 2) for size in re.findall(r"\d+(?=[+)])", likeliest[column]))
        density = 1 / (2 * math.sqrt(math.pi) * min(paper["lower_std"], paper["higher_std"]))
        if equal > 3 * math.comb(2 * adasample.PRINTED_RUNS, 2) * 0.002 * density:
            expected.add(
                ("adasample", "table3", "AdaSample+*", f"{paper['p']:.3f}", f"U = {likeliest[column]}")
            )
    assert expected == findings("p-values", "expected")


def test_bold_marks_the_best_of_each_column_and_block():
    marked = CELLS[CELLS.groupby(["paper", "table"])["bold"].transform(lambda bold: bold.ne("").any())]
    assert len(marked) > 100
    columns = [name for name in cell_columns(marked) if name != "train"]
    for _, block in marked.groupby(["paper", "table", "block", *columns]):
        trains = [None] if block["key"].is_unique else filter(None, block["train"].unique())
        for train in trains:
            column = block if train is None else block[block["train"].isin([train, ""])]
            lower = column["statistic"].iloc[0] in (*LOWER_IS_BETTER, "column_mean")
            best = column["value"].min() if lower else column["value"].max()
            assert ((column["bold"] != "") == (column["value"] == best)).all()


def test_cells_and_names_that_differ_between_papers_are_listed():
    cells, names = set(), set()
    for (one, first), (other, second) in itertools.combinations(rates().items(), 2):
        unequal = differing(first, second)
        if one[0] == other[0] or unequal is None:
            continue
        if one[1] == other[1]:
            # Means are compared with their own columns above.
            cells |= {frozenset((first[column], second[column])) for column in unequal if column != ">"}
        normalised = [name.lower().translate({ord(" "): "", ord("-"): ""}) for *_, name in (one, other)]
        if normalised[0] != normalised[1]:
            names.add(frozenset((one[2], other[2])))
    rows = FINDINGS[FINDINGS["rule"] == "the same cell elsewhere"]
    assert cells == {frozenset(pair) for pair in zip(rows["printed"], rows["expected"], strict=True)}
    renamed = FINDINGS[FINDINGS["what"] == "the same numbers have another name"]
    listed_names = {
        frozenset((row.printed, name.partition(" (")[0]))
        for row in renamed.itertuples()
        for name in row.expected.split(", ")
    }
    assert listed_names == names


def test_reprinted_rows_are_marked_by_the_numbers_that_changed():
    printed: dict[tuple[str, str], dict[str, str]] = {}
    for (paper, _, name), numbers in rates().items():
        # The real-valued one of two rows with one name comes first.
        printed.setdefault((paper, name), numbers)
    for _, rows in REPRINTED.groupby("method", sort=False):
        numbers = [printed[row.paper, row.row] for row in rows.itertuples()]
        for before, after, row in zip(numbers, numbers[1:], rows.iloc[1:].itertuples(), strict=False):
            unequal = [
                column
                for column in before
                if column in after and not agree(before[column], after[column])
            ]
            assert (row.other == "numbers") == bool(unequal), row
            if len(unequal) == 1:
                assert row.change == f"{before[unequal[0]]} → {after[unequal[0]]}"
    assert (pd.Series(REPRINTED["other"]).value_counts()[["name", "numbers"]] == [4, 5]).all()
