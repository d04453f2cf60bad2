"""Keypoints of an image as discs with a direction: found by differences of Gaussians, and carried to
another view.

Coordinates are x right and y down, the first pixel's centre at 0, 0.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np


@dataclass(frozen=True)
class Keypoints:
    """Interest points of one image.

    Attributes:
        position: (N, 2) float64, px.
        scale: (N,) float64, standard deviation of the keypoint's Gaussian, px.
        orientation: (N,) float64, radians from +x towards +y.
        response: (N,) float64, in no unit; None where the detector tells none.
        detector: (N,) int64, an index into the detectors; None where there was one alone.
    """

    position: np.ndarray
    scale: np.ndarray
    orientation: np.ndarray
    response: np.ndarray | None = None
    detector: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.scale)

    def __getitem__(self, index: np.ndarray | slice) -> Keypoints:
        values = (getattr(self, field.name) for field in fields(self))
        return Keypoints(*(None if value is None else value[index] for value in values))

    def discs(self, magnification: float) -> np.ndarray:
        """(N, 2, 3) affine maps that carry the unit disc to discs of so many scales' radius, px."""
        radius = magnification * self.scale
        cosine, sine = radius * np.cos(self.orientation), radius * np.sin(self.orientation)
        x, y = self.position.T
        return np.array([[cosine, -sine, x], [sine, cosine, y]]).transpose(2, 0, 1).copy()


def dog_keypoints(image: np.ndarray, contrast: float, smallest_scale: float = 0.0) -> Keypoints:
    """SIFT's differences of Gaussians (Lowe, IJCV 2004) by OpenCV, the strongest first.

    A place with several dominant gradients is there once for each. Of two with the same response the
    order is that of place, scale and orientation, since OpenCV's own depends on how its threads finish.

    Args:
        image: (H, W) uint8.
        contrast: OpenCV's contrast threshold, of which it takes a third for each level of an octave.
        smallest_scale: px; finer keypoints are left out.
    """
    import cv2

    # Otherwise OpenCV doubles the image with a shift, and all keypoints lie 0.25 px right and below.
    sift = cv2.SIFT_create(contrastThreshold=contrast, enable_precise_upscale=True)
    detected = sorted(sift.detect(image, None), key=lambda k: (-k.response, k.pt, k.size, k.angle))
    rows = np.array([(*k.pt, k.size / 2, k.angle, k.response) for k in detected], float).reshape(-1, 5)
    keypoints = Keypoints(rows[:, :2], rows[:, 2], np.deg2rad(rows[:, 3]), rows[:, 4])
    return keypoints[keypoints.scale >= smallest_scale]


def one_a_place(keypoints: Keypoints) -> Keypoints:
    """Of keypoints of the same position and scale the first; the order stays."""
    # COLMAP's scales at one place differ by rounding.
    places = np.column_stack([keypoints.position, keypoints.scale.round(3)])
    return keypoints[np.sort(np.unique(places, axis=0, return_index=True)[1])]


def carried_keypoints(keypoints: Keypoints, position: np.ndarray, affine: np.ndarray) -> Keypoints:
    """Keypoints as a perfect detector would find them in another view.

    Args:
        keypoints: N of them, in the reference view.
        position: (N, 2) where their points lie in the other view.
        affine: (N, 2, 2) the local map from the reference view to the other.
    """
    direction = np.stack([np.cos(keypoints.orientation), np.sin(keypoints.orientation)], axis=1)
    turned = np.einsum("nij,nj->ni", affine, direction)
    scale = keypoints.scale * np.sqrt(np.abs(np.linalg.det(affine)))
    return Keypoints(position, scale, np.arctan2(turned[:, 1], turned[:, 0]))


def transfer(homography: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Points (N, 2) carried by a (3, 3) homography, (N, 2)."""
    carried = points @ homography[:, :2].T + homography[:, 2]
    return carried[:, :2] / carried[:, 2:]


def local_affine(homography: np.ndarray, points: np.ndarray) -> np.ndarray:
    """(N, 2, 2) Jacobians of a homography at points (N, 2)."""
    scale = points @ homography[2, :2] + homography[2, 2]
    image = transfer(homography, points)
    return (homography[None, :2, :2] - image[:, :, None] * homography[2, :2]) / scale[:, None, None]
