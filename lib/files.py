"""Files and folders that exist whole or not at all, made by one process and set aside if damaged."""

import contextlib
import errno
import hashlib
import json
import logging
import os
import re
import shutil
import signal
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numpy as np

CHECKSUMS = "checksums.json"
# Endings, in lower case, of the files that the readers of whole images take for photographs.
PHOTOGRAPHS = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".ppm", ".pgm", ".tif", ".tiff", ".webp"})
_REFUSAL = "cannot write"
# Letters of any language and a few signs: none of them means anything in HTML or in a path.
_NAME = re.compile(r"\w[\w .-]*")
# What pandas reads from a CSV as a missing value, of the texts that are names otherwise.
_MISSING = frozenset({"NA", "NULL", "NaN", "None", "nan", "null"})

log = logging.getLogger(__name__)


@contextlib.contextmanager
def explained_errors(path: Path) -> Iterator[None]:
    """Make the operating system's write errors say what cannot be written, and what to do.

    Raises:
        OSError: with the same number. Errors without a number, and missing files, are left as they are.
    """
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno is None or str(error.strerror).startswith(_REFUSAL):
            raise
        advice = f"{error.strerror}: give a folder that can be written, or change its permissions"
        if error.errno == errno.ENOSPC:
            advice = "the disk is full: make room and run again, what is done is kept"
        raise OSError(error.errno, f"{_REFUSAL} {path}: {advice}") from error


def check_room(path: Path, size: int) -> None:
    """Refuse to begin a file for which the disk has no room.

    HDF5 ends the whole process, without a word, if the disk fills up while it closes a file.

    Args:
        path: the file; its folder exists.
        size: bytes that it will take at most.

    Raises:
        OSError: with the number `errno.ENOSPC`; the message says what to do.
    """
    free = shutil.disk_usage(path.parent).free
    if free < size:
        room = f"it may take {size / 1e6:.3g} MB, {free / 1e6:.3g} MB are free"
        raise OSError(errno.ENOSPC, f"{_REFUSAL} {path}: {room}: make room and run again")


@contextlib.contextmanager
def ended_cleanly() -> Iterator[None]:
    """Make SIGTERM end the block as an exception does, unless SIGTERM already has a handler."""
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Provide a temporary path that replaces ``path`` when the block ends without an error.

    Args:
        path: the file to write; its folder is created.

    Yields:
        The temporary path, in the same folder. Whatever happens, no file is left there.

    Raises:
        OSError: the folder cannot be written or the disk is full; the message says what to do.
    """
    half = path.with_name(f"{path.stem}.{os.getpid()}.half{path.suffix}")
    with explained_errors(path), ended_cleanly():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            yield half
            os.replace(half, path)
        finally:
            # A folder that cannot be written holds no half file either.
            with contextlib.suppress(OSError):
                half.unlink(missing_ok=True)


def write_bytes(path: Path, content: bytes) -> None:
    """Write ``content`` to ``path``, whole or not at all.

    Raises:
        OSError: as `replacing` does.
    """
    with replacing(path) as half, open(half, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def set_aside(path: Path) -> Path:
    """Rename a damaged file or folder to ``….damaged``, over an earlier one, and return the new path."""
    aside = path.with_name(path.name + ".damaged")
    if aside.is_dir():
        shutil.rmtree(aside)
    aside.unlink(missing_ok=True)
    os.replace(path, aside)
    return aside


@contextlib.contextmanager
def locked(path: Path, wait: float = -1) -> Iterator[None]:
    """Hold a lock file between processes; its folder is created, and the file removed at the end.

    Args:
        path: the lock file.
        wait: seconds to wait for another process; -1 waits for ever.

    Raises:
        filelock.Timeout: another process still holds it.
        OSError: the folder cannot be written.
    """
    from filelock import FileLock

    with explained_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path, timeout=wait)
        lock.acquire()
    try:
        yield
    finally:
        # A process that waits for this file finds it unlinked, and its filelock then starts over.
        with contextlib.suppress(OSError):
            path.unlink()
        lock.release()


def check_name(name: str, where: object) -> None:
    """Refuse a name from outside that must not become part of a path or a page.

    Args:
        name: e.g. of a place.
        where: what the name comes from, for the message.

    Raises:
        ValueError: the name has other characters than letters, digits, spaces, ``.``, ``_`` and ``-``,
            or begins with one of ``.``, ``-`` and the space, or means a missing value in a table.
    """
    if name in _MISSING:
        raise ValueError(f"{where}: rename {name!r}: in a table it is read as a missing value")
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"{where}: rename {name!r}: a name has letters, digits, spaces, '.', '_' and '-', "
            "and begins with a letter, a digit or '_'"
        )


def state(path: Path) -> tuple[int, int, int]:
    """Return size, time of modification and time of change (ns), by which a replaced file is noticed.

    A file from an archive keeps its time of modification, but not the time at which it was put there.
    """
    status = path.stat()
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns


def sha256(path: Path) -> str:
    """SHA-256 of a file's bytes, 64 hexadecimal digits; read once per process until the file changes."""
    return _sha256(path, state(path))


