"""W1BS (Mishkin et al., BMVC 2015): patches around the same spots of two images that differ greatly.

As released for descriptors (ducha-aiki/wxbs-descriptors-benchmark), a folder a subset, of one nuisance
each: A appearance, G geometry, L illumination, S sensor, map2photo. In each, ``1/PAIR.bmp`` and
``2/PAIR.bmp`` are columns of square patches, 41 px there, and row i of both shows one spot; ``h`` has
homographies, which the benchmark does not read.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lib.data.images import read_grey

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
            raise ValueError(f"{self.files} have {len(first)} and {len(second)} patches")
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
        raise FileNotFoundError(f"{folder} holds no W1BS: SET/1/PAIR.bmp and SET/2/PAIR.bmp")
    return PatchPairs(name, tuple(pairs))


def _column(file: Path) -> np.ndarray:
    grey = read_grey(file)
    if grey.shape[0] % grey.shape[1]:
        raise ValueError(f"{file} is no column of square patches: unpack it again")
    return grey.reshape(-1, grey.shape[1], grey.shape[1])
