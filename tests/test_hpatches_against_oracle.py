"""HPatches' three tasks against `hpatches_oracle`, with ties and duplicates; and the oracle itself."""

from __future__ import annotations

from pathlib import Path

import hpatches_oracle as oracle
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.benchmarks import hpatches
from lib.data.hpatches.descriptors import Descriptors, lay_out
from lib.data.hpatches.release import FILES, Sequence
from lib.data.hpatches.tasks import HPatchesSplit, PatchPairs, Tasks

PERCENT = 1e-6
BOTH_KINDS = ("v_arch", "i_bench", "v_cart", "i_door", "v_elm")
VALUES = ("grid", "floats", "unit", "bits")


def drawn_values(random: np.random.Generator, values: str, counts: list[int]) -> np.ndarray:
    """Descriptors (P, k): each patch's own in its 16 files, changed a little; some are exact copies."""
    k = int(random.integers(4, 17))
    noisy = []
    for count in counts:
        patch = random.normal(size=(1, count, k))
        noisy.append((patch + 0.8 * random.normal(size=(len(FILES), count, k))).reshape(-1, k))
    drawn = np.concatenate(noisy)
    if values == "bits":
        drawn = (drawn > 0).astype(np.uint8)
    elif values == "grid":
        drawn = np.clip(np.round(drawn) + 2, 1, 3).astype(np.float32)
    else:
        # Far from the origin, where squares that are subtracted lose digits.
        drawn = drawn + (3 if values == "floats" else 0)
        if values == "unit":
            drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
        drawn = drawn.astype(np.float32)
    copies = random.random(len(drawn)) < 0.3
    drawn[copies] = drawn[random.integers(len(drawn), size=copies.sum())]
    return drawn


def drawn_places(random: np.random.Generator, counts: list[int], rows: int) -> np.ndarray:
    """(rows, 2) int64: sequence and patch."""
    sequence = random.integers(len(counts), size=rows)
    patch = random.integers(np.array(counts)[sequence])
    return np.stack([sequence, patch], axis=1)


def drawn_tasks(
    random: np.random.Generator, counts: list[int], pairs: int, queries: int, distractors: int
) -> Tasks:
    """Tasks of any rows whatever: what a row means is not the evaluation's business."""

    def ends() -> np.ndarray:
        places = drawn_places(random, counts, pairs)
        return np.stack([places[:, 0], random.integers(6, size=pairs), places[:, 1]], axis=1)

    first = ends()
    return Tasks(
        positives=PatchPairs(first, np.stack([first[:, 0], ends()[:, 1], first[:, 2]], axis=1)),
        intra=PatchPairs(ends(), ends()),
        inter=PatchPairs(ends(), ends()),
        queries=drawn_places(random, counts, queries),
        distractors=drawn_places(random, counts, distractors),
    )


def laid_out(
    names: tuple[str, ...], counts: list[int], values: np.ndarray, tasks: Tasks
) -> tuple[Descriptors, HPatchesSplit]:
    sequences = tuple(
        Sequence(name, Path("nowhere") / name, count) for name, count in zip(names, counts, strict=True)
    )
    return lay_out(sequences, values), HPatchesSplit("drawn", sequences, tasks)


def by_name(names: tuple[str, ...], counts: list[int], values: np.ndarray) -> oracle.Descriptors:
    """The same descriptors as the oracle has them."""
    found, start = {}, 0
    for name, count in zip(names, counts, strict=True):
        found[name] = {}
        for file in FILES:
            found[name][file] = values[start : start + count]
            start += count
    return found


def agree(ours: dict[str, float], literal: dict[str, float]) -> None:
    assert set(ours) == set(literal)
    for key, value in literal.items():
        assert ours[key] == pytest.approx(value, abs=PERCENT, rel=0), key


