"""The task files of the HPatches benchmark (Balntas et al., CVPR 2017): read, generate, write.

For a split X: ``verif_pos_split-X.csv``, ``verif_neg_intra_split-X.csv`` and
``verif_neg_inter_split-X.csv`` with a pair of patches a line (s1,t1,idx1,s2,t2,idx2: sequence, image 0
to 5, patch), ``retr_queries_split-X.csv`` and ``retr_distractors_split-X.csv`` with a patch of the
reference image a line (s,idx). Level of jitter is no part of them: each pair is measured at all three.
Generation follows gen_verif and gen_retrieval in the benchmark's python/utils/tasks.py.
"""

from collections import abc
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from lib.data.hpatches.release import IMAGES, Sequence, Split, open_sequences, read_split
from lib.data.synthetic.sizes import SequencesSize
from lib.data.tables import refuse_rows
from lib.files import replacing

POSITIVES, INTRA, INTER = "verif_pos", "verif_neg_intra", "verif_neg_inter"
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


_refuse = partial(refuse_rows, header=1)


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
            of pairs, which the benchmark's labels do not allow; sequences that are not the split's.
    """
    names = tuple(sequence.name for sequence in sequences)
    if names != split.test:
        raise ValueError(
            f"the sequences are not those that split {split.name} tests, in its order: {names[:3]}… "
            f"for {split.test[:3]}…; open them with open_sequences(release, split.test)"
        )
    files = {stem: _file(folder, stem, split.name) for stem in (POSITIVES, INTRA, INTER)}
    pairs = {stem: _read_pairs(path, sequences) for stem, path in files.items()}
    _require(files[POSITIVES], pairs[POSITIVES], (0, 2), "a positive pair is of one spot")
    _require(files[INTRA], pairs[INTRA], (0,), "an intra negative is of one sequence")
    counts = {stem: len(pair.first) for stem, pair in pairs.items()}
    if len(set(counts.values())) > 1:
        told = ", ".join(f"{files[stem].name} has {count}" for stem, count in counts.items())
        raise ValueError(f"{folder}: as many pairs of each sort expected, but {told}: take them again")
    paths = [_file(folder, stem, split.name) for stem in (QUERIES, DISTRACTORS)]
    queries, distractors = (
        _side(path, _frame(path, PATCH_COLUMNS), "", sequences)[:, [0, 2]] for path in paths
    )
    return Tasks(pairs[POSITIVES], pairs[INTRA], pairs[INTER], queries, distractors)


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
        sequences: to draw from, in the split's order.
        size: the numbers of pairs, queries and distractors wanted, 1 or more each.
        seed: of the draw.

    Raises:
        ValueError: fewer than two sequences; a size below 1; a sequence with a single patch, which has
            no intra negative; no patch with texture enough for a query, or none left for a distractor.
    """
    if len(sequences) < 2:
        raise ValueError(ONE_SEQUENCE)
    if min(size.pairs, size.queries, size.distractors) < 1:
        raise ValueError(f"every size must be 1 or more, got {size}")
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
    columns = {
        POSITIVES: np.hstack([tasks.positives.first, tasks.positives.second]),
        INTRA: np.hstack([tasks.intra.first, tasks.intra.second]),
        INTER: np.hstack([tasks.inter.first, tasks.inter.second]),
        QUERIES: tasks.queries,
        DISTRACTORS: tasks.distractors,
    }
    for stem, values in columns.items():
        header = PATCH_COLUMNS if values.shape[1] == len(PATCH_COLUMNS) else PAIR_COLUMNS
        frame = pd.DataFrame(values, columns=list(header))
        for column in header:
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
        raise ValueError(
            f"{single.folder} has {single.count} patch, but an intra negative needs two: leave the "
            "sequence out of the split"
        )
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
    if not len(candidates):
        raise ValueError(
            f"none of the {sum(s.count for s in sequences)} reference patches has a standard deviation "
            f"above {LEAST_DEVIATION} grey levels, so there are no queries: give other sequences"
        )
    weights = 1 / np.array([sequence.count for sequence in sequences])[candidates[:, 0]]
    order = _first_drawn(weights, rng)
    # What is met after the queries is met as in a draw of its own that leaves them out.
    queries = order[: size.queries]
    distractors = order[size.queries : size.queries + size.distractors]
    if not len(distractors):
        raise ValueError(
            f"all {len(candidates)} patches with texture are queries, so there are no distractors: ask "
            "for fewer queries or give more patches"
        )
    return candidates[queries], candidates[distractors]


