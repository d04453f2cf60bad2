"""SIFT and RootSIFT of an upright patch that fills the descriptor's window: the handcrafted baselines.

SIFT is kornia's (Lowe, IJCV 2004), on the same 32×32 input as the networks. RootSIFT (Arandjelović and
Zisserman, CVPR 2012) is the square root of its L1-normalised form. A patch of one grey value has no
gradient and gets the flat histogram, so that every descriptor has unit length.
"""

import math

import torch
from kornia.feature import SIFTDescriptor
from kornia.filters import gaussian_blur2d
from torch import Tensor, nn

# Smoothing that a patch already has, in px of the 64×64 patch: half a px from the camera, as Lowe
# assumes and the cutter keeps (`lib.features.patches.cut`), and half a px from the 2×2 means.
ALREADY = math.hypot(0.5, 0.5)
# Px of the 64×64 patch per px of the input.
_STEP = 2


class Sift(nn.Module):
    """Descriptor from a 32×32 patch to a histogram of 128 bins, of unit length.

    Args:
        root: whether to return RootSIFT.
        smoothing: standard deviation of the Gaussian at which gradients are taken, in px of the 64×64
            patch; 0 adds no smoothing. Lowe takes the keypoint's own, which is 64 / 14 = 4.6 where a
            patch is 14 of them wide. Smoothing that a patch already has (`ALREADY`) is not added again.

    Raises:
        ValueError: the smoothing is above 0 and below `ALREADY`.
    """

    input_size = 32

    def __init__(self, root: bool = False, smoothing: float = 0.0):
        super().__init__()
        if smoothing and smoothing < ALREADY:
            raise ValueError(f"smoothing is 0, or {ALREADY:.2f} px of the 64 or more, got {smoothing}")
        self.sigma = math.sqrt(smoothing**2 - ALREADY**2) / _STEP if smoothing else 0.0
        self.sift = SIFTDescriptor(patch_size=self.input_size, rootsift=root).requires_grad_(False)

    def forward(self, patches: Tensor) -> Tensor:
        """Descriptors (n, 128) of grey patches (n, 1, 32, 32), 0 to 255."""
        images = patches / 255
        if self.sigma:
            size = 2 * math.ceil(4 * self.sigma) + 1
            images = gaussian_blur2d(images, (size, size), (self.sigma, self.sigma))
        described = self.sift(images)
        flat = patches.amax((1, 2, 3)) == patches.amin((1, 2, 3))
        return torch.where(flat[:, None], described.shape[1] ** -0.5, described)


build = Sift
