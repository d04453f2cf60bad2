"""The benchmark's tasks: drawn by its rules, read and written in its files, damage named by line."""

from __future__ import annotations

import csv
import os
import shutil
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_files import replace_line

from lib.data.hpatches.release import (
    FILES,
    Sequence,
    Split,
    read_sequences,
    read_splits,
    write_sequence,
    write_splits,
)
from lib.data.hpatches.tasks import (
    Tasks,
    generate_tasks,
    open_split,
    read_tasks,
    write_tasks,
)
from lib.data.synthetic import SequencesSize

# `REAL=folder python -m pytest tests/test_hpatches_tasks.py` also reads the benchmark's own files in
# `folder/hpatches_tasks`: splits.json, and queries and distractors of split a.
REAL = os.environ.get("REAL", "")
PAIRS_HEADER = "s1,t1,idx1,s2,t2,idx2\n"


def sized(pairs: int, queries: int, distractors: int) -> SequencesSize:
    return SequencesSize(pairs=pairs, queries=queries, distractors=distractors)


def write_patches(folder: Path, deviations: list[float]) -> None:
    """Write a sequence whose patch i has noise of the i-th deviation."""
    rng = np.random.default_rng(len(deviations))
    scale = np.array(deviations)[:, None, None]
    patches = (128 + scale * rng.choice([-1, 1], (len(deviations), 65, 65))).astype(np.uint8)
    write_sequence(folder, dict.fromkeys(FILES, patches))


@pytest.fixture(scope="module")
def sequences(tmp_path_factory: pytest.TempPathFactory) -> list[Sequence]:
    """Three sequences of 2, 8 and 30 patches; every third of the last has little texture."""
    folder = tmp_path_factory.mktemp("release")
    write_patches(folder / "v_few", [40, 40])
    write_patches(folder / "i_some", [40] * 8)
    write_patches(folder / "v_many", [40, 40, 5] * 10)
    release = read_sequences(folder)
    return [release[name] for name in ("v_few", "i_some", "v_many")]


def equal(one: Tasks, other: Tasks) -> bool:
    arrays = zip(vars(one).values(), vars(other).values(), strict=True)
    return all(a.dtype == b.dtype == np.int64 and np.array_equal(a, b) for a, b in arrays)


def test_every_drawn_row_follows_the_benchmarks_rules(sequences: list[Sequence]) -> None:
    size = sized(pairs=3000, queries=7, distractors=9)
    tasks = generate_tasks(sequences, size, 0)
    for pairs in (tasks.positives, tasks.intra, tasks.inter):
        assert pairs.shape == (3000, 2, 3)
        assert pairs.dtype == np.int64
    shared = 0
    for row in range(3000):
        s, image, patch = tasks.positives[row, 0].tolist()
        other_s, other_image, other_patch = tasks.positives[row, 1].tolist()
        assert (other_s, other_patch) == (s, patch)
        assert {image, other_image} <= set(range(5))
        assert image != other_image
        for negatives in (tasks.intra, tasks.inter):
            assert negatives[row, 0].tolist() == [s, image, patch]
            assert negatives[row, 1, 1] == other_image
        intra_s, _, intra_patch = tasks.intra[row, 1].tolist()
        inter_s, _, inter_patch = tasks.inter[row, 1].tolist()
        assert intra_s == s
        assert intra_patch in set(range(sequences[s].count)) - {patch}
        assert inter_patch in range(sequences[inter_s].count)
        shared += inter_s == s
    assert 0.28 < shared / 3000 < 0.39, "the second sequence is drawn apart: a third is the same"

    queries = [tuple(row) for row in tasks.queries.tolist()]
    distractors = [tuple(row) for row in tasks.distractors.tolist()]
    assert (len(queries), len(distractors)) == (7, 9)
    assert len(set(queries)) == 7
    assert len(set(distractors)) == 9
    assert not set(queries) & set(distractors)
    for s, patch in queries + distractors:
        assert np.std(sequences[s].patches("ref")[patch]) > 10


