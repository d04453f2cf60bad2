"""The task files of the HPatches benchmark (Balntas et al., CVPR 2017): read, generate, write.

For a split X: ``verif_pos_split-X.csv``, ``verif_neg_intra_split-X.csv`` and
``verif_neg_inter_split-X.csv`` with a pair of patches a line (s1,t1,idx1,s2,t2,idx2: sequence, image 0
to 5, patch), ``retr_queries_split-X.csv`` and ``retr_distractors_split-X.csv`` with a patch of the
reference image a line (s,idx). Level of jitter is no part of them: each pair is measured at all three.
Generation follows gen_verif and gen_retrieval in the benchmark's python/utils/tasks.py.
"""

from collections.abc import Sequence as Sequences
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from lib.data.hpatches.release import IMAGES, Sequence, open_sequences, read_splits
from lib.data.synthetic import SequencesSize
from lib.files import replacing

# Of positives, intra and inter negatives.
PAIR_FILES = ("verif_pos", "verif_neg_intra", "verif_neg_inter")
PATCH_FILES = ("retr_queries", "retr_distractors")
PAIR_COLUMNS = ["s1", "t1", "idx1", "s2", "t2", "idx2"]
PATCH_COLUMNS = ["s", "idx"]
# What gen_verif draws images from: the last of the six, image 5, is in no pair.
DRAWN_IMAGES = 5
# Grey levels: gen_retrieval takes patches whose standard deviation is above it.
LEAST_DEVIATION = 10


@dataclass(frozen=True)
class Tasks:
    """What verification and retrieval are measured on; matching needs no file.

    Attributes:
        positives, intra, inter: as many pairs each, (M, 2, 3) int64: of both patches sequence (an index
            into the split's test sequences), image (0 to 5) and patch. Positives show one spot, intra
            negatives two spots of one sequence, inter negatives spots of sequences drawn apart.
        queries, distractors: (n, 2) int64, columns sequence and patch, of the reference image.
    """

    positives: np.ndarray
    intra: np.ndarray
    inter: np.ndarray
    queries: np.ndarray
    distractors: np.ndarray


@dataclass(frozen=True)
class HPatchesSplit:
    """What an evaluation gets: the test sequences of a split, in its order, and the tasks on them."""

    name: str
    sequences: tuple[Sequence, ...]
    tasks: Tasks


def open_split(release: Path, tasks: Path, split: str, name: str | None = None) -> HPatchesSplit:
    """Open a split's test sequences and tasks.

    Args:
        release: the folder of sequences.
        tasks: the folder of task files, with splits.json where `read_splits` looks.
        split: the split's name, e.g. "a".
        name: what to call the result, the split's name by default.

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
        folder: has them.
        split: its name is in the files' names.
        sequences: the split's test sequences in its order.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: columns are missing, a row has no whole numbers, or names a patch that the split does
            not test (the message has file and line); positives that are not of one spot, intra negatives
            that are not of one sequence; unequal numbers of pairs, which the benchmark's labels do not
            allow.
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

    What may surprise, and is so in the benchmark:

    - A sequence is drawn first, each as likely as any other however many patches it has.
    - Images are drawn from 0 to 4, two different ones a pair; image 5 is never drawn.
    - The three sorts of pairs share their first patch and their second image, row by row.
    - Of an inter negative, the second sequence and patch are drawn apart from the first: it can be
      the same sequence, and so, rarely, the same spot.
    - Pairs may recur; queries and distractors do not, and no distractor is a query.
    - Queries and distractors need a standard deviation above 10 grey levels in the reference.

    The benchmark draws 4 candidates a query and 10 a distractor, with replacement, and drops those
    that recur; here candidates are drawn until none is left, so that with few patches there are as many
    queries and distractors as patches allow. Queries are taken first, at most a quarter of the patches
    that can be one: others must distract.

    Args:
        sequences: to draw from, two or more, in the split's order.
        size: the numbers of pairs, queries and distractors wanted, 1 or more each.
        seed: of the draw.

    Raises:
        ValueError: a sequence with a single patch, which has no intra negative; or fewer than two
            patches with texture enough, for a query and a distractor.
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
    # A patch is met after an exponential time with its weight as the rate (a race of exponentials),
    # which gives drawing with replacement, and dropping what recurs, its order without drawing.
    times = rng.exponential(size=len(candidates)) / (1 / counts[candidates[:, 0]])
    met = candidates[np.argsort(times, kind="stable")]
    # What is met after the queries is met as in a draw of its own that leaves them out.
    queries = min(size.queries, max(len(candidates) // 4, 1))
    return Tasks(*pairs, met[:queries], met[queries:][: size.distractors])


def write_tasks(folder: Path, split: str, sequences: Sequences[Sequence], tasks: Tasks) -> None:
    """Write the five task files.

    Args:
        folder: made if missing.
        split: goes into the files' names.
        sequences: what the first column of the tasks counts.
        tasks: to write.

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
    """Two different numbers below each of ``counts``, every ordered pair as likely."""
    first = rng.integers(counts)
    second = rng.integers(counts - 1)
    return first, second + (second >= first)


def _file(folder: Path, stem: str, split: str) -> Path:
    return folder / f"{stem}_split-{split}.csv"


def _read_rows(path: Path, columns: list[str], sequences: Sequences[Sequence]) -> np.ndarray:
    """(N, len(columns)) int64, sequences by their index."""
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
