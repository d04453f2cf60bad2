"""HPatches' patch format (hpatches-release; Balntas et al., CVPR 2017) and its splits: read, write.

A release is a folder with one folder a sequence, ``v_…`` where the viewpoint changes and ``i_…`` where
the illumination does. A sequence has 16 grey PNG images: ``ref.png``, cut from the reference image, and
``e1`` to ``e5``, ``h1`` to ``h5``, ``t1`` to ``t5``, cut from the other five images with easy, hard and
tough jitter. Each is a column of 65×65 patches, and patch i is of the same spot in all 16.
``splits.json`` names the sequences to test on, and to train on, by split.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
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
# Columns as high as the whole release must not be resized at once: their area is past 2^31 pixels.
_RESIZED_AT_ONCE = 2048


@dataclass(frozen=True)
class Sequence:
    """One sequence of a release.

    Attributes:
        name: its folder's name.
        folder: where its 16 images are.
        count: patches in each of them.
    """

    name: str
    folder: Path
    count: int

    @property
    def kind(self) -> str:
        """ "viewpoint" or "illumination".

        Raises:
            ValueError: the name starts with neither ``v_`` nor ``i_``.
        """
        if self.name[:2] not in _KINDS:
            raise ValueError(
                f"{self.folder}: the name says neither v_ (viewpoint) nor i_ (illumination); rename "
                "the folder"
            )
        return _KINDS[self.name[:2]]

    def patches(self, file: str) -> np.ndarray:
        """(count, 65, 65) uint8, the patches of one image, read from the disk each time.

        Args:
            file: one of `FILES`.

        Raises:
            FileNotFoundError: the image is gone.
            ValueError: an unknown file, or an image that cannot be decoded or has changed in size.
        """
        if file not in FILES:
            raise ValueError(f"{self.name} has no file {file!r}; there are: {', '.join(FILES)}")
        path = _path(self.folder, file)
        column = _decoded(path)
        if column.shape != (self.count * PATCH, PATCH):
            raise ValueError(
                f"{path} is {column.shape[1]}x{column.shape[0]} px, not {PATCH}x{self.count * PATCH} as "
                "when the sequence was opened: open it again"
            )
        return column.reshape(self.count, PATCH, PATCH)


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


def file_index(image: np.ndarray | int, level: str) -> np.ndarray | int:
    """The place in `FILES` of an image at a level of jitter.

    Args:
        image: 0 to 5, an integer or integers of any shape; 0 is the reference at every level.
        level: one of `LEVELS`.

    Raises:
        ValueError: another level, or an image outside 0 to 5.
    """
    if level not in LEVELS:
        raise ValueError(f"unknown level {level!r}; there are: {', '.join(LEVELS)}")
    images = np.asarray(image)
    if images.size and not (images.min() >= 0 and images.max() < IMAGES):
        raise ValueError(f"images are 0 to {IMAGES - 1}, got {images.min()} to {images.max()}")
    index = np.where(images == 0, 0, images + (IMAGES - 1) * LEVELS.index(level))
    return int(index) if index.ndim == 0 else index


def read_sequence(folder: Path) -> Sequence:
    """Open a sequence: looks at the headers of its 16 images, decodes none.

    Raises:
        FileNotFoundError: the folder or an image is missing; the message names it.
        ValueError: an image is none, is not 65 px wide, has a height that is no multiple of 65, or
            another height than the rest.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is no folder: give one with {', '.join(FILES[:3])}, … .png")
    missing = [file for file in FILES if not _path(folder, file).is_file()]
    if missing:
        raise FileNotFoundError(
            f"{_path(folder, missing[0])} is missing ({len(missing)} of {len(FILES)} images of the "
            f"sequence are): unpack the release again, or take {folder} away if it is no sequence"
        )
    counts = [_count(_path(folder, file)) for file in FILES]
    for file, count in zip(FILES, counts, strict=True):
        if count != counts[0]:
            raise ValueError(
                f"{_path(folder, file)} has {count} patches but {FILES[0]}.png has {counts[0]}: patch "
                "i must be the same spot in all 16 images; unpack the release again"
            )
    return Sequence(folder.name, folder, counts[0])


def read_sequences(*folders: Path) -> dict[str, Sequence]:
    """Open every sequence of one or more releases, in the order of folders and then of names.

    Args:
        folders: of each, every folder in it that is not hidden is a sequence.

    Raises:
        FileNotFoundError: a folder is missing, holds no sequences, or a sequence lacks an image.
        ValueError: two sequences have one name, or as `read_sequence` raises.
    """
    found = [read_sequence(one) for release in folders for one in _folders(release)]
    refuse_equal_names(found)
    return {sequence.name: sequence for sequence in found}


def refuse_equal_names(sequences: Iterable) -> None:
    """Sequences, which have a name and a folder, are told apart by their names alone.

    Raises:
        ValueError: two have one name; the message names both folders.
    """
    first: dict[str, Path] = {}
    for sequence in sequences:
        if sequence.name in first:
            raise ValueError(
                f"two sequences are called {sequence.name}: {first[sequence.name]} and "
                f"{sequence.folder}; rename one of the folders"
            )
        first[sequence.name] = sequence.folder


def open_sequences(release: Path, names: Iterable[str]) -> tuple[Sequence, ...]:
    """Open the named sequences of a release, in the order of the names; others are not looked at.

    Raises:
        FileNotFoundError: the release is missing, or a sequence lacks an image.
        ValueError: the release has no sequence of a name; or as `read_sequence` raises.
    """
    names = tuple(names)
    there = [folder.name for folder in _folders(release)]
    missing = [name for name in names if name not in there]
    if missing:
        raise ValueError(
            f"{release} has no sequence {missing[0]} ({len(missing)} of the {len(names)} asked for are "
            f"missing); it has {_few(there)}: give the release that the split was made for"
        )
    return tuple(read_sequence(release / name) for name in names)


