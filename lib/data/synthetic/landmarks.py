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
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from lib.data.images import write_image
from lib.data.synthetic.allotment import SCENES, Allotment
from lib.data.synthetic.geometry import plane_homography
from lib.data.synthetic.photographs import Photograph
from lib.data.synthetic.scenes import Site, seen_pieces
from lib.data.synthetic.sizes import ImagesSize
from lib.data.synthetic.walls import in_image, photographed_wall
from lib.data.whole_images import CITIES, GRADES, OXFORD_PREFIX, QUERY, Query
from lib.features.homographies import transfer

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
    return [photograph for scene in SCENES[1:] for photograph in allotment[scene][:TEXTURES]]


def write_landmarks(folder: Path, photographs: Sequence[Photograph], size: ImagesSize) -> None:
    """Write both cities.

    Raises:
        ValueError: a photograph cannot be read.
        OSError: the folder cannot be written.
    """
    half = len(photographs) - len(photographs) // 2
    first, second = photographs[:half], photographs[half:]
    for city, shown, prefix in zip(CITIES, (first, second), (OXFORD_PREFIX, ""), strict=True):
        write_city(folder / city, *_city(city, shown, size), prefix)


def write_city(
    folder: Path, images: Mapping[str, np.ndarray], queries: Sequence[Query], prefix: str = ""
) -> None:
    """Write photographs and ground truth in the released layout.

    Args:
        folder: made if missing.
        images: (H, W) uint8 by name.
        queries: of them.
        prefix: before the photograph's name in a query, `OXFORD_PREFIX` or nothing.
    """
    for name, grey in images.items():
        write_image(folder / "images" / f"{name}.jpg", grey)
    truth = folder / "gt_files"
    truth.mkdir(parents=True)
    for query in queries:
        box = " ".join(f"{value:.1f}" for value in query.box)
        (truth / f"{query.name}{QUERY}").write_text(f"{prefix}{query.image} {box}\n", encoding="utf-8")
        for grade in GRADES:
            lines = "".join(f"{name}\n" for name in sorted(getattr(query, grade)))
            (truth / f"{query.name}_{grade}.txt").write_text(lines, encoding="utf-8")


def _city(
    city: str, photographs: Sequence[Photograph], size: ImagesSize
) -> tuple[dict[str, np.ndarray], list[Query]]:
    def drawing(purpose: str) -> np.random.Generator:
        return np.random.default_rng([size.seed, zlib.crc32(f"{city} {purpose}".encode())])

    landmarks: dict[str, np.ndarray] = {}
    distracting: list[np.ndarray] = []
    for photograph in photographs:
        rows = np.array_split(photograph.grey(size.longest_side), PARTS[0], axis=0)
        parts = [part for row in rows for part in np.array_split(row, PARTS[1], axis=1)]
        mixed = [parts[index] for index in drawing(photograph.name).permutation(len(parts))]
        plain = re.sub(r"[^a-z0-9]+", "_", photograph.name.lower())
        landmarks |= {f"{plain}_{n}": part for n, part in enumerate(mixed[:LANDMARKS], 1)}
        distracting += mixed[LANDMARKS:]
    images: dict[str, np.ndarray] = {}
    queries: list[Query] = []
    for name, part in landmarks.items():
        rng = drawing(name)
        left, right = (distracting[k] for k in rng.choice(len(distracting), 2, replace=False))
        site, views = photographed_wall([left, part, right], ARC, VIEWS, SIZE, AZIMUTH, ASIDE, rng)
        views_by_name = {f"{city}_{name}_{n:06}": grey for n, grey in enumerate(views)}
        queries += _queries(name, list(views_by_name), site)
        images |= views_by_name
    for number, first in enumerate(range(0, len(distracting), 3), 1):
        street, rng = distracting[first : first + 3], drawing(f"street {number}")
        _, views = photographed_wall(street, ARC, DISTRACTING_VIEWS, SIZE, AZIMUTH, ASIDE, rng)
        images |= {f"{city}_street_{number}_{n:06}": grey for n, grey in enumerate(views)}
    return images, queries


def _queries(landmark: str, images: Sequence[str], site: Site) -> list[Query]:
    """Queries for the middle texture of a wall: the first photographs that show it clearly."""
    lists: dict[str | None, list[str]] = {grade: [] for grade in (*GRADES, None)}
    boxes = {}
    for view, image in enumerate(images):
        share, boxes[image] = _shown(site, view)
        grade = next((grade for grade, least in LEAST_SHOWN.items() if share >= least), None)
        lists[grade].append(image)
    graded = {grade: frozenset(lists[grade]) for grade in GRADES}
    asked = enumerate(lists["good"][:QUERIES], 1)
    return [Query(f"{landmark}_{count}", image, boxes[image], **graded) for count, image in asked]


def _shown(site: Site, view: int) -> tuple[float, tuple[float, ...]]:
    """The share of the middle texture that a view shows, and the box around what it shows of it."""
    camera, positions, visible = site.cameras[view], [], []
    for index, piece in enumerate(site.pieces):
        if piece.photograph != 1:
            continue
        sides = (piece.plane.width, piece.plane.height)
        texels = np.meshgrid(*(np.linspace(1, length - 2, _POINTS) for length in sides))
        pixels = transfer(plane_homography(piece.plane, camera), np.stack(texels, -1).reshape(-1, 2))
        positions.append(pixels)
        visible.append(in_image(pixels, camera) & (seen_pieces(site, view, pixels) == index))
    shown = np.concatenate(visible)
    pixels = np.concatenate(positions)[shown]
    box = (*pixels.min(axis=0), *pixels.max(axis=0)) if shown.any() else (0.0,) * 4
    return float(shown.mean()), tuple(map(float, box))