def compare(names: tuple[str, ...], counts: list[int], values: np.ndarray, tasks: Tasks) -> None:
    """All three tasks, key by key."""
    descriptors, split = laid_out(names, counts, values, tasks)
    literal = by_name(names, counts, values)
    agree(hpatches.verification(descriptors, split), oracle.verification(literal, names, tasks))
    agree(hpatches.matching(descriptors, split), oracle.matching(literal, names))
    agree(hpatches.retrieval(descriptors, split), oracle.retrieval(literal, names, tasks))


@pytest.mark.parametrize("values", VALUES)
@given(seed=st.integers(0, 2**31))
@settings(deadline=None, max_examples=15)
def test_the_three_tasks_give_the_benchmarks_numbers(values, seed):
    random = np.random.default_rng(seed)
    names = tuple(random.permutation(BOTH_KINDS)[: random.integers(3, 6)].tolist())
    counts = random.integers(1, 13, size=len(names)).tolist()
    pairs, queries, distractors = (int(random.integers(1, most)) for most in (200, 9, 60))
    drawn = drawn_values(random, values, counts)
    compare(names, counts, drawn, drawn_tasks(random, counts, pairs, queries, distractors))


@pytest.mark.parametrize("values", VALUES)
def test_a_pool_of_100_cuts_120_distractors_of_other_sequences(values):
    random = np.random.default_rng(1)
    names, counts = BOTH_KINDS[:3], [12, 7, 9]
    drawn, tasks = drawn_values(random, values, counts), drawn_tasks(random, counts, 5, 12, 250)
    for s in range(3):
        assert (tasks.distractors[:, 0] != s).sum() > 120
    compare(names, counts, drawn, tasks)
    numbers = hpatches.retrieval(*laid_out(names, counts, drawn, tasks))
    assert numbers["retrieval.easy.100"] > numbers["retrieval.easy.500"]
    assert numbers["retrieval.easy.500"] == numbers["retrieval.easy.all"]


@pytest.mark.parametrize("names", [("v_arch", "v_cart", "v_elm"), ("i_bench", "i_door", "i_fence")])
def test_sequences_of_one_kind_alone_leave_the_other_kinds_keys_out(names):
    random = np.random.default_rng(2)
    counts = [5, 1, 8]
    values = drawn_values(random, "grid", counts)
    tasks = drawn_tasks(random, counts, 30, 3, 20)
    compare(names, counts, values, tasks)
    absent = "illumination" if names[0].startswith("v_") else "viewpoint"
    numbers = hpatches.score(*laid_out(names, counts, values, tasks))
    assert not [key for key in numbers if absent in key]


def test_the_score_is_the_three_tasks_together():
    random = np.random.default_rng(3)
    names, counts = BOTH_KINDS[:3], [4, 6, 2]
    values, tasks = drawn_values(random, "unit", counts), drawn_tasks(random, counts, 40, 4, 30)
    literal = by_name(names, counts, values)
    agree(
        hpatches.score(*laid_out(names, counts, values, tasks)),
        oracle.verification(literal, names, tasks)
        | oracle.matching(literal, names)
        | oracle.retrieval(literal, names, tasks),
    )


@pytest.mark.parametrize("values", ["grid", "bits"])
def test_equal_descriptors_everywhere_are_ties_in_the_order_given(values):
    random = np.random.default_rng(4)
    names, counts = BOTH_KINDS[:3], [3, 5, 2]
    same = np.ones_like(drawn_values(random, values, counts))
    tasks = drawn_tasks(random, counts, 50, 3, 20)
    compare(names, counts, same, tasks)
    numbers = hpatches.score(*laid_out(names, counts, same, tasks))
    assert numbers["retrieval"] == pytest.approx(100)  # positives are first in the pool
    assert numbers["verification.auc"] == pytest.approx(0)  # and last among the pairs


