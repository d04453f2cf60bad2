"""Tables as plain rounded text, the same on every machine."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype


def as_text(table: pd.DataFrame, decimals: int | Mapping[str, int] = 2) -> str:
    """A table as aligned plain text, a dot where a value is missing.

    Args:
        table: any frame, with one or two levels of heads; its index is shown if it has a name.
        decimals: digits after the point of floats, for all or by (last level of) column name.
    """
    body, text = with_index(table), {}
    grouped = body.columns.nlevels > 1
    for head, values in body.items():
        group, name = head if grouped else ("", str(head))
        # A head of one level stands beside the lower ones of the others.
        group, name = (group, name) if name else ("", group)
        digits = decimals if isinstance(decimals, int) else decimals.get(name, 2)
        cells = [_cell(value, digits) for value in values]
        if not is_numeric_dtype(values) or is_bool_dtype(values):
            width = max(map(len, [name, *cells]))
            name, cells = name.ljust(width), [cell.ljust(width) for cell in cells]
        text[(group, name) if grouped else name] = cells
    lines = pd.DataFrame(text).to_string(index=False, justify="right").splitlines()
    return "\n".join(line.rstrip() for line in lines)


def with_index(table: pd.DataFrame) -> pd.DataFrame:
    """The table with its index as columns, if it has a name."""
    return table.reset_index() if any(name is not None for name in table.index.names) else table.copy()


def _cell(value: object, digits: int) -> str:
    if pd.isna(value):
        return "·"
    if isinstance(value, float | np.floating):
        text = f"{value:.{digits}f}"
        return text.removeprefix("-") if float(text) == 0 else text
    return str(value)
