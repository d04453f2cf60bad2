"""The photographs that embedded data is made of, and which part each is allotted to.

They come with the pinned packages, or from any folder. Each is allotted once, so that no two of these
parts share a photograph: the scenes, the homography sequences, the reserve for searches, and a second
reserve, which nothing reads before a final confirmation.
"""

import csv
import importlib.util
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lib.files import sha256

SCENES = ("a", "b", "c")
HOMOGRAPHY = "homography"
RESERVE = ("reserve-a", "reserve-b")
CONFIRMATION = ("confirmation-a", "confirmation-b")
FEWEST_PHOTOGRAPHS = 5
# From this many photographs on, some can be spared for a second reserve.
FEWEST_FOR_CONFIRMATION = 20
SMALLEST_SIDE = 64

# The photographs that packages install: the part each is for, and its licence as the package's
# documentation gives it. Each scene mixes different kinds of things and has one regular texture. The
# two photographs of the motorcycle show one thing and stay together.
PACKAGED = Path(__file__).with_name("packaged.csv")


@dataclass(frozen=True)
class Photograph:
    """A photograph's file, or the record of one whose file is absent.

    Attributes:
        name: without file extension, e.g. "astronaut".
        path: of the file; None where only its hash is known.
        licence: the licence's name, and the photograph's owner.
        recorded: the hash, where the file is absent.
    """

    name: str
    path: Path | None
    licence: str = "as its owner states"
    recorded: str | None = None

    @property
    def sha256(self) -> str:
        """SHA-256 of the file's bytes."""
        return self.recorded or sha256(self.path)

    def grey(self, longest_side: int) -> np.ndarray:
        """Read (H, W) uint8 grey values, reduced so that neither side is longer than `longest_side` px.

        Raises:
            FileNotFoundError: the photograph's file is absent.
            ValueError: the file is not a readable image.
        """
        from lib.data.images import decode_grey, reduced

        if self.path is None:
            raise FileNotFoundError(f"photograph {self.name} is not here: give it with --photos")
        image = decode_grey(self.path)
        if image is None:
            raise ValueError(f"{self.path} is no image that can be read: remove or replace it")
        return reduced(image, longest_side)


Allotment = Mapping[str, tuple[Photograph, ...]]


def packaged_photographs() -> Allotment:
    """Return the installed packages' photographs by part, as in `PACKAGED`; there is no second reserve.

    A photograph that is missing from its package raises an error only when it is read.
    """
    allotment: dict[str, tuple[Photograph, ...]] = {}
    with PACKAGED.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            # Find the package without importing it, which may be slow.
            folder = Path(importlib.util.find_spec(row["package"]).origin).parent
            photograph = Photograph(row["name"], folder / row["file"], row["licence"])
            allotment[row["part"]] = (*allotment.get(row["part"], ()), photograph)
    return allotment


def folder_photographs(folder: Path) -> tuple[Allotment, Mapping[str, str]]:
    """Return a folder's photographs by part, and why each other file was skipped, by file name.

    Args:
        folder: its files are tried one by one; its subfolders are not entered.

    Raises:
        FileNotFoundError, NotADirectoryError: there is no such folder.
        ValueError: it has fewer than 5 readable photographs.
    """
    reasons = {path: _unfit(path) for path in sorted(folder.iterdir()) if path.is_file()}
    skipped = {_utf8(path.name): reason for path, reason in reasons.items() if reason}
    readable = [Photograph(_utf8(path.stem), path) for path, reason in reasons.items() if not reason]
    if len(readable) < FEWEST_PHOTOGRAPHS:
        counts = f"{len(readable)} readable photographs of {FEWEST_PHOTOGRAPHS} needed"
        raise ValueError(f"{folder} holds {counts} ({len(skipped)} files skipped: {skipped})")
    return dealt(readable), skipped


def dealt(photographs: Sequence[Photograph]) -> Allotment:
    """Allot photographs to the parts in the order given.

    The first photographs are dealt to the scenes in turn. Then come a twentieth for the homography
    sequences, a tenth for the reserve (at least two, but only one if there are five photographs) and, of
    20 photographs or more, another tenth for the second reserve. All shares are rounded up. A reserve is
    two scenes, so that a network trained on either is tested on the other.
    """
    n = len(photographs)
    homography, tenth = math.ceil(n / 20), max(2, math.ceil(n / 10))
    reserve = min(tenth, n - len(SCENES) - homography)
    second = tenth if n >= FEWEST_FOR_CONFIRMATION else 0
    rest = iter(photographs)
    scenes = tuple(itertools.islice(rest, n - homography - reserve - second))
    parts = {scene: scenes[i :: len(SCENES)] for i, scene in enumerate(SCENES)}
    halves = ((size + odd) // 2 for size in (reserve, second) for odd in (1, 0))
    for part, size in zip((HOMOGRAPHY, *RESERVE, *CONFIRMATION), (homography, *halves), strict=True):
        parts[part] = tuple(itertools.islice(rest, size))
    return {part: taken for part, taken in parts.items() if taken}


def _utf8(name: str) -> str:
    """Return a file's name as it can be written and drawn: bytes that are not UTF-8 become U+FFFD."""
    return name.encode(errors="surrogateescape").decode(errors="replace")


def _unfit(path: Path) -> str | None:
    """Return why a file is not a usable photograph, or None if it is; decode it as `grey` does."""
    import cv2
    from PIL import Image

    from lib.data.images import decode_grey

    try:
        with Image.open(path) as image:
            short, long = sorted(image.size)
            # Pillow detects a truncated JPEG, which OpenCV fills up with grey.
            image.draft("L", (64, 64))
            image.load()
    except Exception:
        return "is cut short or no image"
    if short < SMALLEST_SIDE or long > 8 * short:
        return f"is {long} by {short} px: smaller than {SMALLEST_SIDE}, or 8 times longer than wide"
    if decode_grey(path, cv2.IMREAD_REDUCED_GRAYSCALE_8) is None:
        return "is of a kind that OpenCV does not read: save it with 8 or 16 bits a channel"
    return None
