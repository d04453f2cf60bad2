"""Read, generate and write the task files of the HPatches benchmark (Balntas et al., CVPR 2017).

A split X has five files. ``verif_pos_split-X.csv``, ``verif_neg_intra_split-X.csv`` and
``verif_neg_inter_split-X.csv`` have one pair of patches per line (s1,t1,idx1,s2,t2,idx2: sequence, image
0 to 5, patch). ``retr_queries_split-X.csv`` and ``retr_distractors_split-X.csv`` have one patch of the
reference image per line (s,idx). The files give no level of jitter, since each pair is measured at all
three. Generation follows gen_verif and gen_retrieval in the benchmark's python/utils/tasks.py.
"""

from collections.abc import Sequence as Sequences
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from lib.data.hpatches.release import IMAGES, Sequence, open_sequences, read_splits
from lib.data.synthetic import SequencesSize
from lib.files import replacing

# Files of positives, intra negatives and inter negatives.
PAIR_FILES = ("verif_pos", "verif_neg_intra", "verif_neg_inter")
PATCH_FILES = ("retr_queries", "retr_distractors")
PAIR_COLUMNS = ["s1", "t1", "idx1", "s2", "t2", "idx2"]
PATCH_COLUMNS = ["s", "idx"]
# gen_verif draws from the first five images; the last of the six, image 5, is in no pair.
DRAWN_IMAGES = 5
# Grey levels. gen_retrieval takes only patches with a standard deviation above this.
LEAST_DEVIATION = 10


@dataclass(frozen=True)
class Tasks:
    """The pairs for verification and the patches for retrieval; matching needs no task file.

    Attributes:
        positives, intra, inter: M pairs each, (M, 2, 3) int64: for both patches, sequence (an index into
            the split's test sequences), image (0 to 5) and patch. Positives show one spot, intra
            negatives two spots of one sequence, inter negatives spots of independently drawn sequences.
        queries, distractors: (n, 2) int64, columns sequence and patch, of the reference image.
    """

    positives: np.ndarray
    intra: np.ndarray
    inter: np.ndarray
    queries: np.ndarray
    distractors: np.ndarray


@dataclass(frozen=True)
class HPatchesSplit:
    """The input of an evaluation: a split's test sequences, in its order, and the tasks on them."""

    name: str
    sequences: tuple[Sequence, ...]
    tasks: Tasks


def open_split(release: Path, tasks: Path, split: str, name: str | None = None) -> HPatchesSplit:
    """Open a split's test sequences and tasks.

    Args:
        release: the folder of sequences.
        tasks: the folder of task files, with splits.json where `read_splits` looks.
        split: the split's name, e.g. "a".
        name: the result's name, by default the split's.

    Raises:
        FileNotFoundError: a folder or file is missing.
        ValueError: an unknown split, or a damaged file.
    """
    splits = read_splits(tasks)
    if split not in splits:
        raise ValueError(f"unknown split {split!r}; there are: {', '.join(splits)}")
    sequences = open_sequences(release, splits[split].test)
    return HPatchesSplit(name or split, sequences, read_tasks(tasks, split, sequences))


def read_tasks(folder: Path, split: str, sequences: Sequences[Sequence]) -> Tasks:
    """Read the five task files of a split.

    Args:
        folder: holds the files.
        split: the split's name, as in the file names.
        sequences: the split's test sequences in its order.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: columns are missing; a row does not hold whole numbers, or names a patch that the
            split does not test (the message has file and line); positives are not of one spot, or intra
            negatives not of one sequence; the numbers of pairs differ, which the benchmark's labels do
            not allow.
    """
    pairs = []
    for stem, alike in zip(PAIR_FILES, ([0, 2], [0], []), strict=True):
        path = _file(folder, stem, split)
        pairs.append(_read_rows(path, PAIR_COLUMNS, sequences).reshape(-1, 2, 3))
        apart = np.ptp(pairs[-1][:, :, alike], axis=1).any(axis=1)
        _refuse(path, apart, "no such pair belongs into this file")
    if len({len(rows) for rows in pairs}) > 1:
        raise ValueError(f"{folder}: as many pairs of each kind expected; take the files again")
    patches = [_read_rows(_file(folder, stem, split), PATCH_COLUMNS, sequences) for stem in PATCH_FILES]
    return Tasks(*pairs, *patches)


