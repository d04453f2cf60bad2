"""NumPy arrays of what a caller gives."""

import numpy as np
from numpy.typing import ArrayLike, DTypeLike


def as_array(values: ArrayLike, dtype: DTypeLike = None) -> np.ndarray:
    """Return `np.asarray` of values, none of which is masked: NumPy would count them without a word.

    Raises:
        ValueError: a value is masked.
    """
    if np.ma.is_masked(values):
        raise ValueError(
            "masked values would count as values: give .compressed() or, where NaN is taken, "
            ".filled(np.nan)"
        )
    return np.asarray(values, dtype)
