"""Read and write UBC PhotoTour patch sets (Brown, Hua and Winder, PAMI 2011) in their original layout.

A set's folder holds:

- ``patches0000.bmp`` and so on, from 0 without gap: 1024x1024 grey, 16x16 patches of 64x64, row by
  row. Zeros may lead a number or not;
- ``info.txt``, one line per patch: 3D point id, unused;
- optionally ``interest.txt``, one line per patch: image id, x, y, orientation, log2 scale;
- optionally ``m50_100000_100000_0.txt``, one line per pair: patch, point, unused, patch, point,
  unused. A pair matches if its point ids are equal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from lib.data.images import read_image
from lib.data.patchset import LabelledPairs, PatchSet, decoded

PATCH = 64
SHEET = 1024
PER_ROW = SHEET // PATCH
PER_SHEET = PER_ROW * PER_ROW
INFO = "info.txt"
INTEREST = "interest.txt"
MATCHES = "m50_100000_100000_0.txt"
KNOWN_COUNTS = {"liberty": 450_092, "notredame": 468_159, "yosemite": 633_587}
# Pairs in the match file of each of these sets, half of which match.
KNOWN_PAIRS = 100_000


def read_phototour(
    folder: Path, cache: Path, name: str | None = None, count: int | None = None
) -> PatchSet:
    """Read a patch set; its sheets are decoded once and cached as one memory-mapped array.

    Args:
        folder: holds the files listed above.
        cache: folder for the decoded patches, made if missing. Patches are decoded anew when the
            sheets or info.txt change.
        name: the set's name, by default the folder's.
        count: expected number of patches, if known; a match file then has `KNOWN_PAIRS`. A hash would
            not do: archives were re-packed.

    Returns:
        patches (P, 64, 64) uint8, read-only; point ids (P,); image ids (P,) if interest.txt exists;
        test pairs if the match file exists.

    Raises:
        FileNotFoundError: the folder or info.txt is missing.
        ValueError: a file is damaged or contradicts another, the sheets' numbers are not 0, 1, 2 and so
            on, each once, a point has a single patch, or the number of patches is not `count` or that
            of pairs not `KNOWN_PAIRS`.
        OSError: the cache cannot be written.
    """
    name = name or folder.name
    sheets, point_ids, image_ids, pairs = read_layout(folder, count)
    last = len(point_ids) - PER_SHEET * (len(sheets) - 1)

    def blocks() -> Iterator[np.ndarray]:
        yield from map(read_sheet, sheets[:-1])
        yield read_sheet(sheets[-1])[:last]

    patches = decoded(cache, name, [*sheets, folder / INFO], len(point_ids), blocks)
    return PatchSet(name, patches, point_ids, image_ids, pairs)


def read_layout(
    folder: Path, count: int | None = None
) -> tuple[list[Path], np.ndarray, np.ndarray | None, LabelledPairs | None]:
    """Read all but the pixels: sheets, point ids, image ids, pairs. Raises as `read_phototour` does."""
    sheets = _numbered_sheets(folder)
    point_ids = _numbers(folder / INFO, [0])[:, 0]
    patches, room = len(point_ids), PER_SHEET * len(sheets)
    if count not in (None, patches):
        raise ValueError(f"{folder.name} has {patches} patches, the original has {count}")
    if not room - PER_SHEET < patches <= room:
        raise ValueError(f"{folder / INFO} has {patches} lines, and the sheets up to {room} patches")
    points, sizes = np.unique(point_ids, return_counts=True)
    if (sizes == 1).any():
        raise ValueError(f"{folder / INFO}: point {points[sizes.argmin()]} has a single patch")
    interest, matches = folder / INTEREST, folder / MATCHES
    image_ids = _numbers(interest, [0])[:, 0] if interest.exists() else None
    if image_ids is not None and len(image_ids) != patches:
        raise ValueError(f"{interest} has {len(image_ids)} lines for {patches} patches")
    pairs = read_pairs(matches, point_ids) if matches.exists() else None
    # A file that is cut short at the end of a line has fewer pairs, mostly of one kind.
    if count is not None and pairs is not None and len(pairs.match) != KNOWN_PAIRS:
        raise ValueError(f"{matches} has {len(pairs.match)} pairs, the original has {KNOWN_PAIRS}")
    return sheets, point_ids, image_ids, pairs


def _numbered_sheets(folder: Path) -> list[Path]:
    """Return a folder's sheets in order of their numbers; as strings, patches10 precedes patches2."""
    found: dict[int, Path] = {}
    for sheet in sorted(folder.glob("patches*.bmp")):
        number = re.fullmatch(r"patches(\d+)\.bmp", sheet.name)
        if number is None:
            raise ValueError(f"{sheet} has no number as sheets have: take it away or rename it")
        same = found.setdefault(int(number[1]), sheet)
        if same != sheet:
            raise ValueError(f"{sheet} and {same.name} are both sheet {int(number[1])}: take one away")
    numbers = sorted(found)
    for expected, number in enumerate(numbers):
        if number != expected:
            raise ValueError(f"{found[number]} is there, and no sheet {expected}: unpack the set again")
    return [found[number] for number in numbers]


