"""Text files of numbers from others: what is wrong with one is said by file and line."""

from collections.abc import Callable
from pathlib import Path

import numpy as np


def refuse_rows(path: Path, wrong: np.ndarray, told: Callable[[int], str], header: int = 0) -> None:
    """Refuse a file for the first of its wrong rows, if one is.

    Args:
        path: the file; its empty lines are no rows.
        wrong: (N,) bool.
        told: what is wrong with a row.
        header: lines before the rows.

    Raises:
        ValueError: a row is wrong.
    """
    if wrong.any():
        row = int(wrong.argmax())
        with path.open("rb") as file:
            filled = [number for number, line in enumerate(file, start=1) if line.strip()]
        raise ValueError(f"{path}, line {filled[row + header]}: {told(row)}; take the file again")
