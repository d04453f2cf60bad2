"""FPR95 followed through training: on few pairs, so that looking costs little beside learning.

Of each test set some matching pairs are taken, always the same ones, and non-matching pairs are made of
their patches: the anchor of one with the positive of another. So few patches give many distances.
"""

from collections.abc import Mapping
from functools import partial

import numpy as np
from torch import nn

from lib.benchmarks.fpr95 import fpr95
from lib.benchmarks.subject import describe, pair_distances
from lib.data.patchset import LabelledPairs, PatchSet

SEED = 0
# Non-matching pairs for each matching one.
OTHERS = 20


def few_pairs(test_set: PatchSet, matching: int) -> PatchSet:
    """A set's patches with few labelled pairs.

    Args:
        test_set: with labelled pairs, some of them matching.
        matching: how many matching pairs to take, or all where there are fewer.

    Returns:
        The same patches with the pairs taken and, for each, up to 20 non-matching pairs of the patches
        taken.
    """
    taken = np.random.default_rng(SEED).permutation(np.flatnonzero(test_set.pairs.match))[:matching]
    first, second = test_set.pairs.first[taken], test_set.pairs.second[taken]
    turns = range(1, min(OTHERS, len(taken) - 1) + 1)
    left = np.concatenate([first, *(first for _ in turns)])
    right = np.concatenate([second, *(np.roll(second, turn) for turn in turns)])
    match = np.arange(len(left)) < len(taken)
    # Two of the pairs may show one point.
    keep = match | (test_set.point_ids[left] != test_set.point_ids[right])
    pairs = LabelledPairs(left[keep], right[keep], match[keep])
    return PatchSet(test_set.name, test_set.patches, test_set.point_ids, None, pairs)


def follow(model: nn.Module, few: Mapping[str, PatchSet], device: str) -> dict[str, float]:
    """FPR95 in percent by test set, of a network in evaluation mode.

    Args:
        model: from grey patches to descriptors.
        few: by name, from `few_pairs`.
        device: the model's.
    """
    by = partial(describe, model, device=device)
    return {name: fpr95(*pair_distances(by, pairs)).expected for name, pairs in few.items()}
