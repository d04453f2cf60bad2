"""What tells one state of a set's data from another: code, sizes and files. Makes no pixels."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path

from lib.data.synthetic.photographs import Photograph
from lib.digests import code_digest, value_digest
from lib.files import sha256


def of_photographs(photographs: Iterable[Photograph]) -> list[tuple[str, str]]:
    """Names and hashes."""
    return [(photograph.name, photograph.sha256) for photograph in photographs]


def of_files(folder: Path, read: Sequence[str], sized: Sequence[str] = ()) -> list[list]:
    """Names of a folder's files with their hashes, or with their sizes alone, by patterns as of `glob`.

    Raises:
        FileNotFoundError: the folder is missing.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is missing: unpack it there")

    def found(patterns: Sequence[str]) -> list[Path]:
        return sorted(p for pattern in patterns for p in folder.glob(pattern) if p.is_file())

    hashes = [[path.relative_to(folder).as_posix(), sha256(path)] for path in found(read)]
    return hashes + [[p.relative_to(folder).as_posix(), p.stat().st_size] for p in found(sized)]


def digest(modules: Sequence[str], made_of: object, size: object = None) -> str:
    """16 hex digits of the code that makes and reads a set, of what it is made of and of its size."""
    code = _code(tuple(modules))
    return value_digest({"code": code, "of": made_of, "size": None if size is None else asdict(size)})


@cache
def _code(modules: tuple[str, ...]) -> str:
    return code_digest(modules)
