"""Subjects of evaluation: anything that describes patches, trained or not."""

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn

from lib.benchmarks.pair_distances import distances_between
from lib.data.patchset import PatchSet
from lib.features.patches import as_patches
from lib.recipes import Recipe
from lib.samplers import augmentation

BATCH = 1024
# Patches described at once: what fits a core's cache, and what fills a GPU.
CHUNK = {"cpu": 128, "cuda": 8192}


@dataclass(frozen=True)
class Subject:
    """A descriptor under evaluation.

    Attributes:
        describe: maps (m, 64, 64) uint8 patches to (m, k) descriptors, or to (m, k / 8) uint8, bits
            packed as by `np.packbits`.
        recipe: how it was trained; None if it was not trained here.
        stages: the network at fractions of its training, by fraction as text ("0.0", "0.2", …), in
            evaluation mode; empty if it was not trained here.
        batch_pairs: number of pairs in a training batch; 0 if it was not trained here.
        curves: its training curves by name, e.g. "loss", a value for each stretch of steps.
        device: where the networks are.
    """

    describe: Callable[[np.ndarray], np.ndarray]
    recipe: Recipe | None = None
    stages: Mapping[str, nn.Module] = field(default_factory=dict)
    batch_pairs: int = 0
    curves: Mapping[str, list[float]] = field(default_factory=dict)
    device: str = "cpu"

    @property
    def networks(self) -> dict[float, nn.Module]:
        """`stages` by fraction of training, ascending."""
        return {float(stage): self.stages[stage] for stage in sorted(self.stages, key=float)}


def once(describe: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    """Return a `describe` that keeps the descriptors of the last patches, for consecutive sets that
    differ in their pairs alone.

    What it describes with must not change: a network that is trained further has other descriptors.
    """
    last: dict[tuple[int, int], np.ndarray] = {}

    def described(patches: np.ndarray) -> np.ndarray:
        key = len(patches), zlib.crc32(np.ascontiguousarray(patches))
        if key not in last:
            last.clear()
            last[key] = describe(patches)
        return last[key]

    return described


def of_signs(subject: Subject) -> Subject:
    """Binarise a real-valued descriptor by its signs: one packed bit per number, 1 if above zero.
    Benchmarks compare the result by Hamming distance."""
    return Subject(
        lambda patches: np.packbits(subject.describe(patches) > 0, axis=1), device=subject.device
    )


@torch.no_grad()
def describe(model: nn.Module, patches: np.ndarray, device: str = "cpu") -> np.ndarray:
    """Describe patches with a network in its current mode, chunk by chunk.

    Args:
        model: maps (m, 1, S, S) grey patches to (m, k) descriptors, S being its ``input_size``; bool
            descriptors are bits.
        patches: as `as_patches` takes them; m at least 1.
        device: the model's.

    Returns:
        (m, k) float32, or bits packed into (m, k / 8) uint8.

    Raises:
        ValueError: patches have another shape, type or other values.
    """
    patches = as_patches(patches)
    parts: list[Tensor] = []
    chunk = CHUNK[torch.device(device).type]
    for start in range(0, len(patches), chunk):
        cut = torch.from_numpy(np.array(patches[start : start + chunk])).to(device)
        images = augmentation.cut(cut, torch.zeros(len(cut), device=device), size=model.input_size)
        described = model(images).cpu()
        parts.append(described if described.dtype == torch.bool else described.float())
    descriptors = torch.cat(parts).numpy()
    return np.packbits(descriptors, axis=1) if descriptors.dtype == bool else descriptors


def pair_distances(
    describe: Callable[[np.ndarray], np.ndarray], test_set: PatchSet
) -> tuple[np.ndarray, np.ndarray]:
    """Compute the distances of a set's labelled pairs: Euclidean, or Hamming for bits.

    Each patch is described once.

    Args:
        describe: as in `Subject`.
        test_set: P patches and M labelled pairs.

    Returns:
        (M,) float64 distances and (M,) bool, true for matching pairs.

    Raises:
        ValueError: a descriptor is not finite (its patch is named).
    """
    match, (used, sides) = test_set.pairs.match, patches_used(test_set)
    descriptors = describe(test_set.patches[used])
    if descriptors.dtype == np.uint8:
        first, second = (descriptors[side] for side in sides)
        return np.bitwise_count(first ^ second).sum(axis=1, dtype=np.float64), match
    descriptors = descriptors.astype(np.float64)
    check_finite(descriptors, used, test_set.name)
    return distances_between(descriptors, descriptors, sides), match


def check_finite(descriptors: np.ndarray, patches: np.ndarray, name: str) -> None:
    """Refuse descriptors (n, k) of a set's patches, given by index (n,), that are not finite.

    Raises:
        ValueError: one is not finite (its patch is named).
    """
    bad = np.flatnonzero(~np.isfinite(descriptors).all(axis=1))
    if len(bad):
        raise ValueError(f"{name}: the descriptor of patch {patches[bad[0]]} is not finite")


def patches_used(test_set: PatchSet) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the patches of a set's M labelled pairs, each once, and both sides' (M,) places in them."""
    pairs = test_set.pairs
    named = np.zeros(len(test_set.patches), bool)
    named[pairs.first] = True
    named[pairs.second] = True
    place = np.cumsum(named) - 1
    return np.flatnonzero(named), [place[pairs.first], place[pairs.second]]
