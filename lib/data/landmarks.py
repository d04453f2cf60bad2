"""Oxford5k and Paris6k (Philbin et al., CVPR 2007 and 2008), read in their layout.

A folder each, ``oxford5k`` and ``paris6k``: photographs are ``*.jpg`` anywhere below it, and so is the
ground truth. Of each query ``NAME_query.txt`` names a photograph, Oxford's with ``oxc1_`` before it,
and a box in it, x and y of two corners in px; ``NAME_good.txt``, ``NAME_ok.txt`` and ``NAME_junk.txt``
name a photograph a line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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
        ValueError: a query that is no name and box, or a photograph that is not there, or is of two
            grades; the message names the query's file.
    """
    images = {path.stem: path for path in sorted(root.rglob("*.jpg"), key=lambda path: path.stem)}
    queries = sorted(root.rglob(f"*{QUERY}"))
    if not images or not queries:
        raise FileNotFoundError(f"{root} lacks photographs *.jpg or queries *{QUERY}: unpack them there")
    return City(name, images, tuple(_read_query(path, images) for path in queries))


def _read_query(path: Path, images: Mapping[str, Path]) -> Query:
    name = path.name.removesuffix(QUERY)
    lists = [path.with_name(f"{name}_{grade}.txt") for grade in GRADES]
    graded = [file.read_text(encoding="utf-8").split() for file in lists]
    try:
        shown, *corners = path.read_text(encoding="utf-8").split()[:5]
        left, top, right, bottom = map(float, corners)
        image = shown.removeprefix(OXFORD_PREFIX)
        named = {*graded[0], *graded[1], *graded[2]}
        if not (left < right and top < bottom and {image, *named} <= images.keys()):
            raise ValueError("an empty box, or a photograph that is not there")
        if len(named) < sum(map(len, map(set, graded))):
            raise ValueError("a photograph is of two grades")
    except ValueError as error:
        raise ValueError(f"{path} or its lists are damaged ({error}): unpack them again") from error
    return Query(name, image, (left, top, right, bottom), *map(frozenset, graded))
