"""UBC PhotoTour patch sets in their original layout (Brown, Hua and Winder, PAMI 2011): read, write.

A folder holds ``patches0000.bmp`` and so on (1024x1024 grey, 16x16 patches of 64x64, row by row),
``info.txt`` (a line a patch: 3D point id, unused), perhaps ``interest.txt`` (a line a patch: image
id, x, y, orientation, log2 scale) and ``m50_100000_100000_0.txt`` (a line a pair: patch, point,
unused, patch, point, unused; a match where the point ids are equal).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from lib.data.decoded import decoded
from lib.data.images import read_image
from lib.data.patchset import LabelledPairs, PatchSet
from lib.data.tables import refuse_rows

PATCH = 64
SHEET = 1024
PER_ROW = SHEET // PATCH
PER_SHEET = PER_ROW * PER_ROW
INFO = "info.txt"
INTEREST = "interest.txt"
MATCHES = "m50_100000_100000_0.txt"
KNOWN_COUNTS = {"liberty": 450_092, "notredame": 468_159, "yosemite": 633_587}


def read_phototour(folder: Path, cache: Path, name: str | None = None) -> PatchSet:
    """Read a patch set; its sheets are decoded once and cached as one memory-mapped array.

    Args:
        folder: holds the files named above.
        cache: folder for the decoded patches, made if missing; what it holds is made anew when
            sheets or info.txt change.
        name: the set's name, the folder's by default.

    Returns:
        patches (P, 64, 64) uint8 and read-only, point ids (P,), image ids (P,) where interest.txt
        is there, test pairs where the match file is there.

    Raises:
        FileNotFoundError: the folder, info.txt or a sheet is missing.
        ValueError: a file is damaged or contradicts another, or a point has a single patch.
        OSError: the cache cannot be written.
    """
    name = name or folder.name
    sheets, point_ids, image_ids, pairs = read_layout(folder)
    count = len(point_ids)

    def blocks() -> Iterator[np.ndarray]:
        for number, sheet in enumerate(sheets):
            yield read_sheet(sheet)[: count - number * PER_SHEET]

    patches = decoded(cache, name, [*sheets, folder / INFO], count, blocks)
    return PatchSet(name, patches, point_ids, image_ids, pairs)


def read_layout(
    folder: Path,
) -> tuple[list[Path], np.ndarray, np.ndarray | None, LabelledPairs | None]:
    """All of a set but pixels: sheets, point ids, image ids, pairs; raises as `read_phototour` does."""
    sheets = [folder / f"patches{n:04d}.bmp" for n in range(len(list(folder.glob("patches*.bmp"))) or 1)]
    for sheet in sheets:
        if not sheet.is_file():
            raise FileNotFoundError(f"{sheet} is missing: unpack the set there")
    point_ids = read_point_ids(folder / INFO, len(sheets))
    interest, matches = folder / INTEREST, folder / MATCHES
    image_ids = _numbers(interest, [0])[:, 0] if interest.exists() else None
    if image_ids is not None and len(image_ids) != len(point_ids):
        raise ValueError(f"{interest} has {len(image_ids)} lines for {len(point_ids)} patches")
    return sheets, point_ids, image_ids, read_pairs(matches, point_ids) if matches.exists() else None


def verify_counts(patch_set: PatchSet) -> None:
    """Check a real set by its number of patches; archives were re-packed, so no hash would do.

    Raises:
        ValueError: the set is one of `KNOWN_COUNTS` and has another number of patches.
    """
    expected = KNOWN_COUNTS.get(patch_set.name)
    count = len(patch_set.patches)
    if expected is not None and count != expected:
        raise ValueError(f"{patch_set.name} has {count} patches, the original has {expected}")


class PhotoTourWriter:
    """Writes a set patch by patch, holding one sheet in memory; a context that ends well is whole."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self.count = 0
        self._sheet = np.zeros((PER_SHEET, PATCH, PATCH), np.uint8)
        self._info = (self.folder / INFO).open("w")
        self._interest = (self.folder / INTEREST).open("w")

    def add(
        self,
        patches: np.ndarray,
        point_ids: np.ndarray,
        image_ids: np.ndarray,
        frames: np.ndarray,
    ) -> None:
        """Append patches.

        Args:
            patches: (N, 64, 64) uint8.
            point_ids, image_ids: (N,) integers.
            frames: (N, 4) float, x and y in px, orientation in radians, log2 of the scale in px.
        """
        for patch in patches:
            self._sheet[self.count % PER_SHEET] = patch
            self.count += 1
            if self.count % PER_SHEET == 0:
                self._write_sheet()
        np.savetxt(self._info, np.column_stack([point_ids, image_ids]), "%d")
        np.savetxt(self._interest, np.column_stack([image_ids, frames]), "%d %.3f %.3f %.5f %.4f")

    def __enter__(self) -> PhotoTourWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None and self.count % PER_SHEET:
                self._sheet[self.count % PER_SHEET :] = 0
                self._write_sheet()
        finally:
            self._info.close()
            self._interest.close()

    def _write_sheet(self) -> None:
        from PIL import Image

        number = (self.count - 1) // PER_SHEET
        tiles = self._sheet.reshape(PER_ROW, PER_ROW, PATCH, PATCH)
        sheet = tiles.transpose(0, 2, 1, 3).reshape(SHEET, SHEET)
        Image.fromarray(sheet).save(self.folder / f"patches{number:04d}.bmp")


