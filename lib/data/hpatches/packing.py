"""From homography sequences to a folder like HPatches' own: patches, tasks, and one split of all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lib.data.hpatches import RELEASE, TASKS
from lib.data.hpatches.building import build_release
from lib.data.hpatches.homographies import read_homography_sequences
from lib.data.hpatches.release import Split, open_sequences, write_splits
from lib.data.hpatches.tasks import ONE_SEQUENCE, TaskSize, generate_tasks, sparing, write_tasks


def build_hpatches(
    folder: Path, homographies: Sequence[Path], limit: int | None, amounts: TaskSize, seed: int
) -> None:
    """Cut the patches of homography sequences, and draw tasks for a split "full" of all of them.

    Args:
        folder: gets ``hpatches-release``, ``tasks`` and ``build.json``.
        homographies: folders of sequences, or of folders of them.
        limit: most patches of a sequence; None keeps all.
        amounts: how many pairs, queries and distractors; of few patches, queries are a quarter at most.
        seed: of everything drawn.

    Raises:
        ValueError: fewer than two sequences or a limit below two patches, which is told before any work;
            files are damaged, or a sequence yields no patches or only one.
        FileNotFoundError: an image or a homography is missing.
    """
    sequences = read_homography_sequences(*homographies)
    if len(sequences) < 2:
        raise ValueError(f"{sequences[0].folder} is the only sequence, but {ONE_SEQUENCE}")
    if limit is not None and limit < 2:
        raise ValueError(f"a limit of {limit} patches a sequence: intra negatives need 2 or more")
    build_release(sequences, folder / RELEASE, limit, seed)
    names = tuple(sequence.name for sequence in sequences)
    tested = open_sequences(folder / RELEASE, names)
    write_tasks(folder / TASKS, "full", tested, generate_tasks(tested, sparing(tested, amounts), seed))
    write_splits(folder / TASKS, {"full": Split("full", names, ())})
