"""HPatches' tasks against loops over pairs, queries and ranks in float64 (`hpatches_oracle`)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import hpatches_oracle as oracle
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lib.benchmarks import hpatches, neighbours
from lib.benchmarks.neighbours import columns_closer, nearest
from lib.benchmarks.subject import Subject
from lib.data.hpatches.release import FILES, LEVELS, Sequence, as_64, read_sequence, write_sequence
from lib.data.hpatches.tasks import HPatchesSplit, Tasks

POOLS = (100, 500, 1000, 5000, 10000, 15000, 20000)
NAMES = ("v_wall", "i_dome", "v_arch", "i_lamp")
SORTS = ("real", "coarse", "copies", "binary", "one bit")


def make_split(
    names=NAMES, counts=(9, 1, 14, 11), pairs=45, queries=12, distractors=120, seed=0
) -> HPatchesSplit:
    """Tasks drawn with repeats, so that pairs and distractors recur."""
    random = np.random.default_rng(seed)
    counts = np.array(counts)

    def draw(size: int) -> np.ndarray:
        sequence = random.integers(len(names), size=size)
        return np.stack([sequence, random.integers(counts[sequence])], axis=1)

    def with_image(patches: np.ndarray) -> np.ndarray:
        return np.insert(patches, 1, random.integers(6, size=len(patches)), axis=1)

    spots = draw(pairs)
    elsewhere = np.stack([spots[:, 0], random.integers(counts[spots[:, 0]])], axis=1)
    first = with_image(spots)
    tasks = Tasks(
        positives=np.stack([first, with_image(spots)], 1),
        intra=np.stack([first, with_image(elsewhere)], 1),
        inter=np.stack([first, with_image(draw(pairs))], 1),
        queries=draw(queries),
        distractors=draw(distractors),
    )
    sequences = tuple(
        Sequence(name, Path(name), int(count)) for name, count in zip(names, counts, strict=True)
    )
    return HPatchesSplit("x", sequences, tasks)


def make_descriptors(split: HPatchesSplit, sort: str = "real", seed: int = 0) -> np.ndarray:
    """Return descriptors, similar for a spot and less so at tougher levels."""
    random = np.random.default_rng(seed)
    noise = np.array([0, *np.repeat([0.3, 0.7, 1.1], 5)])[:, None, None]
    count = sum(sequence.count for sequence in split.sequences)
    values = random.normal(size=(count, 24)) + noise * random.normal(size=(16, count, 24))
    if sort == "coarse":
        values = np.round(values[:, :, :3])
        values[~values.any(axis=2)] = 1
    elif sort == "copies":
        values = values.reshape(-1, 24)[random.integers(0, 16 * count, size=(16, count)) // 8]
    elif sort == "binary":
        return (values[:, :, :9] > 0).astype(np.uint8)
    elif sort == "one bit":
        return (values[:, :, :1] > 0).astype(np.uint8)
    return values.astype(np.float32)


def slow_scores(descriptors: np.ndarray, split: HPatchesSplit, pools=POOLS) -> dict[str, float]:
    """Score by the literal transcription of the benchmark's code."""
    values, names, start = {}, [sequence.name for sequence in split.sequences], 0
    for sequence in split.sequences:
        per_file = descriptors[:, start : start + sequence.count]
        values[sequence.name] = dict(zip(FILES, per_file, strict=True))
        start += sequence.count
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(oracle, "POOL_SIZES", pools)
        return (
            oracle.verification(values, names, split.tasks)
            | oracle.matching(values, names)
            | oracle.retrieval(values, names, split.tasks)
        )


@pytest.mark.parametrize("sort", SORTS)
def test_every_score_is_that_of_the_loops_over_pairs(sort):
    split = make_split()
    descriptors = make_descriptors(split, sort)
    scores = hpatches.score(descriptors, split)
    assert scores == pytest.approx(slow_scores(descriptors, split), abs=1e-9)
    assert all(type(number) is float for number in scores.values())
    assert 0 < scores["verification"] < 100
    assert 0 < scores["retrieval"] < 100
    assert 0 < scores["matching"] < 100


@given(seed=st.integers(0, 2**31), sort=st.sampled_from(SORTS))
def test_other_draws_agree_with_pools_as_small_as_the_views(seed, sort):
    split = make_split(counts=(4, 1, 3, 5), pairs=15, queries=5, distractors=40, seed=seed)
    descriptors = make_descriptors(split, sort, seed)
    pools = (5, 6, 7, 12, 20, 33, 60)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hpatches, "POOLS", pools)
        scores = hpatches.score(descriptors, split)
    assert scores == pytest.approx(slow_scores(descriptors, split, pools), abs=1e-9)


