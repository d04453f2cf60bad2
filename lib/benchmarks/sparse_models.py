"""Sparse models of a scene's images by COLMAP, from features and matches in memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import combinations
from pathlib import Path

import numpy as np
import pycolmap

from lib.benchmarks.image_subject import ImageSubject
from lib.benchmarks.subject import Subject
from lib.features.keypoints import Detector, Regions, detect
from lib.features.keypoints import regions as own_regions
from lib.matching.colmap import ORIGIN, reconstruct
from lib.matching.describe import Features, describe
from lib.matching.images import read_grey
from lib.matching.match import match

# Pixels as they are stored, for which calibrations hold.
STORED = "stored"
# Before they are verified; fewer are thrown away, as in ETH's benchmark.
FEWEST_MATCHES = 15


def features(subject: Subject, images: Mapping[str, Path], detector: Detector) -> dict[str, Features]:
    """Of each image by name, its keypoints described; at its own ones by what describes whole images.

    Raises:
        FileNotFoundError, ValueError: an image is missing or cannot be read; the message names it.
    """
    described: dict[str, Features] = {}
    for name, path in images.items():
        grey = read_grey(path, orientation=STORED)
        if isinstance(subject, ImageSubject):
            own, descriptors = subject.of_image(grey)
            described[name] = Features(own_regions(own), descriptors, grey.shape[::-1])
        else:
            described[name] = describe(grey, regions(path, detector), subject.describe)
    return described


# What no descriptor changes is found once a process.
@lru_cache(maxsize=4096)
def regions(path: Path, detector: Detector) -> Regions:
    """An image's keypoints."""
    return detect(read_grey(path, orientation=STORED), detector)


Pairs = Mapping[tuple[str, str], np.ndarray]


def matched(
    of: Mapping[str, Features],
    pairs: Iterable[tuple[str, str]] | None = None,
    ratio: float | None = None,
) -> dict[tuple[str, str], np.ndarray]:
    """By pair of images, (M, 2) int64 keypoints that are each other's nearest and pass the ratio test.

    Args:
        of: features by image.
        pairs: by default each image with each later one.
        ratio: of the test, or none.
    """
    found = {}
    for first, second in combinations(of, 2) if pairs is None else pairs:
        both = match(of[first].descriptors, of[second].descriptors, mutual=True, ratio=ratio)
        found[first, second] = np.column_stack([both.first, both.second])
    return found


def sparse_model(
    places: Mapping[str, np.ndarray], matches: Pairs, cameras: Mapping[str, pycolmap.Camera]
) -> pycolmap.Reconstruction | None:
    """The largest model that COLMAP's incremental mapping builds.

    Args:
        places: (N, 2) of the keypoints by image, the first pixel's centre at 0, 0.
        matches: as `matched` gives them.
        cameras: by image that which took it; images of one number share it. They are refined.

    Returns:
        The model; None where no two images could be put together.
    """
    enough = {pair: found for pair, found in matches.items() if len(found) >= FEWEST_MATCHES}
    if not enough:
        return None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with pycolmap.Database.open(folder / "database.db") as database:
            numbers = {}
            for image, of in places.items():
                by = cameras[image]
                if not database.exists_camera(by.camera_id):
                    database.write_camera(by, use_camera_id=True)
                numbers[image] = database.write_image(pycolmap.Image(name=image, camera_id=by.camera_id))
                database.write_keypoints(numbers[image], of.astype(np.float32) + ORIGIN)
            for (first, second), found in enough.items():
                database.write_matches(numbers[first], numbers[second], found.astype(np.uint32))
        pairs = folder / "pairs.txt"
        pairs.write_text("".join(f"{first} {second}\n" for first, second in enough), encoding="utf-8")
        return reconstruct(folder / "database.db", None, pairs, folder / "models")
