"""Oxford5k and Paris6k (Philbin et al., CVPR 2007 and 2008), read in their layout.

A folder each, ``oxford5k`` and ``paris6k``: photographs are ``*.jpg`` anywhere below it, and so is the
ground truth. Of each query ``NAME_query.txt`` names a photograph, Oxford's with ``oxc1_`` before it,
and a box in it, x and y of two corners in px; ``NAME_good.txt``, ``NAME_ok.txt`` and ``NAME_junk.txt``
name a photograph a line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

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
    for path in sorted(root.rglob("*.jpg"), key=lambda path: path.stem):
        if path.stem in images:
            raise ValueError(f"{path} and {images[path.stem]} have one name: remove one")
        images[path.stem] = path
    queries = sorted(root.rglob(f"*{QUERY}"))
    if not images or not queries:
        lacks = "ground truth *" + QUERY if images else "photographs *.jpg"
        raise FileNotFoundError(f"{root} holds no {lacks}: unpack it there")
    return City(name, images, tuple(_read_query(path, images) for path in queries))


def _read_query(path: Path, images: Mapping[str, Path]) -> Query:
    name = path.name.removesuffix(QUERY)
    try:
        shown, *corners = path.read_text(encoding="utf-8").split()[:5]
        left, top, right, bottom = map(float, corners)
    except ValueError as error:
        raise ValueError(f"{path} holds no photograph's name and x y x y of a box") from error
    image = shown if shown in images else shown.removeprefix(OXFORD_PREFIX)
    if not (left < right and top < bottom and image in images):
        raise ValueError(f"{path} names a photograph that is not there ({image}), or an empty box")
    grades: dict[str, frozenset[str]] = {}
    for grade in GRADES:
        file = path.with_name(f"{name}_{grade}.txt")
        grades[grade] = frozenset(file.read_text(encoding="utf-8").split())
        if absent := grades[grade] - images.keys():
            raise ValueError(f"{file} names {min(absent)}, and there is no such photograph")
    for first, second in combinations(GRADES, 2):
        if both := grades[first] & grades[second]:
            raise ValueError(f"{path.parent / name}: {min(both)} is both {first} and {second}")
    return Query(name, image, (left, top, right, bottom), **grades)
