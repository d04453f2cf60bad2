"""Descriptors of a whole image: its keypoints, their patches, any descriptor of patches."""

from __future__ import annotations

from copy import deepcopy
from functools import partial
from itertools import pairwise

import numpy as np
import torch
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from lib.benchmarks import subject
from lib.features.description import Describe, Features, image_features
from lib.features.detectors import Detector, Regions
from lib.features.patches import MAGNIFICATION


def describe(
    image: np.ndarray,
    keypoints: Regions | Detector,
    descriptor: nn.Module | Describe,
    magnification: float = MAGNIFICATION,
    device: str = "cpu",
) -> Features:
    """`image_features` by a network as well.

    Args:
        image, keypoints, magnification: as `image_features` takes them.
        descriptor: of patches: a network of `lib.models` in evaluation mode, such as
            `lib.matching.networks.find` and `lib.study.runs.load_network` give, or a function like
            `Subject.describe`.
        device: the network's.
    """
    if isinstance(descriptor, nn.Module):
        descriptor = partial(patch_descriptors, folded(descriptor), device=device)
    return image_features(image, keypoints, descriptor, magnification)


def patch_descriptors(network: nn.Module, patches: np.ndarray, device: str = "cpu") -> np.ndarray:
    """Descriptors of patches, whose grey values are told by their type.

    Args:
        network: in evaluation mode, on `device`.
        patches: (m, 64, 64), uint8 of 0 to 255 or floating of 0 to 1.
        device: the network's.

    Returns:
        (m, k) float32, or (m, k / 8) uint8 of packed bits.

    Raises:
        ValueError: other types or values.
    """
    if np.issubdtype(patches.dtype, np.floating):
        if not ((patches >= 0) & (patches <= 1)).all():
            raise ValueError("floating patches are of 0 to 1: give those of 0 to 255 as uint8")
        patches = (255 * patches).round().astype(np.uint8)
    if patches.dtype != np.uint8:
        raise ValueError(f"patches are uint8 of 0 to 255 or floating of 0 to 1, got {patches.dtype}")
    return subject.describe(network, patches, device)


def folded(network: nn.Module) -> nn.Module:
    """A copy whose batch norms are folded into the convolutions before them: up to rounding the same
    descriptors, L2-Net's in 0.55 of the time.

    Args:
        network: in evaluation mode; one without such a batch norm is returned as it is.
    """
    if not any(isinstance(layer, nn.BatchNorm2d) for layer in network.modules()):
        return network
    network = deepcopy(network)
    for parent in list(network.modules()):
        for (before, first), (behind, second) in pairwise(list(parent.named_children())):
            if isinstance(first, nn.Conv2d) and isinstance(second, nn.BatchNorm2d):
                setattr(parent, before, fuse_conv_bn_eval(first, second))
                setattr(parent, behind, nn.Identity())
    return network.to(memory_format=torch.channels_last)
