"""Every cell of every printed table as one tidy frame, and what a finding on a cell is."""

from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path

import pandas as pd

from lib.study.printed import PRINTED, printed

# What names a row, and what is said of a value; all else of a CSV tells the cells of a row apart.
OF_ROWS = ("paper", "table", "key", "label", "row", "block", "length")
OF_VALUES = ("text", "value", "decimals", "unit", "bold", "note", "column", "measure", "parts")
FINDING = ["rule", "paper", "table", "row", "column", "what", "printed", "expected", "weight"]
# The heaviest first: does it change a conclusion, a number, or only a digit?
WEIGHTS = ("conclusion", "number", "digit")
LOWER_IS_BETTER = ("fpr95", "fpr95_mean", "seed_mean", "seed_std", "reprojection_error")


def all_cells(folder: Path = PRINTED) -> pd.DataFrame:
    """The cells of all CSVs of a folder, in the tables' own order.

    Returns:
        As `lib.study.printed.printed`, and "paper", "table", "row" (the name that the paper itself
        gives the row), "text" (the value with the digits that are printed), "column" (what tells the
        cells of a row apart, in words), "measure" (the statistic; of a mean, what it is a mean of) and
        "parts" (of how many cells a mean is). What a table does not have is "".
    """
    frames = []
    for path in sorted(folder.glob("*.csv")):
        paper, _, table = path.stem.partition("_")
        frame = printed(paper, table, folder).assign(paper=paper, table=table)
        rates = frame["statistic"][frame["statistic"] != "column_mean"].unique()
        frame["measure"] = frame["statistic"].replace("column_mean", rates[0])
        frames.append(frame if "row" in frame else frame.assign(row=frame["label"]))
    told = {"block": "", "bold": "", "note": ""}
    cells = pd.concat(
        [frame.assign(**told | dict(frame)) for frame in frames], ignore_index=True
    ).fillna("")
    cells["text"] = [f"{of.value:.{of.decimals}f}" for of in cells.itertuples()]
    cells["column"] = [" ".join(filter(None, place)) for place in cells[places(cells)].to_numpy()]
    is_mean = cells["statistic"] == "column_mean"
    parts = (~is_mean).groupby([cells[name] for name in ("paper", "table", "key", "measure")])
    cells["parts"] = parts.transform("sum").where(is_mean, 0)
    return cells


def places(cells: pd.DataFrame) -> list[str]:
    """The names of the columns that tell the cells of a row apart."""
    return [name for name in cells if name not in (*OF_ROWS, *OF_VALUES)]


def exactly(cell: object) -> Decimal:
    """A cell's value as it is printed."""
    return Decimal(cell.text)


def half_unit(cell: object) -> Decimal:
    """How far at most the value before rounding lies from what is printed."""
    return Decimal(5).scaleb(-cell.decimals - 1)


def finding(cell: object, what: str, expected: object, weight: str) -> dict[str, str]:
    """What is wrong with a printed cell, and what would be expected in its place."""
    place = {name: getattr(cell, name) for name in ("paper", "table", "row", "column")}
    return {**place, "what": what, "printed": cell.text, "expected": str(expected), "weight": weight}


def as_frame(rule: str, rows: Iterable[dict[str, str]]) -> pd.DataFrame:
    """The findings of a rule; without any, a frame with the same columns and no row."""
    return pd.DataFrame([{"rule": rule, **row} for row in rows], columns=FINDING)
