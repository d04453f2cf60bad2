"""The photographs of which embedded data is made, and which of them goes where.

They are those that the pinned packages install, or any folder's. Each is allotted once, so that the
scenes, the homography sequences, the reserve for searches and a second reserve, which nothing reads
before a last confirmation, share none.
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
# From so many on, some can be spared for a second reserve.
FEWEST_FOR_CONFIRMATION = 20
SMALLEST_SIDE = 64

# The photographs that packages bring, by what each serves, with their licences as the packages'
# documentation gives them. Each scene mixes things of different kinds, one regular texture in each. The
# two of the motorcycle show one thing and stay together.
PACKAGED = Path(__file__).with_name("packaged.csv")


@dataclass(frozen=True)
class Photograph:
    """A photograph's file, or what is on record of it.

    Attributes:
        name: without ending, e.g. "astronaut".
        path: of the file; None where only its hash is known.
        licence: its name, and whose the photograph is.
        recorded: the hash of a photograph that is not here.
    """

    name: str
    path: Path | None
    licence: str = "as its owner states"
    recorded: str | None = None

    @property
    def sha256(self) -> str:
        """Hash of the file's bytes."""
        return self.recorded or sha256(self.path)

    def grey(self, longest_side: int) -> np.ndarray:
        """(H, W) uint8 grey values, reduced so that neither side is longer than `longest_side` px.

        Raises:
            FileNotFoundError: the photograph is not here.
            ValueError: the file is no image that can be read.
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
    """The installed packages' photographs by allotment, as `PACKAGED` lists them; no second reserve.

    A photograph that an installed package does not bring is missed where it is read.
    """
    allotment: dict[str, tuple[Photograph, ...]] = {}
    with PACKAGED.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            # Found without importing the package, which may be slow.
            folder = Path(importlib.util.find_spec(row["package"]).origin).parent
            photograph = Photograph(row["name"], folder / row["file"], row["licence"])
            allotment[row["part"]] = (*allotment.get(row["part"], ()), photograph)
    return allotment


def folder_photographs(folder: Path) -> tuple[Allotment, Mapping[str, str]]:
    """A folder's photographs by allotment, and why each file that is none was skipped, by its name.

    Args:
        folder: its files are tried one by one; folders in it are not entered.

    Raises:
        FileNotFoundError, NotADirectoryError: no such folder.
        ValueError: fewer than 5 readable photographs.
    """
    reasons = {path: _unfit(path) for path in sorted(folder.iterdir()) if path.is_file()}
    skipped = {_utf8(path.name): reason for path, reason in reasons.items() if reason}
    readable = [Photograph(_utf8(path.stem), path) for path, reason in reasons.items() if not reason]
    if len(readable) < FEWEST_PHOTOGRAPHS:
        counts = f"{len(readable)} readable photographs of {FEWEST_PHOTOGRAPHS} needed"
        raise ValueError(f"{folder} holds {counts} ({len(skipped)} files skipped: {skipped})")
    return dealt(readable), skipped


def dealt(photographs: Sequence[Photograph]) -> Allotment:
    """Allots n photographs in the order given.

    First come the scenes', dealt to them in turn; then a twentieth for the homography sequences, a tenth
    for the reserve (two at least, of five photographs one) and, of 20 photographs or more, another tenth
    for the second reserve, all rounded up. A reserve is two scenes, so that what was trained on either
    is tested on the other.
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
    """A file's name as it can be written and drawn: bytes that are no UTF-8 become U+FFFD."""
    return name.encode(errors="surrogateescape").decode(errors="replace")


def _unfit(path: Path) -> str | None:
    """Why a file is no photograph that can be used, None where it is one; decoded as `grey` does."""
    import cv2
    from PIL import Image

    from lib.data.images import decode_grey

    try:
        with Image.open(path) as image:
            short, long = sorted(image.size)
            # Pillow finds a cut-off JPEG, which OpenCV fills up with grey.
            image.draft("L", (64, 64))
            image.load()
    except Exception:
        return "is cut short or no image"
    if short < SMALLEST_SIDE or long > 8 * short:
        return f"is {long} by {short} px: smaller than {SMALLEST_SIDE}, or 8 times longer than wide"
    if decode_grey(path, cv2.IMREAD_REDUCED_GRAYSCALE_8) is None:
        return "is of a kind that OpenCV does not read: save it with 8 or 16 bits a channel"
    return None
