"""Sparse models of a scene's images by COLMAP, from features and matches in memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

import numpy as np
import pycolmap

from lib.benchmarks.image_subject import ImageSubject
from lib.benchmarks.subject import Subject
from lib.data.colmap import DATABASE, HALF_PIXEL, reconstruct
from lib.data.images import read_grey
from lib.features.description import Features, image_features
from lib.features.detectors import Detector, Regions, detect
from lib.features.detectors import regions as own_regions
from lib.features.matches import match

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
            keypoints, descriptors = subject.of_image(grey)
            described[name] = Features(own_regions(keypoints), descriptors, grey.shape[::-1])
        else:
            described[name] = image_features(grey, regions(path, detector), subject.describe)
    return described


# What no descriptor changes is found once a process.
@lru_cache(maxsize=4096)
def regions(path: Path, detector: Detector) -> Regions:
    """An image's keypoints."""
    return detect(read_grey(path, orientation=STORED), detector)


Pairs = Mapping[tuple[str, str], np.ndarray]


def matched(
    described: Mapping[str, Features], pairs: Iterable[tuple[str, str]], ratio: float | None = None
) -> dict[tuple[str, str], np.ndarray]:
    """By pair of images, (M, 2) int64 keypoints: each other's nearest, which pass the ratio test."""
    matches = {}
    for pair in pairs:
        both = match(*(described[name].descriptors for name in pair), mutual=True, ratio=ratio)
        matches[pair] = np.column_stack([both.first, both.second])
    return matches


def sparse_model(
    positions: Mapping[str, np.ndarray], matches: Pairs, cameras: Mapping[str, pycolmap.Camera]
) -> pycolmap.Reconstruction | None:
    """The largest model that COLMAP's incremental mapping builds.

    Args:
        positions: (N, 2) of the keypoints by image, the first pixel's centre at 0, 0.
        matches: as `matched` gives them.
        cameras: by image that which took it; images of one number share it. They are refined.

    Returns:
        The model; None where no two images could be put together.
    """
    enough = {pair: rows for pair, rows in matches.items() if len(rows) >= FEWEST_MATCHES}
    if not enough:
        return None
    with tempfile.TemporaryDirectory() as name:
        database, pairs = Path(name, DATABASE), Path(name, "pairs.txt")
        with pycolmap.Database.open(database) as opened:
            ids = {}
            for image, xy in positions.items():
                camera = cameras[image]
                if not opened.exists_camera(camera.camera_id):
                    opened.write_camera(camera, use_camera_id=True)
                ids[image] = opened.write_image(pycolmap.Image(name=image, camera_id=camera.camera_id))
                opened.write_keypoints(ids[image], xy.astype(np.float32) + np.float32(HALF_PIXEL))
            for (first, second), rows in enough.items():
                opened.write_matches(ids[first], ids[second], rows.astype(np.uint32))
        pairs.write_text("".join(f"{first} {second}\n" for first, second in enough), encoding="utf-8")
        return reconstruct(database, None, pairs, Path(name, "models"))
