"""Keypoints of a real detector, the errors it makes in other views, and cutting patches at them.

The detector is the difference of Gaussians of SIFT, as in the PhotoTour sets. There, interest points
count as views of one 3D point when they lie within 5 px, 0.25 octaves and pi / 8 of where it projects
(Brown, Hua and Winder, PAMI 2011): what is left of these errors is drawn here.
"""

from dataclasses import dataclass

import numpy as np

from lib.features.detectors import Keypoints, dog_keypoints, sample

PATCH = 64
# Width of a patch in standard deviations of the keypoint's Gaussian.
PATCH_WIDTH = 14.0
LARGEST_OCTAVE_ERROR = 0.25
LARGEST_ORIENTATION_ERROR = np.pi / 8


@dataclass(frozen=True)
class DetectorError:
    """Standard deviations of what a detector gets wrong in another view.

    Attributes:
        position: in units of the keypoint's scale, each coordinate.
        octaves: of the scale.
        orientation: radians.
    """

    position: float
    octaves: float
    orientation: float


def detect(image: np.ndarray, smallest_scale: float, contrast: float) -> Keypoints:
    """SIFT's keypoints of a (H, W) uint8 image, strongest first, one orientation a place.

    Args:
        image: grey values.
        smallest_scale: px; finer keypoints are left out.
        contrast: OpenCV's contrast threshold.
    """
    found, _ = dog_keypoints(image, contrast)
    found = found[found.scale >= smallest_scale]
    _, first = np.unique(np.column_stack([found.position, found.scale]), axis=0, return_index=True)
    return found[np.sort(first)]


def spread_out(keypoints: Keypoints, distance: float) -> np.ndarray:
    """Indices of keypoints kept so that none has an earlier one within `distance` scales of it.

    Two keypoints far apart in scale (over an octave) do not crowd each other.
    """
    from scipy.spatial import cKDTree

    kept = np.ones(len(keypoints), bool)
    reach = distance * keypoints.scale
    octave = np.log2(keypoints.scale)
    near = cKDTree(keypoints.position).query_ball_point(keypoints.position, reach)
    for index, others in enumerate(near):
        if any(o < index and kept[o] and abs(octave[o] - octave[index]) < 1 for o in others):
            kept[index] = False
    return np.flatnonzero(kept)


def carry(keypoints: Keypoints, position: np.ndarray, affine: np.ndarray) -> Keypoints:
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


def disturb(keypoints: Keypoints, error: DetectorError, rng: np.random.Generator) -> Keypoints:
    """Keypoints as a real detector finds them: moved, scaled and turned a little."""
    n = len(keypoints)

    def limited(deviation: float, largest: float) -> np.ndarray:
        return np.clip(deviation * rng.standard_normal(n), -largest, largest)

    shift = error.position * rng.standard_normal((n, 2)) * keypoints.scale[:, None]
    octaves = limited(error.octaves, LARGEST_OCTAVE_ERROR)
    turn = limited(error.orientation, LARGEST_ORIENTATION_ERROR)
    return Keypoints(
        keypoints.position + shift, keypoints.scale * 2.0**octaves, keypoints.orientation + turn
    )


def cut(image: np.ndarray, keypoints: Keypoints, side: int = PATCH) -> np.ndarray:
    """Patches upright and of one size in units of the keypoint's scale.

    Args:
        image: (H, W) uint8.
        keypoints: N of them.
        side: of a patch, px.

    Returns:
        (N, side, side) uint8; what lies outside the image is mirrored at its border.
    """
    import cv2

    discs = keypoints.discs(PATCH_WIDTH * (1 - 1 / side) / 2)
    return sample(image, np.eye(3), discs, side, cv2.BORDER_REFLECT_101)


def contrast(image: np.ndarray, keypoints: Keypoints) -> np.ndarray:
    """(N,) standard deviation of grey values in the middle of each patch, finer noise smoothed away.

    Without contrast no detector would have found the point: it is overexposed, or lost in the dark.
    """
    coarse = cut(image, keypoints, side=16)[:, 4:12, 4:12]
    return coarse.std(axis=(1, 2))