def test_all_allowed_values_are_drawn_equally_often(sequences: list[Sequence]) -> None:
    tasks = generate_tasks(sequences, sized(60_000, 1, 1), 3)
    s, image, patch = tasks.intra[:, 0].T
    _, other_image, other_patch = tasks.intra[:, 1].T
    inter_s, _, inter_patch = tasks.inter[:, 1].T

    def check(values: list[tuple], expected: set[tuple]) -> None:
        counts = Counter(values)
        assert set(counts) == expected
        mean = len(values) / len(expected)
        # Five standard deviations of a binomial count.
        assert max(abs(count - mean) for count in counts.values()) < 5 * mean**0.5

    check([(v,) for v in s.tolist()], {(0,), (1,), (2,)})
    images = {(a, b) for a in range(5) for b in range(5) if a != b}
    check(list(zip(image.tolist(), other_image.tolist(), strict=True)), images)
    in_second = s == 1
    patches = {(a, b) for a in range(8) for b in range(8) if a != b}
    check(list(zip(patch[in_second].tolist(), other_patch[in_second].tolist(), strict=True)), patches)
    sequence_pairs = {(a, b) for a in range(3) for b in range(3)}
    check(list(zip(s.tolist(), inter_s.tolist(), strict=True)), sequence_pairs)
    check([(v,) for v in inter_patch[inter_s == 2].tolist()], {(v,) for v in range(30)})


def draw_literally(
    counts: list[int], allowed: set[tuple], size: SequencesSize, rng: np.random.Generator
) -> tuple[list[tuple], list[tuple]]:
    """Draw queries and distractors one by one, in the order of gen_retrieval."""

    def candidates(number: int) -> list[tuple]:
        drawn = []
        for _ in range(number):
            s = int(rng.integers(len(counts)))
            patch = (s, int(rng.integers(counts[s])))
            if patch in allowed and patch not in drawn:
                drawn.append(patch)
        return drawn

    queries = candidates(40 * size.queries)[: size.queries]
    distractors = [patch for patch in candidates(40 * size.distractors) if patch not in queries]
    return queries, distractors[: size.distractors]


def test_queries_and_distractors_are_as_frequent_as_in_a_literal_draw(tmp_path: Path) -> None:
    write_patches(tmp_path / "v_a", [40, 5])
    write_patches(tmp_path / "v_b", [40, 40, 40, 5])
    release = list(read_sequences(tmp_path).values())
    allowed = {(0, 0), (1, 0), (1, 1), (1, 2)}
    size = sized(1, 1, 2)
    repeats = 600
    ours: Counter = Counter()
    literal: Counter = Counter()
    rng = np.random.default_rng(0)
    for seed in range(repeats):
        tasks = generate_tasks(release, size, seed)
        rows = np.concatenate([tasks.queries, tasks.distractors]).tolist()
        ours[tuple(tuple(row) for row in rows)] += 1
        queries, distractors = draw_literally([2, 4], allowed, size, rng)
        literal[(*queries, *distractors)] += 1
    assert set(ours) == set(literal)
    assert len(ours) == 4 * 3 * 2
    for outcome, count in literal.items():
        assert abs(ours[outcome] - count) < 5 * (2 * count) ** 0.5 + 5


@pytest.mark.parametrize("queries", [1, 3, 7, 8, 1000])
def test_at_most_a_quarter_of_the_patches_with_texture_are_queries(
    sequences: list[Sequence], queries: int
) -> None:
    tasks = generate_tasks(sequences, sized(5, queries, 1000), 1)
    assert len(tasks.queries) == min(queries, 30 // 4)
    assert len(tasks.distractors) == 30 - len(tasks.queries)


@st.composite
def tasks_of(draw: st.DrawFn, counts: tuple[int, ...] = (2, 8, 30)) -> Tasks:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    pairs = draw(st.integers(1, 9))

    def patches(count: int) -> np.ndarray:
        sequence = rng.integers(len(counts), size=count)
        return np.column_stack([sequence, rng.integers(np.array(counts)[sequence])])

    def side(points: np.ndarray) -> np.ndarray:
        return np.insert(points, 1, rng.integers(0, 6, len(points)), axis=1)

    points, intra, inter = patches(pairs), patches(pairs), patches(pairs)
    intra = np.column_stack([points[:, 0], rng.integers(np.array(counts)[points[:, 0]])])
    return Tasks(
        np.stack([side(points), side(points)], 1),
        np.stack([side(points), side(intra)], 1),
        np.stack([side(points), side(inter)], 1),
        patches(draw(st.integers(1, 6))),
        patches(draw(st.integers(1, 6))),
    )


@given(tasks=tasks_of())
def test_tasks_are_read_as_written(
    tmp_path_factory: pytest.TempPathFactory, sequences: list[Sequence], tasks: Tasks
) -> None:
    folder = tmp_path_factory.mktemp("tasks")
    write_tasks(folder, "a", sequences, tasks)
    assert equal(read_tasks(folder, "a", sequences), tasks)


def test_tasks_are_written_in_the_benchmarks_format(sequences: list[Sequence], tmp_path: Path) -> None:
    def pairs(first: list[int], second: list[int]) -> np.ndarray:
        return np.array([[first, second]])

    tasks = Tasks(
        pairs([2, 4, 11], [2, 3, 11]),
        pairs([2, 4, 11], [2, 3, 29]),
        pairs([2, 4, 11], [0, 3, 1]),
        np.array([[1, 7], [0, 0]]),
        np.array([[2, 5]]),
    )
    write_tasks(tmp_path, "illum", sequences, tasks)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "verif_pos_split-illum.csv": PAIRS_HEADER + "v_many,4,11,v_many,3,11\n",
        "verif_neg_intra_split-illum.csv": PAIRS_HEADER + "v_many,4,11,v_many,3,29\n",
        "verif_neg_inter_split-illum.csv": PAIRS_HEADER + "v_many,4,11,v_few,3,1\n",
        "retr_queries_split-illum.csv": "s,idx\ni_some,7\nv_few,0\n",
        "retr_distractors_split-illum.csv": "s,idx\nv_many,5\n",
    }