def generate_tasks(
    sequences: Sequences[Sequence], size: SequencesSize, seed: int | np.random.SeedSequence
) -> Tasks:
    """Draw tasks by the benchmark's rules; the same seed gives the same tasks.

    These rules may surprise, but are the benchmark's:

    - The sequence is drawn first; all are equally likely, however many patches they have.
    - Each pair has two different images, drawn from 0 to 4; image 5 is never drawn.
    - The three kinds of pairs share their first patch and their second image, row by row.
    - The second sequence and patch of an inter negative are drawn independently of the first, so it can
      be the same sequence and, rarely, the same spot.
    - Pairs may recur; queries and distractors do not, and no distractor is a query.
    - Queries and distractors need a standard deviation above 10 grey levels in the reference.

    The benchmark draws 4 candidates per query and 10 per distractor, with replacement, and drops
    repeats. Here, candidates are drawn until none is left, so that few patches still give as many
    queries and distractors as possible. Queries are taken first, but at most a quarter of the suitable
    patches, since the others must serve as distractors.

    Args:
        sequences: the sequences to draw from, two or more, in the split's order.
        size: the numbers of pairs, queries and distractors wanted, 1 or more each.
        seed: seed of the draws.

    Raises:
        ValueError: a sequence has a single patch, and so no intra negative; or fewer than two patches
            have enough texture for a query and a distractor.
    """
    rng = np.random.default_rng(seed)
    counts = np.array([sequence.count for sequence in sequences])
    if counts.min() < 2:
        single = sequences[counts.argmin()].folder
        raise ValueError(f"{single} has {counts.min()} patch; an intra negative needs two")
    sequence = rng.integers(len(counts), size=size.pairs)
    patch, other = _two_of(counts[sequence], rng)
    image, other_image = _two_of(np.full(size.pairs, DRAWN_IMAGES), rng)
    second = rng.integers(len(counts), size=size.pairs)
    ends = (sequence, patch), (sequence, other), (second, rng.integers(counts[second]))
    pairs = [
        np.column_stack([sequence, image, patch, owner, other_image, number]).reshape(-1, 2, 3)
        for owner, number in ends
    ]

    deviations = [sequence.patches("ref").std(axis=(1, 2)) for sequence in sequences]
    owner, number = np.repeat(np.arange(len(counts)), counts), np.concatenate([*map(np.arange, counts)])
    candidates = np.column_stack([owner, number])[np.concatenate(deviations) > LEAST_DEVIATION]
    if len(candidates) < 2:
        textured = f"{len(candidates)} reference patches with a deviation above {LEAST_DEVIATION}"
        raise ValueError(f"{textured} are too few for a query and a distractor")
    # Each patch is met after an exponential time with its weight as the rate (a race of exponentials).
    # This gives the same order as drawing with replacement and dropping repeats, without drawing.
    times = rng.exponential(size=len(candidates)) / (1 / counts[candidates[:, 0]])
    met = candidates[np.argsort(times, kind="stable")]
    # The patches met after the queries are distributed as in a separate draw without the queries.
    queries = min(size.queries, max(len(candidates) // 4, 1))
    return Tasks(*pairs, met[:queries], met[queries:][: size.distractors])


def write_tasks(folder: Path, split: str, sequences: Sequences[Sequence], tasks: Tasks) -> None:
    """Write the five task files.

    Args:
        folder: made if missing.
        split: the split's name, for the file names.
        sequences: the sequences that the tasks' first column indexes.
        tasks: the tasks to write.

    Raises:
        OSError: the folder cannot be written.
    """
    names = np.array([sequence.name for sequence in sequences])
    for stem, rows in zip(PAIR_FILES + PATCH_FILES, vars(tasks).values(), strict=True):
        columns = PAIR_COLUMNS if stem in PAIR_FILES else PATCH_COLUMNS
        frame = pd.DataFrame(rows.reshape(-1, len(columns)), columns=columns)
        for column in frame.filter(like="s"):
            frame[column] = names[frame[column]]
        with replacing(_file(folder, stem, split)) as half:
            frame.to_csv(half, index=False, lineterminator="\n")


def _two_of(counts: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw two different numbers below each of ``counts``, every ordered pair equally likely."""
    first = rng.integers(counts)
    second = rng.integers(counts - 1)
    return first, second + (second >= first)


def _file(folder: Path, stem: str, split: str) -> Path:
    return folder / f"{stem}_split-{split}.csv"


def _read_rows(path: Path, columns: list[str], sequences: Sequences[Sequence]) -> np.ndarray:
    """Read a task file's rows, (N, len(columns)) int64, with sequences as indices."""
    numbers = {column: np.int64 for column in columns if not column.startswith("s")}
    try:
        frame = pd.read_csv(path, usecols=columns, dtype=numbers, na_filter=False)[columns]
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{path}: names and whole numbers expected ({str(error).strip()})") from error
    if frame.empty:
        raise ValueError(f"{path} has no rows: take the file again")
    names = pd.Index([sequence.name for sequence in sequences])
    counts = np.array([sequence.count for sequence in sequences])
    wrong = ~frame.filter(like="t").isin(range(IMAGES)).all(axis=1)
    for column in frame.filter(like="s"):
        frame[column] = names.get_indexer(frame[column])
        patch = frame[column.replace("s", "idx")]
        wrong |= (frame[column] < 0) | ~patch.between(0, counts[frame[column]] - 1)
    _refuse(path, wrong.to_numpy(), "the split tests no such patch")
    return frame.to_numpy(np.int64)


def _refuse(path: Path, wrong: np.ndarray, reason: str) -> None:
    if wrong.any():
        raise ValueError(f"{path}, line {wrong.argmax() + 2}: {reason}; take the file again")
