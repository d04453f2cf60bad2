"""FPR95 followed through training on a few fixed pairs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lib import parts, recipes
from lib.benchmarks.fpr95 import fpr95
from lib.benchmarks.fpr95_by_stage import few_pairs, follow
from lib.benchmarks.subject import describe
from lib.data.patchset import LabelledPairs, PatchSet


def test_few_pairs_are_some_matching_pairs_and_the_non_matching_ones_of_their_patches(
    small_set: PatchSet,
) -> None:
    sampled = few_pairs(small_set, 10).pairs
    labelled = small_set.pairs
    all_matching = set(zip(labelled.first[labelled.match], labelled.second[labelled.match], strict=True))
    matching = set(zip(sampled.first[sampled.match], sampled.second[sampled.match], strict=True))
    assert len(matching) == sampled.match.sum() == 10
    assert matching <= all_matching
    points = small_set.point_ids
    assert ((points[sampled.first] == points[sampled.second]) == sampled.match).all()
    assert set(sampled.first) == {anchor for anchor, _ in matching}
    assert set(sampled.second) == {positive for _, positive in matching}
    assert (~sampled.match).sum() == 10 * 9, "each anchor with every other positive"


def test_pairs_of_one_point_are_never_non_matching(small_set: PatchSet) -> None:
    first, second, match = vars(small_set.pairs).values()
    matching = LabelledPairs(first[match], second[match], match[match])
    shared = replace(small_set, point_ids=small_set.point_ids // 2, pairs=matching)
    few = few_pairs(shared, 40).pairs
    assert (shared.point_ids[few.first] == shared.point_ids[few.second])[few.match].all()
    assert (shared.point_ids[few.first] != shared.point_ids[few.second])[~few.match].all()


def test_the_followed_value_is_fpr95_of_these_pairs(small_set: PatchSet) -> None:
    model = parts.build("model", recipes.find("hardnet").model, width=0.125).eval()
    few = few_pairs(small_set, 20)
    descriptors = describe(model, small_set.patches).astype(np.float64)
    distances = np.linalg.norm(descriptors[few.pairs.first] - descriptors[few.pairs.second], axis=1)
    assert follow(model, {"small": few}, "cpu") == {
        "small": pytest.approx(fpr95(distances, few.pairs.match).expected)
    }
