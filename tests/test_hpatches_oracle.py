"""The literal transcription of HPatches' tasks, `hpatches_oracle`, against numbers by hand."""

from __future__ import annotations

import hpatches_oracle as oracle
import numpy as np
import pytest

from lib.data.hpatches.release import FILES
from lib.data.hpatches.tasks import Tasks


def by_name(names: tuple[str, ...], counts: list[int], values: np.ndarray) -> oracle.Descriptors:
    """The same descriptors in the oracle's format."""
    descriptors, start = {}, 0
    for name, count in zip(names, counts, strict=True):
        descriptors[name] = {}
        for file in FILES:
            descriptors[name][file] = values[start : start + count]
            start += count
    return descriptors


def test_average_precision_by_hand():
    """Found: right, wrong, right. Precision 1, 1, 1/2, 2/3 at recall 0, 1/2, 1/2, 1."""
    assert oracle.average_precision([1, 2, 3], [True, False, True]) == pytest.approx(
        0.5 * (1 + 1) / 2 + 0.5 * (1 / 2 + 2 / 3) / 2
    )
    of_four = oracle.average_precision([1, 2, 3], [True, False, True], positives=4)
    assert of_four == pytest.approx(0.25 * (1 + 1) / 2 + 0.25 * (1 / 2 + 2 / 3) / 2)
    assert oracle.average_precision([1, 2], [False, False]) == 0


def test_roc_auc_by_hand():
    """One of the two negatives is nearer than one of the two positives: 3 of 4 pairs in order."""
    assert oracle.roc_auc([1, 3, 2, 4], [True, True, False, False]) == pytest.approx(0.75)


def test_ties_keep_the_order_given():
    assert oracle.average_precision([1, 1], [True, False]) == pytest.approx(1)
    # The first found is wrong, so that precision falls from 1 to 0 at recall 0 and rises to 1/2.
    assert oracle.average_precision([1, 1], [False, True]) == pytest.approx(1 / 4)
    assert oracle.roc_auc([1, 1], [False, True]) == 0


def along_a_line(counts: list[int], entries: dict[tuple[int, int, int], float]) -> np.ndarray:
    """Descriptors of one number: 0 except at the given (sequence, file index, patch)."""
    values = [np.zeros((len(FILES), count, 1)) for count in counts]
    for (s, file, patch), value in entries.items():
        values[s][file, patch] = value
    return np.concatenate([array.reshape(-1, 1) for array in values])


def test_retrieval_by_hand():
    """Positives at distance 1; the 95 distractors that a pool of 100 has at 2, the 96th at 1/2."""
    names, counts = ("v_one", "i_two"), [1, 2]
    entries = {(0, file, 0): 1.0 for file in range(1, 16)} | {(1, 0, 0): 2.0, (1, 0, 1): 0.5}
    values = along_a_line(counts, entries)
    tasks = Tasks(
        positives=None,
        intra=None,
        inter=None,
        queries=np.array([[0, 0]]),
        distractors=np.array([[0, 0]] * 40 + [[1, 0]] * 95 + [[1, 1]]),
    )
    found = oracle.retrieval(by_name(names, counts, values), names, tasks)
    precision = [0] + [found / (found + 1) for found in range(1, 6)]
    cut = 100 * sum(0.2 * (precision[i] + precision[i + 1]) / 2 for i in range(5))
    assert found["retrieval.easy.100"] == pytest.approx(100)
    assert found["retrieval.tough.500"] == pytest.approx(cut)
    assert found["retrieval.hard.all"] == found["retrieval.hard.v_one"] == pytest.approx(cut)
    assert found["retrieval"] == pytest.approx(cut)
    assert found["retrieval.pools"] == pytest.approx((100 + 6 * cut) / 7)


def test_matching_by_hand():
    """Two patches, both matched in every image but one, where their nearest patch is the same."""
    names, counts = ("v_one",), [2]
    entries = {(0, file, 1): 1.0 for file in range(16)} | {(0, 3, 0): 7.0}
    scores = oracle.matching(by_name(names, counts, along_a_line(counts, entries)), names)
    # In e3 both go to patch 1: patch 1 at distance 0 (right), then patch 0 at distance 1 (wrong).
    assert scores["matching.easy.v_one"] == pytest.approx(100 * (4 * 1 + 0.5) / 5)
    assert scores["matching.success.easy.viewpoint"] == pytest.approx(90)
    assert scores["matching.hard.viewpoint"] == pytest.approx(100)
    assert scores["matching"] == pytest.approx((90 + 100 + 100) / 3)
    assert "matching.easy.illumination" not in scores


def test_verification_by_hand():
    """Ten positives, of which the first two count for AP: one nearer than all negatives, one beyond."""
    names, counts = ("v_one",), [3]
    entries = {(0, file, 1): 1.0 for file in range(1, 16)} | {(0, file, 2): 9.0 for file in range(1, 16)}
    values = along_a_line(counts, entries)

    def pairs(*patches: int) -> np.ndarray:
        """Each from the reference to image 1, at distance 0, 1 or 9."""
        return np.array([[[0, 0, 0], [0, 1, patch]] for patch in patches])

    tasks = Tasks(pairs(0, 2, *[0] * 8), pairs(*[1] * 10), pairs(*[2] * 10), None, None)
    scores = oracle.verification(by_name(names, counts, values), names, tasks)
    ap = 100 * (0.5 + 0.5 * (1 / 11 + 2 / 12) / 2)
    assert scores["verification.easy.intra.ap"] == pytest.approx(ap)
    # At distance 9 the negatives come first at the tie: the same order.
    assert scores["verification.easy.inter.ap"] == pytest.approx(ap)
    assert scores["verification.tough.intra.auc"] == pytest.approx(90)
    assert scores["verification"] == pytest.approx(ap)
