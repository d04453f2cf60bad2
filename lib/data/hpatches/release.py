"""HPatches' patch format (hpatches-release; Balntas et al., CVPR 2017) and its splits: read, write.

A release is a folder with one folder a sequence, ``v_…`` where the viewpoint changes and ``i_…`` where
the illumination does. A sequence has 16 grey PNG images: ``ref.png``, cut from the reference image, and
``e1`` to ``e5``, ``h1`` to ``h5``, ``t1`` to ``t5``, cut from the other five images with easy, hard and
tough jitter. Each is a column of 65×65 patches, and patch i is of the same spot in all 16.
``splits.json`` names the sequences to test on, and to train on, by split.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from lib.data.images import read_image
from lib.files import replacing, write_bytes

PATCH = 65
LEVELS = ("easy", "hard", "tough")
IMAGES = 6
FILES = ("ref", *(f"{level[0]}{image}" for level in LEVELS for image in range(1, IMAGES)))
SPLITS = "splits.json"
_KINDS = {"v_": "viewpoint", "i_": "illumination"}
# Images of all sequences together whose patches stay in memory: what is generated at the quick size, 200
# MB. Decoding them is a third of what HPatches' tasks take.
_KEPT = 256
# Columns as high as the whole release must not be resized at once: their area is past 2^31 pixels.
_RESIZED_AT_ONCE = 2048


@dataclass(frozen=True)
class Sequence:
    """One sequence of a release.

    Attributes:
        name: its folder's name.
        folder: where its 16 images are.
        count: patches in each of them.
        kept: they are generated, and nothing changes them while a process reads them.
    """

    name: str
    folder: Path
    count: int
    kept: bool = False

    @property
    def kind(self) -> str:
        """ "viewpoint" or "illumination".

        Raises:
            ValueError: the name starts with neither ``v_`` nor ``i_``.
        """
        if self.name[:2] not in _KINDS:
            raise ValueError(f"{self.folder}: the name says neither v_… nor i_…")
        return _KINDS[self.name[:2]]

    def patches(self, file: str) -> np.ndarray:
        """(count, 65, 65) uint8, the patches of one image, read from the disk each time; of those
        that are kept, read-only and decoded once by a process.

        Args:
            file: one of `FILES`.

        Raises:
            FileNotFoundError: the image is gone.
            ValueError: an image that cannot be decoded or has changed in size.
        """
        return (_kept_patches if self.kept else _decoded_patches)(self, file)


@lru_cache(_KEPT)
def _kept_patches(sequence: Sequence, file: str) -> np.ndarray:
    patches = _decoded_patches(sequence, file)
    patches.flags.writeable = False
    return patches


@dataclass(frozen=True)
class Split:
    """One split of ``splits.json``.

    Attributes:
        name: a, b, c, illum, view or full in the release.
        test: names of the sequences to evaluate on, in the file's order.
        train: names of those to train on; empty where the file has none (illum, view, full).
    """

    name: str
    test: tuple[str, ...]
    train: tuple[str, ...] = ()


def file_index(image: np.ndarray | int, level: str) -> np.ndarray:
    """The index in `FILES` of an image at a level of jitter.

    Args:
        image: 0 to 5, an integer or integers of any shape; 0 is the reference at every level.
        level: one of `LEVELS`.
    """
    return np.where(np.equal(image, 0), 0, np.add(image, (IMAGES - 1) * LEVELS.index(level)))


def read_sequence(folder: Path) -> Sequence:
    """Open a sequence: looks at the headers of its 16 images, decodes none.

    Raises:
        FileNotFoundError: the folder or an image is missing; the message names it.
        ValueError: an image is none, is not 65 px wide, has a height that is no multiple of 65, or
            another height than the rest.
    """
    missing = [file for file in FILES if not _path(folder, file).is_file()]
    if missing:
        count = f"{len(missing)} of {len(FILES)} images of the sequence are"
        raise FileNotFoundError(f"{_path(folder, missing[0])} is missing ({count})")
    counts = {file: _count(_path(folder, file)) for file in FILES}
    if len(set(counts.values())) > 1:
        raise ValueError(f"{folder} has images of different numbers of patches, {counts}")
    return Sequence(folder.name, folder, counts[FILES[0]])


def read_sequences(*folders: Path) -> dict[str, Sequence]:
    """Open every sequence of one or more releases, in the order of folders and then of names.

    Args:
        folders: of each, every folder in it that is not hidden is a sequence.

    Raises:
        FileNotFoundError: a folder is missing, holds no sequences, or a sequence lacks an image.
        ValueError: two sequences have one name, or as `read_sequence` raises.
    """
    sequences = [read_sequence(folder) for release in folders for folder in _folders(release)]
    refuse_equal_names(sequences)
    return {sequence.name: sequence for sequence in sequences}


def refuse_equal_names(sequences: Iterable) -> None:
    """Sequences, which have a name and a folder, are told apart by their names alone.

    Raises:
        ValueError: two have one name; the message names both folders.
    """
    folders: dict[str, Path] = {}
    for sequence in sequences:
        if sequence.name in folders:
            raise ValueError(f"{folders[sequence.name]} and {sequence.folder} have one name")
        folders[sequence.name] = sequence.folder


def open_sequences(release: Path, names: Iterable[str]) -> tuple[Sequence, ...]:
    """Open the named sequences of a release, in the order of the names; others are not looked at.

    Raises:
        FileNotFoundError: the release is missing, or a sequence lacks an image.
        ValueError: the release has no sequence of a name; or as `read_sequence` raises.
    """
    names = tuple(names)
    present = [folder.name for folder in _folders(release)]
    missing = [name for name in names if name not in present]
    if missing:
        raise ValueError(f"{release} has no sequence {missing[0]}, but {', '.join(present[:8])} …")
    return tuple(read_sequence(release / name) for name in names)


def write_sequence(folder: Path, patches: Mapping[str, np.ndarray]) -> None:
    """Write a sequence's 16 images as 8-bit grey PNG.

    Args:
        folder: made if missing; its name is the sequence's.
        patches: by file, for every one of `FILES`: (N, 65, 65) uint8 with one N of at least 1.

    Raises:
        OSError: the folder cannot be written.
    """
    from PIL import Image

    for file in FILES:
        column = np.ascontiguousarray(patches[file]).reshape(-1, PATCH)
        with replacing(_path(folder, file)) as half:
            Image.fromarray(column).save(half, compress_level=1)


def as_64(patches: np.ndarray) -> np.ndarray:
    """Patches at the size that the networks halve to 32: each new pixel is a mean over its area.

    A pixel of the new patch covers 65/64 of an old one a side, which OpenCV's INTER_AREA averages. A
    column of patches is resized whole: 64 new rows cover 65 old ones exactly, so none mixes patches.

    Args:
        patches: (m, 65, 65) uint8.

    Returns:
        (m, 64, 64) uint8.
    """
    import cv2

    small = np.empty((len(patches), 64, 64), np.uint8)
    for start in range(0, len(patches), _RESIZED_AT_ONCE):
        block = np.ascontiguousarray(patches[start : start + _RESIZED_AT_ONCE])
        size = (64, 64 * len(block))
        column = cv2.resize(block.reshape(-1, PATCH), size, interpolation=cv2.INTER_AREA)
        small[start : start + len(block)] = column.reshape(-1, 64, 64)
    return small


def read_splits(path: Path) -> dict[str, Split]:
    """The splits by name.

    Args:
        path: ``splits.json``, or a folder of tasks with ``splits.json`` or ``splits/splits.json`` in
            it; the ``tasks`` folder of the benchmark's repository has it in ``../python/utils``.

    Raises:
        FileNotFoundError: there is none.
        ValueError: it is no such file, or a split lists a sequence twice, for test and training taken
            together.
    """
    folders = (path, path / "splits", path.resolve().parent / "python" / "utils")
    files = [file for file in (path, *(folder / SPLITS for folder in folders)) if file.is_file()]
    if not files:
        raise FileNotFoundError(f"{path / SPLITS} is missing: it is in python/utils of the benchmark")
    try:
        content = json.loads(files[0].read_text(encoding="utf-8"))
        splits = {
            name: Split(name, tuple(entry["test"]), tuple(entry.get("train", ())))
            for name, entry in content.items()
        }
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"{files[0]} is no file of splits: take the file again ({error!r})") from error
    for split in splits.values():
        names = split.test + split.train
        if not split.test or len(set(names)) < len(names):
            raise ValueError(
                f"{files[0]}, split {split.name} tests none or lists one twice: take the file again"
            )
    return splits


def read_split(path: Path, name: str) -> Split:
    """The split of a name.

    Args:
        path: as of `read_splits`, which may raise.
        name: of the split.

    Raises:
        ValueError: there is none; the message lists those there are.
    """
    splits = read_splits(path)
    if name not in splits:
        raise ValueError(f"unknown split {name!r}; there are: {', '.join(splits)}")
    return splits[name]


def write_splits(path: Path, splits: Mapping[str, Split]) -> None:
    """Write splits as the benchmark does; a split without training sequences has no such key.

    Args:
        path: the file, or the folder in which it is to be called ``splits.json``.
        splits: by name.

    Raises:
        OSError: the file cannot be written.
    """
    content = {}
    for name, split in splits.items():
        train = {"train": list(split.train)} if split.train else {}
        content[name] = {"test": list(split.test), **train, "name": name}
    path = path if path.suffix == ".json" else path / SPLITS
    write_bytes(path, (json.dumps(content) + "\n").encode())


def _path(folder: Path, file: str) -> Path:
    return folder / f"{file}.png"


def _folders(release: Path) -> list[Path]:
    folders = sorted(p for p in release.glob("*") if p.is_dir() and not p.name.startswith("."))
    if not folders:
        raise FileNotFoundError(f"{release} is no folder of sequences, v_… and i_…")
    return folders


def _count(path: Path) -> int:
    """Patches in an image, from its header."""
    width, height = read_image(path, header_only=True).size
    if width != PATCH or height % PATCH:
        raise ValueError(f"{path} is {width}x{height} px, no column of patches of {PATCH} px a side")
    return height // PATCH


def _decoded_patches(sequence: Sequence, file: str) -> np.ndarray:
    """(count, 65, 65) uint8 grey; colour is weighted as luma (ITU-R 601)."""
    path = _path(sequence.folder, file)
    image = read_image(path)
    if image.mode.startswith(("I", "F")):
        raise ValueError(f"{path} has more than 8 bits a pixel: save it as 8-bit grey")
    grey = image if image.mode == "L" else image.convert("L")
    return np.asarray(grey).reshape(sequence.count, PATCH, PATCH)
