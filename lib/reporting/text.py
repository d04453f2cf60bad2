"""Tables as plain rounded text, the same on every machine."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype


def as_text(table: pd.DataFrame, decimals: int | Mapping[str, int] = 2, missing: str = "·") -> str:
    """A table as aligned plain text.

    Args:
        table: any frame, with one or two levels of heads; its index is shown if it has a name.
        decimals: digits after the point of floats, for all or by (last level of) column name.
        missing: what stands for a missing value.
    """
    body = with_index(table)
    columns, heads = {}, []
    for place, head in enumerate(body.columns):
        *group, name = head if isinstance(head, tuple) else (head,)
        # A head of one level stands beside the lower ones of the others.
        group, name = ([""], group[0]) if group and not name else (group, str(name))
        digits = decimals if isinstance(decimals, int) else decimals.get(name, 2)
        cells = [_cell(value, digits, missing) for value in body.iloc[:, place]]
        dtype = body.dtypes.iloc[place]
        if not is_numeric_dtype(dtype) or is_bool_dtype(dtype):
            width = max(map(len, [name, *cells]))
            name, cells = name.ljust(width), [cell.ljust(width) for cell in cells]
        columns[place] = cells
        heads.append((*group, name))
    text = pd.DataFrame(columns)
    text.columns = pd.MultiIndex.from_tuples(heads) if len(heads[0]) > 1 else [name for (name,) in heads]
    lines = text.to_string(index=False, justify="right").splitlines()
    return "\n".join(line.rstrip() for line in lines)


def with_index(table: pd.DataFrame) -> pd.DataFrame:
    """The table with its index as columns, if it has a name."""
    return table.reset_index() if any(name is not None for name in table.index.names) else table.copy()


def _cell(value: object, digits: int, missing: str) -> str:
    if pd.isna(value):
        return missing
    if isinstance(value, float | np.floating):
        text = f"{value:.{digits}f}"
        return text.removeprefix("-") if float(text) == 0 else text
    return str(value)
