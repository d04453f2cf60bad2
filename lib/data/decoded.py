"""Patches decoded once into one array, which is mapped from the disk ever after."""

import hashlib
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from lib.files import make_checked

SIDE = 64
_ARRAY = "patches.npy"


def decoded(
    cache: Path,
    name: str,
    sources: Sequence[Path],
    count: int,
    blocks: Callable[[], Iterable[np.ndarray]],
) -> np.ndarray:
    """A set's patches, decoded where that has not been done since its files changed.

    Args:
        cache: folder, made if missing; gets one folder a set.
        name: of the set; what lies there of an earlier state of it is removed.
        sources: the files that the patches are in.
        count: patches in them.
        blocks: decodes them, in order: (m, 64, 64) uint8 each.

    Returns:
        (count, 64, 64) uint8, mapped and read-only, read against its checksum once a process.

    Raises:
        OSError: the cache cannot be written.
    """
    states = [(str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns) for path in sources]
    stamp = hashlib.sha256(repr((count, states)).encode()).hexdigest()[:16]

    def decode(folder: Path) -> None:
        # A plain file, since a full disk kills a mapped one's writer.
        with open(folder / _ARRAY, "wb") as file:
            header = {"descr": "|u1", "fortran_order": False, "shape": (count, SIDE, SIDE)}
            np.lib.format.write_array_header_1_0(file, header)
            for block in blocks():
                file.write(block.tobytes())
        for old in cache.glob(f"{name}-{'[0-9a-f]' * 16}"):
            shutil.rmtree(old)

    make_checked(cache / f"{name}-{stamp}", name, decode)
    return np.load(cache / f"{name}-{stamp}" / _ARRAY, mmap_mode="r")
