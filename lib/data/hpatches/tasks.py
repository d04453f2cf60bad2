"""The task files of the HPatches benchmark (Balntas et al., CVPR 2017): read, generate, write.

For a split X: ``verif_pos_split-X.csv``, ``verif_neg_intra_split-X.csv`` and
``verif_neg_inter_split-X.csv`` with a pair of patches a line (s1,t1,idx1,s2,t2,idx2: sequence, image 0
to 5, patch), ``retr_queries_split-X.csv`` and ``retr_distractors_split-X.csv`` with a patch of the
reference image a line (s,idx). Level of jitter is no part of them: each pair is measured at all three.
Generation follows gen_verif and gen_retrieval in the benchmark's python/utils/tasks.py.
"""

from collections import abc
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from lib.data.hpatches.release import IMAGES, Sequence, Split, open_sequences, read_split
from lib.data.synthetic import SequencesSize
from lib.files import replacing

POSITIVES, INTRA, INTER = "verif_pos", "verif_neg_intra", "verif_neg_inter"
PAIRS = (POSITIVES, INTRA, INTER)
QUERIES, DISTRACTORS = "retr_queries", "retr_distractors"
PAIR_COLUMNS = ("s1", "t1", "idx1", "s2", "t2", "idx2")
PATCH_COLUMNS = ("s", "idx")
# What gen_verif draws images from: the last of the six, image 5, is in no pair.
DRAWN_IMAGES = 5
ONE_SEQUENCE = (
    "tasks need two sequences at least (of one alone, inter negatives are of the same sequence, and "
    "retrieval has no others to confuse its queries with): give another"
)
# Grey levels: gen_retrieval takes patches whose standard deviation is above it.
LEAST_DEVIATION = 10


@dataclass(frozen=True)
class PatchPairs:
    """Pairs of patches.

    Attributes:
        first, second: (M, 3) int64, columns sequence (an index into the split's test sequences),
            image (0 to 5) and patch.
    """

    first: np.ndarray
    second: np.ndarray


@dataclass(frozen=True)
class Tasks:
    """What verification and retrieval are measured on; matching needs no file.

    Attributes:
        positives, intra, inter: as many pairs each. Positives show one spot, intra negatives two spots
            of one sequence, inter negatives spots of sequences drawn apart.
        queries, distractors: (n, 2) int64, columns sequence and patch, of the reference image.
    """

    positives: PatchPairs
    intra: PatchPairs
    inter: PatchPairs
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
        ValueError: an unknown split, one with a sequence that the release has not, or a damaged file.
    """
    chosen = read_split(tasks, split)
    sequences = open_sequences(release, chosen.test)
    return HPatchesSplit(name or split, sequences, read_tasks(tasks, chosen, sequences))


def read_tasks(folder: Path, split: Split, sequences: abc.Sequence[Sequence]) -> Tasks:
    """Read the five task files of a split.

    Args:
        folder: has them.
        split: its name is in the files' names.
        sequences: the split's test sequences in its order.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: columns are missing, a row has no whole numbers, names a sequence that the split
            does not test or a patch that is not there (the message has file and line); positives
            that are not of one spot, intra negatives that are not of one sequence; unequal numbers
            of pairs, which the benchmark's labels do not allow.
    """
    paths = [_file(folder, stem, split.name) for stem in PAIRS]
    positives, intra, inter = (PatchPairs(*_read_sides(path, ("1", "2"), sequences)) for path in paths)
    one_spot = (positives.first[:, [0, 2]] == positives.second[:, [0, 2]]).all(axis=1)
    _refuse(paths[0], ~one_spot, "a positive pair is of one spot, which this is not")
    one_sequence = intra.first[:, 0] == intra.second[:, 0]
    _refuse(paths[1], ~one_sequence, "an intra negative is of one sequence, which this is not")
    counts = [len(pairs.first) for pairs in (positives, intra, inter)]
    if len(set(counts)) > 1:
        raise ValueError(f"{folder}: as many pairs of each kind expected, got {counts}; take them again")
    queries, distractors = (
        _read_sides(_file(folder, stem, split.name), ("",), sequences)[0][:, [0, 2]]
        for stem in (QUERIES, DISTRACTORS)
    )
    return Tasks(positives, intra, inter, queries, distractors)


def generate_tasks(
    sequences: abc.Sequence[Sequence], size: SequencesSize, seed: int | np.random.SeedSequence
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
    queries and distractors as patches allow. Queries are taken first.

    Args:
        sequences: to draw from, two or more, in the split's order.
        size: the numbers of pairs, queries and distractors wanted, 1 or more each.
        seed: of the draw.

    Raises:
        ValueError: a sequence with a single patch, which has no intra negative; no patch with texture
            enough for a query, or none left for a distractor.
    """
    rng = np.random.default_rng(seed)
    pairs = _draw_pairs(sequences, size.pairs, rng)
    return Tasks(*pairs, *_draw_patches(sequences, size, rng))


