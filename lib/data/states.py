"""What tells one state of a set's data from another: code, sizes and files. Makes no pixels."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from lib.data.synthetic.photographs import Photograph
from lib.digests import code_digest, value_digest
from lib.files import sha256

# Hex digits of content, and as many of code, in a set's digest.
HALF = 8


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


def digest(modules: Sequence[str], content: object, size: object = None) -> str:
    """16 hex digits that tell one state of a set's data from another, in two halves.

    Args:
        modules: the code that makes and reads it, by dotted names.
        content: what it is made of, JSON-able.
        size: a dataclass, of what is generated.

    Returns:
        8 digits of content and size (`content_half`), then 8 of the code (`code_half`).
    """
    made_of = {"content": content, "size": None if size is None else asdict(size)}
    return value_digest(made_of)[:HALF] + code_digest(modules)[:HALF]


def union_digest(modules: Sequence[str], digests: Sequence[str]) -> str:
    """16 hex digits, as of `digest`, of a set that consists of others."""
    content = value_digest([content_half(part) for part in digests])
    code = value_digest([code_digest(modules), *(code_half(part) for part in digests)])
    return content[:HALF] + code[:HALF]


def content_half(digest: str) -> str:
    """8 hex digits of what a set holds or is made of; other photographs or files, other digits."""
    return digest[:HALF]


def code_half(digest: str) -> str:
    """8 hex digits of the code that makes and reads a set."""
    return digest[HALF:]
