"""Patches of an image at its keypoints, by kornia, of a pyramid so that none is sampled too coarsely."""

from __future__ import annotations

import numpy as np
import torch
from kornia.feature import extract_patches_simple, get_laf_scale, scale_laf
from kornia.geometry.transform import pyrdown

from lib.augmentation import PATCH_SIZE
from lib.features.keypoints import Regions, as_tensor

# Half a patch's width in scales of its keypoint, DSM's "magnification factor" (Sec. 5.4).
MAGNIFICATION = 6.0
# So few that a core's cache holds their grids; kornia's own function makes those of all at once.
_SAMPLED_AT_ONCE = 64


def extract(
    image: np.ndarray, regions: Regions, magnification: float = MAGNIFICATION, side: int = PATCH_SIZE
) -> np.ndarray:
    """Patches turned and stretched so that each keypoint's ellipse becomes a disc of one size.

    They are those of `kornia.feature.extract_patches_from_pyramid`, made in a third of its time.

    Args:
        image: (H, W) uint8.
        regions: N of them.
        magnification: half a patch's width in scales of its keypoint.
        side: of a patch, px.

    Returns:
        (N, side, side) uint8; what lies outside the image takes the nearest of its pixels.
    """
    patches = np.empty((len(regions), side, side), np.uint8)
    with torch.inference_mode():
        levels = [as_tensor(image)]
        while min(levels[-1].shape[2:]) // 2 >= side:
            levels.append(pyrdown(levels[-1]))
        maps = scale_laf(torch.from_numpy(regions.maps)[None], float(magnification))
        octaves = (2 * get_laf_scale(maps) / side).log2().flatten()
        places = octaves.clamp(0, len(levels) - 1).long()
        for place, level in enumerate(levels):
            # Pixels are squares, so the first one's centre, at 0, is at half a pixel of any level.
            shrunk = torch.tensor(level.shape[:1:-1]) / torch.tensor(levels[0].shape[:1:-1])
            half = torch.tensor([0.0, 0.0, 0.5])
            for members in (places == place).nonzero().flatten().split(_SAMPLED_AT_ONCE):
                there = (maps[:, members] + half) * shrunk[:, None] - half
                some = extract_patches_simple(level, there, side)[0, :, 0]
                patches[members.numpy()] = (255 * some).round().clamp(0, 255).byte().numpy()
    return patches
