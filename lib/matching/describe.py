"""Descriptors of a whole image: its keypoints, their patches, any descriptor of patches."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import torch
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from lib.benchmarks import subject
from lib.features.keypoints import Detector, Regions, detect
from lib.features.patches import MAGNIFICATION, extract
from lib.matching.images import to_original

# From (m, 64, 64) uint8 patches to (m, k) float32, or to (m, k / 8) uint8 of packed bits: what
# `lib.benchmarks.subject.Subject.describe` is too.
Describe = Callable[[np.ndarray], np.ndarray]
# Keypoints whose patches are in memory together, 8 MiB of them.
AT_ONCE = 2048


@dataclass(frozen=True)
class Features:
    """What is known of an image's keypoints.

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

    def at_size(self, size: tuple[int, int]) -> Features:
        """The same in an image of another size, of which this one was reduced."""
        maps = self.regions.maps.copy()
        maps[:, :, :2] *= (np.array(size) / np.array(self.size))[:, None]
        maps[:, :, 2] = to_original(maps[:, :, 2], self.size, size)
        return Features(replace(self.regions, maps=maps), self.descriptors, size)


def describe(
    image: np.ndarray,
    keypoints: Regions | Detector,
    descriptor: nn.Module | Describe,
    magnification: float = MAGNIFICATION,
    device: str = "cpu",
) -> Features:
    """Keypoints of an image with their descriptors, in batches, so that memory is bounded.

    Args:
        image: (H, W) uint8, as `lib.matching.images.read_grey` reads it.
        keypoints: one's own (`lib.features.keypoints.regions`), or what finds them.
        descriptor: of patches: a network of `lib.models` in evaluation mode, such as
            `lib.matching.networks.find` and `lib.study.runs.load_network` give, or a function like
            `Subject.describe`.
        magnification: half a patch's width in scales of its keypoint.
        device: the network's.

    Returns:
        The features; none, with descriptors of shape (0, k), where there are no keypoints.

    Raises:
        ValueError: the image is not (H, W) uint8, a keypoint is nowhere or of no size, or as the
            descriptor raises.
    """
    if image.ndim != 2 or image.dtype != np.uint8:
        raise ValueError(f"an image is (H, W) uint8, got {image.shape} {image.dtype}")
    found = detect(image, keypoints) if isinstance(keypoints, Detector) else keypoints

    sound = np.isfinite(found.maps).all(axis=(1, 2)) & (found.scale > 0)
    if not sound.all():
        raise ValueError(f"keypoint {sound.argmin()} is at no finite place, or has no size")

    described = descriptor
    if isinstance(descriptor, nn.Module):
        network = folded(descriptor)

        def described(patches: np.ndarray) -> np.ndarray:
            return subject.describe(network, patches, device)

    parts = [
        described(extract(image, found[start : start + AT_ONCE], magnification))
        for start in range(0, len(found), AT_ONCE)
    ]
    if not parts:
        # How long a descriptor is, any patch tells.
        parts = [described(np.zeros((1, 64, 64), np.uint8))[:0]]
    height, width = image.shape
    return Features(found, np.concatenate(parts), (width, height))


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
