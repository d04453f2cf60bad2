"""The patch set that every reader of patches returns: patches, their 3D points, and labelled pairs.

Patches are decoded once into one array file, which is memory-mapped from then on.
"""

import hashlib
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from mmap import mmap
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from lib.arrays import as_array
from lib.files import make_checked, state

SIDE = 64
_ARRAY = "patches.npy"
# Number of patches that a union reads at a time, 32 MiB.
_AT_ONCE = 8192


@dataclass(frozen=True)
class LabelledPairs:
    """Labelled pairs of patches on which verification is measured.

    Attributes:
        first, second: (M,) int64, indices into the patches of the set.
        match: (M,) bool, true where both patches show the same 3D point.

    Raises:
        ValueError: `match` is not bool, the three have different shapes, or an index is below 0.
    """

    first: np.ndarray
    second: np.ndarray
    match: np.ndarray

    def __post_init__(self) -> None:
        first, second, match = map(np.asarray, (self.first, self.second, self.match))
        if match.dtype.kind != "b":
            # As indices, 0 and 1 would mean the first two pairs.
            raise ValueError(f"match is bool, got {match.dtype}; of labels 0 and 1 give labels == 1")
        if not first.shape == second.shape == match.shape:
            raise ValueError(
                "a pair is a first patch, a second one and a label, got "
                f"{first.shape}, {second.shape} and {match.shape}"
            )
        unmatched = (first < 0) | (second < 0)
        # SuperGlue and hloc mark a keypoint without a match by -1, which would be the last patch.
        if unmatched.any():
            raise ValueError(
                f"pair {unmatched.argmax()} has a patch below 0: leave out pairs without a partner"
            )


@dataclass(frozen=True)
class PatchSet:
    """One set of patches, e.g. Liberty.

    Attributes:
        name: the set's name.
        patches: (P, 64, 64) uint8 grey values, memory-mapped.
        point_ids: (P,) int64, the class of each patch: the 3D point it shows. Any sequence may be given.
        image_ids: (P,) int64, the photograph each patch was cut from, or None if the set does not
            say. Any sequence may be given.
        pairs: the labelled test pairs, or None if the set has none.
        representatives: (C,) int64, a patch of each point. FPR95 then takes all pairs of different
            points, one patch each, as non-matching ones. None: it takes those of `pairs`, as in UBC
            PhotoTour.

    Raises:
        ValueError: another number of point or image ids than of patches, or an id that is below 0 or no
            int64; a pair or a representative that is no patch of the set; a pair's label that
            `point_ids` contradict; or two representatives of one point.
    """

    name: str
    patches: np.ndarray
    point_ids: np.ndarray
    image_ids: np.ndarray | None
    pairs: LabelledPairs | None
    representatives: np.ndarray | None = None

    def __post_init__(self) -> None:
        # The class is frozen.
        object.__setattr__(self, "point_ids", self._as_ids(self.point_ids, "point"))
        if self.image_ids is not None:
            object.__setattr__(self, "image_ids", self._as_ids(self.image_ids, "image"))
        if self.pairs is not None:
            self._check_pairs(self.pairs)
        if self.representatives is not None:
            points = self._points(self.representatives, "representatives")
            if len(np.unique(points)) != len(points):
                raise ValueError(f"{self.name}: representatives have several patches of one point")

    def _as_ids(self, given: ArrayLike, what: str) -> np.ndarray:
        """Return ids as (P,) int64: `unite` adds to them, for which 8 bits are too few."""
        # A list has no minimum, and a Series would be indexed by its labels.
        ids = as_array(given)
        if ids.shape != (len(self.patches),):
            count = " × ".join(map(str, ids.shape))
            raise ValueError(f"{self.name} has {len(self.patches)} patches, but {count} {what} ids")
        if not len(ids):
            return ids.astype(np.int64)
        if ids.dtype.kind not in "iu":
            # Rounded down, different ones could become equal.
            raise ValueError(f"{self.name}: {what} ids are whole numbers, got {ids.dtype}")
        # COLMAP marks a keypoint without a point by -1, or by the largest uint64.
        if not 0 <= ids.min() <= ids.max() < 2**62:
            raise ValueError(
                f"{self.name}: {what} ids are from 0 to 2**62, got {ids.min()} to {ids.max()}: "
                "leave out patches without one"
            )
        return ids.astype(np.int64, copy=False)

    def _check_pairs(self, pairs: LabelledPairs) -> None:
        """Refuse pairs of other patches, such as those of a set before some of its patches were left
        out."""
        first, second = (self._points(side, "pairs") for side in (pairs.first, pairs.second))
        wrong = (first == second) != np.asarray(pairs.match)
        if wrong.any():
            raise ValueError(
                f"{self.name}, pair {wrong.argmax()}: point_ids say otherwise whether it matches; "
                "pairs are indices into these patches, so number them anew when patches are left out"
            )

    def _points(self, indices: np.ndarray, what: str) -> np.ndarray:
        """Return the points of patches, which must be of this set."""
        indices, count = np.asarray(indices), len(self.patches)
        if not ((indices >= 0) & (indices < count)).all():
            raise ValueError(f"{self.name} has {count} patches, of which {what} name others")
        return self.point_ids[indices]


