"""HPatches sequences (Balntas et al., CVPR 2017) as a set to train on: classes of 16 patches.

A class is a spot of a sequence: its patch in the reference image, and in the five other images at
easy, hard and tough jitter.
"""

from collections import Counter, abc
from pathlib import Path

import numpy as np

from lib.data.decoded import decoded
from lib.data.hpatches.release import FILES, IMAGES, Sequence, as_64
from lib.data.patchset import PatchSet


def read_classes(sequences: abc.Sequence[Sequence], cache: Path, name: str) -> PatchSet:
    """Read sequences as one set; the patches are decoded once and cached as one mapped array.

    Args:
        sequences: to train on; of ΣN patches in each of the 16 files.
        cache: folder for the decoded patches, made if missing; what it holds under this name is made
            anew when an image changes.
        name: of the set.

    Returns:
        patches (16·ΣN, 64, 64) uint8, read-only, in the order sequence, file, patch (`as_64` makes
        them from 65×65); point ids 0 to ΣN - 1, 16 patches each; image ids 6·sequence + image; no pairs.

    Raises:
        FileNotFoundError: an image is missing.
        ValueError: no sequences, one given twice, or an image that cannot be decoded.
        OSError: the cache cannot be written.
    """
    if not sequences:
        raise ValueError(f"{name}: no sequences to train on; give one or more")
    repeated, times = Counter(sequence.name for sequence in sequences).most_common(1)[0]
    if times > 1:
        raise ValueError(f"{name}: {repeated} is given {times} times; give each sequence once")
    starts = np.cumsum([0] + [sequence.count for sequence in sequences])
    spots = [
        np.tile(np.arange(start, start + sequence.count), len(FILES))
        for start, sequence in zip(starts[:-1].tolist(), sequences, strict=True)
    ]
    images = [
        np.repeat(IMAGES * s + _image_of_file(), sequence.count) for s, sequence in enumerate(sequences)
    ]
    patches = decoded(
        cache,
        name,
        [sequence.folder / f"{file}.png" for sequence in sequences for file in FILES],
        len(FILES) * int(starts[-1]),
        lambda: (as_64(sequence.patches(file)) for sequence in sequences for file in FILES),
    )
    return PatchSet(name, patches, np.concatenate(spots), np.concatenate(images), None)


def _image_of_file() -> np.ndarray:
    return np.array([0 if file == FILES[0] else int(file[1:]) for file in FILES])
