"""HPatches sequences (Balntas et al., CVPR 2017) as a set to train on: classes of 16 patches.

A class is a spot of a sequence: its patch in the reference image, and in the five other images at
easy, hard and tough jitter.
"""

from collections import abc
from pathlib import Path

import numpy as np

from lib.data.hpatches.release import FILES, IMAGES, LEVELS, Sequence, as_64, refuse_equal_names
from lib.data.patchset import PatchSet, decoded


def read_classes(sequences: abc.Sequence[Sequence], cache: Path, name: str) -> PatchSet:
    """Read sequences as one set; the patches are decoded once and cached as one mapped array.

    Args:
        sequences: to train on, one or more; of ΣN patches in each of the 16 files.
        cache: folder for the decoded patches, made if missing; what it holds under this name is made
            anew when an image changes.
        name: of the set.

    Returns:
        patches (16·ΣN, 64, 64) uint8, read-only, in the order sequence, file, patch (`as_64` makes
        them from 65×65); point ids 0 to ΣN - 1, 16 patches each; image ids 6·sequence + image; no pairs.

    Raises:
        FileNotFoundError: an image is missing.
        ValueError: two sequences of one name, or an image that cannot be decoded.
        OSError: the cache cannot be written.
    """
    refuse_equal_names(sequences)
    counts = np.array([sequence.count for sequence in sequences])
    spots = np.split(np.arange(counts.sum()), np.cumsum(counts)[:-1])
    images = [0, *(image for _ in LEVELS for image in range(1, IMAGES))]
    image_ids = [
        np.repeat(IMAGES * index + np.array(images), count) for index, count in enumerate(counts)
    ]
    patches = decoded(
        cache,
        name,
        [sequence.folder / f"{file}.png" for sequence in sequences for file in FILES],
        len(FILES) * int(counts.sum()),
        lambda: (as_64(sequence.patches(file)) for sequence in sequences for file in FILES),
    )
    point_ids = np.concatenate([np.tile(ids, len(FILES)) for ids in spots])
    return PatchSet(name, patches, point_ids, np.concatenate(image_ids), None)
