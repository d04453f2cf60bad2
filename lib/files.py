"""Files and folders that are there whole or not at all, made by one process, set aside when damaged."""

import contextlib
import errno
import hashlib
import json
import logging
import os
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
_REFUSAL = "cannot write"

log = logging.getLogger(__name__)


@contextlib.contextmanager
def explained_errors(path: Path) -> Iterator[None]:
    """Have the operating system's refusals to write say what cannot be written, and what to do.

    Raises:
        OSError: of the same number; what says no number, or that a file is missing, is left as it is.
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


@contextlib.contextmanager
def ended_cleanly() -> Iterator[None]:
    """While the block runs, SIGTERM ends it as an exception does, unless somebody else handles it."""
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
    """A temporary path beside ``path`` that takes its place when the block ends well.

    Args:
        path: the file to write; its folder is made.

    Yields:
        where to write. Whatever happens, nothing is left there.

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
    """Writes ``content`` to ``path``, whole or not at all.

    Raises:
        OSError: as `replacing` does.
    """
    with replacing(path) as half, open(half, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def set_aside(path: Path) -> Path:
    """Renames a damaged file or folder to ``….damaged``, over an earlier one; returns the new path."""
    aside = path.with_name(path.name + ".damaged")
    if aside.is_dir():
        shutil.rmtree(aside)
    aside.unlink(missing_ok=True)
    os.replace(path, aside)
    return aside


@contextlib.contextmanager
def locked(path: Path, wait: float = -1) -> Iterator[None]:
    """Holds a lock file among processes; its folder is made, the file goes when the block ends.

    Args:
        path: of the lock file.
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
        # Whoever waits on this very file finds it without a name, and filelock then starts over.
        with contextlib.suppress(OSError):
            path.unlink()
        lock.release()


def sha256(path: Path) -> str:
    """SHA-256 of a file's bytes, 64 hexadecimal digits; read once a process until the file changes."""
    state = path.stat()
    return _sha256(path, state.st_size, state.st_mtime_ns)


def make_once(
    folder: Path,
    name: str,
    make: Callable[[Path], None],
    is_sound: Callable[[Path], bool] = Path.is_dir,
) -> None:
    """Have a folder made unless it is there; of several processes one makes it.

    Whatever ends the making, SIGTERM included, what is half-made is removed; after SIGKILL, by whoever
    makes it next.

    Args:
        folder: to be made; its parents are made too.
        name: of what is made, for which one process at a time makes anything in `folder`'s parent.
        make: fills the empty folder that it is given.
        is_sound: whether what is there will do; otherwise it is set aside and made anew.

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
    """As `make_once`, with a checksum of every file beside them, against which they are read once.

    A folder with a file that is not as it was made is set aside and made anew, which a warning says. A
    checksum is the file's CRC-32, at 1.5 GB/s on one core of 2.5 GHz (SHA-256: 0.2); a process reads a
    file for it once and again only when its size or time of change is another.

    Raises:
        OSError: the folder cannot be written.
    """

    def make_with_checksums(part: Path) -> None:
        make(part)
        files = sorted(path for path in part.rglob("*") if path.is_file())
        sums = {path.relative_to(part).as_posix(): _checksum(path) for path in files}
        (part / CHECKSUMS).write_text(json.dumps(sums) + "\n")

    make_once(folder, name, make_with_checksums, _is_as_made)


def _is_as_made(folder: Path) -> bool:
    if not folder.is_dir():
        return False
    try:
        sums = json.loads((folder / CHECKSUMS).read_bytes())
        # Folders inside may be of another making, e.g. the patches of a set, decoded.
        there = {path.name for path in folder.glob("[!.]*") if path.is_file()} - {CHECKSUMS}
        names = sorted(there | sums.keys())
        wrong = (name for name in names if sums.get(name) != _checksum(folder / name))
        damaged = next(wrong, None if sums else CHECKSUMS)
    except (FileNotFoundError, IsADirectoryError) as error:
        damaged = Path(error.filename).name
    except (ValueError, AttributeError):
        damaged = CHECKSUMS
    if damaged is not None:
        log.warning("%s is damaged: %s is set aside and made anew", folder / damaged, folder)
    return damaged is None


def _checksum(path: Path) -> int:
    state = path.stat()
    return _crc32(path, state.st_size, state.st_mtime_ns)


@cache
def _crc32(path: Path, size: int, _changed: int) -> int:
    return zlib.crc32(np.memmap(path)) if size else 0


@cache
def _sha256(path: Path, _size: int, _changed: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
