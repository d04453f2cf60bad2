"""Records and probes: what a run leaves, read and written whole or not at all. No torch.

A record is one JSON file; its probes are one compressed array file each beside it.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from lib.files import write_bytes

LARGEST_PROBE = 200_000
_DIGESTS = ("training", "evaluation", "data")
_NEEDED = ("kind", "name", "config", "digests", "metrics")


class DamagedRecord(ValueError):
    """A file that should be a record and is not one."""


def read(path: Path) -> dict:
    """A record.

    Raises:
        FileNotFoundError: there is none.
        DamagedRecord: the file is not whole; the message names it.
    """
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise DamagedRecord(f"{path} is damaged: {error}") from error
    missing = [key for key in _NEEDED if not isinstance(record, dict) or key not in record]
    if not missing:
        missing = [f"digests.{key}" for key in _DIGESTS if key not in record["digests"]]
    if missing:
        raise DamagedRecord(f"{path} is damaged: it lacks {', '.join(missing)}")
    return record


def write(path: Path, record: Mapping) -> None:
    """Writes a record atomically, keys in the order given.

    Raises:
        ValueError: a number is not finite.
        OSError: the folder cannot be written or the disk is full; the message names the folder.
    """
    text = json.dumps(record, indent=1, allow_nan=False, ensure_ascii=False) + "\n"
    write_bytes(path, text.encode())


def write_probe(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Writes a probe atomically as a compressed ``.npz``.

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


def read_probe(path: Path) -> dict[str, np.ndarray]:
    """A probe's arrays.

    Raises:
        FileNotFoundError: there is none.
        DamagedRecord: the file is not whole.
    """
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return dict(arrays)
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise DamagedRecord(f"{path} is damaged: {error}") from error
