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

import numpy as np

from lib.data.hpatches.release import IMAGES, refuse_equal_names
from lib.data.images import read_grey, read_image, write_image
from lib.features.keypoints import transfer
from lib.files import write_bytes

# Which two images of a sequence are matched, of 0 to 5: the reference, and the middle one of the others.
MATCHED = (0, 3)
# Stems of the images and names of the homographies, by the image's number from 1.
_LAYOUTS = (("{}", "H_1_{}"), ("img{}", "H1to{}p"))
_KINDS = ("v_", "i_")
# Share of the diagonal by which a corner moves at most while a sequence passes for illumination only.
_STILL = 0.02
# Those of real sequences have 1e4 to 1e7, since they map pixels.
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
        """(H, W) uint8 grey values of an image, read from the disk each time.

        Args:
            index: 0 to 5; 0 is the reference.

        Raises:
            ValueError: as `lib.data.images.read_grey`.
        """
        # Homographies hold for the pixels as stored, so a camera's note on orientation is not followed.
        return read_grey(self.images[index], orientation="stored")


@dataclass(frozen=True)
class ImageSequences:
    """Sequences by name, each of six images."""

    name: str
    sequences: tuple[HomographySequence, ...]


def read_homography_sequence(folder: Path) -> HomographySequence:
    """Open a sequence in either layout; of the images only the reference's header is read.

    A name without ``v_`` or ``i_`` before it (Oxford's) is given ``i_`` where no homography moves a
    corner of the reference by more than 2% of its diagonal, ``v_`` otherwise.

    Raises:
        FileNotFoundError: the folder, an image or a homography is missing; the message names it.
        ValueError: a homography that is not nine finite numbers or is singular; two images of one
            number; a reference that is no image.
    """
    stem, matrix = _layout(folder) or _LAYOUTS[0]
    images = tuple(_image(folder, stem.format(n)) for n in range(1, IMAGES + 1))
    homographies = np.stack([_homography(folder / matrix.format(n)) for n in range(2, IMAGES + 1)])
    name = folder.resolve().name
    if not name.startswith(_KINDS):
        size = read_image(images[0], header_only=True).size
        name = ("i_" if _moves_little(homographies, size) else "v_") + name
    return HomographySequence(name, images, homographies)


def read_homography_sequences(*folders: Path) -> list[HomographySequence]:
    """Open sequences, in the order of the folders and then of names.

    Args:
        folders: each a sequence's own folder, or one whose subfolders are sequences; a subfolder
            without a single file of a sequence is passed over.

    Raises:
        FileNotFoundError: a folder holds no sequence; or a sequence lacks a file.
        ValueError: two sequences of one name, or as `read_homography_sequence` raises.
    """
    sequences: list[HomographySequence] = []
    for folder in folders:
        inside = [folder] if _layout(folder) else [p for p in sorted(folder.glob("*")) if _layout(p)]
        if not inside:
            raise FileNotFoundError(f"{folder} holds no sequence (1.ppm … H_1_6, or img1 … H1to6p)")
        sequences += map(read_homography_sequence, inside)
    refuse_equal_names(sequences)
    return sequences


def read_images(name: str, folders: Sequence[Path]) -> ImageSequences:
    """Open sequences under a name; as `read_homography_sequences`, which may raise."""
    return ImageSequences(name, tuple(read_homography_sequences(*folders)))


def sequence_folders(folder: Path) -> list[Path]:
    """The folders of sequences in a folder, itself or up to two levels below; others are passed over."""
    return [p for p in (folder, *sorted(folder.glob("*")), *sorted(folder.glob("*/*"))) if _layout(p)]


def write_homography_sequence(
    folder: Path, images: Sequence[np.ndarray], homographies: np.ndarray
) -> None:
    """Write a sequence in the layout of hpatches-sequences-release, in shades of grey.

    Args:
        folder: made if missing.
        images: six (H, W) uint8, the reference first.
        homographies: (5, 3, 3), from the reference to each of the others; written so that they are
            read back to the bit.

    Raises:
        OSError: the folder cannot be written.
    """
    import cv2

    for number, image in enumerate(images, 1):
        write_image(folder / f"{number}.ppm", cv2.cvtColor(image, cv2.COLOR_GRAY2BGR))
    for number, homography in enumerate(homographies, 2):
        lines = [" ".join(repr(float(value)) for value in row) for row in homography]
        write_bytes(folder / f"H_1_{number}", ("\n".join(lines) + "\n").encode())


def _layout(folder: Path) -> tuple[str, str] | None:
    """The layout that most of a folder's files follow; None where none follows any."""
    names = [path.name for path in folder.glob("*") if path.is_file()]
    known = {*names, *(Path(name).stem for name in names if _is_image(name))}
    counts = [
        sum(form.format(number) in known for form in layout for number in range(1, IMAGES + 1))
        for layout in _LAYOUTS
    ]
    best = int(np.argmax(counts))
    return _LAYOUTS[best] if counts[best] else None


def _is_image(name: str) -> bool:
    from PIL import Image

    return Path(name).suffix.lower() in Image.registered_extensions()


def _image(folder: Path, stem: str) -> Path:
    files = sorted(p for p in folder.glob(f"{stem}.*") if p.stem == stem and _is_image(p.name))
    if not files:
        raise FileNotFoundError(f"{folder / stem}.ppm is missing (or another image format)")
    if len(files) > 1:
        raise ValueError(f"{files[0]} and {files[1]} are both image {stem}: take one away")
    return files[0]


def _homography(path: Path) -> np.ndarray:
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing: unpack the sequence again")
    try:
        text = path.read_text(encoding="utf-8", errors="replace").replace(",", " ")
        homography = np.array(text.split(), float).reshape(3, 3)
    except ValueError as error:
        raise ValueError(f"{path}: nine numbers expected, three rows of three ({error})") from error
    if not np.isfinite(homography).all() or not np.linalg.cond(homography) < _LARGEST_CONDITION:
        raise ValueError(f"{path} holds a number that is infinite or NaN, or a singular matrix")
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
