"""Keypoints of an image as discs with a direction, and the maps that carry them to another view.

`dog_keypoints` finds them by differences of Gaussians. Coordinates are x right and y down, with the
first pixel's centre at 0, 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import cv2


@dataclass(frozen=True)
class Keypoints:
    """Interest points of one image.

    Attributes:
        position: (N, 2) float64, px.
        scale: (N,) float64, standard deviation of the keypoint's Gaussian, px.
        orientation: (N,) float64, radians from +x towards +y.
        response: (N,) float64, unitless; None if the detector reports none.
        detector: (N,) int64, an index into the detectors; None if there was only one.
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
        """Return (N, 2, 3) affine maps from the unit disc to discs of `magnification` scales, px."""
        radius = magnification * self.scale
        cosine, sine = radius * np.cos(self.orientation), radius * np.sin(self.orientation)
        x, y = self.position.T
        return np.array([[cosine, -sine, x], [sine, cosine, y]]).transpose(2, 0, 1).copy()


def dog_keypoints(image: np.ndarray, contrast: float, smallest_scale: float = 0.0) -> Keypoints:
    """Detect SIFT's differences of Gaussians (Lowe, IJCV 2004) with OpenCV, the strongest first.

    A place with several dominant gradients is returned once for each.

    Args:
        image: (H, W) uint8.
        contrast: OpenCV's contrast threshold; OpenCV applies a third of it, for three levels an octave.
        smallest_scale: px; finer keypoints are left out.
    """
    import cv2

    # Otherwise OpenCV shifts the doubled image, and all keypoints lie 0.25 px too far right and down.
    sift = cv2.SIFT_create(contrastThreshold=contrast, enable_precise_upscale=True)
    keypoints = from_opencv(sift.detect(image, None))
    return keypoints[keypoints.scale >= smallest_scale]


def from_opencv(detected: Sequence[cv2.KeyPoint]) -> Keypoints:
    """Convert OpenCV's keypoints, the strongest first; their scale is half of OpenCV's size.

    The order is not that of `detected`. Rows of descriptors that OpenCV computed for `detected` do not
    belong to these keypoints, so describe these.

    For SIFT, half the size is the standard deviation of the keypoint's Gaussian. Other detectors of
    OpenCV give the size another meaning: ORB's is 31 px at full resolution. Replace their scale.
    Keypoints without an orientation, such as FAST's, get 0: they are not turned.

    Keypoints with the same response are ordered by place, size and orientation, since OpenCV's order
    depends on how its threads finish.
    """
    ordered = sorted(detected, key=lambda k: (-k.response, k.pt, k.size, k.angle))
    rows = np.array([(*k.pt, k.size, k.angle, k.response) for k in ordered], float).reshape(-1, 5)
    # OpenCV's angles are from 0 to 360; -1 says that there is none.
    degrees = np.where(rows[:, 3] == -1, 0, rows[:, 3])
    return Keypoints(rows[:, :2], rows[:, 2] / 2, np.deg2rad(degrees), rows[:, 4])


def one_a_place(keypoints: Keypoints) -> Keypoints:
    """Keep the first of keypoints that share position and scale; the order stays."""
    # COLMAP's scales at one place differ by rounding.
    places = np.column_stack([keypoints.position, keypoints.scale.round(3)])
    return keypoints[np.sort(np.unique(places, axis=0, return_index=True)[1])]


def carried_keypoints(keypoints: Keypoints, position: np.ndarray, affine: np.ndarray) -> Keypoints:
    """Carry keypoints to another view, as a perfect detector would find them there.

    Args:
        keypoints: N keypoints of the reference view.
        position: (N, 2) positions of their points in the other view.
        affine: (N, 2, 2) local maps from the reference view to the other.
    """
    direction = np.stack([np.cos(keypoints.orientation), np.sin(keypoints.orientation)], axis=1)
    turned = np.einsum("nij,nj->ni", affine, direction)
    scale = keypoints.scale * np.sqrt(np.abs(np.linalg.det(affine)))
    return Keypoints(position, scale, np.arctan2(turned[:, 1], turned[:, 0]))


def transfer(homography: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Map (N, 2) points by a (3, 3) homography."""
    carried = points @ homography[:, :2].T + homography[:, 2]
    return carried[:, :2] / carried[:, 2:]


def local_affine(homography: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return (N, 2, 2) Jacobians of a homography at (N, 2) points."""
    scale = points @ homography[2, :2] + homography[2, 2]
    image = transfer(homography, points)
    return (homography[None, :2, :2] - image[:, :, None] * homography[2, :2]) / scale[:, None, None]
