"""Several sets of patches as one to train on, such as HardNet++ is: UBC PhotoTour's with HPatches'."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lib.data.decoded import decoded
from lib.data.patchset import PatchSet

# Patches copied at once, 32 MiB of them.
_AT_ONCE = 8192


def unite(sets: Sequence[PatchSet], cache: Path, name: str) -> PatchSet:
    """The patches of all sets, copied once into one mapped array.

    Args:
        sets: two or more, whose patches are mapped from files.
        cache: folder for the copy, made if missing; what it holds under this name is made anew when a
            set's file changes.
        name: of the union.

    Returns:
        patches (ΣP, 64, 64) uint8, read-only, in the order given; ids of points and of images, which no
        two sets share; no image ids where a set has none; no pairs.

    Raises:
        OSError: the cache cannot be written.
    """
    patches = decoded(
        cache,
        name,
        [Path(of.patches.filename) for of in sets],
        sum(len(of.patches) for of in sets),
        lambda: (
            of.patches[start : start + _AT_ONCE]
            for of in sets
            for start in range(0, len(of.patches), _AT_ONCE)
        ),
    )
    images = [of.image_ids for of in sets]
    told = None if any(ids is None for ids in images) else _apart(images)
    return PatchSet(name, patches, _apart([of.point_ids for of in sets]), told, None)


def _apart(ids: Sequence[np.ndarray]) -> np.ndarray:
    """Ids, 0 or more, one set's behind another's."""
    after = np.cumsum([0, *(of.max() + 1 for of in ids[:-1])])
    return np.concatenate([of + start for of, start in zip(ids, after, strict=True)])
