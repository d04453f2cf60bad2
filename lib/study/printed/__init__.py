"""The values that the papers print in their tables, a row a value, from the CSVs beside this file.

Where a paper has two transcriptions, the digits were read from both. Damaged digits were settled by the
other transcription, the row's printed mean and a table that prints the same value with more digits.
"""

from pathlib import Path

import pandas as pd

PRINTED = Path(__file__).parent
# Values that a benchmark itself publishes: eth_sfm of ahojnnes/local-feature-evaluation.
BENCHMARKS = PRINTED / "benchmarks"
# Columns that name a row and columns that describe a value; the others tell the cells of a row apart.
ROW_COLUMNS = ("paper", "table", "key", "label", "row", "block", "length")
VALUE_COLUMNS = ("text", "value", "decimals", "unit", "bold", "note")


def printed(paper: str, table: str, folder: Path = PRINTED) -> pd.DataFrame:
    """Return one printed table in tidy form, in the paper's order of rows.

    Args:
        paper: the paper's name in the file names, e.g. `adasample`.
        table: the table's name, e.g. `table1`.
        folder: the folder of the CSVs.

    Returns:
        One row per printed value. `key` names the method (as the study does, where it computes it),
        `label` is for display, `row` is the paper's own name of the row, `length` the descriptor's
        number of dimensions, `train` and `test` the roles of the sets ("" where the value has none),
        `statistic` what the value is, `text` the value as printed, `value` the same as float64,
        `decimals` its number of digits after the point, `unit` its unit ("1" for a pure number). Further
        columns are the table's own; some tables have `block`, a part of the table that is compared
        within itself, `bold`, and `note`, what decided a damaged cell.

    Raises:
        FileNotFoundError: no such table.
    """
    frame = pd.read_csv(folder / f"{paper}_{table}.csv", dtype=str, keep_default_na=False)
    frame["text"] = frame["value"]
    frame["decimals"] = frame["text"].str.partition(".")[2].str.len()
    if "row" not in frame:
        frame["row"] = frame["label"]
    return frame.astype({"value": "float64", "length": "int64"})


def all_cells() -> pd.DataFrame:
    """Return the cells of all printed tables, in the tables' own order.

    Returns:
        As `printed`, with the columns "paper" and "table". Columns that a table does not have are "".
    """
    tables = [path.stem.split("_", 1) for path in sorted(PRINTED.glob("*.csv"))]
    frames = [printed(paper, table).assign(paper=paper, table=table) for paper, table in tables]
    return pd.concat(frames, ignore_index=True).fillna("")
