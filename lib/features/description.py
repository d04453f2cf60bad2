"""What is known of an image's keypoints: where they are, how their surroundings are described."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from lib.features.detectors import Detector, Regions, detect
from lib.features.patches import MAGNIFICATION, PATCH, extract

# From (m, 64, 64) uint8 patches to (m, k) float32, or to (m, k / 8) uint8 of packed bits.
Describe = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Features:
    """Keypoints of an image with their descriptors.

    Attributes:
        regions: N keypoints, the strongest first.
        descriptors: (N, k) float32, or (N, k / 8) uint8 of bits packed as `np.packbits` does.
        size: width and height of the image, px.
    """

    regions: Regions
    descriptors: np.ndarray
    size: tuple[int, int]

    def __len__(self) -> int:
        return len(self.regions)

    @property
    def position(self) -> np.ndarray:
        """(N, 2) x and y, px."""
        return self.regions.position


def image_features(
    image: np.ndarray,
    keypoints: Regions | Detector,
    describe: Describe,
    magnification: float = MAGNIFICATION,
) -> Features:
    """Keypoints of an image with their descriptors.

    Args:
        image: (H, W) uint8.
        keypoints: one's own (`lib.features.detectors.regions`), or what finds them.
        describe: of patches.
        magnification: half a patch's width in scales of its keypoint.

    Returns:
        The features; none, with descriptors of shape (0, k), where there are no keypoints.

    Raises:
        ValueError: the image is not (H, W) uint8, or a keypoint is nowhere or of no size.
    """
    if image.ndim != 2 or image.dtype != np.uint8:
        raise ValueError(f"an image is (H, W) uint8, got {image.shape} {image.dtype}")
    regions = detect(image, keypoints) if isinstance(keypoints, Detector) else keypoints
    if not (np.isfinite(regions.maps).all() and (regions.scale > 0).all()):
        raise ValueError("a keypoint is at no finite position, or has no size")
    patches = extract(image, regions, magnification)
    # Where there are no keypoints, one patch tells how long a descriptor is.
    described = describe(patches if len(patches) else np.zeros((1, PATCH, PATCH), np.uint8))
    return Features(regions, described[: len(patches)], image.shape[::-1])


def in_original(maps: np.ndarray, reduced_size: Sequence[int], size: Sequence[int]) -> np.ndarray:
    """Maps (N, 2, 3) in a reduced image, those in the image itself; sizes are width and height, px."""
    half = np.array([0.0, 0.0, 0.5])
    return ((maps + half) * np.divide(size, reduced_size)[:, None] - half).astype(maps.dtype)
