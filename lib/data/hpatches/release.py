"""Read and write HPatches' patch format (hpatches-release; Balntas et al., CVPR 2017) and its splits.

A release has one folder per sequence, named ``v_…`` if the viewpoint changes and ``i_…`` if the
illumination changes. A sequence has 16 grey PNG images: ``ref.png``, cut from the reference image, and
``e1`` to ``e5``, ``h1`` to ``h5``, ``t1`` to ``t5``, cut from the other five images with easy, hard and
tough jitter. Each is a column of 65×65 patches, and patch i shows the same spot in all 16.
``splits.json`` lists, for each split, the sequences to test on and to train on.
"""

import json
from collections.abc import Iterable, Mapping
from collections.abc import Sequence as Sequences
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import cv2
import numpy as np
from PIL import Image

from lib.data.images import read_image
from lib.data.patchset import PatchSet, decoded
from lib.files import digest, replacing, sha256, write_bytes

PATCH = 65
LEVELS = ("easy", "hard", "tough")
IMAGES = 6
FILES = ("ref", *(f"{level[0]}{image}" for level in LEVELS for image in range(1, IMAGES)))
# The image that each file is cut from.
IMAGE_OF_FILE = (0, *(image for _ in LEVELS for image in range(1, IMAGES)))
SPLITS = "splits.json"
KINDS = {"v_": "viewpoint", "i_": "illumination"}
# Number of patch files, over all sequences, that stay decoded in memory: all that are generated at the
# quick size, 200 MB. Decoding them takes a third of the time of HPatches' tasks.
_KEPT = 256
# Hexadecimal digits of a digest.
_DIGITS = 16


@dataclass(frozen=True)
class Sequence:
    """One sequence of a release.

    Attributes:
        name: its folder's name.
        folder: the folder of its 16 images.
        count: number of patches in each image.
        kept: whether decoded images stay in memory, because they are generated and do not change while a
            process reads them.
    """

    name: str
    folder: Path
    count: int
    kept: bool = False

    @property
    def kind(self) -> str:
        """ "viewpoint" or "illumination"."""
        return KINDS[self.name[:2]]

    def patches(self, file: str) -> np.ndarray:
        """Return the patches of one image, (count, 65, 65) uint8, read-only.

        A coloured image gives its luma (ITU-R 601). The image is read from the disk at each call, or
        once per process if `kept`.

        Args:
            file: one of `FILES`.

        Raises:
            FileNotFoundError: the image is missing.
            ValueError: the image cannot be decoded, or has more than 8 bits a pixel.
        """
        return (_decoded_once if self.kept else _decoded)(self.folder / f"{file}.png")

    def digest(self) -> str:
        """Return 16 hexadecimal digits that identify the 16 images by the bytes of their files.

        Raises:
            FileNotFoundError: an image is missing.
        """
        return digest([sha256(self.folder / f"{file}.png") for file in FILES], _DIGITS)


def _decoded(path: Path) -> np.ndarray:
    image = read_image(path)
    if image.mode.startswith(("I", "F")):
        raise ValueError(f"{path} has more than 8 bits a pixel: save it as 8-bit grey")
    return np.asarray(image.convert("L")).reshape(-1, PATCH, PATCH)


_decoded_once = lru_cache(_KEPT)(_decoded)


@dataclass(frozen=True)
class Split:
    """One split of ``splits.json``.

    Attributes:
        name: a, b, c, illum, view or full in the release.
        test: names of the sequences to evaluate on, in the file's order.
        train: names of the sequences to train on; empty if the file has none (illum, view, full).
    """

    name: str
    test: tuple[str, ...]
    train: tuple[str, ...] = ()


def file_index(image: np.ndarray | int, level: str) -> np.ndarray:
    """Return the index in `FILES` of an image at a level of jitter.

    Args:
        image: 0 to 5, an integer or integers of any shape; 0 is the reference at every level.
        level: one of `LEVELS`.
    """
    return np.where(np.equal(image, 0), 0, np.add(image, (IMAGES - 1) * LEVELS.index(level)))


def first_patches(sequences: Iterable[Sequence]) -> np.ndarray:
    """Return where each of S sequences begins in the concatenated patches of all, (S,) int64."""
    counts = np.array([sequence.count for sequence in sequences])
    return np.cumsum(counts) - counts


def read_sequence(folder: Path) -> Sequence:
    """Open a sequence; read the headers of its 16 images, but decode none.

    Raises:
        FileNotFoundError: the folder or an image is missing; the message names it.
        ValueError: the name has no prefix of a kind; a file is not an image, is not 65 px wide, or has a
            height that is no multiple of 65 or differs from the reference's.
    """
    if folder.name[:2] not in KINDS:
        raise ValueError(f"{folder}: the name says neither v_… nor i_…")
    if not folder.is_dir():
        raise FileNotFoundError(f"the sequence {folder.name} is missing: unpack it as {folder}")
    count = 0
    for file in FILES:
        path = folder / f"{file}.png"
        width, height = read_image(path, header_only=True).size
        count = count or height // PATCH
        if (width, height) != (PATCH, count * PATCH):
            raise ValueError(
                f"{path} is {width}x{height} px, no column of {count} patches of {PATCH} px"
            )
    return Sequence(folder.name, folder, count)


