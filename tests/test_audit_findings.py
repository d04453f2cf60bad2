"""The audit's lists are what the printed cells give: each rule recomputed, none left out or added."""

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
PLACE = ["paper", "table", "row", "printed"]
LOWER_IS_BETTER = ("fpr95", "fpr95_mean", "seed_mean", "seed_std", "reprojection_error")


def found(rule: str, *columns: str) -> set[tuple[str, ...]]:
    rows = FINDINGS[FINDINGS["rule"] == rule]
    return set(rows[[*PLACE, *columns]].itertuples(index=False, name=None))


def at(cell: object, *more: str) -> tuple[str, ...]:
    return (cell.paper, cell.table, cell.row, cell.text, *more)


def rates() -> dict[tuple[str, str, str], dict[str, str]]:
    """By paper, key and row FPR95 on PhotoTour and its mean, of the paper's table that has most."""
    rows = {}
    for (paper, table, key), cells in CELLS.groupby(["paper", "table", "key"], sort=False):
        own = cells[cells["statistic"].isin(["fpr95", "column_mean"])]
        if (own["statistic"] == "fpr95").any():
            numbers = dict(zip(own["train"] + ">" + own["test"], own["text"], strict=True))
            known = rows.get((paper, key))
            if known is None or len(known[2]) < len(numbers):
                first = own.iloc[0]
                name = first["label"] if first["row"].startswith("Ours") else first["row"]
                rows[paper, key] = (name, table, numbers)
    return {(paper, key, name): numbers for (paper, key), (name, _, numbers) in rows.items()}


def agree(one: str, other: str) -> bool:
    """Whether two cells can be the same value, printed with the same or with different digits."""
    digits = [len(text.partition(".")[2]) for text in (one, other)]
    slack = sum(Decimal(5).scaleb(-count - 1) for count in digits) if len(set(digits)) > 1 else 0
    return abs(Decimal(one) - Decimal(other)) <= slack


def differing(one: dict[str, str], other: dict[str, str]) -> list[str] | None:
    """Where two rows differ, in one cell at most; None of rows that are not the same."""
    shared = one.keys() & other.keys()
    unequal = [place for place in shared if not agree(one[place], other[place])]
    return unequal if len(shared) >= 3 and len(unequal) <= 1 else None


def test_findings_are_on_printed_rows_and_the_heaviest_stand_first():
    assert FINDINGS["weight"].isin(["number", "digit"]).all()
    assert FINDINGS["weight"].is_monotonic_decreasing
    rows = set(CELLS[PLACE[:3]].itertuples(index=False, name=None))
    assert set(FINDINGS[PLACE[:3]].itertuples(index=False, name=None)) <= rows


def test_means_are_listed_where_neither_rounding_of_their_columns_gives_them():
    """The columns' own misprints are put right first: these are listed once, as what they are."""
    misprints = FINDINGS[FINDINGS["rule"].isin(["the same cell elsewhere", "off the grid"])]
    right = misprints.set_index(PLACE)["expected"].to_dict()
    wrong = set()
    for mean in CELLS[CELLS["statistic"].isin(["column_mean", "fpr95_mean"])].itertuples():
        parts = CELLS[(CELLS["paper"] == mean.paper) & (CELLS["key"] == mean.key)]
        if mean.statistic == "column_mean":
            parts = parts[(parts["table"] == mean.table) & (parts["statistic"] != "column_mean")]
        else:
            parts = parts[(parts["statistic"] == "fpr95") & (parts["train"] == mean.train)]
            parts = parts[parts["table"] == parts["table"].min()]
        if len(parts):
            columns = [right.get(at(cell), cell.text) for cell in parts.itertuples()]
            exact = sum(map(Decimal, columns)) / len(columns)
            unit = Decimal(1).scaleb(-mean.decimals)
            rounded = [exact.quantize(unit, way) for way in (ROUND_HALF_UP, ROUND_HALF_EVEN)]
            wrong |= set() if Decimal(mean.text) in rounded else {at(mean, f"{exact:.4f}")}
    assert wrong == found("means", "expected")


def test_gains_are_listed_where_the_printed_means_do_not_give_them():
    wrong = set()
    for _, column in CELLS.query("paper == 'adasample' and table == 'table3'").groupby(
        ["train", "test"]
    ):
        [gain] = column[column["statistic"] == "relative_gain"].itertuples()
        means = column[column["statistic"] == "seed_mean"].set_index("key")["text"].map(Decimal)
        exact = 100 * (1 - means[gain.key] / means.drop(gain.key).item())
        wrong |= (
            {at(gain, f"{exact:.2f}")} if abs(exact - Decimal(gain.text)) > Decimal("0.005") else set()
        )
    assert wrong == found("relative gains", "expected")


