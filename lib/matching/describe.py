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
        descriptor = partial(subject.describe, folded(descriptor), device=device)
    return image_features(image, keypoints, descriptor, magnification)


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
