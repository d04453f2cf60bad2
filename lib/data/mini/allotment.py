"""Which photograph goes where: those that the pinned packages install, or any folder's.

Each photograph is allotted once, so that the scenes, the homography sequences, the reserve for searches
and a second reserve, which nothing reads before a last confirmation, share none.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from lib.data.mini.photographs import Photograph
from lib.files import write_bytes

Allotment = Mapping[str, tuple[Photograph, ...]]

SCENES = ("a", "b", "c")
HOMOGRAPHY = "homography"
RESERVE = ("reserve-a", "reserve-b")
CONFIRMATION = ("confirmation-a", "confirmation-b")
FEWEST_PHOTOGRAPHS = 5
# From so many on, some can be spared for a second reserve.
FEWEST_FOR_CONFIRMATION = 20
SMALLEST_SIDE = 64

CC0 = "CC0 1.0"
PUBLIC_DOMAIN = "public domain"
CC_BY = "CC BY 2.0"
UNSTATED = "no licence stated"

# File inside its package, licence and source. Licences as the packages' documentation gives them.
_PACKAGED: Mapping[str, tuple[str, str, str]] = {
    "astronaut": ("skimage", "data/astronaut.png", f"{PUBLIC_DOMAIN}, NASA"),
    "brick": ("skimage", "data/brick.png", f"{CC0}, CC0Textures"),
    "camera": ("skimage", "data/camera.png", f"{CC0}, Lav Varshney"),
    "chelsea": ("skimage", "data/chelsea.png", f"{CC0}, Stefan van der Walt"),
    "china": ("sklearn", "datasets/images/china.jpg", f"{CC_BY}, danielbuechele"),
    "coffee": ("skimage", "data/coffee.png", f"{CC0}, Rachel Michetti"),
    "coins": ("skimage", "data/coins.png", f"{PUBLIC_DOMAIN}, Brooklyn Museum"),
    "flower": ("sklearn", "datasets/images/flower.jpg", f"{CC_BY}, vultilion"),
    "grass": ("skimage", "data/grass.png", f"{CC0}, linolafett"),
    "gravel": ("skimage", "data/gravel.png", f"{CC0}, CC0Textures"),
    "hubble_deep_field": ("skimage", "data/hubble_deep_field.jpg", f"{PUBLIC_DOMAIN}, NASA"),
    "ihc": ("skimage", "data/ihc.png", f"{PUBLIC_DOMAIN}, scikit-image's immunohistochemistry"),
    "moon": ("skimage", "data/moon.png", f"{UNSTATED}, scikit-image"),
    "motorcycle_left": (
        "skimage",
        "data/motorcycle_left.png",
        f"{UNSTATED}, Scharstein et al., Middlebury stereo 2014",
    ),
    "motorcycle_right": (
        "skimage",
        "data/motorcycle_right.png",
        f"{UNSTATED}, Scharstein et al., Middlebury stereo 2014",
    ),
    "page": ("skimage", "data/page.png", f"{UNSTATED}, scikit-image"),
    "retina": ("skimage", "data/retina.jpg", f"{CC0}, Mikael Häggström"),
    "rocket": ("skimage", "data/rocket.jpg", f"{PUBLIC_DOMAIN}, SpaceX"),
    "text": ("skimage", "data/text.png", f"{PUBLIC_DOMAIN}, Wikipedia's Corner.png"),
}

# Each scene mixes things of different kinds, one regular texture in each. The two of the motorcycle show
# one thing and stay together.
ALLOTMENT: Mapping[str, tuple[str, ...]] = {
    "a": ("china", "chelsea", "brick"),
    "b": ("coffee", "astronaut", "gravel"),
    "c": ("camera", "grass", "ihc"),
    HOMOGRAPHY: ("motorcycle_left", "motorcycle_right", "coins", "page", "text", "rocket"),
    "reserve-a": ("flower", "retina"),
    "reserve-b": ("moon", "hubble_deep_field"),
}


def packaged_photographs() -> Allotment:
    """The installed packages' photographs by allotment, the keys of `ALLOTMENT`; no second reserve.

    Raises:
        FileNotFoundError: a package does not bring a photograph that its pinned release brings.
    """
    return {part: tuple(_packaged(name) for name in names) for part, names in ALLOTMENT.items()}


def _packaged(name: str) -> Photograph:
    package, inside, licence = _PACKAGED[name]
    found = importlib.util.find_spec(package)
    path = Path(found.origin).parent / inside if found and found.origin else Path(package, inside)
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} is missing: install the releases of requirements.txt, which bring it"
        )
    return Photograph(name, path, licence)


def folder_photographs(folder: Path) -> tuple[Allotment, Mapping[str, str]]:
    """A folder's photographs by allotment, and why each file that is none was skipped, by its name.

    Args:
        folder: its files are tried one by one; folders in it are not entered.

    Raises:
        FileNotFoundError: no such folder.
        ValueError: fewer than 5 readable photographs.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is no folder: give one that holds photographs")
    reasons = {path: _unfit(path) for path in sorted(folder.iterdir()) if path.is_file()}
    skipped = {_shown(path.name): reason for path, reason in reasons.items() if reason}
    readable = [path for path, reason in reasons.items() if not reason]
    if len(readable) < FEWEST_PHOTOGRAPHS:
        told = "".join(f"; {name} {reason}" for name, reason in list(skipped.items())[:5])
        raise ValueError(
            f"{folder} holds {len(readable)} readable photographs ({len(skipped)} files skipped{told}), "
            f"at least {FEWEST_PHOTOGRAPHS} are needed: add some"
        )
    return _deal([Photograph(_shown(p.stem), p, "as its owner states") for p in readable]), skipped


