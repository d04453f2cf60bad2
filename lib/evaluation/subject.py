"""What is evaluated: anything that describes patches, trained or not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn

from lib import augmentation
from lib.data.patchset import PatchSet
from lib.recipes import Recipe

BATCH = 1024
# Described at once: what a core's cache holds, and what fills a GPU.
CHUNK = {"cpu": 128, "cuda": 8192}


@dataclass(frozen=True)
class Subject:
    """A descriptor under evaluation.

    Attributes:
        describe: from (m, 64, 64) uint8 patches to (m, k) float32 descriptors.
        recipe: how it was trained; None for a handcrafted one.
        stages: the network as it was at fractions of its training, by fraction as text ("0.0",
            "0.2", …), in evaluation mode; empty for a handcrafted one.
        record: what is already on record of it, e.g. its loss curve; do not change it.
        device: where the networks are.
    """

    describe: Callable[[np.ndarray], np.ndarray]
    recipe: Recipe | None = None
    stages: Mapping[str, nn.Module] = field(default_factory=dict)
    record: Mapping = field(default_factory=dict)
    device: str = "cpu"


@torch.no_grad()
def describe(model: nn.Module, patches: np.ndarray, device: str = "cpu") -> np.ndarray:
    """Descriptors by a network in its present mode, in float32, some at a time.

    Args:
        model: maps (m, 1, 32, 32) grey patches to (m, k) descriptors.
        patches: (m, 64, 64) uint8.
        device: the model's.

    Returns:
        (m, k) float32.
    """
    parts: list[Tensor] = []
    chunk = CHUNK[torch.device(device).type]
    for start in range(0, len(patches), chunk):
        some = torch.from_numpy(np.ascontiguousarray(patches[start : start + chunk])).to(device)
        parts.append(model(augmentation.cut(some, torch.zeros(len(some), device=device))).float().cpu())
    return torch.cat(parts).numpy()


def pair_distances(subject: Subject, test_set: PatchSet) -> tuple[np.ndarray, np.ndarray]:
    """Euclidean distances of a set's labelled pairs, each patch described once.

    Args:
        subject: what describes.
        test_set: P patches and M labelled pairs.

    Returns:
        (M,) float64 distances and (M,) bool, true for matching pairs.

    Raises:
        ValueError: the set has no labelled pairs, or a descriptor is not finite (its patch is named).
    """
    pairs = test_set.pairs
    if pairs is None or len(pairs.match) == 0:
        raise ValueError(f"{test_set.name} has no labelled pairs to evaluate on")
    used, where = np.unique(np.concatenate([pairs.first, pairs.second]), return_inverse=True)
    descriptors = subject.describe(test_set.patches[used]).astype(np.float64)
    bad = np.flatnonzero(~np.isfinite(descriptors).all(axis=1))
    if len(bad):
        raise ValueError(f"{test_set.name}: the descriptor of patch {used[bad[0]]} is not finite")
    first, second = np.split(where, 2)
    return np.linalg.norm(descriptors[first] - descriptors[second], axis=1), pairs.match
