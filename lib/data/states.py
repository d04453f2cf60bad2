"""Digests that identify what a set of patches or images contains. Makes no pixels."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from lib import files
from lib.data.synthetic.photographs import Photograph

# Hexadecimal digits of a digest.
LENGTH = 8
# Endings, in lower case, of images that are mostly not compressed: a size in px has one size in bytes.
UNCOMPRESSED = frozenset({".bmp", ".pgm", ".ppm", ".tif", ".tiff"})
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

    Both are `glob` patterns. `UNCOMPRESSED` images have their CRC-32 too, since others of their size in
    px have their size in bytes.

    Raises:
        FileNotFoundError: the folder is missing.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is missing: unpack it there")
    rows = []
    for patterns, told in ((read, lambda path: [files.sha256(path)]), (sized, _size)):
        paths = sorted(p for pattern in patterns for p in folder.glob(pattern) if p.is_file())
        rows += [[path.relative_to(folder).as_posix(), *told(path)] for path in paths]
    return rows


def _size(path: Path) -> list[int]:
    size = path.stat().st_size
    return [size, files.crc32(path)] if path.suffix.lower() in UNCOMPRESSED else [size]


def remember(paths: Iterable[Path], record: Path) -> None:
    """Write the states and CRC-32 of a folder's files to `record`, for `replaced`."""
    seen = {path.name: [*files.state(path), files.crc32(path)] for path in paths}
    record.write_text(json.dumps(seen) + "\n")


def replaced(folder: Path, record: Path) -> list[Path]:
    """Return a folder's files whose content is no longer what it was for `remember`.

    A file is read only if its size, its time of modification or its time of change is another. Without a
    record, none are known.
    """
    seen: dict = {}
    # A damaged record lies in a damaged folder, which is made anew before anything is read from it.
    with suppress(FileNotFoundError, ValueError):
        seen = json.loads(record.read_text())
    known = {folder / name: (state, crc) for name, (*state, crc) in seen.items()}
    changed = [path for path, (state, _) in known.items() if [*files.state(path)] != state]
    return [path for path in changed if files.crc32(path) != known[path][1]]


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
