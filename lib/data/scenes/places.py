"""Scenes of multi-view photographs: their folders, and what each place is for.

A scene is a folder with ``images`` and, where its geometry is known, a COLMAP model in ``sparse`` or
poses in ``cameras``. ``scenes.json`` beside the scenes says which show one place, and what for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

PLACES = "scenes.json"
IMAGES, SPARSE, CAMERAS = "images", "sparse", "cameras"
ROLES = ("train_and_test", "test", "reserve")
# Two views give pairs, but no third view by which a wrong point shows.
FEWEST_IMAGES = 3
_ENDINGS = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".ppm", ".pgm", ".tif", ".tiff", ".webp"})


@dataclass(frozen=True)
class Places:
    """What the scenes of a folder are for.

    Attributes:
        scenes: of each place, the names of its scenes.
        train_and_test: places, whose networks are tested on the others.
        test: places on which nobody trains.
        reserve: places for searches, which no table shows.
    """

    scenes: Mapping[str, tuple[str, ...]]
    train_and_test: tuple[str, ...]
    test: tuple[str, ...]
    reserve: tuple[str, ...]


def read_places(folder: Path) -> Places:
    """Read ``scenes.json``; without it every scene is a place of its own that trains and tests.

    The file maps places to lists of their scenes under "places", and lists places under each of `ROLES`.

    Raises:
        FileNotFoundError: the folder, a scene or its images are missing.
        ValueError: the file is damaged, a place has no role or two, or no scene, a scene is named twice
            or has too few images, or no place is to train on.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is no folder: give one with a folder of images a scene")
    file = folder / PLACES
    names = sorted(path.parent.name for path in folder.glob(f"*/{IMAGES}"))
    held: dict = {"places": {name: [name] for name in names}, "train_and_test": names}
    try:
        if file.is_file():
            held = json.loads(file.read_text(encoding="utf-8"))
        scenes = {place: tuple(names) for place, names in held["places"].items()}
        roles = [tuple(held.get(role, ())) for role in ROLES]
        named = [folder / scene for scene in chain(*scenes.values())]
        if len(set(named)) < len(named) or not all(scenes.values()):
            raise ValueError("each place has a scene or more, and no scene is named twice")
        if not roles[0] or sorted(scenes) != sorted(chain(*roles)):
            raise ValueError("each place has one role, and one or more train")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{file if file.is_file() else folder}: {error!r}") from error
    for scene in named:
        image_files(scene)
    return Places(scenes, *roles)


def image_files(scene: Path) -> list[Path]:
    """A scene's images, by name.

    Raises:
        FileNotFoundError: it has no folder of images.
        ValueError: it has fewer than three, or folders in it.
    """
    if not (scene / IMAGES).is_dir():
        raise FileNotFoundError(f"{scene / IMAGES} is missing: a scene's photographs lie there")
    inside = [path for path in (scene / IMAGES).iterdir() if not path.name.startswith(".")]
    if folders := [path for path in inside if path.is_dir()]:
        raise ValueError(f"{folders[0]} is a folder: put a scene's photographs into {IMAGES} itself")
    files = sorted(path for path in inside if path.suffix.lower() in _ENDINGS)
    if len(files) < FEWEST_IMAGES:
        raise ValueError(f"{scene / IMAGES} has {len(files)} images: give {FEWEST_IMAGES} or more")
    return files
