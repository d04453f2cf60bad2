"""From homography sequences to a folder like HPatches' own: patches, splits and their tasks."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from lib.data.hpatches import RELEASE, TASKS
from lib.data.hpatches.building import build_release
from lib.data.hpatches.homographies import HomographySequence, read_homography_sequences
from lib.data.hpatches.release import Split, open_sequences, write_splits
from lib.data.hpatches.tasks import ONE_SEQUENCE, generate_tasks, sparing, write_tasks
from lib.data.synthetic.sizes import SequencesSize


def build_hpatches(folder: Path, homographies: Sequence[Path], size: SequencesSize) -> None:
    """Cut the patches of homography sequences, and draw tasks for a split "full" of all of them.

    Args:
        folder: gets ``hpatches-release``, ``tasks`` and ``build.json``.
        homographies: folders of sequences, or of folders of them.
        size: most patches of a sequence, and how many pairs, queries and distractors.

    Raises:
        ValueError: fewer than two sequences or a limit below two patches or a size below 1, which is
            told before any work; files are damaged, or a sequence yields no patches or only one.
        FileNotFoundError: an image or a homography is missing.
    """
    sequences = read_homography_sequences(*homographies)
    if len(sequences) < 2:
        raise ValueError(f"{sequences[0].folder} is the only sequence, but {ONE_SEQUENCE}")
    limit = size.patches_per_sequence
    if limit is not None and limit < 2:
        raise ValueError(f"a limit of {limit} patches a sequence: intra negatives need 2 or more")
    if min(size.pairs, size.queries, size.distractors) < 1:
        raise ValueError(f"pairs, queries and distractors must be 1 or more each, got {size}")
    full = Split("full", tuple(sequence.name for sequence in sequences))
    pack(folder, sequences, {full.name: full}, size, lambda _: size.seed)


def pack(
    folder: Path,
    sequences: Sequence[HomographySequence],
    splits: Mapping[str, Split],
    size: SequencesSize,
    seed_of: Callable[[str], int | np.random.SeedSequence],
) -> None:
    """Cut sequences' patches, and draw and write the tasks of splits of them.

    Args:
        folder: gets ``hpatches-release``, ``tasks`` and ``build.json``.
        sequences: with different names.
        splits: by name.
        size: most patches of a sequence; of few patches, queries are a quarter at most.
        seed_of: a split's name to the seed of its tasks.

    Raises:
        ValueError: an image cannot be read, or a sequence yields no patches or only one.
    """
    build_release(sequences, folder / RELEASE, size.patches_per_sequence, size.seed)
    for name, split in splits.items():
        tested = open_sequences(folder / RELEASE, split.test)
        drawn = generate_tasks(tested, sparing(tested, size), seed_of(name))
        write_tasks(folder / TASKS, name, tested, drawn)
    write_splits(folder / TASKS, splits)
