"""The printed values that stand beside a claim's own."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from lib.reporting.claims.rows import Claim
from lib.reporting.phototour import ROLES, column_name
from lib.reporting.printed import printed


def printed_values(claim: Claim, key: str, cells: Sequence[str] = ()) -> np.ndarray | None:
    """What the paper prints for a method, or for the group of rows that a key stands for.

    Args:
        claim: names the table and the kind of values.
        key: as the claim has it: a method's key, or what another column of the table holds, e.g. `aht`.
        cells: names of ours; of as many of the printed ones as have these names.

    Returns:
        (cells,), or None where the table does not print it.
    """
    table, _, statistic = claim.printed.partition(":")
    rows = printed(claim.paper, table)
    rows = rows[rows["statistic"] == statistic]
    named = rows[["key", "statistic", *rows.columns.intersection(["loss"])]].eq(key).any(axis=1)
    values = [(name, row.value) for row in rows[named].itertuples() for name in _cells_of(row)]
    by_name = pd.Series(dict(values), dtype=float)
    if cells and len(by_name) == len(values) and set(cells) <= set(by_name.index):
        return by_name[list(cells)].to_numpy()
    return np.array([value for _, value in values]) if values else None


def _cells_of(row: tuple) -> list[str]:
    """The names of the cells that a printed value is of; without a train set it is of both columns."""
    if row.test not in ROLES:
        return [getattr(row, "task", "")]
    return [
        column_name(train, row.test)
        for train in ([row.train] if row.train else ROLES)
        if train != row.test
    ]