def _deal(photographs: Sequence[Photograph]) -> Allotment:
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
    reserves = [math.ceil(reserve / 2), reserve // 2, math.ceil(second / 2), second // 2]
    sizes = [n - homography - reserve - second, homography, *reserves]
    ends = itertools.accumulate(sizes)
    scenes, *others = [tuple(photographs[e - k : e]) for k, e in zip(sizes, ends, strict=True)]
    parts = {scene: scenes[i :: len(SCENES)] for i, scene in enumerate(SCENES)}
    parts |= zip((HOMOGRAPHY, *RESERVE, *CONFIRMATION), others, strict=True)
    return {part: taken for part, taken in parts.items() if taken}


def write_allotment(path: Path, allotment: Allotment) -> None:
    """Write which photographs, by name and hash, serve what, so that a study can be named without them.

    Raises:
        OSError: the file cannot be written.
    """
    content = {
        part: [{"name": p.name, "sha256": p.sha256} for p in of] for part, of in allotment.items()
    }
    write_bytes(path, (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode())


def read_allotment(path: Path) -> Allotment:
    """The allotment that `write_allotment` wrote, of photographs without files.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is no such file.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return {
            part: tuple(Photograph(p["name"], None, "as its owner states", p["sha256"]) for p in of)
            for part, of in content.items()
        }
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(
            f"{path} lists no photographs by allotment ({error!r}): take it again"
        ) from error


def _shown(name: str) -> str:
    """A file's name as it can be written and drawn: bytes that are no UTF-8 become U+FFFD."""
    return name.encode(errors="surrogateescape").decode(errors="replace")


def _unfit(path: Path) -> str | None:
    """Why a file is no photograph that can be used, None where it is one; decoded as `grey` does."""
    import cv2
    from PIL import Image

    try:
        with Image.open(path) as image:
            long, short = max(image.size), min(image.size)
            # Pillow finds a cut-off JPEG, which OpenCV fills up with grey.
            image.draft("L", (64, 64))
            image.load()
    except Exception:
        return "is cut short or no image"
    if short < SMALLEST_SIDE or long > 8 * short:
        return f"is {long} by {short} px: smaller than {SMALLEST_SIDE}, or 8 times longer than wide"
    data = np.frombuffer(path.read_bytes(), np.uint8)
    if cv2.imdecode(data, cv2.IMREAD_REDUCED_GRAYSCALE_8) is None:
        return "is of a kind that OpenCV does not read: save it with 8 or 16 bits a channel"
    return None
