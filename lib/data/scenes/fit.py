"""Whether photographs show what a sparse model of others' making says.

A model can agree with itself and belong to other pixels: photographs renamed, turned or cropped since.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from pathlib import Path

import cv2
import numpy as np
import pycolmap

from lib.data.colmap import HALF_PIXEL
from lib.data.images import read_grey
from lib.features.detectors import oriented
from lib.features.keypoints import Keypoints

# Of more points of an image, so many are drawn; and the scale, in px, at which all are described.
MOST_POINTS, SCALE = 400, 3.0
# Pairs of a point that tell whether an image fits; with fewer, nothing is said.
FEWEST_PAIRS = 20
# Least share of an image's pairs that fit. With their own models, no photograph of the repository's four
# places has less than 0.80. Of sets that were renamed, turned or cropped, or in which two photographs
# were swapped, the lowest has 0.45 to 0.51.
LEAST_SHARE = 0.6
# OpenCV's size of a keypoint is a diameter: twice its scale.
_DIAMETER = 2.0


def shares_that_fit(model: pycolmap.Reconstruction, images: Mapping[str, Path]) -> dict[str, float]:
    """Return, by image, the share of pairs of one point that look alike.

    Two views of a point look alike if their SIFT descriptors are closer than the median pair of views of
    different points in the same two images.

    Args:
        model: whose images observe points.
        images: the files by the model's names.

    Raises:
        ValueError: as `read_grey`.
    """
    described = {}
    for number in model.reg_image_ids():
        image = model.image(number)
        described[image.name] = _described(image, images[image.name])
    right: dict[str, list[np.ndarray]] = {name: [] for name in described}
    wrong: dict[str, list[np.ndarray]] = {name: [] for name in described}
    for one, other in combinations(described, 2):
        shared = sorted(described[one].keys() & described[other].keys())
        if len(shared) > 1:
            first = np.array([described[one][point] for point in shared])
            second = np.array([described[other][point] for point in shared])
            alike = np.linalg.norm(first - second, axis=1)
            different = np.linalg.norm(first - np.roll(second, 1, axis=0), axis=1)
            for name in (one, other):
                right[name].append(alike)
                wrong[name].append(different)
    shares = {}
    for name, pairs in right.items():
        distances = np.concatenate(pairs) if pairs else np.empty(0)
        if len(distances) >= FEWEST_PAIRS:
            shares[name] = float((distances < np.median(np.concatenate(wrong[name]))).mean())
    return shares


def _described(image: pycolmap.Image, path: Path) -> dict[int, np.ndarray]:
    """Return SIFT descriptors of an image's observed points, by point."""
    observed = [point for point in image.points2D if point.has_point3D()]
    drawn = np.random.default_rng(0).permutation(len(observed))[:MOST_POINTS]
    observed = [observed[index] for index in drawn]
    if not observed:
        return {}
    grey = read_grey(path, orientation="stored")
    position = np.array([point.xy for point in observed]) - HALF_PIXEL
    upright = Keypoints(position, np.full(len(position), SCALE), np.zeros(len(position)))
    angles = np.degrees(oriented(grey, upright).orientation) % 360
    keypoints = [
        cv2.KeyPoint(float(x), float(y), _DIAMETER * SCALE, float(angle))
        for (x, y), angle in zip(position, angles, strict=True)
    ]
    _, descriptors = cv2.SIFT.create().compute(grey, keypoints)
    return {point.point3D_id: row for point, row in zip(observed, descriptors, strict=True)}