def write_pairs(
    folder: Path, pairs: LabelledPairs, point_ids: np.ndarray, file: str | None = None
) -> None:
    """Write a match file, `MATCHES` by default; `point_ids` are those of all the set's patches."""
    import pandas as pd

    ends = ([end, point_ids[end], np.zeros_like(end)] for end in (pairs.first, pairs.second))
    rows = pd.DataFrame(np.column_stack([*itertools.chain(*ends)]))
    rows.to_csv(folder / (file or MATCHES), sep=" ", header=False, index=False)


def _numbers(path: Path, columns: Sequence[int]) -> np.ndarray:
    """(N, len(columns)) int64 of a whitespace-separated file."""
    import pandas as pd

    try:
        table = pd.read_csv(path, sep=r"\s+", header=None, usecols=columns, dtype=np.int64)
        return table.to_numpy()
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{path} is missing: unpack the set again") from error
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{path}: whole numbers expected ({error}); unpack the set again") from error


def read_point_ids(path: Path, sheets: int) -> np.ndarray:
    """(P,) int64, the point of each patch, from ``info.txt``.

    Args:
        path: the file.
        sheets: how many there are, which bounds P.

    Raises:
        ValueError: too few or too many lines, no numbers, or a point with a single patch.
    """
    point_ids = _numbers(path, [0])[:, 0]
    count = len(point_ids)
    if not (sheets - 1) * PER_SHEET < count <= sheets * PER_SHEET:
        raise ValueError(f"{path} has {count} lines for {sheets} sheets of {PER_SHEET} patches")
    points, sizes = np.unique(point_ids, return_counts=True)
    single = points[sizes == 1]
    if len(single):
        raise ValueError(f"{path}: {len(single)} of {len(points)} points are lone, as point {single[0]}")
    return point_ids


def read_pairs(path: Path, point_ids: np.ndarray) -> LabelledPairs:
    """The labelled pairs of a match file, e.g. ``m50_100000_100000_0.txt``.

    Raises:
        ValueError: a patch that is not there, or a label that ``info.txt`` contradicts.
    """
    columns = _numbers(path, [0, 1, 3, 4])
    first, first_point, second, second_point = columns.T
    patches = columns[:, [0, 2]]
    refuse_rows(
        path,
        ((patches < 0) | (patches >= len(point_ids))).any(axis=1),
        lambda row: f"patches {first[row]} and {second[row]}, the set's are 0 to {len(point_ids) - 1}",
    )
    match = first_point == second_point
    refuse_rows(
        path,
        match != (point_ids[first] == point_ids[second]),
        lambda row: f"{INFO} says otherwise whether patches {patches[row]} match",
    )
    return LabelledPairs(first.copy(), second.copy(), match)


def read_sheet(sheet: Path) -> np.ndarray:
    """(256, 64, 64) uint8, the patches of one sheet, row by row.

    Raises:
        FileNotFoundError: there is none.
        ValueError: it is no whole BMP image of 1024×1024 grey pixels.
    """
    image = read_image(sheet)
    if image.size != (SHEET, SHEET) or image.mode != "L":
        raise ValueError(f"{sheet} is {image.size} px of mode {image.mode}, not {SHEET}x{SHEET} grey")
    tiles = np.asarray(image).reshape(PER_ROW, PATCH, PER_ROW, PATCH)
    return tiles.transpose(0, 2, 1, 3).reshape(PER_SHEET, PATCH, PATCH)
