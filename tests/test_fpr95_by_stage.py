"""FPR95 at each kept stage of training is that of the stage's network."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from lib.benchmarks.fpr95 import fpr95
from lib.benchmarks.fpr95_by_stage import measure
from lib.benchmarks.subject import Subject, describe, pair_distances
from lib.data.patchset import LabelledPairs, PatchSet


class Noisy(nn.Module):
    """A patch's mean, hidden by noise."""

    input_size = 32

    def __init__(self, noise: float):
        super().__init__()
        self.noise = noise

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        random = torch.randn(len(images), 1, generator=torch.Generator().manual_seed(0))
        return images.mean(dim=(2, 3)) + self.noise * random


def patches() -> PatchSet:
    """Forty points with two equal patches each."""
    levels = np.repeat(np.arange(40) * 6, 2)
    grey = np.broadcast_to(levels[:, None, None], (80, 64, 64)).astype(np.uint8)
    first, negative = np.arange(0, 80, 2), np.roll(np.arange(1, 80, 2), -1)
    pairs = LabelledPairs(
        np.r_[first, first], np.r_[first + 1, negative], np.r_[np.ones(40, bool), np.zeros(40, bool)]
    )
    return PatchSet("a", grey, np.repeat(np.arange(40), 2), None, pairs)


def test_each_stage_but_the_untrained_has_the_fpr95_of_its_network() -> None:
    stages = {"0.0": Noisy(50.0), "1.0": Noisy(0.0), "0.5": Noisy(20.0)}
    rates = measure(Subject(lambda images: images, stages=stages), patches())
    assert list(rates) == ["0.5", "1.0"]
    distances = pair_distances(lambda images: describe(Noisy(20.0), images), patches())
    assert rates["0.5"] == fpr95(*distances).expected > rates["1.0"] == 0