def _candidates(sequences: abc.Sequence[Sequence]) -> np.ndarray:
    """(n, 2) int64, sequence and patch of those that may be queries."""
    found = [np.flatnonzero(textured(sequence.patches("ref"))) for sequence in sequences]
    owner = np.repeat(np.arange(len(sequences)), [len(patches) for patches in found])
    return np.column_stack([owner, np.concatenate(found)])


def _first_drawn(weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Places in the order in which endless draws with these weights first meet them.

    Each place is met after an exponential time with its weight as the rate (a race of exponentials),
    which gives drawing with replacement, and dropping what recurs, its order without drawing.
    """
    return np.argsort(rng.exponential(size=len(weights)) / weights, kind="stable")


def _file(folder: Path, stem: str, split_name: str) -> Path:
    return folder / f"{stem}_split-{split_name}.csv"


def _read_pairs(path: Path, sequences: abc.Sequence[Sequence]) -> PatchPairs:
    frame = _frame(path, PAIR_COLUMNS)
    return PatchPairs(_side(path, frame, "1", sequences), _side(path, frame, "2", sequences))


def _side(path: Path, frame: pd.DataFrame, side: str, sequences: abc.Sequence[Sequence]) -> np.ndarray:
    """(N, 3) int64, sequence, image and patch of a side of all rows; image 0 where none is named."""
    names, patch = frame[f"s{side}"], frame[f"idx{side}"].to_numpy()
    image = frame[f"t{side}"].to_numpy() if f"t{side}" in frame else np.zeros_like(patch)
    indices = {sequence.name: index for index, sequence in enumerate(sequences)}
    table = np.array([indices.get(name, -1) for name in names.cat.categories], np.int64)
    sequence = table[names.cat.codes.to_numpy()]
    unknown = "is no sequence that the split tests"
    _refuse(path, sequence < 0, lambda row: f"{names.iloc[row]!r} {unknown}")
    images = f"but a sequence's images are 0 to {IMAGES - 1}"
    _refuse(path, (image < 0) | (image >= IMAGES), lambda row: f"t{side} is {image[row]}, {images}")
    last = np.array([one.count for one in sequences])[sequence] - 1
    told = "patch {} of {}, whose patches are 0 to {}"
    outside = (patch < 0) | (patch > last)
    _refuse(path, outside, lambda row: told.format(patch[row], names.iloc[row], last[row]))
    return np.column_stack([sequence, image, patch])


def _frame(path: Path, columns: tuple[str, ...]) -> pd.DataFrame:
    """The named columns of a CSV, names as categories and the rest int64."""
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} is missing: take it from the benchmark's repository or make it with generate_tasks"
        )
    types = {column: "category" if column.startswith("s") else np.int64 for column in columns}
    try:
        frame = pd.read_csv(path, dtype=types, na_filter=False, encoding_errors="replace")
    except pd.errors.EmptyDataError as error:
        raise ValueError(f"{path} is empty: take it again") from error
    except pd.errors.ParserError as error:
        raise ValueError(f"{path}: {str(error).strip()}; take it again") from error
    except (ValueError, OverflowError) as error:
        _refuse_fractions(path, columns)
        raise ValueError(f"{path}: whole numbers expected ({error}); take the file again") from error
    missing = [column for column in columns if column not in frame]
    if missing or not isinstance(frame.index, pd.RangeIndex):
        raise ValueError(
            f"{path} has the columns {', '.join(map(str, frame.columns))}"
            f"{'' if missing else ' and more in its rows'}; expected {', '.join(columns)}: take it again"
        )
    if frame.empty:
        raise ValueError(f"{path} has no rows: take it again")
    return frame


def _refuse_fractions(path: Path, columns: tuple[str, ...]) -> None:
    text = pd.read_csv(path, dtype=str, na_filter=False, encoding_errors="replace")
    for column in columns:
        if column in text and not column.startswith("s"):
            wrong = ~text[column].fillna("").str.fullmatch(r"\s*[+-]?\d{1,18}\s*").to_numpy(bool)
            told = (column + " is " + text[column].map(repr) + ", a whole number expected").__getitem__
            _refuse(path, wrong, told)


def _require(path: Path, pairs: PatchPairs, columns: tuple[int, ...], rule: str) -> None:
    """Check that both patches of a pair agree in columns."""
    places = list(columns)
    wrong = (pairs.first[:, places] != pairs.second[:, places]).any(axis=1)
    _refuse(path, wrong, lambda _: f"{rule}, which this is not")
