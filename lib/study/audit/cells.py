"""Every cell of every printed table as one tidy frame, and what is wrong with some of them."""

from pathlib import Path

import pandas as pd

from lib.study.printed import PRINTED, printed

AUDIT = Path(__file__).parent
# What names a row, and what is said of a value; all else of a CSV tells the cells of a row apart.
ROW_COLUMNS = ("paper", "table", "key", "label", "row", "block", "length")
VALUE_COLUMNS = ("text", "value", "decimals", "unit", "bold", "note")
# The heaviest first: does it change a conclusion, a number, or only a digit?
WEIGHTS = ("conclusion", "number", "digit")


def all_cells() -> pd.DataFrame:
    """The cells of all printed tables, in the tables' own order.

    Returns:
        As `lib.study.printed.printed`, and "paper", "table", "row" (the name that the paper itself
        gives the row) and "text" (the value with the digits that are printed). What a table does not
        have is "".
    """
    frames = []
    for path in sorted(PRINTED.glob("*.csv")):
        paper, _, table = path.stem.partition("_")
        frame = printed(paper, table).assign(paper=paper, table=table)
        frames.append(frame if "row" in frame else frame.assign(row=frame["label"]))
    cells = pd.concat(frames, ignore_index=True).fillna("")
    return cells.assign(text=[f"{cell.value:.{cell.decimals}f}" for cell in cells.itertuples()])


def cell_columns(cells: pd.DataFrame) -> list[str]:
    """The names of the columns that tell the cells of a row apart."""
    return [name for name in cells if name not in (*ROW_COLUMNS, *VALUE_COLUMNS)]


def listed(name: str) -> pd.DataFrame:
    """A list of the audit, "findings" or "reprinted", as text.

    Returns:
        Of "findings" the "rule" that is not kept, "paper", "table", "row" and "column" of the cell,
        "what" is wrong, the "printed" text, what would be "expected", and its "weight", of `WEIGHTS`. Of
        "reprinted" rows the "method" under its first name, "paper" and its own name of the "row", what
        is "other" than in the first paper (the "name") or the paper before ("numbers"), and the
        "change".
    """
    return pd.read_csv(AUDIT / f"{name}.csv", dtype=str, keep_default_na=False)
