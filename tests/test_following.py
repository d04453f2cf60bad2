"""FPR95 followed through training: few pairs, always the same, and what they cost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lib import parts, recipes
from lib.benchmarks.fpr95 import fpr95
from lib.benchmarks.fpr95_by_stage import few_pairs, follow
from lib.benchmarks.subject import describe
from lib.data.patchset import PatchSet


def test_few_pairs_are_some_of_the_matching_ones_and_non_matching_ones_of_their_patches(
    small_set: PatchSet,
) -> None:
    few = few_pairs(small_set, 10).pairs
    labelled = small_set.pairs
    known = set(zip(labelled.first[labelled.match], labelled.second[labelled.match], strict=True))
    taken = set(zip(few.first[few.match], few.second[few.match], strict=True))
    assert len(taken) == few.match.sum() == 10
    assert taken <= known
    points = small_set.point_ids
    assert ((points[few.first] == points[few.second]) == few.match).all()
    assert set(few.first) == {one for one, _ in taken}
    assert set(few.second) == {other for _, other in taken}
    assert (~few.match).sum() == 10 * 9, "each anchor with every other positive"


def test_pairs_of_one_point_are_no_non_matching_pairs(small_set: PatchSet) -> None:
    shared = replace(small_set, point_ids=small_set.point_ids // 2)
    few = few_pairs(shared, 40).pairs
    assert (shared.point_ids[few.first] == shared.point_ids[few.second])[few.match].all()
    assert (shared.point_ids[few.first] != shared.point_ids[few.second])[~few.match].all()


def test_what_is_followed_is_fpr95_of_these_pairs(small_set: PatchSet) -> None:
    model = parts.build("model", recipes.find("hardnet").model, width=0.125).eval()
    few = few_pairs(small_set, 20)
    described = describe(model, small_set.patches).astype(np.float64)
    distances = np.linalg.norm(described[few.pairs.first] - described[few.pairs.second], axis=1)
    assert follow(model, {"small": few}, "cpu") == {
        "small": pytest.approx(fpr95(distances, few.pairs.match).expected)
    }
