"""Patches of an image at its keypoints, by kornia's pyramid."""

from __future__ import annotations

import numpy as np
import torch
from kornia.feature import extract_patches_from_pyramid, scale_laf

from lib.augmentation import PATCH_SIZE
from lib.matching.keypoints import Regions, as_tensor

# Half a patch's width in scales of its keypoint, DSM's "magnification factor" (Sec. 5.4).
MAGNIFICATION = 6.0


def extract(
    image: np.ndarray, regions: Regions, magnification: float = MAGNIFICATION, side: int = PATCH_SIZE
) -> np.ndarray:
    """Patches turned and stretched so that each keypoint's ellipse becomes one disc.

    Args:
        image: (H, W) uint8.
        regions: N of them.
        magnification: half a patch's width in scales of its keypoint.
        side: of a patch, px.

    Returns:
        (N, side, side) uint8; what lies outside the image takes the nearest of its pixels.
    """
    maps = scale_laf(torch.from_numpy(regions.maps)[None], magnification)
    with torch.inference_mode():
        patches = extract_patches_from_pyramid(as_tensor(image), maps, side)
    return (255 * patches[0, :, 0]).round().clamp(0, 255).byte().numpy()
