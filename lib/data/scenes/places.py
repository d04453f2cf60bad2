"""Scenes of multi-view photographs: their folders, and what each place is for.

A scene is a folder with ``images`` and, where its geometry is known, a COLMAP model in ``sparse`` or
poses in ``cameras``. ``scenes.json`` beside the scenes says which show one place, and what for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

PLACES = "scenes.json"
IMAGES, SPARSE, CAMERAS = "images", "sparse", "cameras"
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

    Raises:
        FileNotFoundError: the folder, a scene or its images are missing.
        ValueError: the file is damaged, a place has no role or two, or no scene, a scene is named twice
            or has too few images.
    """
    file = folder / PLACES
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is no folder: give one with a folder of images a scene")
    if file.is_file():
        try:
            held = json.loads(file.read_text(encoding="utf-8"))
            scenes = {place: tuple(names) for place, names in held["places"].items()}
            roles = [tuple(held.get(role, ())) for role in ("train_and_test", "test", "reserve")]
            if not all(isinstance(name, str) for names in (*scenes.values(), *roles) for name in names):
                raise TypeError("a name is no text")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(
                f"{file} is damaged ({error}): it maps places to lists of scenes under 'places', and "
                "lists places under 'train_and_test', 'test' and 'reserve'"
            ) from error
    else:
        names = sorted(path.parent.name for path in folder.glob(f"*/{IMAGES}"))
        scenes, roles = {name: (name,) for name in names}, [tuple(names), (), ()]
    places = Places(scenes, *roles)
    if sorted(scenes) != sorted(place for role in roles for place in role):
        raise ValueError(f"{file}: each place has one role; places are {', '.join(sorted(scenes))}")
    if not places.train_and_test:
        raise ValueError(f"{file if file.is_file() else folder} names no place to train on")
    named = [scene for names in scenes.values() for scene in names]
    if len(set(named)) < len(named) or not all(scenes.values()):
        raise ValueError(f"{file}: each place has a scene or more, and no scene is named twice")
    for name in named:
        image_files(folder / name)
    return places


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