def write_sequence(folder: Path, patches: Mapping[str, np.ndarray]) -> None:
    """Write a sequence's 16 images as 8-bit grey PNG.

    Args:
        folder: made if missing; its name is the sequence's.
        patches: by file, for every one of `FILES`: (N, 65, 65) uint8 with one N of at least 1.

    Raises:
        ValueError: other files, shapes or types.
        OSError: the folder cannot be written.
    """
    from PIL import Image

    count = len(next(iter(patches.values()), ()))
    given = {file: (array.shape, array.dtype.name) for file, array in patches.items()}
    expected = dict.fromkeys(FILES, ((count, PATCH, PATCH), "uint8"))
    differing = {file: kind for file, kind in given.items() if expected.get(file) != kind}
    if differing or not count or set(given) != set(FILES):
        raise ValueError(
            f"{folder}: (N, {PATCH}, {PATCH}) uint8, one N of 1 or more, expected for exactly the files "
            f"{', '.join(FILES)}; got {', '.join(given)}, differing: {differing}"
        )
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

    Raises:
        ValueError: another shape or type.
    """
    import cv2

    if patches.shape[1:] != (PATCH, PATCH) or patches.dtype != np.uint8:
        raise ValueError(f"(m, 65, 65) uint8 patches expected, got {patches.shape} {patches.dtype}")
    small = np.empty((len(patches), 64, 64), np.uint8)
    for start in range(0, len(patches), _RESIZED_AT_ONCE):
        block = np.ascontiguousarray(patches[start : start + _RESIZED_AT_ONCE])
        column = cv2.resize(
            block.reshape(-1, PATCH), (64, 64 * len(block)), interpolation=cv2.INTER_AREA
        )
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
    path = _splits_file(path)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is no JSON ({error}): take the benchmark's {SPLITS} again") from error
    if not isinstance(content, dict) or not content:
        raise ValueError(f'{path}: splits by name expected, e.g. {{"a": {{"test": ["v_man"]}}}}')
    return {name: _split(path, name, entry) for name, entry in content.items()}


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
        ValueError: a split lists a sequence twice, or goes by another name than its key.
        OSError: the file cannot be written.
    """
    path = path if path.suffix == ".json" else path / SPLITS
    content = {}
    for name, split in splits.items():
        entry = {"test": list(split.test), "train": list(split.train), "name": split.name}
        _split(path, name, entry)
        content[name] = entry if split.train else {"test": entry["test"], "name": split.name}
    write_bytes(path, (json.dumps(content) + "\n").encode())


def _path(folder: Path, file: str) -> Path:
    return folder / f"{file}.png"


def _folders(release: Path) -> list[Path]:
    if not release.is_dir():
        raise FileNotFoundError(
            f"{release} is no folder: give the one that holds the v_… and i_… folders"
        )
    folders = sorted(p for p in release.iterdir() if p.is_dir() and not p.name.startswith("."))
    if not folders:
        raise FileNotFoundError(
            f"{release} holds no sequence folders: give the folder that holds the v_… and i_… folders"
        )
    return folders


def _few(names: list[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def _count(path: Path) -> int:
    """Patches in an image, from its header."""
    width, height = read_image(path, header_only=True).size
    if width != PATCH or height % PATCH:
        raise ValueError(
            f"{path} is {width}x{height} px; a column of patches is {PATCH} px wide and a multiple of "
            f"{PATCH} high: unpack the release again"
        )
    return height // PATCH


def _decoded(path: Path) -> np.ndarray:
    """(H, W) uint8 grey; colour is weighted as luma (ITU-R 601)."""
    image = read_image(path)
    if image.mode.startswith(("I", "F")):
        raise ValueError(f"{path} has more than 8 bits a pixel: save it as 8-bit grey")
    return np.asarray(image if image.mode == "L" else image.convert("L"))


def _splits_file(path: Path) -> Path:
    if path.is_file():
        return path
    if not path.is_dir():
        raise FileNotFoundError(f"{path} is missing: give {SPLITS} or the folder of tasks that has it")
    places = (path, path / "splits", path.resolve().parent / "python" / "utils")
    for place in places:
        if (place / SPLITS).is_file():
            return place / SPLITS
    raise FileNotFoundError(
        f"{path / SPLITS} is missing: take it from python/utils of the benchmark's repository"
    )


def _split(path: Path, name: str, entry: object) -> Split:
    if not isinstance(entry, dict) or "test" not in entry or entry.get("name", name) != name:
        raise ValueError(
            f'{path}, split {name}: an object with "test", perhaps "train", and "name" {name!r} expected'
        )
    lists = {key: entry.get(key, []) for key in ("test", "train")}
    for key, names in lists.items():
        if not isinstance(names, list) or not all(isinstance(one, str) for one in names):
            raise ValueError(f'{path}, split {name}: "{key}" must be a list of sequence names')
    if not lists["test"]:
        raise ValueError(f"{path}, split {name} has no test sequences: take the file again")
    repeated, times = Counter(lists["test"] + lists["train"]).most_common(1)[0]
    if times > 1:
        raise ValueError(
            f"{path}, split {name} lists {repeated} {times} times, test and training taken together: "
            "each sequence may be there once"
        )
    return Split(name, tuple(lists["test"]), tuple(lists["train"]))
