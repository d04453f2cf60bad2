"""OpenCV's ORB (Rublee et al., ICCV 2011) of an upright patch: 256 comparisons of smoothed pixels.

The comparisons were learned for a window of 31×31 pixels, and OpenCV replaces them by random ones at any
other size. To describe the whole patch, it is reduced to 32×32 by 2×2 means, as for the networks; the
window covers all of it but one row and column. At 64×64 the window covers the middle quarter.
"""

import cv2
import numpy as np
import torch
from torch import Tensor, nn

WINDOW = 31


class Orb(nn.Module):
    """Descriptor from a patch to 256 bits.

    Args:
        size: side of the input, 32 or 64 (`lib.augmentation.cut`).
    """

    def __init__(self, size: int = 32):
        super().__init__()
        self.input_size = size
        # One pyramid level, and no margin in which a keypoint would be rejected.
        self.orb = cv2.ORB_create(nlevels=1, edgeThreshold=0, patchSize=WINDOW)
        # The pixel below and to the right of the centre; the angle is that of the patch itself.
        self.keypoint = cv2.KeyPoint(size // 2, size // 2, WINDOW, 0)

    def forward(self, patches: Tensor) -> Tensor:
        """Bits (n, 256), bool on the CPU, of grey patches (n, 1, size, size), 0 to 255."""
        images = patches[:, 0].round().clamp(0, 255).byte().cpu().numpy()
        packed = [self.orb.compute(image, [self.keypoint])[1] for image in images]
        bits = np.unpackbits(np.concatenate([np.empty((0, 32), np.uint8), *packed]), axis=1)
        return torch.from_numpy(bits).bool()


build = Orb