def one_patch_a_point(point_ids: np.ndarray, seed: int = 0) -> np.ndarray:
    """Draw a patch of each point.

    Args:
        point_ids: (P,) the class of each patch.
        seed: of the draw.

    Returns:
        (C,) int64 indices into the patches, by ascending class.
    """
    shuffled = np.random.default_rng(seed).permutation(len(point_ids))
    _, first = np.unique(point_ids[shuffled], return_index=True)
    return shuffled[first]


def decoded(
    cache: Path,
    name: str,
    sources: Sequence[Path | np.ndarray],
    count: int,
    blocks: Callable[[], Iterable[np.ndarray]],
) -> np.ndarray:
    """Return a set's patches, decoding them only if the cache has none for the current sources.

    Args:
        cache: folder, made if missing; gets one folder per set.
        name: the set's name. Cached patches of an earlier state of the set are removed.
        sources: the files or arrays that hold the patches.
        count: number of patches in these sources.
        blocks: yields the decoded patches in order, in blocks of (m, 64, 64) uint8.

    Returns:
        (count, 64, 64) uint8, memory-mapped and read-only. Each process verifies its checksum once.

    Raises:
        OSError: the cache cannot be written.
    """
    states = [_identity(source) for source in sources]
    stamp = hashlib.sha256(repr((count, states)).encode()).hexdigest()[:16]

    def decode(folder: Path) -> None:
        # Write a plain file, because a full disk kills the writer of a memory-mapped one.
        with open(folder / _ARRAY, "wb") as file:
            header = {"descr": "|u1", "fortran_order": False, "shape": (count, SIDE, SIDE)}
            np.lib.format.write_array_header_1_0(file, header)
            for block in blocks():
                file.write(block.tobytes())
        for old in cache.glob(f"{name}-{'[0-9a-f]' * 16}"):
            shutil.rmtree(old)

    make_checked(cache / f"{name}-{stamp}", name, decode)
    return np.load(cache / f"{name}-{stamp}" / _ARRAY, mmap_mode="r")


def _identity(source: Path | np.ndarray) -> tuple:
    """Return what tells a file or an array of patches from others, without reading a whole file."""
    if isinstance(source, Path):
        return str(source.resolve()), *state(source)
    layout = source.shape, source.strides, source.dtype.str
    # A slice of a memory map has the file's name and offset too, but the map as its base.
    is_as_opened = isinstance(source, np.memmap) and isinstance(source.base, mmap)
    # What can be written may differ from the file.
    if is_as_opened and not source.flags.writeable:
        return *_identity(Path(source.filename)), source.offset, *layout
    content = hashlib.sha256()
    for block in _blocks(source):
        content.update(block.tobytes())
    return content.hexdigest(), *layout


def _blocks(patches: np.ndarray) -> Iterator[np.ndarray]:
    """Yield patches in order, `_AT_ONCE` at a time."""
    for start in range(0, len(patches), _AT_ONCE):
        yield patches[start : start + _AT_ONCE]


def unite(sets: Sequence[PatchSet], cache: Path, name: str) -> PatchSet:
    """Unite several sets into one training set, as for HardNet++; their patches are copied once.

    Args:
        sets: two or more. Patches that are not a whole file, mapped to be read only, are read once more
            to tell them from others.
        cache: folder for the copy, made if missing. The copy under this name is made anew when other
            patches are taken or a set's file changes.
        name: the union's name.

    Returns:
        patches (ΣP, 64, 64) uint8, read-only, in the order given; point ids and image ids that no two
        sets share; no image ids if any set has none; no pairs.

    Raises:
        ValueError: a set's patches are not (P, 64, 64) uint8.
        OSError: the cache cannot be written.
    """
    for part in sets:
        of, shape = part.patches.dtype, part.patches.shape
        # The copy would hold the bytes of others as if they were grey values.
        if of != np.uint8 or shape[1:] != (SIDE, SIDE):
            raise ValueError(
                f"{part.name}: patches are (P, {SIDE}, {SIDE}) uint8 grey values, got {shape} {of}"
            )
    parts = [part.patches for part in sets]
    patches = decoded(cache, name, parts, sum(map(len, parts)), lambda: chain(*map(_blocks, parts)))
    images = [part.image_ids for part in sets]
    image_ids = None if any(ids is None for ids in images) else _apart(images)
    return PatchSet(name, patches, _apart([part.point_ids for part in sets]), image_ids, None)


def _apart(ids: Sequence[np.ndarray]) -> np.ndarray:
    """Concatenate the sets' ids (0 or more), shifted so that no two sets share an id."""
    starts = np.cumsum([0, *(part.max() + 1 for part in ids[:-1])])
    return np.concatenate([part + start for part, start in zip(ids, starts, strict=True)])
