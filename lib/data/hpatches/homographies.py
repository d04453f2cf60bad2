"""Homography sequences: six images of one plane and the homographies from the first to the others.

Two layouts are read: that of hpatches-sequences-release (Balntas et al., CVPR 2017), ``1.ppm`` to
``6.ppm`` with ``H_1_2`` to ``H_1_6``, and that of the Oxford Affine set (Mikolajczyk et al., IJCV 2005),
``img1`` to ``img6`` with ``H1to2p`` to ``H1to6p``. Images may be of any format that Pillow and OpenCV
read. A homography file holds nine numbers, row by row, which map pixels (x right, y down, the first
pixel's centre at 0, 0) of the reference to the other image.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from PIL import Image

from lib.data.hpatches.release import IMAGES, KINDS
from lib.data.images import read_grey, read_image, write_image
from lib.features.keypoints import transfer
from lib.files import write_bytes

# The two images of a sequence (0 to 5) that are matched: the reference and the middle one of the others.
MATCHED = (0, 3)
# For each layout, the stem of an image and the name of its homography, by the image's number from 1.
_LAYOUTS = (("{}", "H_1_{}"), ("img{}", "H1to{}p"))
# Largest motion of a corner, as a share of the diagonal, in a sequence of illumination changes only.
_STILL = 0.02
# Homographies of real sequences have condition numbers of 1e4 to 1e7, since they map pixels.
_LARGEST_CONDITION = 1e12


@dataclass(frozen=True)
class HomographySequence:
    """Six images of one plane.

    Attributes:
        name: starts with ``v_`` (viewpoint) or ``i_`` (illumination).
        images: six files; the first is the reference.
        homographies: (5, 3, 3) float64, from the reference to each of the others.
    """

    name: str
    images: tuple[Path, ...]
    homographies: np.ndarray

    @property
    def folder(self) -> Path:
        """The folder that holds the images."""
        return self.images[0].parent

    def grey(self, index: int) -> np.ndarray:
        """Read an image's (H, W) uint8 grey values from the disk, anew at each call.

        Args:
            index: 0 to 5; 0 is the reference.

        Raises:
            ValueError: as `lib.data.images.read_grey`.
        """
        # Homographies apply to the pixels as stored, so the camera's orientation mark is ignored.
        return read_grey(self.images[index], orientation="stored")


def read_homography_sequence(folder: Path) -> HomographySequence:
    """Open a sequence in either layout; of the images, only the reference's header is read.

    A name without the prefix ``v_`` or ``i_`` (Oxford's) gets ``i_`` if no homography moves a corner of
    the reference by more than 2% of its diagonal, and ``v_`` otherwise.

    Raises:
        FileNotFoundError: a homography or an image is missing; the message names it.
        ValueError: a homography is not nine finite numbers or is singular; two images have one number;
            the reference is not an image.
    """
    stem, matrix = _layout(folder) or _LAYOUTS[0]
    homographies = np.stack([_homography(folder / matrix.format(n)) for n in range(2, IMAGES + 1)])
    images = tuple(_image(folder, stem.format(n)) for n in range(1, IMAGES + 1))
    name = folder.resolve().name
    if name[:2] not in KINDS:
        size = read_image(images[0], header_only=True).size
        name = ("i_" if _moves_little(homographies, size) else "v_") + name
    return HomographySequence(name, images, homographies)


def read_homography_sequences(*folders: Path) -> list[HomographySequence]:
    """Open sequences, ordered by the given folders and then by name.

    Args:
        folders: each a sequence's own folder, or one with sequences up to two levels below it.

    Raises:
        FileNotFoundError: a folder holds no sequence, or a sequence lacks a file.
        ValueError: two sequences have the same name, or as `read_homography_sequence` raises.
    """
    by_name: dict[str, HomographySequence] = {}
    for folder in folders:
        if not (inside := sequence_folders(folder)):
            raise FileNotFoundError(f"{folder} holds no sequence (1.ppm … H_1_6, or img1 … H1to6p)")
        for sequence in map(read_homography_sequence, inside):
            if sequence is not (known := by_name.setdefault(sequence.name, sequence)):
                raise ValueError(f"{known.folder} and {sequence.folder} have one name")
    return list(by_name.values())


def sequence_folders(folder: Path) -> list[Path]:
    """Return the folders of sequences: the folder itself or any up to two levels below it."""
    return [p for p in (folder, *sorted(folder.glob("*")), *sorted(folder.glob("*/*"))) if _layout(p)]


def write_homography_sequence(
    folder: Path, images: Sequence[np.ndarray], homographies: np.ndarray
) -> None:
    """Write a sequence, in grey, in the layout of hpatches-sequences-release.

    Args:
        folder: made if missing.
        images: six (H, W) uint8, the reference first.
        homographies: (5, 3, 3), from the reference to each of the others; they are read back exactly.

    Raises:
        OSError: the folder cannot be written.
    """
    for number, image in enumerate(images, 1):
        write_image(folder / f"{number}.ppm", cv2.cvtColor(image, cv2.COLOR_GRAY2BGR))
    for number, homography in enumerate(homographies, 2):
        lines = [" ".join(repr(float(value)) for value in row) for row in homography]
        write_bytes(folder / f"H_1_{number}", ("\n".join(lines) + "\n").encode())


def _layout(folder: Path) -> tuple[str, str] | None:
    """Return the layout of a folder's homographies, or None if the folder has none."""
    return next((layout for layout in _LAYOUTS if any(folder.glob(layout[1].format("[2-6]")))), None)


def _image(folder: Path, stem: str) -> Path:
    known = Image.registered_extensions()
    files = sorted(path for path in folder.glob(f"{stem}.*") if path.suffix.lower() in known)
    if not files:
        raise FileNotFoundError(f"{folder / stem}.ppm is missing (or another image format)")
    if len(files) > 1:
        raise ValueError(f"{files[0]} and {files[1]} are both image {stem}: take one away")
    return files[0]


def _homography(path: Path) -> np.ndarray:
    try:
        text = path.read_text(encoding="utf-8", errors="replace").replace(",", " ")
        homography = np.array(text.split(), float).reshape(3, 3)
        if not np.linalg.cond(homography) < _LARGEST_CONDITION:
            raise ValueError("infinite, NaN or a singular matrix")
    except ValueError as error:
        raise ValueError(f"{path}: nine numbers expected, three rows of three ({error})") from error
    return homography


def _moves_little(homographies: np.ndarray, size: tuple[int, int]) -> bool:
    right, bottom = size[0] - 1, size[1] - 1
    corners = np.array([[0, 0], [right, 0], [right, bottom], [0, bottom]], float)
    for homography in homographies:
        depth = corners @ homography[2, :2] + homography[2, 2]
        moved = np.linalg.norm(transfer(homography, corners) - corners, axis=1)
        if depth.min() * depth.max() <= 0 or moved.max() > _STILL * np.hypot(*size):
            return False
    return True
