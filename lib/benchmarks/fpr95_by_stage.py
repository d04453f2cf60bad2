"""FPR95 during training: on all pairs at each stage whose weights were kept, and followed on few pairs.

Following FPR95 costs little compared with training. It takes some matching pairs of each test set,
always the same ones, and makes non-matching pairs from their patches: the anchor of one with the
positive of another. So few patches give many distances, but too few to choose an epoch by.
"""

from collections.abc import Mapping
from functools import partial

import numpy as np
from torch import nn

from lib.benchmarks.fpr95 import fpr95_of_set
from lib.benchmarks.subject import Subject, describe
from lib.data.patchset import LabelledPairs, PatchSet

SEED = 0
# Non-matching pairs for each matching one.
OTHERS = 20


def measure(subject: Subject, test_set: PatchSet) -> dict[str, float]:
    """Return FPR95 in percent, expected over tie orders, by fraction of training as text, ascending.

    Networks before their first step are left out: their batch norms hold the statistics of no data.
    """
    stages = sorted((stage for stage in subject.stages if float(stage) > 0), key=float)
    return {stage: _fpr95(subject.stages[stage], test_set, subject.device) for stage in stages}


def follow(model: nn.Module, few: Mapping[str, PatchSet], device: str) -> dict[str, float]:
    """Return FPR95 in percent by test set, for a network in evaluation mode.

    Args:
        model: maps grey patches to descriptors.
        few: test sets from `few_pairs`, by name.
        device: the model's.
    """
    return {name: _fpr95(model, pairs, device) for name, pairs in few.items()}


def few_pairs(test_set: PatchSet, matching: int) -> PatchSet:
    """Return a set's patches with few labelled pairs.

    Args:
        test_set: with labelled pairs, some of them matching.
        matching: how many matching pairs to take, or all where there are fewer.

    Returns:
        The same patches with the pairs taken and, for each, up to 20 non-matching pairs of the patches
        taken.
    """
    taken = np.random.default_rng(SEED).permutation(np.flatnonzero(test_set.pairs.match))[:matching]
    first, second = test_set.pairs.first[taken], test_set.pairs.second[taken]
    turns = range(min(OTHERS + 1, len(taken)))
    left = np.tile(first, len(turns))
    right = np.concatenate([np.roll(second, turn) for turn in turns])
    match = np.arange(len(left)) < len(taken)
    # Two of the pairs may show one point.
    keep = match | (test_set.point_ids[left] != test_set.point_ids[right])
    pairs = LabelledPairs(left[keep], right[keep], match[keep])
    return PatchSet(test_set.name, test_set.patches, test_set.point_ids, None, pairs)


def _fpr95(model: nn.Module, test_set: PatchSet, device: str) -> float:
    return fpr95_of_set(partial(describe, model, device=device), test_set).expected
