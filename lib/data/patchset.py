"""What every reader of patches hands out: patches with the 3D point each shows, and labelled pairs."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class LabelledPairs:
    """Pairs of patches on which verification is measured.

    Attributes:
        first, second: (M,) int64, indices into the patches of the set.
        match: (M,) bool, true where both patches show the same 3D point.
    """

    first: np.ndarray
    second: np.ndarray
    match: np.ndarray


@dataclass(frozen=True)
class PatchSet:
    """One set of patches, e.g. Liberty.

    Attributes:
        name: the set's name.
        patches: (P, 64, 64) uint8 grey values, memory-mapped.
        point_ids: (P,) int64, the class of each patch: the 3D point it shows.
        image_ids: (P,) int64, the photograph each patch was cut from, or None where the set does
            not tell.
        pairs: the labelled test pairs, or None where the set has none.
    """

    name: str
    patches: np.ndarray
    point_ids: np.ndarray
    image_ids: np.ndarray | None
    pairs: LabelledPairs | None
