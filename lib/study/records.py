"""Read and write the records and probes of runs, whole or not at all. No torch.

A record is one JSON file; each of its probes is a compressed array file beside it. A record ends with a
digest of its content and contains a hash of each file beside it, so that any later change to one of them
is detected on reading.
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
    """A record, or a file beside one, that is not what was written."""


def read(path: Path) -> dict:
    """Read a record.

    Raises:
        FileNotFoundError: there is none.
        DamagedRecord: the file does not contain what was written; the message names it.
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
    """Write a record atomically, one line per key in the order given, with the seal last.

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
    """Write a probe atomically as a compressed ``.npz``, and return its SHA-256.

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
    """Read a probe's arrays.

    Args:
        path: of the probe.
        expected: its SHA-256, from its record.

    Raises:
        FileNotFoundError: there is none.
        DamagedRecord: the file does not contain what was written; the message names it.
    """
    with np.load(io.BytesIO(read_checked(path, expected)), allow_pickle=False) as arrays:
        return dict(arrays)


def read_checked(path: Path, expected: str) -> bytes:
    """Read a file beside a record after checking that its SHA-256 is the one in the record.

    Raises:
        FileNotFoundError, DamagedRecord: as for `read_probe`.
    """
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != expected:
        raise DamagedRecord(f"{path} is damaged: it does not hold what was written")
    return content


def is_whole(path: Path, expected: str | None) -> bool:
    """Return whether a file beside a record exists and is as it was written."""
    return path.is_file() and sha256(path) == expected


@cache
def libraries() -> dict[str, str]:
    """Return the versions of the installed libraries that numbers depend on, by name."""
    return {d.name: d.version for d in metadata.distributions() if d.name in LIBRARIES}