@pytest.mark.parametrize("block", [1, 100, 10**4])
@pytest.mark.parametrize("sort", SORTS)
def test_blocks_of_any_size_give_the_same_bits(sort, block, monkeypatch):
    split = make_split()
    descriptors = make_descriptors(split, sort)
    expected = hpatches.score(descriptors, split)
    monkeypatch.setitem(neighbours.BLOCK, "cpu", block)
    monkeypatch.setitem(neighbours.PAIRS_BLOCK, "cpu", block)
    assert hpatches.score(descriptors, split) == expected


def test_pools_of_all_the_benchmarks_sizes_have_the_right_ends():
    split = make_split(NAMES[:3], counts=(30, 40, 50), queries=5, distractors=32_000)
    descriptors = make_descriptors(split, "coarse")
    scores = hpatches.retrieval(torch.from_numpy(descriptors), split)
    values, starts = descriptors.astype(np.float64), np.array([0, 30, 70])
    pool = values[0, starts[split.tasks.distractors[:, 0]] + split.tasks.distractors[:, 1]]
    for level, first in zip(LEVELS, (1, 6, 11), strict=True):
        by_size = {size: [] for size in (*POOLS, "all")}
        for s, i in split.tasks.queries:
            query = values[0, starts[s] + i]
            views = values[first : first + 5, starts[s] + i]
            negatives = pool[split.tasks.distractors[:, 0] != s]
            assert len(negatives) > POOLS[-1]
            distances = np.linalg.norm(np.concatenate([views, negatives]) - query, axis=1)
            match = np.arange(len(distances)) < 5
            for size in by_size:
                end = None if size == "all" else size
                by_size[size].append(100 * oracle.average_precision(distances[:end], match[:end]))
        for size, expected in by_size.items():
            assert scores[f"retrieval.{level}.{size}"] == pytest.approx(np.mean(expected), abs=1e-9)
        assert len({scores[f"retrieval.{level}.{size}"] for size in by_size}) == len(by_size)


@pytest.mark.parametrize(("kind", "absent"), [("v", "illumination"), ("i", "viewpoint")])
def test_a_split_of_one_kind_has_no_key_of_the_other(kind, absent):
    split = make_split([f"{kind}_{index}" for index in range(4)])
    descriptors = make_descriptors(split)
    scores = hpatches.score(descriptors, split)
    assert not [key for key in scores if absent in key]
    assert scores == pytest.approx(slow_scores(descriptors, split), abs=1e-9)


def test_ties_go_to_negatives_in_verification_and_to_positives_in_retrieval():
    split = make_split(counts=(3, 1, 3, 3), pairs=10, queries=4, distractors=60)
    descriptors = np.ones((16, 10, 4), np.float32)
    scores = hpatches.score(descriptors, split)
    assert scores["verification.auc"] == 0
    # All 10 negatives rank before the 2 positives: precisions 0, 1/11, 2/12 at ranks 10, 11, 12.
    assert scores["verification"] == pytest.approx(100 * (1 / 11 + 1 / 11 + 2 / 12) / 4)
    assert scores["retrieval"] == scores["retrieval.pools"] == 100
    views_last = hpatches.retrieval(torch.from_numpy(descriptors), split, views_first=False)
    assert views_last["retrieval"] < 20
    # The first column is nearest to all, which is right only for the first patch, ranked first.
    assert scores["matching.easy.v_wall"] == pytest.approx(100 / 3)
    assert scores["matching.success.easy.viewpoint"] == pytest.approx(100 / 3)


def test_pools_with_too_few_distractors_are_left_out_of_the_means_too():
    split = make_split(counts=(3, 400, 400, 3), pairs=10, queries=4, distractors=600)
    scores = hpatches.score(make_descriptors(split), split)
    kept = hpatches.without_pools(scores, 600)
    left_out = {f"retrieval.{level}.{m}" for level in LEVELS for m in (1000, 5000, 10000, 15000, 20000)}
    assert scores.keys() - kept.keys() == left_out
    for level in LEVELS:
        mean = (scores[f"retrieval.{level}.100"] + scores[f"retrieval.{level}.500"]) / 2
        assert kept[f"retrieval.{level}.pools"] == pytest.approx(mean)
    means = [kept[f"retrieval.{level}.pools"] for level in LEVELS]
    assert kept["retrieval.pools"] == pytest.approx(np.mean(means))
    assert kept["retrieval"] == scores["retrieval"]
    assert hpatches.without_pools(scores, 19_995) == pytest.approx(scores)


def test_a_whole_pool_is_of_five_views_and_the_distractors_of_other_sequences():
    split = make_split(counts=(3, 1, 3, 3), pairs=10, queries=4, distractors=60)
    others = [
        sum(owner != asked for owner in split.tasks.distractors[:, 0])
        for asked in split.tasks.queries[:, 0]
    ]
    assert hpatches.whole_pools(split).tolist() == [5 + count for count in others]


def test_verification_of_under_five_positives_is_zero():
    split = make_split(pairs=4)
    scores = hpatches.verification(torch.from_numpy(make_descriptors(split)), split)
    assert scores["verification"] == 0
    assert scores["verification.auc"] > 0


