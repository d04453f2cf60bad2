"""The Oxford Affine set (Mikolajczyk et al., IJCV 2005): sequences of six images, each of one nuisance.

A folder a sequence, ``img1`` to ``img6`` with ``H1to2p`` to ``H1to6p``, or in the layout of HPatches.
The names of the released sequences tell which nuisance they show; any other is named after its
nuisance, ``blur_NAME``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lib.data.hpatches.homographies import HomographySequence, read_homography_sequences

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
    sequences = read_homography_sequences(folder)
    return AffineSequences(name, tuple(_named(images) for images in sequences))


def _named(images: HomographySequence) -> AffineSequence:
    name = images.folder.name
    nuisance = RELEASED.get(name, name.partition("_")[0])
    if nuisance not in NUISANCES:
        raise ValueError(f"{images.folder} tells no nuisance: name it as one of {NUISANCES}")
    return AffineSequence(name, nuisance, images)
