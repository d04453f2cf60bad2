"""Digests that identify what a set of patches or images contains. Makes no pixels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from lib import files
from lib.data.synthetic.photographs import Photograph

# Hexadecimal digits of a digest.
LENGTH = 8
# The version of the code that makes a kind of set, raised by hand when it makes other pixels or pairs. A
# set's digest contains it, so that sets are made again and what was trained on the old ones is left.
MAKERS = {
    "hpatches": 2,  # Regions as in the release, bilinear patches.
    "places": 2,  # FPR95 takes all pairs of different points; match files have as many of both kinds.
    "whole_images": 2,  # Ten photographs of a place for models and poses.
}


def of_photographs(photographs: Iterable[Photograph]) -> list[tuple[str, str]]:
    """Return the photographs' names and hashes."""
    return [(photograph.name, photograph.sha256) for photograph in photographs]


def of_files(folder: Path, read: Sequence[str], sized: Sequence[str] = ()) -> list[list]:
    """List a folder's files: those that match `read` with hashes, those that match `sized` with sizes.

    Both are `glob` patterns.

    Raises:
        FileNotFoundError: the folder is missing.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is missing: unpack it there")
    rows = []
    for patterns, state in ((read, files.sha256), (sized, lambda path: path.stat().st_size)):
        paths = sorted(p for pattern in patterns for p in folder.glob(pattern) if p.is_file())
        rows += [[path.relative_to(folder).as_posix(), state(path)] for path in paths]
    return rows


def digest(content: object, size: object = None, maker: str | None = None) -> str:
    """Return 8 hexadecimal digits that identify a set's content.

    Args:
        content: what the set is made of, JSON-able: names and hashes of files or photographs.
        size: a dataclass with the size of a generated set.
        maker: the one of `MAKERS` that made the set; None for files as they are.
    """
    value = {"content": content, "size": None if size is None else asdict(size)}
    if maker is not None:
        value["maker"] = [maker, MAKERS[maker]]
    return files.digest(value, LENGTH)


def union_digest(digests: Sequence[str]) -> str:
    """Return the digest of a set that `lib.data.patchset.unite` makes from sets with these digests."""
    return files.digest(list(digests), LENGTH)