@given(seed=st.integers(0, 2**31), power=st.sampled_from([0, 3, 12, 16]))
def test_distances_too_close_for_float32_are_exact(seed, power):
    # Far from the origin, float32 products lose the differences of descriptors.
    random = np.random.default_rng(seed)
    values = random.integers(0, 3, size=(40, 6)).astype(np.float32) + np.float32(2**power)
    queries, columns = torch.from_numpy(values).split(20)
    exact = np.linalg.norm(values[:20, None].astype(np.float64) - values[None, 20:], axis=2)
    distances, indices = nearest(queries, columns)
    assert indices.tolist() == exact.argmin(axis=1).tolist()
    assert distances.numpy() == pytest.approx(exact.min(axis=1), abs=1e-12)
    views = random.integers(0, 40, size=(20, 4))
    columns = columns.double()
    squares = columns.square().sum(1)
    closer = columns_closer(queries, torch.from_numpy(values[views]), columns, squares, [7, 14])
    view_distances = np.linalg.norm(values[:20, None].astype(np.float64) - values[views], axis=2)
    for prefix, end in enumerate((7, 14, 20)):
        expected = (exact[:, None, :end] < view_distances[:, :, None]).sum(axis=2)
        assert closer[:, prefix].tolist() == expected.tolist()


def test_a_very_distant_view_has_all_columns_before_it():
    values = np.ones((12, 5), np.float32)
    values[1:] += np.linspace(0, 1, 11, dtype=np.float32)[:, None]
    values[1] = 1e30
    table = torch.from_numpy(values)
    columns = table[2:].double()
    closer = columns_closer(table[:1], table[None, [1, 6]], columns, columns.square().sum(1), [])
    assert closer.tolist() == [[[10, 4]]]


def test_columns_equal_to_a_view_come_after_it_or_before_it():
    # Copies of a descriptor, whose float64 products round differently by position.
    random = np.random.default_rng(3)
    queries, view = torch.from_numpy(random.normal(size=(2, 40, 128)).astype(np.float32))
    columns = view.repeat(33, 1).double()
    for views_first, expected in ((True, 0), (False, 33)):
        closer = columns_closer(
            queries, view[:, None], columns, columns.square().sum(1), [], views_first
        )
        column_distances = (queries[:, None] - columns).double().square().sum(2)
        view_distances = (queries - view).double().square().sum(1, keepdim=True)
        nearer = (column_distances < view_distances - 1e-3).sum(1)
        assert (closer[:, 0, 0] - nearer == expected).all()


class TestDescribe:
    @pytest.fixture
    def split(self, tmp_path) -> HPatchesSplit:
        random = np.random.default_rng(0)
        split = make_split(NAMES[:2], counts=(7, 3), pairs=10, queries=3, distractors=9)
        for sequence in split.sequences:
            patches = random.integers(0, 256, size=(16, sequence.count, 65, 65), dtype=np.uint8)
            write_sequence(tmp_path / sequence.name, dict(zip(FILES, patches, strict=True)))
        sequences = tuple(read_sequence(tmp_path / sequence.name) for sequence in split.sequences)
        return replace(split, sequences=sequences)

    def test_each_patch_is_described_in_batches_at_its_index(self, split, monkeypatch):
        sizes = []

        def means(patches: np.ndarray) -> np.ndarray:
            assert patches.shape[1:] == (64, 64)
            assert patches.dtype == np.uint8
            sizes.append(len(patches))
            return patches.reshape(len(patches), 4, -1).mean(axis=2)

        monkeypatch.setattr(hpatches, "BATCH", 4)
        descriptors = hpatches.describe(Subject(means), split.sequences)
        assert sizes == [4, 3, 3] * 16
        assert descriptors.dtype == np.float32
        for start, sequence in zip((0, 7), split.sequences, strict=True):
            for index, file in enumerate(FILES):
                expected = as_64(sequence.patches(file)).reshape(sequence.count, 4, -1).mean(axis=2)
                actual = descriptors[index, start : start + sequence.count]
                assert (actual == expected.astype(np.float32)).all()

    def test_packed_bits_are_scored_by_hamming_distance(self, split):
        def dark(patches: np.ndarray) -> np.ndarray:
            return patches[:, ::4, 5] > 128

        packed = Subject(lambda patches: np.packbits(dark(patches), axis=1))
        descriptors = hpatches.describe(packed, split.sequences)
        assert descriptors.dtype == np.uint8
        assert descriptors.shape == (16, 10, 16)
        # Squared Euclidean distances of bits as numbers are Hamming's.
        as_numbers = Subject(lambda patches: dark(patches).astype(np.float32) + 0.0)
        actual, expected = hpatches.measure(packed, split), hpatches.measure(as_numbers, split)
        assert actual == pytest.approx(expected)
