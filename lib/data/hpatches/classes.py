"""HPatches sequences (Balntas et al., CVPR 2017) as a set to train on: classes of 16 patches.

A class is a spot of a sequence: its patch in the reference image, and in the five other images at
easy, hard and tough jitter.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter, abc
from pathlib import Path

import numpy as np

from lib.data.hpatches.release import FILES, IMAGES, Sequence, as_64
from lib.data.patchset import PatchSet
from lib.files import replacing

SIDE = 64


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
    patches = _cached(sequences, Path(cache), name)
    return PatchSet(name, patches, np.concatenate(spots), np.concatenate(images), None)


def _image_of_file() -> np.ndarray:
    return np.array([0 if file == FILES[0] else int(file[1:]) for file in FILES])


def _cached(sequences: abc.Sequence[Sequence], cache: Path, name: str) -> np.ndarray:
    path = cache / f"{name}-{_stamp(sequences)}.npy"
    if not path.exists():
        lock = _lock(cache, name)
        try:
            if not path.exists():
                _decode(sequences, path)
                for old in cache.glob(f"{name}-{'[0-9a-f]' * 16}.npy"):
                    if old != path:
                        old.unlink()
        finally:
            lock.release()
    return np.load(path, mmap_mode="r")


def _stamp(sequences: abc.Sequence[Sequence]) -> str:
    facts = []
    for sequence in sequences:
        states = [(sequence.folder / f"{file}.png").stat() for file in FILES]
        sizes = [(state.st_size, state.st_mtime_ns) for state in states]
        facts.append((str(sequence.folder.resolve()), sequence.count, sizes))
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:16]


def _lock(cache: Path, name: str):
    from filelock import FileLock

    try:
        cache.mkdir(parents=True, exist_ok=True)
        lock = FileLock(cache / f".{name}.lock")
        lock.acquire()
    except OSError as error:
        raise OSError(
            error.errno,
            f"cannot cache decoded patches in {cache}: {error.strerror}: give a cache folder that can "
            "be written",
        ) from error
    return lock


def _decode(sequences: abc.Sequence[Sequence], path: Path) -> None:
    """Write the patches file by file; a plain file, since a full disk kills a mapped one's writer."""
    total = len(FILES) * sum(sequence.count for sequence in sequences)
    header = {"descr": "|u1", "fortran_order": False, "shape": (total, SIDE, SIDE)}
    with replacing(path) as half, half.open("wb") as out:
        np.lib.format.write_array_header_1_0(out, header)
        for sequence in sequences:
            for file in FILES:
                out.write(as_64(sequence.patches(file)).tobytes())
        out.flush()
        os.fsync(out.fileno())
