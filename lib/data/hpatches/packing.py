"""From homography sequences to a folder like HPatches' own: patches, tasks, and one split of all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lib.data.hpatches import RELEASE, TASKS
from lib.data.hpatches.building import build_release
from lib.data.hpatches.homographies import read_homography_sequences
from lib.data.hpatches.release import Split, open_sequences, write_splits
from lib.data.hpatches.tasks import TaskSize, generate_tasks, write_tasks


def build_hpatches(
    folder: Path, homographies: Sequence[Path], limit: int | None, amounts: TaskSize, seed: int
) -> None:
    """Cut the patches of homography sequences, and draw tasks for a split "full" of all of them.

    Args:
        folder: gets ``hpatches-release``, ``tasks`` and ``build.json``.
        homographies: folders of sequences, or of folders of them.
        limit: most patches of a sequence; None keeps all.
        amounts: how many pairs, queries and distractors.
        seed: of everything drawn.

    Raises:
        ValueError: files are damaged, or a sequence yields no patches.
        FileNotFoundError: an image or a homography is missing.
    """
    sequences = read_homography_sequences(*homographies)
    build_release(sequences, folder / RELEASE, limit, seed)
    names = tuple(sequence.name for sequence in sequences)
    tested = open_sequences(folder / RELEASE, names)
    write_tasks(folder / TASKS, "full", tested, generate_tasks(tested, amounts, seed))
    write_splits(folder / TASKS, {"full": Split("full", names, ())})