def test_scores_are_listed_where_no_count_of_matches_gives_them():
    """Of 500 keypoints in each of five pairs of images."""
    scores = CELLS[CELLS["statistic"] == "matching_score"].itertuples()
    step = Decimal(100) / 2_500
    gaps = [(cell, abs(round(Decimal(cell.text) / step) * step - Decimal(cell.text))) for cell in scores]
    assert {at(cell) for cell, gap in gaps if gap > Decimal("0.005")} == found("off the grid")


def test_p_values_are_listed_that_the_likeliest_test_gives_only_with_too_many_equal_runs():
    """Three times as many equal pairs as normal rates in steps of 0.002 points have at most."""
    comparisons = adasample.comparisons()
    likeliest, tied = adasample.forms_table(comparisons).iloc[0], set()
    for column, paper in comparisons.iterrows():
        equal = sum(math.comb(int(size), 2) for size in re.findall(r"\d+(?=[+)])", likeliest[column]))
        density = 1 / (2 * math.sqrt(math.pi) * min(paper["lower_std"], paper["higher_std"]))
        if equal > 3 * math.comb(2 * adasample.PRINTED_RUNS, 2) * 0.002 * density:
            tied.add(
                ("adasample", "table3", "AdaSample+*", f"{paper['p']:.3f}", f"U = {likeliest[column]}")
            )
    assert tied == found("p-values", "expected")


def test_what_is_bold_is_the_best_of_its_column_and_block():
    marked = CELLS[CELLS.groupby(["paper", "table"])["bold"].transform(lambda bold: bold.ne("").any())]
    assert len(marked) > 100
    where = [name for name in cell_columns(marked) if name != "train"]
    for _, block in marked.groupby(["paper", "table", "block", *where]):
        trains = [None] if block["key"].is_unique else filter(None, block["train"].unique())
        for train in trains:
            column = block if train is None else block[block["train"].isin([train, ""])]
            lower = column["statistic"].iloc[0] in (*LOWER_IS_BETTER, "column_mean")
            best = column["value"].min() if lower else column["value"].max()
            assert ((column["bold"] != "") == (column["value"] == best)).all()


def test_cells_and_names_are_listed_where_papers_print_a_row_otherwise():
    cells, names = set(), set()
    for (one, first), (other, second) in itertools.combinations(rates().items(), 2):
        unequal = differing(first, second)
        if one[0] == other[0] or unequal is None:
            continue
        if one[1] == other[1]:
            # Means are held against their own columns above.
            cells |= {frozenset((first[place], second[place])) for place in unequal if place != ">"}
        plain = [name.lower().translate({ord(" "): "", ord("-"): ""}) for *_, name in (one, other)]
        if plain[0] != plain[1]:
            names.add(frozenset((one[2], other[2])))
    rows = FINDINGS[FINDINGS["rule"] == "the same cell elsewhere"]
    assert cells == {frozenset(pair) for pair in zip(rows["printed"], rows["expected"], strict=True)}
    same = FINDINGS[FINDINGS["what"] == "the same numbers have another name"]
    told = {
        frozenset((row.printed, name.partition(" (")[0]))
        for row in same.itertuples()
        for name in row.expected.split(", ")
    }
    assert told == names


def test_rows_that_travel_are_told_apart_by_what_changes_on_the_way():
    known: dict[tuple[str, str], dict[str, str]] = {}
    for (paper, _, name), numbers in rates().items():
        # Of two rows under one name the real-valued one comes first.
        known.setdefault((paper, name), numbers)
    for _, rows in REPRINTED.groupby("method", sort=False):
        numbers = [known[row.paper, row.row] for row in rows.itertuples()]
        for before, own, row in zip(numbers, numbers[1:], rows.iloc[1:].itertuples(), strict=False):
            unequal = [at for at in before if at in own and not agree(before[at], own[at])]
            assert (row.other == "numbers") == bool(unequal), row
            if len(unequal) == 1:
                assert row.change == f"{before[unequal[0]]} → {own[unequal[0]]}"
    assert (pd.Series(REPRINTED["other"]).value_counts()[["name", "numbers"]] == [4, 5]).all()
