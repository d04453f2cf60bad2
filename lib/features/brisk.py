"""Corners after BRISK (Leutenegger et al., ICCV 2011, Sec. 3.1), which OpenCV 5 no longer has.

FAST's corners of 9 of 16 pixels, in octaves and halfway between them, each the strongest of its
neighbourhood in its own layer and in the two beside it. Its refinement between pixels and between layers
is left out.
"""

import cv2
import numpy as np
from scipy.spatial import cKDTree

from lib.features.keypoints import Keypoints

# Px of the image to a pixel of a layer: octaves, and in between.
LAYERS = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
# Grey levels by which a corner's pixels differ from its middle.
CONTRAST = 30
# Px of a layer around a corner in which no other layer's is stronger.
REACH = 1.5
# Of the finest layer, px: as the finest of Lowe's. A patch is then 22 px wide there, about as wide as
# BRISK's own pattern.
SCALE = 1.6


def brisk_corners(image: np.ndarray, most: int) -> Keypoints:
    """At most so many corners of a (H, W) uint8 image, the strongest first, of orientation 0."""
    by_layer = [_corners(image, pixel) for pixel in LAYERS]
    corners = np.concatenate(by_layer)
    layer = np.repeat(np.arange(len(LAYERS)), [len(rows) for rows in by_layer])
    pixel, strength = corners[:, 2], corners[:, 3]
    near = cKDTree(corners[:, :2]).query_ball_point(corners[:, :2], REACH * pixel)
    # Of equally strong ones that of the finer layer.
    rank = list(zip(strength, -layer, strict=True))
    maxima = [
        corner
        for corner, others in enumerate(near)
        if all(rank[other] < rank[corner] for other in others if abs(layer[other] - layer[corner]) == 1)
    ]
    # A total order, since many are as strong as others.
    order = sorted(maxima, key=lambda corner: (-strength[corner], *corners[corner]))[:most]
    return Keypoints(corners[order, :2], SCALE * pixel[order], np.zeros(len(order)))


def _corners(image: np.ndarray, pixel: float) -> np.ndarray:
    """(n, 4) FAST's local maxima in a layer: x and y in the image, px, the layer's pixel, strength."""
    height, width = (max(1, round(side / pixel)) for side in image.shape)
    small = cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA)
    fast = cv2.FastFeatureDetector_create(CONTRAST, True, cv2.FAST_FEATURE_DETECTOR_TYPE_9_16)
    rows = [(*corner.pt, pixel, corner.response) for corner in fast.detect(small, None)]
    corners = np.array(rows, float).reshape(-1, 4)
    # The middle of the first pixel is at 0.
    stretch = np.array(image.shape[::-1]) / (width, height)
    corners[:, :2] = (corners[:, :2] + 0.5) * stretch - 0.5
    return corners