def test_a_query_whose_distractors_are_all_of_its_own_sequence_has_only_positives():
    random = np.random.default_rng(5)
    names, counts = BOTH_KINDS[:3], [3, 5, 2]
    values, tasks = drawn_values(random, "floats", counts), drawn_tasks(random, counts, 10, 1, 1)
    tasks = Tasks(
        tasks.positives, tasks.intra, tasks.inter, np.array([[1, 0], [0, 1]]), np.array([[1, 2], [1, 4]])
    )
    compare(names, counts, values, tasks)
    numbers = hpatches.retrieval(*laid_out(names, counts, values, tasks))
    assert numbers["retrieval.hard.i_bench"] == pytest.approx(100)


@pytest.mark.parametrize("pairs", [1, 4, 5, 9, 10])
def test_a_fifth_of_few_positives_is_rounded_down(pairs):
    random = np.random.default_rng(6)
    names, counts = BOTH_KINDS[:3], [3, 5, 2]
    values, tasks = drawn_values(random, "grid", counts), drawn_tasks(random, counts, pairs, 2, 5)
    compare(names, counts, values, tasks)
    numbers = hpatches.verification(*laid_out(names, counts, values, tasks))
    assert (numbers["verification"] > 1e-6) == (pairs >= 5)


# The oracle, by hand


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


def along_a_line(counts: list[int], places: dict[tuple[int, int, int], float]) -> np.ndarray:
    """Descriptors of one number: 0, but for the given (sequence, file index, patch)."""
    values = [np.zeros((len(FILES), count, 1)) for count in counts]
    for (s, file, patch), value in places.items():
        values[s][file, patch] = value
    return np.concatenate([some.reshape(-1, 1) for some in values])


def test_retrieval_by_hand():
    """Positives at distance 1; the 95 distractors that a pool of 100 has at 2, the 96th at 1/2."""
    names, counts = ("v_one", "i_two"), [1, 2]
    places = {(0, file, 0): 1.0 for file in range(1, 16)} | {(1, 0, 0): 2.0, (1, 0, 1): 0.5}
    values = along_a_line(counts, places)
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
    """Two patches that are always found but in one image, where both have the same nearest one."""
    names, counts = ("v_one",), [2]
    places = {(0, file, 1): 1.0 for file in range(16)} | {(0, 3, 0): 7.0}
    found = oracle.matching(by_name(names, counts, along_a_line(counts, places)), names)
    # In e3 both go to patch 1: patch 1 at distance 0 (right), then patch 0 at distance 1 (wrong).
    assert found["matching.easy.v_one"] == pytest.approx(100 * (4 * 1 + 0.5) / 5)
    assert found["matching.success.easy.viewpoint"] == pytest.approx(90)
    assert found["matching.hard.viewpoint"] == pytest.approx(100)
    assert found["matching"] == pytest.approx((90 + 100 + 100) / 3)
    assert "matching.easy.illumination" not in found


def test_verification_by_hand():
    """Ten positives, of which the first two count for AP: one nearer than all negatives, one beyond."""
    names, counts = ("v_one",), [3]
    places = {(0, file, 1): 1.0 for file in range(1, 16)} | {(0, file, 2): 9.0 for file in range(1, 16)}
    values = along_a_line(counts, places)

    def pairs(*patches: int) -> PatchPairs:
        """Each from the reference to image 1, at distance 0, 1 or 9."""
        first = np.array([[0, 0, 0] for _ in patches])
        return PatchPairs(first, np.array([[0, 1, patch] for patch in patches]))

    tasks = Tasks(pairs(0, 2, *[0] * 8), pairs(*[1] * 10), pairs(*[2] * 10), None, None)
    found = oracle.verification(by_name(names, counts, values), names, tasks)
    ap = 100 * (0.5 + 0.5 * (1 / 11 + 2 / 12) / 2)
    assert found["verification.easy.intra.ap"] == pytest.approx(ap)
    # At distance 9 the negatives come first at the tie: the same order.
    assert found["verification.easy.inter.ap"] == pytest.approx(ap)
    assert found["verification.tough.intra.auc"] == pytest.approx(90)
    assert found["verification"] == pytest.approx(ap)
