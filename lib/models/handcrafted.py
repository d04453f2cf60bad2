"""Handcrafted descriptors: SIFT, RootSIFT and ORB of an upright patch, COLMAP's SIFT of an image."""

import math

import cv2
import numpy as np
import torch
from kornia.feature import SIFTDescriptor
from kornia.filters import gaussian_blur2d
from torch import Tensor, nn

from lib.features.detectors import colmap_sift
from lib.features.grey_values import OVERSHOT

# Smoothing that a patch already has, in px of the 64×64 patch: half a px from the camera, as Lowe
# assumes and the cutter keeps (`lib.features.patches.cut`), and half a px from the 2×2 means.
ALREADY = math.hypot(0.5, 0.5)
# Px of the 64×64 patch per px of SIFT's input.
_STEP = 2
# Side of the window for which ORB's comparisons were learned, px.
_ORB_WINDOW = 31


class Sift(nn.Module):
    """SIFT or RootSIFT: from a 32×32 patch, which fills the window, to 128 bins, of unit length.

    SIFT is kornia's (Lowe, IJCV 2004), on the same 32×32 input as the networks. RootSIFT (Arandjelović
    and Zisserman, CVPR 2012) is the square root of its L1-normalised form. A patch of one grey value has
    no gradient and gets the flat histogram, so that every descriptor has unit length.

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
        """Descriptors (n, 128) of grey patches (n, 1, 32, 32), 0 to 255 or 0 to 1."""
        images = grey_values(patches) / 255
        if self.sigma:
            size = 2 * math.ceil(4 * self.sigma) + 1
            images = gaussian_blur2d(images, (size, size), (self.sigma, self.sigma))
        described = self.sift(images)
        flat = patches.amax((1, 2, 3)) == patches.amin((1, 2, 3))
        return torch.where(flat[:, None], described.shape[1] ** -0.5, described)


class Orb(nn.Module):
    """OpenCV's ORB (Rublee et al., ICCV 2011): from a patch to 256 comparisons of smoothed pixels.

    The comparisons were learned for a window of 31×31 pixels, and OpenCV replaces them by random ones at
    any other size. To describe the whole patch, it is reduced to 32×32 by 2×2 means, as for the
    networks; the window covers all of it but one row and column. At 64×64 it covers the middle quarter.

    Args:
        size: side of the input, 32 or 64 (`lib.samplers.augmentation.cut`).
    """

    def __init__(self, size: int = 32):
        super().__init__()
        self.input_size = size
        # One pyramid level, and no margin in which a keypoint would be rejected.
        self.orb = cv2.ORB_create(nlevels=1, edgeThreshold=0, patchSize=_ORB_WINDOW)
        # The pixel below and to the right of the centre; the angle is that of the patch itself.
        self.keypoint = cv2.KeyPoint(size // 2, size // 2, _ORB_WINDOW, 0)

    def forward(self, patches: Tensor) -> Tensor:
        """Bits (n, 256), bool on the CPU, of grey patches (n, 1, size, size), 0 to 255 or 0 to 1."""
        return describe_by_opencv(self.orb, self.keypoint, patches)


def grey_values(patches: Tensor) -> Tensor:
    """Return patches of 0 to 255 as they are, and those of 0 to 1, as kornia cuts them, times 255.

    The latter are told by the highest value of all: 1 or, if their image was resized, up to `OVERSHOT`.
    """
    if patches.is_floating_point() and patches.numel() and patches.amax() <= OVERSHOT:
        return 255 * patches
    return patches


def describe_by_opencv(extractor: cv2.Feature2D, keypoint: cv2.KeyPoint, patches: Tensor) -> Tensor:
    """Describe patches by a descriptor of OpenCV, each at the same keypoint.

    Args:
        extractor: of k numbers, or of k bits packed in bytes.
        keypoint: whose window is described, px of the patch.
        patches: (n, 1, S, S) grey, 0 to 255 or 0 to 1, as `grey_values` takes them.

    Returns:
        (n, k) float32, or bits (n, k), bool; on the CPU.
    """
    images = grey_values(patches)[:, 0].round().clamp(0, 255).byte().cpu().numpy()
    is_binary = extractor.descriptorType() == cv2.CV_8U
    none = np.empty((0, extractor.descriptorSize()), np.uint8 if is_binary else np.float32)
    rows = np.concatenate([none, *(extractor.compute(image, [keypoint])[1] for image in images)])
    if is_binary:
        return torch.from_numpy(np.unpackbits(rows, axis=1)).bool()
    return torch.from_numpy(rows)


class ColmapSift(nn.Module):
    """COLMAP's SIFT, the row "SIFT" of ETH's benchmark of structure from motion.

    It is evaluated on whole images and describes no patches.
    """

    of_image = staticmethod(colmap_sift)

    def forward(self, patches: Tensor) -> Tensor:
        """Refuse to describe patches.

        Raises:
            TypeError: always.
        """
        raise TypeError("COLMAP's SIFT describes whole images and no patches: measure it by sfm alone")
