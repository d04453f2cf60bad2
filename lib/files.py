"""Files and folders that are there whole or not at all, made by one process, set aside when damaged."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path


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
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield half
        os.replace(half, path)
    except OSError as error:
        raise OSError(error.errno, f"{_advice(error)} ({path})") from error
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
    """Renames a damaged file to ``….damaged``, over an earlier one, and returns the new path."""
    aside = path.with_name(path.name + ".damaged")
    os.replace(path, aside)
    return aside


@contextlib.contextmanager
def locked(path: Path, wait: float = -1) -> Iterator[None]:
    """Holds a lock file among processes; its folder is made.

    Args:
        path: of the lock file.
        wait: seconds to wait for another process; -1 waits for ever.

    Raises:
        filelock.Timeout: another process still holds it.
        OSError: the folder cannot be written.
    """
    from filelock import FileLock

    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path, timeout=wait):
        yield


def sha256(path: Path) -> str:
    """SHA-256 of a file's bytes, 64 hexadecimal digits."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def make_once(folder: Path, name: str, make: Callable[[Path], None]) -> None:
    """Have a folder made unless it is there; of several processes one makes it.

    Args:
        folder: to be made; its parents are made too.
        name: of what is made; what another process of this name left half-made is removed.
        make: fills the empty folder that it is given.

    Raises:
        OSError: the folder cannot be written.
    """
    if folder.is_dir():
        return
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with locked(folder.parent / f".{name}.lock"):
            if folder.is_dir():
                return
            # Under the lock, what another process left half-made is nobody's.
            for left in folder.parent.glob(f".{name}-*.part"):
                shutil.rmtree(left)
            temporary = Path(tempfile.mkdtemp(prefix=f".{name}-", suffix=".part", dir=folder.parent))
            try:
                make(temporary)
                os.chmod(temporary, 0o755)
                os.rename(temporary, folder)
            except BaseException:
                shutil.rmtree(temporary, ignore_errors=True)
                raise
    except OSError as error:
        if error.errno is None or isinstance(error, FileNotFoundError):
            raise
        raise OSError(
            error.errno,
            f"cannot write generated data in {folder.parent}: {error.strerror}; free some space or "
            "give a folder that can be written",
        ) from error


def _advice(error: OSError) -> str:
    if error.errno == errno.ENOSPC:
        return "the disk is full: make room and run again, what is done is kept"
    if error.errno in (errno.EACCES, errno.EROFS, errno.EPERM):
        return "the folder cannot be written: give another one or change its permissions"
    return error.strerror or str(error)
