"""Embedded landmarks in the layout of Oxford5k and Paris6k.

A photograph is in one of the two cities alone. It is cut into parts, of which some are landmarks: each
stands in a wall between two of the other parts, which distract, and walls of these are seen elsewhere
too. Photographs are graded by how much of the landmark they show.

How hard they are was settled by RootSIFT alone (kornia's, on OpenCV's DoG keypoints) and frozen before
anything trained was looked at. Its mean average precision on the packaged photographs' cities:

    VisualIndex 48% and 43%, 45% over both
    Hamming query expansion 57% and 55%, with multiple assignment 60% and 60%
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lib.data.landmarks import CITIES, GRADES, OXFORD_PREFIX, Query, write_city
from lib.data.synthetic.allotment import SCENES, Allotment
from lib.data.synthetic.geometry import plane_homography, transfer
from lib.data.synthetic.photographs import Photograph
from lib.data.synthetic.scenes import Site, render_view
from lib.data.synthetic.walls import plan_wall, seen

if TYPE_CHECKING:
    from lib.data.whole_images import ImagesSize

# Photographs of a city.
TEXTURES = 3
# Rows and columns of the parts of one; how many of them are landmarks.
PARTS, LANDMARKS = (2, 3), 2
VIEWS, DISTRACTING_VIEWS = 10, 6
SIZE = (320, 240)
QUERIES = 3
# Cameras look past the middle more often than where all of a place counts.
ARC, AZIMUTH, ASIDE = np.deg2rad(110.0), np.deg2rad(55.0), 0.55
# Share of a landmark that a photograph of each grade shows at least.
LEAST_SHOWN = dict(zip(GRADES, (0.6, 0.25, 0.02), strict=True))
# Texels a side of each plane at which it is asked whether they are seen.
_POINTS = 12


def photographs(allotment: Allotment) -> list[Photograph]:
    """Those of the second scene for Oxford5k's like, then those of the third for Paris6k's."""
    return [one for scene in SCENES[1:] for one in allotment[scene][:TEXTURES]]


def write(folder: Path, of: Sequence[Photograph], size: ImagesSize) -> None:
    """Write both cities.

    Raises:
        ValueError: a photograph cannot be read, or no landmark is seen well.
        OSError: the folder cannot be written.
    """
    half = len(of) - len(of) // 2
    for city, some, prefix in zip(CITIES, (of[:half], of[half:]), (OXFORD_PREFIX, ""), strict=True):
        images, queries = _city(city, some, size)
        write_city(folder / city / "images", folder / city / "gt_files", images, queries, prefix)


def _city(
    city: str, of: Sequence[Photograph], size: ImagesSize
) -> tuple[dict[str, np.ndarray], list[Query]]:
    def drawing(what: str) -> np.random.Generator:
        return np.random.default_rng([size.seed, zlib.crc32(f"{city} {what}".encode())])

    landmarks: dict[str, np.ndarray] = {}
    distracting: list[np.ndarray] = []
    for photograph in of:
        parts = list(_parts(photograph.grey(size.longest_side)))
        mixed = [parts[index] for index in drawing(photograph.name).permutation(len(parts))]
        plain = re.sub(r"[^a-z0-9]+", "_", photograph.name.lower())
        landmarks |= {f"{plain}_{n}": part for n, part in enumerate(mixed[:LANDMARKS], 1)}
        distracting += mixed[LANDMARKS:]
    images: dict[str, np.ndarray] = {}
    queries: list[Query] = []
    for name, part in landmarks.items():
        rng = drawing(name)
        left, right = (distracting[k] for k in rng.choice(len(distracting), 2, replace=False))
        site, images_of = _photographed([left, part, right], VIEWS, rng)
        taken = {f"{city}_{name}_{n:06}": grey for n, grey in enumerate(images_of)}
        queries += _queries(name, list(taken), site)
        images |= taken
    for number, first in enumerate(range(0, len(distracting), 3), 1):
        _, images_of = _photographed(
            distracting[first:][:3], DISTRACTING_VIEWS, drawing(f"street {number}")
        )
        images |= {f"{city}_street_{number}_{n:06}": grey for n, grey in enumerate(images_of)}
    if not queries:
        raise ValueError(f"{city}: no landmark is seen well in any of its {VIEWS} photographs")
    return images, queries


def _parts(grey: np.ndarray) -> Iterator[np.ndarray]:
    for row in np.array_split(grey, PARTS[0], axis=0):
        yield from np.array_split(row, PARTS[1], axis=1)


def _photographed(
    textures: Sequence[np.ndarray], count: int, rng: np.random.Generator
) -> tuple[Site, list[np.ndarray]]:
    shapes = [texture.shape for texture in textures]
    site = plan_wall(shapes, ARC, count, SIZE, AZIMUTH, ASIDE, rng)
    return site, [render_view(site, textures, number) for number in range(count)]


def _queries(landmark: str, images: Sequence[str], site: Site) -> list[Query]:
    """Queries for the middle texture of a wall: the first photographs that show it clearly."""
    shown = [_shown(site, view) for view in range(len(images))]
    graded: dict[str, set[str]] = {grade: set() for grade in GRADES}
    for image, (share, _) in zip(images, shown, strict=True):
        if grade := next((of for of, least in LEAST_SHOWN.items() if share >= least), None):
            graded[grade].add(image)
    lists = {grade: frozenset(named) for grade, named in graded.items()}
    asked = [number for number, image in enumerate(images) if image in lists["good"]][:QUERIES]
    return [
        Query(f"{landmark}_{count}", images[number], shown[number][1], **lists)
        for count, number in enumerate(asked, 1)
    ]


def _shown(site: Site, view: int) -> tuple[float, tuple[float, ...]]:
    """The share of the middle texture that a view shows, and the box around what it shows of it."""
    camera, places, visible = site.cameras[view], [], []
    for index, piece in enumerate(site.pieces):
        if piece.photograph != 1:
            continue
        sides = (piece.plane.width, piece.plane.height)
        texels = np.meshgrid(*(np.linspace(1, length - 2, _POINTS) for length in sides))
        pixels = transfer(plane_homography(piece.plane, camera), np.stack(texels, -1).reshape(-1, 2))
        inside = (pixels >= 0) & (pixels <= [camera.width - 1, camera.height - 1])
        places.append(pixels)
        visible.append(inside.all(axis=1) & (seen(site, view, pixels) == index))
    pixels, there = np.concatenate(places), np.concatenate(visible)
    box = (*pixels[there].min(axis=0), *pixels[there].max(axis=0)) if there.any() else (0.0,) * 4
    return float(there.mean()), tuple(map(float, box))
