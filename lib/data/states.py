"""What tells one state of a set's data from another: code, sizes and files. Makes no pixels.

What the sets of a committed reference contain is listed in one JSON file beside its records, by which
they open without pixels. "sets" has, by name, the half of a set's digest that tells its content;
"photographs" the names and hashes of those that generated sets are made of, by what they serve; "places"
what the scenes are for, where the sets are of scenes.
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
    rows = []
    for patterns, state in ((read, sha256), (sized, lambda path: path.stat().st_size)):
        files = sorted(p for pattern in patterns for p in folder.glob(pattern) if p.is_file())
        rows += [[path.relative_to(folder).as_posix(), state(path)] for path in files]
    return rows


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


def union_digest(digests: Sequence[str]) -> str:
    """16 hex digits, as of `digest`, of a set that `lib.data.patchset.unite` makes of others."""
    content = value_digest([content_half(part) for part in digests])
    code = value_digest([code_digest(["lib.data.patchset"]), *(code_half(part) for part in digests)])
    return content[:HALF] + code[:HALF]


def content_half(digest: str) -> str:
    """8 hex digits of what a set holds or is made of; other photographs or files, other digits."""
    return digest[:HALF]


def code_half(digest: str) -> str:
    """8 hex digits of the code that makes and reads a set."""
    return digest[HALF:]


@dataclass(frozen=True)
class Manifest:
    """A reference's sets.

    Attributes:
        sets: by name, 8 hex digits of the content.
        photographs: without files, by what they serve; none but of generated sets.
        places: what scenes are for; None where the sets are of none.
    """

    sets: Mapping[str, str] = field(default_factory=dict)
    photographs: Mapping[str, tuple[Photograph, ...]] = field(default_factory=dict)
    places: Places | None = None


def read_manifest(path: Path) -> Manifest:
    """The manifest that `write_manifest` wrote.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is no such file.
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
    """Write a manifest; sets that the file lists already stay in it.

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