def write_patches(folder: Path, parts: Iterable[Sequence[np.ndarray]]) -> np.ndarray:
    """Write sheets, ``info.txt`` and ``interest.txt``, holding one part and one sheet in memory.

    Args:
        folder: made if missing.
        parts: each has, in order, patches (N, 64, 64) uint8; point ids and image ids, (N,) integers
            each; frames (N, 4) float: x and y in px, orientation in radians, log2 of the scale in px.

    Returns:
        The point ids of all patches, (P,).
    """
    folder.mkdir(parents=True, exist_ok=True)
    written, waiting, number = [], np.empty((0, PATCH, PATCH), np.uint8), 0
    with (folder / INFO).open("w") as info, (folder / INTEREST).open("w") as interest:
        for patches, point_ids, image_ids, frames in parts:
            np.savetxt(info, np.column_stack([point_ids, image_ids]), "%d")
            np.savetxt(interest, np.column_stack([image_ids, frames]), "%d %.3f %.3f %.5f %.4f")
            written.append(point_ids)
            waiting = np.concatenate([waiting, patches])
            while len(waiting) >= PER_SHEET:
                _write_sheet(folder, number, waiting[:PER_SHEET])
                waiting, number = waiting[PER_SHEET:], number + 1
    if len(waiting):
        _write_sheet(folder, number, waiting)
    return np.concatenate(written)


def _write_sheet(folder: Path, number: int, patches: np.ndarray) -> None:
    from PIL import Image

    tiles = np.zeros((PER_ROW, PER_ROW, PATCH, PATCH), np.uint8)
    tiles.reshape(PER_SHEET, PATCH, PATCH)[: len(patches)] = patches
    sheet = tiles.transpose(0, 2, 1, 3).reshape(SHEET, SHEET)
    Image.fromarray(sheet).save(folder / f"patches{number:04d}.bmp")


def write_pairs(folder: Path, pairs: LabelledPairs, point_ids: np.ndarray, file: str = MATCHES) -> None:
    """Write a match file; `point_ids` covers all patches of the set."""
    import pandas as pd

    first, second = pairs.first, pairs.second
    unused = np.zeros_like(first)
    columns = [first, point_ids[first], unused, second, point_ids[second], unused]
    rows = pd.DataFrame(np.column_stack(columns))
    rows.to_csv(folder / file, sep=" ", header=False, index=False)


def _numbers(path: Path, columns: Sequence[int]) -> np.ndarray:
    """Read columns of a whitespace-separated file as (N, len(columns)) int64."""
    import pandas as pd

    try:
        return pd.read_csv(path, sep=r"\s+", header=None, usecols=columns, dtype=np.int64).to_numpy()
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{path}: whole numbers expected ({error}); unpack the set again") from error


def read_pairs(path: Path, point_ids: np.ndarray) -> LabelledPairs:
    """Read the labelled pairs of a match file, e.g. ``m50_100000_100000_0.txt``.

    Raises:
        ValueError: a pair names a patch that does not exist or one patch twice, or ``info.txt``
            contradicts its label.
    """
    first, first_point, second, second_point = np.ascontiguousarray(_numbers(path, [0, 1, 3, 4]).T)
    if min(first.min(), second.min()) < 0 or max(first.max(), second.max()) >= len(point_ids):
        raise ValueError(f"{path} names patches beyond 0 to {len(point_ids) - 1}; take the file again")
    match = first_point == second_point
    itself = first == second
    if itself.any():
        patch = first[itself.argmax()]
        raise ValueError(f"{path}, line {itself.argmax() + 1}: patch {patch} is paired with itself")
    wrong = match != (point_ids[first] == point_ids[second])
    if wrong.any():
        raise ValueError(f"{path}, pair {wrong.argmax() + 1}: {INFO} says otherwise whether it matches")
    return LabelledPairs(first, second, match)


def read_sheet(sheet: Path) -> np.ndarray:
    """Read the patches of one sheet, row by row, as (256, 64, 64) uint8.

    Raises:
        FileNotFoundError: the sheet is missing.
        ValueError: the sheet is not a complete BMP image of 1024×1024 grey pixels.
    """
    image = read_image(sheet)
    if image.size != (SHEET, SHEET) or image.mode != "L":
        raise ValueError(f"{sheet} is {image.size} px of mode {image.mode}, not {SHEET}x{SHEET} grey")
    tiles = np.asarray(image).reshape(PER_ROW, PATCH, PER_ROW, PATCH)
    return tiles.transpose(0, 2, 1, 3).reshape(PER_SHEET, PATCH, PATCH)
