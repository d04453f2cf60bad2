"""What the sets of a committed reference contain: the list by which its records open without pixels.

One JSON file beside the records. "sets" has, by name, the half of a set's digest that tells its content;
"photographs" the names and hashes of those that generated sets are made of, by what they serve; "places"
what the scenes are for, where the sets are of scenes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from lib.data.scenes.places import Places
from lib.data.states import content_half
from lib.data.synthetic.photographs import Photograph
from lib.files import write_bytes

if TYPE_CHECKING:
    from lib.data.sources import Source


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


def write_manifest(path: Path, source: Source, names: Iterable[str]) -> None:
    """Write what a source's sets contain; sets that the manifest has already stay in it.

    Args:
        path: of the file.
        source: whose sets they are.
        names: of the sets.

    Raises:
        OSError: the file cannot be written.
    """
    known = read_manifest(path).sets if path.exists() else {}
    sets = {**known, **{name: content_half(source.digest(name)) for name in names}}
    photographs, places = {}, {}
    if source.name == "photos":
        for part, listed in source.allotment.items():
            photographs[part] = [{"name": p.name, "sha256": p.sha256} for p in listed]
    if source.scenes is not None:
        places = asdict(source.scenes.places)
    content = {"sets": dict(sorted(sets.items())), "photographs": photographs, "places": places}
    write_bytes(path, (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode())
