"""The values the papers print in their tables, one row a value, read from the CSVs beside this file.

The digits were read from two transcriptions of a paper where there are two; where one was damaged, the
other, the row's printed mean and a table that prints the same value with more digits settled it.
"""

from pathlib import Path

import pandas as pd

PRINTED = Path(__file__).parent
# What benchmarks print of themselves: eth_sfm of ahojnnes/local-feature-evaluation.
BENCHMARKS = PRINTED / "benchmarks"


def printed(paper: str, table: str, folder: Path = PRINTED) -> pd.DataFrame:
    """Return one printed table in tidy form, in the paper's order of rows.

    Args:
        paper: the paper's name in the file names, e.g. `adasample`.
        table: the table's name, e.g. `table1`.
        folder: of CSVs.

    Returns:
        One row a printed value. `key` names the method (a recipe's key where the study computes
        it), `label` is for display, `length` the descriptor's number of dimensions, `train` and
        `test` the roles of the sets ("" where the value has none), `statistic` what the value is,
        `value` the number as float64, `decimals` how many digits the paper prints after the
        point, `unit` its unit ("1" for a pure number). Further columns are the table's own; some
        tables have `row`, the paper's own name of the row where `label` says more, `block`, a part
        of the table that is compared within itself, `bold`, and `note`, what decided a damaged cell.

    Raises:
        FileNotFoundError: no such table.
    """
    frame = pd.read_csv(folder / f"{paper}_{table}.csv", dtype=str, keep_default_na=False)
    decimals = frame["value"].str.partition(".")[2].str.len()
    frame = frame.astype({"value": "float64", "length": "int64"})
    frame.insert(frame.columns.get_loc("value") + 1, "decimals", decimals)
    return frame