def sparing(sequences: abc.Sequence[Sequence], size: SequencesSize) -> SequencesSize:
    """The size, with queries at most a quarter of the patches that can be one: others must distract."""
    return replace(size, queries=min(size.queries, max(len(_candidates(sequences)) // 4, 1)))


def write_tasks(folder: Path, split_name: str, sequences: abc.Sequence[Sequence], tasks: Tasks) -> None:
    """Write the five task files.

    Args:
        folder: made if missing.
        split_name: goes into the files' names.
        sequences: what the first column of the tasks counts.
        tasks: to write.

    Raises:
        OSError: the folder cannot be written.
    """
    names = [sequence.name for sequence in sequences]
    pairs = dict(zip(PAIRS, (tasks.positives, tasks.intra, tasks.inter), strict=True))
    tables = {
        **{stem: (PAIR_COLUMNS, np.hstack([kind.first, kind.second])) for stem, kind in pairs.items()},
        QUERIES: (PATCH_COLUMNS, tasks.queries),
        DISTRACTORS: (PATCH_COLUMNS, tasks.distractors),
    }
    for stem, (columns, values) in tables.items():
        frame = pd.DataFrame(values, columns=list(columns))
        for column in columns:
            if column.startswith("s"):
                frame[column] = pd.Categorical.from_codes(frame[column], names)
        with replacing(_file(folder, stem, split_name)) as half:
            frame.to_csv(half, index=False, lineterminator="\n")


def textured(patches: np.ndarray) -> np.ndarray:
    """(N,) bool: the standard deviation over a patch is above 10, in whole numbers and so exactly.

    Args:
        patches: (N, …) uint8.
    """
    flat = patches.reshape(len(patches), -1)
    sums = flat.sum(axis=1, dtype=np.int64)
    squares = np.einsum("np,np->n", flat, flat, dtype=np.int64)
    pixels = flat.shape[1]
    return pixels * squares - sums**2 > (LEAST_DEVIATION * pixels) ** 2


def _draw_pairs(
    sequences: abc.Sequence[Sequence], count: int, rng: np.random.Generator
) -> tuple[PatchPairs, PatchPairs, PatchPairs]:
    counts = np.array([sequence.count for sequence in sequences])
    if counts.min() < 2:
        single = sequences[int(counts.argmin())]
        raise ValueError(f"{single.folder} has {single.count} patch; an intra negative needs two")
    sequence = rng.integers(len(counts), size=count)
    patch, other = _two_of(counts[sequence], rng)
    image, other_image = _two_of(np.full(count, DRAWN_IMAGES), rng)
    second = rng.integers(len(counts), size=count)
    second_patch = rng.integers(counts[second])
    first = np.column_stack([sequence, image, patch])
    return (
        PatchPairs(first, np.column_stack([sequence, other_image, patch])),
        PatchPairs(first, np.column_stack([sequence, other_image, other])),
        PatchPairs(first, np.column_stack([second, other_image, second_patch])),
    )


def _two_of(counts: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Two different numbers below each of ``counts``, every ordered pair as likely."""
    first = rng.integers(counts)
    second = rng.integers(counts - 1)
    return first, second + (second >= first)


def _draw_patches(
    sequences: abc.Sequence[Sequence], size: SequencesSize, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    candidates = _candidates(sequences)
    if len(candidates) <= size.queries:
        textured = f"{len(candidates)} reference patches with a deviation above {LEAST_DEVIATION}"
        raise ValueError(f"{textured} are too few for {size.queries} queries and a distractor")
    weights = 1 / np.array([sequence.count for sequence in sequences])[candidates[:, 0]]
    # A patch is met after an exponential time with its weight as the rate (a race of exponentials),
    # which gives drawing with replacement, and dropping what recurs, its order without drawing.
    order = np.argsort(rng.exponential(size=len(weights)) / weights, kind="stable")
    # What is met after the queries is met as in a draw of its own that leaves them out.
    queries, distractors = np.split(order, [size.queries])
    return candidates[queries], candidates[distractors[: size.distractors]]


def _candidates(sequences: abc.Sequence[Sequence]) -> np.ndarray:
    """(n, 2) int64, sequence and patch of those that may be queries."""
    patches = [np.flatnonzero(textured(sequence.patches("ref"))) for sequence in sequences]
    owner = np.repeat(np.arange(len(sequences)), [len(indices) for indices in patches])
    return np.column_stack([owner, np.concatenate(patches)])


def _file(folder: Path, stem: str, split_name: str) -> Path:
    return folder / f"{stem}_split-{split_name}.csv"


def _read_sides(
    path: Path, sides: abc.Sequence[str], sequences: abc.Sequence[Sequence]
) -> list[np.ndarray]:
    """(N, 3) int64 for each side of a CSV's rows: sequence, image, 0 where none is named, and patch."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing: take it from the benchmark, or generate it")
    columns = PAIR_COLUMNS if len(sides) == 2 else PATCH_COLUMNS
    types = {column: "category" if column.startswith("s") else np.int64 for column in columns}
    try:
        frame = pd.read_csv(path, dtype=types, na_filter=False, encoding_errors="replace")
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{path}: names and whole numbers expected ({str(error).strip()})") from error
    missing = set(columns) - set(frame)
    if missing or frame.empty or not isinstance(frame.index, pd.RangeIndex):
        raise ValueError(f"{path} has {len(frame)} rows of {list(frame)}; {', '.join(columns)} expected")
    indices = {sequence.name: index for index, sequence in enumerate(sequences)}
    counts = np.array([sequence.count for sequence in sequences])
    tables = []
    for side in sides:
        names, patch = frame[f"s{side}"].cat, frame[f"idx{side}"].to_numpy()
        image = frame[f"t{side}"].to_numpy() if side else np.zeros_like(patch)
        known = np.array([indices.get(name, -1) for name in names.categories], np.int64)
        sequence = known[names.codes.to_numpy()]
        _refuse(path, sequence < 0, "the split tests no sequence of this name")
        _refuse(path, (image < 0) | (image >= IMAGES), f"a sequence's images are 0 to {IMAGES - 1}")
        _refuse(path, (patch < 0) | (patch >= counts[sequence]), "the sequence has no such patch")
        tables.append(np.column_stack([sequence, image, patch]))
    return tables


def _refuse(path: Path, wrong: np.ndarray, reason: str) -> None:
    if wrong.any():
        raise ValueError(f"{path}, line {wrong.argmax() + 2}: {reason}; take the file again")
