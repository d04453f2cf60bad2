"""What the sets of a committed reference contain: the list by which its records open without pixels.

One JSON file beside the records. "sets" has, by name, the half of a set's digest that tells its content;
"photographs" the names and hashes of those that generated sets are made of, by what they serve; "places"
what the scenes are for, where the sets are of scenes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from lib.data.scenes.places import Places
from lib.data.synthetic.photographs import Photograph
from lib.files import write_bytes


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
        roles = {role: tuple(names) for role, names in held["places"].items() if role != "scenes"}
        scenes = {place: tuple(names) for place, names in held["places"].get("scenes", {}).items()}
        return Manifest(held["sets"], photographs, Places(scenes, **roles) if scenes else None)
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
