"""Whether two scenes show one place: the most matches that a fundamental matrix verifies in any pair.

A network tested on what it was trained on would look better than it is, whatever its sets are called.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, product
from pathlib import Path

import cv2
import numpy as np

from lib.data.images import read_grey
from lib.features.matches import match

# Enough to find a place again, and few enough that thousands of pairs take minutes.
LONGEST_SIDE, FEATURES = 1024, 1000
RATIO, PIXELS, TRIALS = 0.8, 2.0, 1000
# Two places that share nothing have 10 to 14, two scenes of one courtyard 51 to 267.
MOST_SHARED = 30
# A fundamental matrix fits any seven.
_FEWEST = 8


def shared_matches(scenes: Mapping[str, Sequence[Path]]) -> list[tuple[str, str, int]]:
    """For each two scenes the most verified matches of an image of one with an image of the other.

    Args:
        scenes: images by name.

    Raises:
        ValueError: as `read_grey`.
    """
    described = {name: list(map(_described, images)) for name, images in scenes.items()}
    counts = []
    for one, other in combinations(described, 2):
        most = 0
        for (positions, descriptors), (others, columns) in product(described[one], described[other]):
            matches = match(descriptors, columns, mutual=True, ratio=RATIO)
            if len(matches) > max(most, _FEWEST):
                cv2.setRNGSeed(0)
                ends = positions[matches.first], others[matches.second]
                _, inliers = cv2.findFundamentalMat(*ends, cv2.USAC_MAGSAC, PIXELS, 0.999, TRIALS)
                most = max(most, 0 if inliers is None else int(inliers.sum()))
        counts.append((one, other, most))
    return counts


def _described(image: Path) -> tuple[np.ndarray, np.ndarray]:
    """(n, 2) positions and (n, 128) descriptors of an image's strongest SIFT keypoints, reduced."""
    sift = cv2.SIFT_create(FEATURES, enable_precise_upscale=True)
    keypoints, descriptors = sift.detectAndCompute(read_grey(image, LONGEST_SIDE, "stored"), None)
    positions = np.array([keypoint.pt for keypoint in keypoints], np.float32).reshape(-1, 2)
    return positions, np.empty((0, 128), np.float32) if descriptors is None else descriptors
