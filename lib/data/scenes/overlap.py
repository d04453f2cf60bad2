"""Whether two scenes show one place: the most matches that a fundamental matrix verifies in any pair.

A network tested on what it was trained on would look better than it is, whatever its sets are called.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import cv2
import numpy as np

from lib.data.images import decode_grey, reduced

# Enough to find a place again, and few enough that thousands of pairs take minutes.
LONGEST_SIDE, FEATURES = 1024, 1000
RATIO, PIXELS, TRIALS = 0.8, 2.0, 1000
# Two places that share nothing have 10 to 14, two scenes of one courtyard 51 to 267.
MOST_SHARED = 30
# A fundamental matrix fits any seven.
_FEWEST = 8


def described(images: Sequence[Path]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Of each image (n, 2) places and (n, 128) descriptors of its strongest SIFT keypoints, reduced.

    Raises:
        ValueError: OpenCV cannot read a file; the message names it.
    """
    sift = cv2.SIFT_create(FEATURES, enable_precise_upscale=True)
    parts = []
    for path in images:
        grey = decode_grey(path, cv2.IMREAD_IGNORE_ORIENTATION)
        if grey is None:
            raise ValueError(f"{path} is no image that OpenCV reads: save it as PNG")
        keypoints, descriptors = sift.detectAndCompute(reduced(grey, LONGEST_SIDE), None)
        places = np.array([keypoint.pt for keypoint in keypoints], np.float32).reshape(-1, 2)
        parts.append((places, np.zeros((0, 128), np.float32) if descriptors is None else descriptors))
    return parts


def shared(
    first: Sequence[tuple[np.ndarray, np.ndarray]], second: Sequence[tuple[np.ndarray, np.ndarray]]
) -> int:
    """The most verified matches of an image of one scene with an image of another (`described`)."""
    most = 0
    for (places, descriptors), (others, columns) in product(first, second):
        matched, target = _mutual(descriptors, columns)
        if len(matched) <= max(most, _FEWEST):
            continue
        cv2.setRNGSeed(0)
        _, inliers = cv2.findFundamentalMat(
            places[matched], others[target], cv2.USAC_MAGSAC, PIXELS, 0.999, TRIALS
        )
        most = max(most, 0 if inliers is None else int(inliers.sum()))
    return most


def _mutual(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Indices of descriptors that are each other's nearest and pass the ratio test."""
    if min(len(first), len(second)) < 2:
        return np.empty(0, int), np.empty(0, int)
    squares = (first**2).sum(1)[:, None] + (second**2).sum(1) - 2 * first @ second.T
    rows, nearest = np.arange(len(first)), squares.argmin(1)
    closest = squares[rows, nearest]
    squares[rows, nearest] = np.inf
    kept = np.flatnonzero(closest < RATIO**2 * squares.min(1))
    squares[rows, nearest] = closest
    kept = kept[squares[:, nearest[kept]].argmin(0) == kept]
    return kept, nearest[kept]
