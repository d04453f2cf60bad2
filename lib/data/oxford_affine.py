"""The Oxford Affine set (Mikolajczyk et al., IJCV 2005): sequences of six images, each of one nuisance.

A folder a sequence, ``img1`` to ``img6`` with ``H1to2p`` to ``H1to6p``. Which nuisance it is of, the
names of the released sequences tell; any other is named after its nuisance, ``blur_NAME``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lib.data.hpatches.homographies import HomographySequence, read_homography_sequences
from lib.files import write_bytes

NUISANCES = ("blur", "light", "compression", "zoom", "viewpoint")
RELEASED = {
    **{"bikes": "blur", "trees": "blur", "leuven": "light", "ubc": "compression"},
    **{"bark": "zoom", "boat": "zoom", "graf": "viewpoint", "wall": "viewpoint"},
}


@dataclass(frozen=True)
class AffineSequence:
    """Six images whose nuisance grows.

    Attributes:
        name: of its folder.
        nuisance: of `NUISANCES`; "zoom" is zoom and rotation.
        images: the files and homographies.
    """

    name: str
    nuisance: str
    images: HomographySequence


@dataclass(frozen=True)
class AffineSequences:
    """The sequences of a set, by name."""

    name: str
    sequences: tuple[AffineSequence, ...]


def read(name: str, folder: Path) -> AffineSequences:
    """Open a folder of sequences.

    Raises:
        FileNotFoundError: no sequence, or one lacks a file; the message names it.
        ValueError: a name that tells no nuisance, or a homography that is singular.
    """
    found = read_homography_sequences(folder)
    return AffineSequences(name, tuple(_named(images) for images in found))


def _named(images: HomographySequence) -> AffineSequence:
    name = images.folder.name
    nuisance = RELEASED.get(name, name.partition("_")[0])
    if nuisance not in NUISANCES:
        raise ValueError(
            f"{images.folder} tells no nuisance: name it as the released one, or "
            f"NUISANCE_{name}, of {', '.join(NUISANCES)}"
        )
    return AffineSequence(name, nuisance, images)


def write_sequence(folder: Path, images: Sequence[np.ndarray], homographies: np.ndarray) -> None:
    """Write a sequence in the released layout, as PNG.

    Args:
        folder: made if missing.
        images: six (H, W) uint8, the reference first.
        homographies: (5, 3, 3), from the reference to each of the others; read back to the bit.

    Raises:
        OSError: the folder cannot be written.
    """
    import cv2

    for number, image in enumerate(images, 1):
        write_bytes(folder / f"img{number}.png", cv2.imencode(".png", image)[1].tobytes())
    for number, homography in enumerate(homographies, 2):
        np.savetxt(folder / f"H1to{number}p", homography, fmt="%.17g")
