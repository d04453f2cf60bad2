"""Digests that identify the state of a set's data by code, sizes and files. Makes no pixels.

A manifest is one JSON file next to the records of a committed reference. It lists what the reference's
sets contain, so that the records open without pixels. "sets" maps each set's name to the content half of
its digest. "photographs" has the names and hashes of the photographs that generated sets are made from,
by the part that they serve. "places" has the roles of the places, if the sets are of scenes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from lib.data.scenes.places import ROLES, Places
from lib.data.synthetic.photographs import Photograph
from lib.digests import code_digest, value_digest
from lib.files import sha256, write_bytes

# Hex digits for content, and as many for code, in a set's digest.
HALF = 8


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
    for patterns, state in ((read, sha256), (sized, lambda path: path.stat().st_size)):
        files = sorted(p for pattern in patterns for p in folder.glob(pattern) if p.is_file())
        rows += [[path.relative_to(folder).as_posix(), state(path)] for path in files]
    return rows


def digest(modules: Sequence[str], content: object, size: object = None) -> str:
    """Return 16 hex digits, in two halves, that identify the state of a set's data.

    Args:
        modules: dotted names of the modules that make and read the set.
        content: what the set is made of, JSON-able.
        size: a dataclass with the size of a generated set.

    Returns:
        8 digits of content and size (`content_half`), then 8 of the code (`code_half`).
    """
    made_of = {"content": content, "size": None if size is None else asdict(size)}
    return value_digest(made_of)[:HALF] + code_digest(modules)[:HALF]


def union_digest(digests: Sequence[str]) -> str:
    """Return the 16 hex digits, as of `digest`, of a set that `lib.data.patchset.unite` makes."""
    content = value_digest([content_half(part) for part in digests])
    code = value_digest([code_digest(["lib.data.patchset"]), *(code_half(part) for part in digests)])
    return content[:HALF] + code[:HALF]


def content_half(digest: str) -> str:
    """Return the 8 hex digits that identify what a set is made of and its size, or its files."""
    return digest[:HALF]


def code_half(digest: str) -> str:
    """Return the 8 hex digits that identify the code that makes and reads a set."""
    return digest[HALF:]


@dataclass(frozen=True)
class Manifest:
    """What a reference's sets contain.

    Attributes:
        sets: set name -> 8 hex digits of the content.
        photographs: photographs of generated sets, without files, by the part that they serve.
        places: the roles of the places; None if the sets are not of scenes.
    """

    sets: Mapping[str, str] = field(default_factory=dict)
    photographs: Mapping[str, tuple[Photograph, ...]] = field(default_factory=dict)
    places: Places | None = None


def read_manifest(path: Path) -> Manifest:
    """Read a manifest that `write_manifest` wrote.

    Raises:
        FileNotFoundError: the file is missing.
        ValueError: the file is not a manifest.
    """
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
        photographs = {
            part: tuple(Photograph(p["name"], None, "as its owner states", p["sha256"]) for p in listed)
            for part, listed in held["photographs"].items()
        }
        places = None
        if listed := held["places"]:
            scenes = {place: tuple(names) for place, names in listed["scenes"].items()}
            places = Places(scenes, *(tuple(listed[role]) for role in ROLES))
        return Manifest(held["sets"], photographs, places)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"{path} is no manifest of a reference ({error!r}): bring it back") from error


def write_manifest(path: Path, manifest: Manifest) -> None:
    """Write a manifest, keeping the sets that the file already lists.

    Raises:
        OSError: the file cannot be written.
    """
    known = read_manifest(path).sets if path.exists() else {}
    photographs = {
        part: [{"name": photograph.name, "sha256": photograph.sha256} for photograph in listed]
        for part, listed in manifest.photographs.items()
    }
    content = {
        "sets": dict(sorted({**known, **manifest.sets}.items())),
        "photographs": photographs,
        "places": asdict(manifest.places) if manifest.places else {},
    }
    write_bytes(path, (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode())