def read_sequences(release: Path) -> dict[str, Sequence]:
    """Open every sequence of a release, by name, in order of names; skip hidden folders.

    Raises:
        FileNotFoundError: the release is missing or holds no sequences, or a sequence lacks an image.
        ValueError: as `read_sequence` raises.
    """
    folders = sorted(p for p in release.glob("[!.]*") if p.is_dir())
    if not folders:
        raise FileNotFoundError(f"{release} is no folder of sequences, v_… and i_…")
    return {folder.name: read_sequence(folder) for folder in folders}


def open_sequences(release: Path, names: Iterable[str]) -> tuple[Sequence, ...]:
    """Open the named sequences of a release, in the order of `names`; raises as `read_sequence`."""
    return tuple(read_sequence(release / name) for name in names)


def read_classes(sequences: Sequences[Sequence], cache: Path, name: str) -> PatchSet:
    """Read sequences as one training set; patches are decoded once and cached as one mapped array.

    A class is a spot of a sequence: its patch in the reference image, and its patches in the five other
    images at easy, hard and tough jitter.

    Args:
        sequences: one or more, with ΣN patches in each of the 16 files.
        cache: folder for the decoded patches, made if missing. Patches under this name are decoded anew
            when an image changes.
        name: the set's name.

    Returns:
        patches (16·ΣN, 64, 64) uint8, read-only, in the order sequence, file, patch (resized from 65×65
        by `as_64`); point ids 0 to ΣN - 1, 16 patches each; image ids 6·sequence + image; no pairs.

    Raises:
        FileNotFoundError: an image is missing.
        ValueError: an image cannot be decoded.
        OSError: the cache cannot be written.
    """
    point_ids, image_ids = [], []
    for index, (first, sequence) in enumerate(zip(first_patches(sequences), sequences, strict=True)):
        point_ids.append(np.tile(first + np.arange(sequence.count), len(FILES)))
        image_ids.append(np.repeat(IMAGES * index + np.array(IMAGE_OF_FILE), sequence.count))
    point_ids = np.concatenate(point_ids)
    files = [(sequence, file) for sequence in sequences for file in FILES]
    patches = decoded(
        cache,
        name,
        [sequence.folder / f"{file}.png" for sequence, file in files],
        len(point_ids),
        lambda: (as_64(sequence.patches(file)) for sequence, file in files),
    )
    return PatchSet(name, patches, point_ids, np.concatenate(image_ids), None)


def write_sequence(folder: Path, patches: Mapping[str, np.ndarray]) -> None:
    """Write a sequence's 16 images as 8-bit grey PNG.

    Args:
        folder: made if missing; its name is the sequence's.
        patches: for every one of `FILES`, (N, 65, 65) uint8; N is the same for all, at least 1.

    Raises:
        OSError: the folder cannot be written.
    """
    for file in FILES:
        with replacing(folder / f"{file}.png") as half:
            Image.fromarray(patches[file].reshape(-1, PATCH)).save(half, compress_level=1)


def as_64(patches: np.ndarray) -> np.ndarray:
    """Resize patches to 64×64, which the networks halve to 32; each new pixel is a mean over its area.

    The side of a new pixel is 65/64 of an old one; OpenCV's INTER_AREA averages over this area. A column
    of patches is resized as a whole: 64 new rows cover 65 old ones exactly, so no row mixes patches.

    Args:
        patches: (m, 65, 65) uint8; OpenCV resizes up to 500,000 of them at once.

    Returns:
        (m, 64, 64) uint8.
    """
    column = np.ascontiguousarray(patches).reshape(-1, PATCH)
    small = cv2.resize(column, (64, 64 * len(patches)), interpolation=cv2.INTER_AREA)
    return small.reshape(-1, 64, 64)


def read_splits(folder: Path) -> dict[str, Split]:
    """Read the splits, by name.

    Args:
        folder: the folder of tasks, which holds ``splits.json`` or ``splits/splits.json``; in the
            benchmark's repository, the file is in ``../python/utils`` from the ``tasks`` folder.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file does not hold splits, or a split tests no sequence or lists one twice, test
            and training taken together.
    """
    folders = (folder, folder / "splits", folder.resolve().parent / "python" / "utils")
    file = next((path / SPLITS for path in folders if (path / SPLITS).is_file()), None)
    if file is None:
        raise FileNotFoundError(f"{folder / SPLITS} is missing: it is in python/utils of the benchmark")
    try:
        # With or without the mark that Windows' editors put first.
        text = file.read_text(encoding="utf-8-sig")
        splits = {
            name: Split(name, tuple(entry["test"]), tuple(entry.get("train", ())))
            for name, entry in json.loads(text).items()
        }
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"{file} is no file of splits: take the file again ({error!r})") from error
    for split in splits.values():
        names = split.test + split.train
        if not split.test or len(set(names)) < len(names):
            raise ValueError(f"{file}, split {split.name} tests none or lists one twice: take it again")
    return splits


def write_splits(folder: Path, splits: Mapping[str, Split]) -> None:
    """Write ``splits.json`` as the benchmark does: no "train" key for a split that does not train.

    Args:
        folder: the folder of tasks, made if missing.
        splits: the splits, by name.

    Raises:
        OSError: the file cannot be written.
    """
    content = {}
    for name, split in splits.items():
        train = {"train": split.train} if split.train else {}
        content[name] = {"test": split.test, **train, "name": name}
    write_bytes(folder / SPLITS, (json.dumps(content) + "\n").encode())
