"""Interest points of an image, and patches sampled around them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np

_SAMPLED_AT_ONCE = 512


@dataclass(frozen=True)
class Keypoints:
    """Interest points of one image.

    Attributes:
        position: (N, 2) float64, px.
        scale: (N,) float64, standard deviation of the keypoint's Gaussian, px.
        orientation: (N,) float64, radians from +x towards +y.
    """

    position: np.ndarray
    scale: np.ndarray
    orientation: np.ndarray

    def __len__(self) -> int:
        return len(self.scale)

    def __getitem__(self, index: np.ndarray | slice) -> Keypoints:
        return type(self)(*(getattr(self, field.name)[index] for field in fields(self)))


def sample(
    image: np.ndarray,
    step: np.ndarray,
    places: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    side: int,
    border: int,
) -> np.ndarray:
    """Patches of an image, bicubic.

    The image is blurred before it is sampled more coarsely than its pixels, in half octaves.

    Args:
        image: (H, W) uint8.
        step: (N,) how far apart a patch's samples are, px.
        places: from indices of patches, (n,), to x and y of their samples, px, (n, side²) each.
        side: of a patch, px.
        border: OpenCV's rule for what lies outside the image.

    Returns:
        (N, side, side) uint8.
    """
    import cv2

    level = np.maximum(np.floor(2 * np.log2(step)), 0).astype(int)
    patches = np.empty((len(step), side, side), np.uint8)
    for half_octave in np.unique(level):
        coarse = 2.0 ** (half_octave / 2)
        source = image
        if coarse > 1:
            source = cv2.GaussianBlur(image, (0, 0), 0.5 * np.sqrt(coarse**2 - 1))
        members = np.flatnonzero(level == half_octave)
        for start in range(0, len(members), _SAMPLED_AT_ONCE):
            chosen = members[start : start + _SAMPLED_AT_ONCE]
            x, y = (axis.astype(np.float32) for axis in places(chosen))
            sampled = cv2.remap(source, x, y, cv2.INTER_CUBIC, borderMode=border)
            patches[chosen] = sampled.reshape(-1, side, side)
    return patches
