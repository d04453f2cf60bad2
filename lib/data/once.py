"""A folder of generated data that is there whole or not at all, also where several processes want it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path


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
    from filelock import FileLock

    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.parent / f".{name}.lock"):
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
