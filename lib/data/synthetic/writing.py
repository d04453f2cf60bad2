"""A scene's files: PhotoTour's own, and ``scene.json`` by which its sites are planned again."""

import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from lib.data.patchset import LabelledPairs
from lib.data.phototour import write_pairs, write_patches
from lib.data.synthetic.photographs import Photograph
from lib.data.synthetic.scenes import Site, cut_site, plan_site
from lib.data.synthetic.sizes import SyntheticSize

SCENE = "scene.json"


def write_scene(folder: Path, name: str, photographs: Sequence[Photograph], size: SyntheticSize) -> None:
    """Generate a scene into a folder, one site at a time, so that memory does not grow with it.

    Args:
        folder: made if missing.
        name: enters the seed, so that scenes differ.
        photographs: their number decides how many sites there are.
        size: of the scene.

    Raises:
        ValueError: a photograph cannot be read, or none of them yields points that two views see.
        OSError: the folder cannot be written.
    """
    sites: list[dict[str, Any]] = []

    def cut_sites() -> Iterator[tuple[np.ndarray, ...]]:
        points = images = 0
        for number, group in enumerate(_groups(photographs, size.photos_per_site)):
            rng = np.random.default_rng([*_seed(name, size), number])
            textures = [photograph.grey(size.longest_side) for photograph in group]
            shapes = [texture.shape for texture in textures]
            site = plan_site(shapes, size, rng)
            patches = cut_site(site, textures, size, rng)
            yield patches.patches, patches.points + points, patches.images + images, patches.frames
            shown = [{"name": p.name, "sha256": p.sha256} for p in group]
            sites.append({"first_image": images, "photographs": shown, "shapes": shapes})
            points += int(patches.points.max(initial=-1)) + 1
            images += len(site.cameras)

    point_ids = write_patches(folder, cut_sites())
    if point_ids.max(initial=0) < 1:
        raise ValueError(f"scene {name}: too few points found; give photographs with more texture")
    pairs = draw_pairs(point_ids, size.pairs, np.random.default_rng([*_seed(name, size), 2**31]))
    write_pairs(folder, pairs, point_ids)
    facts = {"name": name, "size": asdict(size), "sites": sites}
    (folder / SCENE).write_text(json.dumps(facts) + "\n")


def read_sites(folder: Path) -> tuple[dict[str, Any], tuple[Site, ...]]:
    """The facts of ``scene.json``, and its sites, planned again as they were when it was generated.

    Raises:
        FileNotFoundError: the folder holds no generated scene.
    """
    facts = json.loads((folder / SCENE).read_text())
    size = SyntheticSize(**facts["size"])
    seed = _seed(facts["name"], size)
    return facts, tuple(
        plan_site(site["shapes"], size, np.random.default_rng([*seed, number]))
        for number, site in enumerate(facts["sites"])
    )


def _seed(name: str, size: SyntheticSize) -> list[int]:
    return [size.seed, zlib.crc32(name.encode())]


def _groups(photographs: Sequence[Photograph], largest: int) -> Iterator[Sequence[Photograph]]:
    """Groups of nearly equal size, none larger than `largest`."""
    number = -(-len(photographs) // largest)
    for index in range(number):
        yield photographs[index * len(photographs) // number : (index + 1) * len(photographs) // number]


def draw_pairs(point_ids: np.ndarray, count: int, rng: np.random.Generator) -> LabelledPairs:
    """Test pairs: matching ones drawn without replacement, and as many that do not match.

    Non-matching pairs take every patch about equally often. Fewer than `count` of each where there
    are not so many matching pairs.

    Args:
        point_ids: (P,) int64 of two points or more; a point's patches follow each other.
        count: pairs of each kind.
        rng: the draw.

    Returns:
        Pairs in random order.
    """
    first, second = within_points(point_ids)
    chosen = rng.permutation(len(first))[:count]
    first, second = first[chosen], second[chosen]

    wanted = len(first)
    other_first, other_second = non_matching(point_ids, wanted, rng)
    order = rng.permutation(len(first) + wanted)
    return LabelledPairs(
        first=np.r_[first, other_first][order],
        second=np.r_[second, other_second][order],
        match=(np.arange(len(first) + wanted) < len(first))[order],
    )


def within_points(point_ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All pairs within points: each patch with every later one of its point, which follow each other."""
    total = len(point_ids)
    starts = np.flatnonzero(np.r_[True, point_ids[1:] != point_ids[:-1]])
    end_of = np.repeat(np.r_[starts[1:], total], np.diff(np.r_[starts, total]))
    later = end_of - np.arange(total) - 1
    first = np.repeat(np.arange(total), later)
    return first, first + 1 + np.arange(len(first)) - np.repeat(np.cumsum(later) - later, later)


def non_matching(
    point_ids: np.ndarray, count: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """So many pairs of patches of different points, which take every patch about equally often."""
    first, second = np.empty(0, int), np.empty(0, int)
    while len(first) < count:
        left, right = rng.permutation(len(point_ids)), rng.permutation(len(point_ids))
        differ = point_ids[left] != point_ids[right]
        first, second = np.r_[first, left[differ]], np.r_[second, right[differ]]
    return first[:count], second[:count]