@pytest.fixture
def task_folder(sequences: list[Sequence], tmp_path: Path) -> Path:
    """A folder of tasks of 20 pairs, 5 queries and 5 distractors for split a."""
    write_tasks(tmp_path, "a", sequences, generate_tasks(sequences, sized(20, 5, 5), 0))
    write_splits(tmp_path, {"a": Split("a", tuple(sequence.name for sequence in sequences))})
    return tmp_path


def test_a_split_is_opened_with_its_sequences_and_tasks(
    task_folder: Path, sequences: list[Sequence]
) -> None:
    release = sequences[0].folder.parent
    opened = open_split(release, task_folder, "a")
    assert (opened.name, opened.sequences) == ("a", tuple(sequences))
    assert equal(opened.tasks, generate_tasks(sequences, sized(20, 5, 5), 0))
    with pytest.raises(ValueError, match="unknown split 'b'"):
        open_split(release, task_folder, "b")


STEMS = ("verif_pos", "verif_neg_intra", "verif_neg_inter", "retr_queries", "retr_distractors")


@pytest.mark.parametrize(
    ("stem", "row"),
    [
        (STEMS[0], "i_some,1,8,i_some,2,8"),
        (STEMS[2], "i_else,1,3,i_some,2,3"),
        (STEMS[0], "i_some,6,3,i_some,2,3"),
        # Pairs in the wrong file.
        (STEMS[0], "i_some,0,1,i_some,1,2"),
        (STEMS[1], "i_some,0,1,v_few,1,1"),
    ],
)
def test_an_invalid_pair_is_named_by_file_and_line(
    task_folder: Path, sequences: list[Sequence], stem: str, row: str
) -> None:
    replace_line(task_folder / f"{stem}_split-a.csv", 7, row)
    with pytest.raises(ValueError, match=rf"{stem}_split-a\.csv, line 7"):
        read_tasks(task_folder, "a", sequences)


@pytest.mark.skipif(not REAL, reason="REAL names no folder with the benchmark's tasks")
def test_the_benchmarks_own_files_are_read(tmp_path: Path) -> None:
    for path in Path(REAL, "hpatches_tasks").iterdir():
        shutil.copyfile(path, tmp_path / path.name)
    split = read_splits(tmp_path)["a"]
    assert (len(split.test), len(split.train)) == (40, 76)
    for stem in STEMS[:3]:
        name = split.test[0]
        (tmp_path / f"{stem}_split-a.csv").write_text(f"{PAIRS_HEADER}{name},0,1,{name},1,1\n")
    sequences = [SimpleNamespace(name=name, count=10_000) for name in split.test]
    tasks = read_tasks(tmp_path, "a", sequences)
    for stem, rows in (("retr_queries", tasks.queries), ("retr_distractors", tasks.distractors)):
        with (tmp_path / f"{stem}_split-a.csv").open(newline="") as file:
            expected = [(line["s"], int(line["idx"])) for line in csv.DictReader(file)]
        assert [(split.test[sequence], patch) for sequence, patch in rows.tolist()] == expected
    assert (len(tasks.queries), len(tasks.distractors)) == (10_000, 20_000)
