"""Oxford5k and Paris6k (Philbin et al., CVPR 2007 and 2008), read and written in their layout.

A folder each, ``oxford5k`` and ``paris6k``: photographs are ``*.jpg`` anywhere below it, and so is the
ground truth. Of each query ``NAME_query.txt`` names a photograph, Oxford's with ``oxc1_`` before it,
and a box in it, x and y of two corners in px; ``NAME_good.txt``, ``NAME_ok.txt`` and ``NAME_junk.txt``
name a photograph a line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from lib.files import write_bytes

CITIES = ("oxford5k", "paris6k")
QUERY = "_query.txt"
# Good: seen clearly. Ok: more than a quarter. Junk: less than that, and neither right nor wrong.
GRADES = ("good", "ok", "junk")
OXFORD_PREFIX = "oxc1_"


@dataclass(frozen=True)
class Query:
    """What is looked for, and where it is.

    Attributes:
        name: e.g. "all_souls_1".
        image: the photograph that shows it, by name without ending.
        box: left, top, right and bottom of it there, px.
        good, ok, junk: photographs that show it, by their grade.
    """

    name: str
    image: str
    box: tuple[float, float, float, float]
    good: frozenset[str]
    ok: frozenset[str]
    junk: frozenset[str]


@dataclass(frozen=True)
class City:
    """Photographs and queries.

    Attributes:
        name: of `CITIES`.
        images: by name without ending, in order of names.
        queries: in order of names.
    """

    name: str
    images: Mapping[str, Path]
    queries: tuple[Query, ...]


@dataclass(frozen=True)
class Landmarks:
    """Both cities: the vocabulary for either is learned on the other.

    Attributes:
        name: of the set.
        cities: by name, in the order of `CITIES`.
    """

    name: str
    cities: Mapping[str, City]


def read(name: str, folder: Path) -> Landmarks:
    """Open a folder of both cities.

    Raises:
        FileNotFoundError, ValueError: as `read_city`.
    """
    return Landmarks(name, {city: read_city(city, folder / city) for city in CITIES})


def read_city(name: str, root: Path) -> City:
    """The photographs and the ground truth below a folder.

    Raises:
        FileNotFoundError: no photographs, no queries, or a list of a query is missing.
        ValueError: two photographs of one name; a query that is no name and box; a list that names a
            photograph which is not there, or one of two grades. The message names the file.
    """
    images: dict[str, Path] = {}
    for path in sorted(root.rglob("*.jpg")):
        if path.stem in images:
            raise ValueError(f"{path} and {images[path.stem]} have one name: remove one")
        images[path.stem] = path
    queries = sorted(root.rglob(f"*{QUERY}"))
    if not images or not queries:
        lacks = "photographs *.jpg" if not images else f"ground truth *{QUERY}"
        raise FileNotFoundError(f"{root} holds no {lacks}: unpack it there")
    in_order = {stem: images[stem] for stem in sorted(images)}
    return City(name, in_order, tuple(_read_query(path, in_order) for path in queries))


def _read_query(path: Path, images: Mapping[str, Path]) -> Query:
    name, *corners = path.read_text(encoding="utf-8").split()[:5] or [""]
    image = name if name in images else name.removeprefix(OXFORD_PREFIX)
    try:
        box = tuple(map(float, corners))
    except ValueError:
        box = ()
    if len(box) != 4 or not (box[0] < box[2] and box[1] < box[3]):
        raise ValueError(f"{path} is no query: it holds a photograph's name and x y x y of a box")
    _check_there([image], images, path)
    grades = {}
    for grade in GRADES:
        file = path.with_name(path.name.removesuffix(QUERY) + f"_{grade}.txt")
        if not file.is_file():
            raise FileNotFoundError(f"{file} is missing: {path.name} asks for it")
        named = file.read_text(encoding="utf-8").split()
        _check_there(named, images, file)
        for other, known in grades.items():
            if both := known.intersection(named):
                raise ValueError(f"{file} names {sorted(both)[0]}, which is {other} too")
        grades[grade] = frozenset(named)
    return Query(path.name.removesuffix(QUERY), image, box, **grades)


def _check_there(named: Sequence[str], images: Mapping[str, Path], file: Path) -> None:
    if absent := [name for name in named if name not in images]:
        raise ValueError(f"{file} names {absent[0]}, and there is no such photograph")


def write_city(
    images: Path,
    truth: Path,
    photographs: Mapping[str, np.ndarray],
    queries: Sequence[Query],
    prefix: str = "",
) -> None:
    """Write photographs and ground truth.

    Args:
        images, truth: folders, made here.
        photographs: (H, W) uint8 by name.
        queries: of them.
        prefix: before the photograph's name in a query, `OXFORD_PREFIX` or nothing.

    Raises:
        OSError: the folders are there already, or cannot be written.
    """
    images.mkdir(parents=True)
    truth.mkdir(parents=True)
    for name, grey in photographs.items():
        coded = cv2.imencode(".jpg", grey, [cv2.IMWRITE_JPEG_QUALITY, 95])[1]
        write_bytes(images / f"{name}.jpg", coded.tobytes())
    for query in queries:
        box = " ".join(f"{value:.1f}" for value in query.box)
        (truth / f"{query.name}{QUERY}").write_text(f"{prefix}{query.image} {box}\n", encoding="utf-8")
        for grade in GRADES:
            lines = "".join(f"{name}\n" for name in sorted(getattr(query, grade)))
            (truth / f"{query.name}_{grade}.txt").write_text(lines, encoding="utf-8")