def crc32(path: Path) -> int:
    """CRC-32 of a file's bytes; read once per process until the file changes.

    It takes a core of 2.5 GHz 0.7 s for 1 GB (SHA-256: 5 s).
    """
    return _crc32(path, state(path))


def digest(value: object, length: int) -> str:
    """Return the first `length` hexadecimal digits of the SHA-256 of a JSON-able value."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def make_once(
    folder: Path,
    name: str,
    make: Callable[[Path], None],
    is_sound: Callable[[Path], bool] = Path.is_dir,
) -> None:
    """Make a folder unless it exists; of several processes only one makes it.

    A half-made folder is removed however the making ends, SIGTERM included; after SIGKILL, the next
    process that makes it removes it.

    Args:
        folder: the folder to make; its parents are made too.
        name: name of the lock: in `folder`'s parent, one process at a time makes anything by this name.
        make: fills the empty folder that it is given.
        is_sound: whether an existing folder is good; otherwise it is set aside and made anew.

    Raises:
        OSError: the folder cannot be written.
    """
    if is_sound(folder):
        return
    part = folder.parent / f".{name}.part"
    with explained_errors(folder), locked(folder.parent / f".{name}.lock"), ended_cleanly():
        if is_sound(folder):
            return
        if folder.exists():
            set_aside(folder)
        shutil.rmtree(part, ignore_errors=True)
        try:
            part.mkdir()
            make(part)
            os.rename(part, folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)


def make_checked(folder: Path, name: str, make: Callable[[Path], None]) -> None:
    """Make a folder as `make_once` does, with a checksum of every file, which each process checks once.

    If a file is not as it was made, a warning says so, and the folder is set aside and made anew. The
    checksums are those of `crc32`. A folder may stay empty: that it was made says something was done.

    Raises:
        OSError: the folder cannot be written.
    """

    def make_with_checksums(part: Path) -> None:
        make(part)
        files = sorted(path for path in part.rglob("*") if path.is_file())
        sums = {path.relative_to(part).as_posix(): crc32(path) for path in files}
        (part / CHECKSUMS).write_text(json.dumps(sums) + "\n")

    make_once(folder, name, make_with_checksums, _is_as_made)


def _is_as_made(folder: Path) -> bool:
    if not folder.is_dir():
        return False
    try:
        sums = json.loads((folder / CHECKSUMS).read_bytes())
        # Subfolders may have been made separately, e.g. the decoded patches of a set.
        there = {path.name for path in folder.glob("[!.]*") if path.is_file()} - {CHECKSUMS}
        names = sorted(there | sums.keys())
        wrong = (name for name in names if sums.get(name) != crc32(folder / name))
        is_empty = all(path.name == CHECKSUMS for path in folder.iterdir())
        damaged = next(wrong, None if sums or is_empty else CHECKSUMS)
    except (FileNotFoundError, IsADirectoryError) as error:
        damaged = Path(error.filename).name
    except (ValueError, AttributeError):
        damaged = CHECKSUMS
    if damaged is not None:
        log.warning("%s is damaged: %s is set aside and made anew", folder / damaged, folder)
    return damaged is None


@cache
def _crc32(path: Path, state: tuple[int, int, int]) -> int:
    # An empty file cannot be mapped.
    return zlib.crc32(np.memmap(path, mode="r")) if state[0] else 0


@cache
def _sha256(path: Path, _state: tuple[int, int, int]) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def why_passed_over(name: str) -> str:
    """Say why readers of photographs pass over a file or folder of this name; "" if they do not.

    They pass over what is hidden, the thumbnails and metadata that network drives and archives put
    beside photographs, and a folder of masks, whose files are named as the photographs.
    """
    if name.startswith(".") or name in ("@eaDir", "__MACOSX"):
        return "is hidden or generated"
    if name.lower() == "masks":
        return "is a folder of masks by its name"
    return ""


def photograph_of_mask(name: str) -> str:
    """Return the name of the photograph that a file is a mask of by its own name, if there is such a
    photograph: COLMAP names the mask of a.jpg a.jpg.png. "" for a file with another ending."""
    path = Path(name)
    return path.stem if path.suffix.lower() == ".png" else ""
