"""W1BS (Mishkin et al., BMVC 2015): patches around the same spots of two images that differ greatly.

As released for descriptors (ducha-aiki/wxbs-descriptors-benchmark), a folder a subset, of one nuisance
each: A appearance, G geometry, L illumination, S sensor, map2photo. In each, ``1/PAIR.bmp`` and
``2/PAIR.bmp`` are columns of square patches, 41 px there, and row i of both shows one spot; ``h`` has
homographies, which the benchmark does not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lib.data.images import decode_grey, read_image
from lib.files import write_bytes

SUBSETS = {
    "A": "appearance",
    "G": "geometry",
    "L": "illumination",
    "S": "sensor",
    "map2photo": "map to photo",
}
PATCH = 41


@dataclass(frozen=True)
class PatchPair:
    """Two columns of n patches.

    Attributes:
        subset: name of its folder.
        name: of its files.
        files: of image 1 and 2.
    """

    subset: str
    name: str
    files: tuple[Path, Path]

    def patches(self) -> tuple[np.ndarray, np.ndarray]:
        """(n, s, s) uint8 of either image, read from the disk each time.

        Raises:
            ValueError: a file is no column of squares, or the two have different numbers of them.
        """
        first, second = (_column(file) for file in self.files)
        if len(first) != len(second):
            raise ValueError(
                f"{self.files[0]} has {len(first)} patches and {self.files[1]} has {len(second)}: row i "
                "of both must show one spot; unpack them again"
            )
        return first, second


@dataclass(frozen=True)
class PatchPairs:
    """All pairs of a set, by subset and name."""

    name: str
    pairs: tuple[PatchPair, ...]


def read(name: str, folder: Path) -> PatchPairs:
    """Find the pairs of a set; their pixels are read later.

    Raises:
        FileNotFoundError: the folder holds no pair, or one of a pair is missing; the message names it.
    """
    pairs = []
    for first in sorted(folder.glob("*/1/*.bmp")):
        second = first.parents[1] / "2" / first.name
        if not second.is_file():
            raise FileNotFoundError(f"{second} is missing, the other image of {first}: unpack it again")
        pairs.append(PatchPair(first.parents[1].name, first.stem, (first, second)))
    if not pairs:
        raise FileNotFoundError(
            f"{folder} holds no W1BS: it needs columns of patches, SET/1/PAIR.bmp and SET/2/PAIR.bmp"
        )
    return PatchPairs(name, tuple(pairs))


def _column(file: Path) -> np.ndarray:
    read_image(file)
    grey = decode_grey(file)
    if grey is None or grey.shape[0] % grey.shape[1]:
        told = "cannot be read" if grey is None else f"is {grey.shape[1]} by {grey.shape[0]} px"
        raise ValueError(f"{file} {told}: a column of square patches expected")
    return grey.reshape(-1, grey.shape[1], grey.shape[1])


def write_pair(folder: Path, name: str, patches: Sequence[np.ndarray], homography: np.ndarray) -> None:
    """Write a pair in the released layout.

    Args:
        folder: of the subset.
        name: of the pair.
        patches: (n, s, s) uint8 of either image.
        homography: (3, 3), from the first to the second.

    Raises:
        OSError: the folder cannot be written.
    """
    import cv2

    for number, of in enumerate(patches, 1):
        column = cv2.imencode(".bmp", of.reshape(-1, of.shape[2]))[1]
        write_bytes(folder / str(number) / f"{name}.bmp", column.tobytes())
    (folder / "h").mkdir(exist_ok=True)
    np.savetxt(folder / "h" / f"{name}.txt", homography, fmt="%.17g")
