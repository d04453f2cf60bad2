"""SIFT and RootSIFT of an upright patch that fills the descriptor's window: the handcrafted baselines.

kornia's SIFT (Lowe, IJCV 2004) on the 32×32 input that the networks get; RootSIFT (Arandjelović and
Zisserman, CVPR 2012) is the square root of its L1-normalised form. A patch of one grey value has no
gradient and is given the flat histogram, so that every descriptor has unit length.
"""

from __future__ import annotations

import numpy as np
from kornia.feature import SIFTDescriptor

from lib import augmentation
from lib.evaluation import subject


def describe(patches: np.ndarray, *, root: bool, device: str = "cpu") -> np.ndarray:
    """Descriptors of patches.

    Args:
        patches: (m, 64, 64) uint8.
        root: RootSIFT.
        device: where to compute.

    Returns:
        (m, 128) float32, of unit length.
    """
    sift = SIFTDescriptor(patch_size=augmentation.INPUT_SIZE, rootsift=root).to(device)
    described = subject.describe(lambda images: sift(images / 255), patches, device)
    described[np.ptp(patches, axis=(1, 2)) == 0] = described.shape[1] ** -0.5
    return described
