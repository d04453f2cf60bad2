"""Records and probes: what a run leaves, read and written whole or not at all. No torch.

A record is one JSON file; its probes are one compressed array file each beside it. A record ends with
a digest of all that it holds, and holds a hash of each file beside it, so that whatever has happened
to one of them since it was written is found out when it is read.
"""

import hashlib
import io
import json
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from pathlib import Path

import numpy as np

from lib.digests import value_digest
from lib.files import sha256, write_bytes

LARGEST_PROBE = 200_000
LIBRARIES = (
    *("torch", "numpy", "kornia", "opencv-python-headless", "scikit-image", "scikit-learn"),
    *("pycolmap", "pydegensac", "faiss-cpu"),
)
_SEAL = "seal"


class DamagedRecord(ValueError):
    """A file that should be a record, or one beside a record, and is not what was written."""


def read(path: Path) -> dict:
    """A record.

    Raises:
        FileNotFoundError: there is none.
        DamagedRecord: the file does not hold what was written; the message names it.
    """
    try:
        record = json.loads(path.read_bytes())
        sealed = isinstance(record, dict) and record.pop(_SEAL, None) == value_digest(record)
    except (ValueError, RecursionError, IsADirectoryError) as error:
        raise DamagedRecord(f"{path} is damaged: {error}") from error
    if not (sealed and {"kind", "name", "config", "digests", "metrics"} <= record.keys()):
        raise DamagedRecord(f"{path} is damaged: it does not hold what was written")
    return record


def write(path: Path, record: Mapping) -> None:
    """Writes a record atomically, a line a key in the order given and the seal last.

    Raises:
        ValueError: a number is not finite.
        OSError: the folder cannot be written or the disk is full; the message names the folder.
    """
    plain = json.loads(json.dumps(record, allow_nan=False))
    sealed = {**plain, _SEAL: value_digest(plain)}
    lines = (
        json.dumps({key: value}, ensure_ascii=False, separators=(",", ":"))[1:-1]
        for key, value in sealed.items()
    )
    write_bytes(path, ("{\n" + ",\n".join(lines) + "\n}\n").encode())


def write_probe(path: Path, arrays: Mapping[str, np.ndarray]) -> str:
    """Writes a probe atomically as a compressed ``.npz``, and returns its SHA-256.

    Raises:
        ValueError: it takes more than 200 kB.
        OSError: as for `write`.
    """
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    content = buffer.getvalue()
    if len(content) > LARGEST_PROBE:
        raise ValueError(f"{path}: a probe of {len(content):,} bytes; bin it to {LARGEST_PROBE:,}")
    write_bytes(path, content)
    return hashlib.sha256(content).hexdigest()


def read_probe(path: Path, expected: str) -> dict[str, np.ndarray]:
    """A probe's arrays.

    Args:
        path: of the probe.
        expected: its SHA-256, from its record.

    Raises:
        FileNotFoundError: there is none.
        DamagedRecord: the file does not hold what was written; the message names it.
    """
    with np.load(io.BytesIO(read_checked(path, expected)), allow_pickle=False) as arrays:
        return dict(arrays)


def read_checked(path: Path, expected: str) -> bytes:
    """What a file beside a record holds, once its SHA-256 is found to be the one in the record.

    Raises:
        FileNotFoundError, DamagedRecord: as for `read_probe`.
    """
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != expected:
        raise DamagedRecord(f"{path} is damaged: it does not hold what was written")
    return content


def is_whole(path: Path, expected: str | None) -> bool:
    """Whether a file beside a record is there as it was written."""
    return path.is_file() and sha256(path) == expected


@cache
def libraries() -> dict[str, str]:
    """Versions of the libraries that numbers depend on, by name; of those that are installed."""
    return {d.name: d.version for d in metadata.distributions() if d.name in LIBRARIES}
