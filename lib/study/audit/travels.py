"""Rows that several papers print: where their numbers or their names change on the way.

Rows of different papers are of one method if they have one key. Under which name a paper prints a row,
and whether two rows are the same numbers, is asked of FPR95 on UBC PhotoTour, which all four print.
"""

from collections import Counter

import pandas as pd

from lib.study.audit.cells import LOWER_IS_BETTER, as_frame, exactly, finding, half_unit, places

# Rows are the same if at most one of their cells differs, and at least so many are printed in both.
SHARED = 3


def same_cells(cells: pd.DataFrame) -> pd.DataFrame:
    """Cells of one method and column that papers, or tables of a paper, print differently.

    What most print is expected; where there are as many of each, every one is named. Rows that share
    but few numbers are not one row: `names` tells what they are.
    """
    rows, found = [], {(of["paper"], of["key"]): of for of in rows_of(cells)}
    once = {"seed_mean": "fpr95"}
    alike = cells.assign(**cells[["statistic", "measure"]].replace(once))
    for (key, *_), of in alike.groupby(["key", "measure", "parts", *places(cells)], sort=False):
        told = list(of.itertuples())
        for cell in told:
            others = [of for of in told if not agree(cell, of)]
            known = [found.get((of.paper, key)) for of in (cell, *others)]
            apart = all(known) and not any(same_numbers(known[0], of) for of in known[1:])
            if 2 * len(others) >= len(told) > 1 and not apart:
                where = ", ".join(sorted({f"{of.paper} {of.table}" for of in others}))
                expected = " or ".join(sorted({of.text for of in others}))
                units = max(abs(exactly(cell) - exactly(of)) / half_unit(cell) / 2 for of in others)
                weight = "digit" if units <= 1 else "number"
                rows.append(finding(cell, f"printed otherwise in {where}", expected, weight))
    return as_frame("the same cell elsewhere", rows)


def names(cells: pd.DataFrame) -> pd.DataFrame:
    """Rows that bear another name than the same numbers elsewhere, or the name of other numbers.

    Of rows with the same numbers those are named whose own name stands elsewhere for other numbers, or
    else those whose name is not that of most.
    """
    found, told = rows_of(cells), []
    for row in found:
        same, strangers = twins(row, found), _strangers(row, found)
        group = [row, *same]
        names_of = Counter(of["name"] for of in group)
        if len(names_of) > 1:
            confused = any(_strangers(of, found) for of in group)
            most = names_of[row["name"]] > len(group) / 2
            if not (bool(strangers) if confused else not most):
                continue
            others = [of for of in same if of["name"] != row["name"]]
            expected = sorted(f"{of['row']} ({of['paper']})" for of in others)
            what, weight = "the same numbers have another name", "number" if strangers else "digit"
        elif strangers and not same and not any(twins(of, found) for of in strangers):
            expected = sorted(f"{of['text']} ({of['paper']})" for of in strangers)
            what, weight = "the same name has other numbers", "number"
        else:
            continue
        told.append(
            finding(row["first"], what, ", ".join(expected), weight)
            | {"printed": row["row"], "column": ""}
        )
    return as_frame("names of rows", told)


def bold_cells(cells: pd.DataFrame) -> pd.DataFrame:
    """Bold cells that are not the best of their column and block, and best ones that are not bold.

    Rows without a train set are compared in every column of their test set.
    """
    rows = []
    marked = cells.groupby(["paper", "table"])["bold"].transform(lambda of: (of != "").any())
    where = [name for name in places(cells) if name != "train"]
    for _, of in cells[marked].groupby(["paper", "table", "block", *where], sort=False):
        by_row = of["key"].is_unique
        for train in [None] if by_row else filter(None, of["train"].unique()):
            column = of if by_row else of[of["train"].isin([train, ""])]
            lower = column["measure"].iloc[0] in LOWER_IS_BETTER
            best = column["value"].min() if lower else column["value"].max()
            for cell in column.itertuples():
                if (cell.bold != "") != (cell.value == best):
                    what = "bold, and not the best" if cell.bold else "the best, and not bold"
                    rows.append(finding(cell, what, f"{best:.{cell.decimals}f}", "number"))
    return as_frame("bold cells", rows)


def beaten(cells: pd.DataFrame) -> pd.DataFrame:
    """A paper's own method that has the lowest mean FPR95 of its table, and not of all that is printed.

    A method is a paper's own if its key begins with the paper's name. What others print of theirs does
    not count, so that later work does not, nor do rows with other columns, or that the table has.
    """
    rows = []
    means = cells[(cells["statistic"] == "column_mean") & (cells["measure"] == "fpr95")]
    means = means.assign(own=[of.key.startswith(of.paper) for of in means.itertuples()])
    for (paper, _), of in means.groupby(["paper", "table"], sort=False):
        best = next(of.sort_values("value", kind="stable").itertuples())
        lower = means[(means["value"] < best.value) & (means["parts"] == best.parts) & ~means["own"]]
        lower = lower[~lower["key"].isin(of["key"]) & (lower["paper"] != paper)].drop_duplicates("key")
        if best.own and len(lower):
            told = ", ".join(f"{row.row} {row.text} ({row.paper})" for row in lower.itertuples())
            rows.append(finding(best, "the lowest here, not of all that is printed", told, "conclusion"))
    return as_frame("lowest of all", rows)


def rows_of(cells: pd.DataFrame) -> list[dict[str, object]]:
    """The rows of FPR95 of each paper, one that several tables of a paper have once, from the largest.

    Returns:
        "paper", "key", "row"; "name", that without what papers write differently; "numbers", the cells
        by (train, test), the mean's by ("", ""); "text", these in one line; "first", one of them.
    """
    found = []
    rates = cells[cells["statistic"].isin(["fpr95", "column_mean"]) & (cells["measure"] == "fpr95")]
    for (paper, key), of in rates.groupby(["paper", "key"], sort=False):
        of = of[of["table"] == of["table"].value_counts().idxmax()]
        first = next(of.itertuples())
        row = first.label if first.row.startswith("Ours") else first.row
        name = "".join(letter for letter in row.lower() if letter not in " -")
        name += " binary" * (first.block == "binary")
        numbers = {(cell.train, cell.test): cell for cell in of.itertuples()}
        more = {"numbers": numbers, "text": " ".join(of["text"]), "first": first}
        found.append({"paper": paper, "key": key, "row": row, "name": name} | more)
    return found


def same_numbers(one: dict, other: dict) -> bool:
    """Whether two rows of `rows_of` differ in one cell at most."""
    shared = one["numbers"].keys() & other["numbers"].keys()
    equal = sum(agree(one["numbers"][place], other["numbers"][place]) for place in shared)
    return len(shared) >= SHARED and equal >= len(shared) - 1


def twins(row: dict, found: list[dict]) -> list[dict]:
    """Rows of other papers with the same numbers."""
    return [of for of in found if of["paper"] != row["paper"] and same_numbers(row, of)]


def _strangers(row: dict, found: list[dict]) -> list[dict]:
    """Rows of other papers with the same name and other numbers."""
    elsewhere = [of for of in found if of["paper"] != row["paper"] and of["name"] == row["name"]]
    return [of for of in elsewhere if not same_numbers(row, of)]


def agree(one: object, other: object) -> bool:
    """Whether two cells can be the same value, printed with the same or with different digits."""
    if one.decimals == other.decimals:
        return exactly(one) == exactly(other)
    return abs(exactly(one) - exactly(other)) <= half_unit(one) + half_unit(other)
