"""Scenes of multi-view photographs: their folders, and the role of each place.

A scene is a folder with ``images`` and, if its geometry is known, a COLMAP model in ``sparse`` or poses
in ``cameras``. ``scenes.json`` next to the scenes says which scenes show the same place, and each
place's role. Scenes that share matches show the same place, whatever their names: a network tested on
what it was trained on would look better than it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, product
from pathlib import Path

import numpy as np

from lib.files import PHOTOGRAPHS, check_name, photograph_of_mask, why_passed_over

PLACES = "scenes.json"
# Verified matches between scenes, with a digest of their files.
SHARED = "shared.json"
IMAGES, SPARSE, CAMERAS = "images", "sparse", "cameras"
ROLES = ("train_and_test", "test", "reserve")
LIMITS = ("most_classes", "most_images", "most_keypoints")
# Two views give pairs, but only a third view reveals a wrong point.
FEWEST_IMAGES = 3
# Image size and features per image for matching scenes: enough to recognise a place, and so few that
# thousands of pairs take minutes.
LONGEST_SIDE, FEATURES = 1024, 1000
RATIO, PIXELS, TRIALS = 0.8, 2.0, 1000
# Two unrelated places share 10 to 14 matches; two scenes of one courtyard share 51 to 267.
MOST_SHARED = 30
# A fundamental matrix fits any seven matches.
_FEWEST_MATCHES = 8


@dataclass(frozen=True)
class Places:
    """The places that a folder's scenes show, and their roles.

    Attributes:
        scenes: place -> names of its scenes.
        train_and_test: places to train on; networks trained on one are tested on the others.
        test: places that are only tested on.
        reserve: places for searches, which no table shows.
        most_classes: of a place with more classes, so many are drawn once, so that networks are trained
            on equally many at each place; None takes all.
        most_images: of a scene, so many images are matched, the first by name; None matches all.
        most_keypoints: of a matched image, so many keypoints are taken, the strongest; None takes all.
    """

    scenes: Mapping[str, tuple[str, ...]]
    train_and_test: tuple[str, ...]
    test: tuple[str, ...]
    reserve: tuple[str, ...]
    most_classes: int | None = None
    most_images: int | None = None
    most_keypoints: int | None = None


def read_places(folder: Path) -> Places:
    """Read ``scenes.json``; without it, every scene is its own place, for training and testing.

    The file maps places to lists of their scenes under "places", and lists places under each of `ROLES`.
    It may have whole numbers under `LIMITS`.

    Raises:
        FileNotFoundError: the folder, a scene or its images are missing.
        ValueError: the file is damaged, or has a key that is none of these or repeats; a place has no
            scene, or not exactly one role; a scene is named twice or has too few images; no place is to
            train on; or a name is refused by `check_name`.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is no folder: give one with a folder of images a scene")
    file = folder / PLACES
    origin = file if file.is_file() else folder
    beside = (path.parent.name for path in folder.glob(f"*/{IMAGES}"))
    names = sorted(name for name in beside if not why_passed_over(name))
    held: dict = {"places": {name: [name] for name in names}, "train_and_test": names}
    try:
        if file.is_file():
            held = read_roles(file)
        # Whoever misspells a limit would get a set without it.
        known = ("places", *ROLES, *LIMITS)
        if unknown := [key for key in held if key not in known]:
            raise ValueError(f"there is no {unknown[0]!r}; there are: {', '.join(known)}")
        lists = [*held["places"].values(), *(held.get(role, []) for role in ROLES)]
        if text := next((names for names in lists if not isinstance(names, list)), None):
            raise ValueError(f"names stand in a list, [{json.dumps(text)}]")
        scenes = {place: tuple(names) for place, names in held["places"].items()}
        roles = [tuple(held.get(role, ())) for role in ROLES]
        named = [folder / scene for scene in chain(*scenes.values())]
        by_role = roles[0] and sorted(scenes) == sorted(chain(*roles))
        if not by_role or not all(scenes.values()) or len(set(named)) < len(named):
            raise ValueError("each place has one role and its own scenes, and one or more train")
        limits = {limit: held[limit] for limit in LIMITS if held.get(limit) is not None}
        for limit, most in limits.items():
            if type(most) is not int or most < 1:
                raise ValueError(f"{limit} is a whole number above 0, not {most!r}")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{origin}: {error!r}") from error
    # Places name the files of sets, scenes name folders, and the report shows both.
    for name in chain(scenes, *scenes.values()):
        check_name(name, origin)
    for scene in named:
        image_files(scene)
    return Places(scenes, *roles, **limits)


def read_roles(file: Path) -> dict:
    """Return what ``scenes.json`` holds, as it stands.

    Raises:
        ValueError: the file is no JSON in UTF-8, or a key repeats: JSON's reader would keep the last.
    """
    # With or without the mark that Windows' editors put first.
    text = file.read_text(encoding="utf-8-sig")
    return json.loads(text, object_pairs_hook=_named_once)


def _named_once(items: list[tuple[str, object]]) -> dict[str, object]:
    keys = [key for key, _ in items]
    if repeated := [key for key in keys if keys.count(key) > 1]:
        raise ValueError(f"{repeated[0]!r} is there twice: take one away")
    return dict(items)


def image_files(scene: Path) -> list[Path]:
    """Return a scene's image files, in order of names; masks of photographs are passed over.

    Raises:
        FileNotFoundError: the scene has no folder of images.
        ValueError: the folder has fewer than three images, two of one name, or contains folders.
    """
    if not (scene / IMAGES).is_dir():
        raise FileNotFoundError(f"{scene / IMAGES} is missing: a scene's photographs lie there")
    listed = {path.name: path for path in (scene / IMAGES).iterdir() if not why_passed_over(path.name)}
    inside = [path for name, path in listed.items() if photograph_of_mask(name) not in listed]
    if folders := [path for path in inside if path.is_dir()]:
        raise ValueError(f"{folders[0]} is a folder: put a scene's photographs into {IMAGES} itself")
    files = sorted(path for path in inside if path.suffix.lower() in PHOTOGRAPHS)
    # Sets of whole images are named without endings, and COLMAP's files with - for _.
    named: dict[str, Path] = {}
    for path in files:
        same = named.setdefault(path.stem.replace("-", "_"), path)
        if same != path:
            raise ValueError(
                f"{path} and {same.name} have one name but for endings, - and _: rename one"
            )
    if len(files) < FEWEST_IMAGES:
        raise ValueError(f"{scene / IMAGES} has {len(files)} images: give {FEWEST_IMAGES} or more")
    return files


def shared_matches(scenes: Mapping[str, Sequence[Path]]) -> list[tuple[str, str, int]]:
    """Return, for each two scenes, the most matches between an image of one and an image of the other.

    Only matches that a fundamental matrix verifies are counted.

    Args:
        scenes: image files by scene name.

    Raises:
        ValueError: as `read_grey`.
    """
    import cv2

    from lib.features.matches import match

    described = {name: list(map(_described, images)) for name, images in scenes.items()}
    counts = []
    for one, other in combinations(described, 2):
        most = 0
        for (positions, descriptors), (others, columns) in product(described[one], described[other]):
            matches = match(descriptors, columns, ratio=RATIO)
            if len(matches) > max(most, _FEWEST_MATCHES):
                cv2.setRNGSeed(0)
                ends = positions[matches.first], others[matches.second]
                _, inliers = cv2.findFundamentalMat(*ends, cv2.USAC_MAGSAC, PIXELS, 0.999, TRIALS)
                most = max(most, 0 if inliers is None else int(inliers.sum()))
        counts.append((one, other, most))
    return counts


def _described(image: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return (n, 2) positions and (n, 128) descriptors of a reduced image's strongest SIFT keypoints."""
    import cv2

    from lib.data.images import read_grey

    sift = cv2.SIFT_create(FEATURES, enable_precise_upscale=True)
    keypoints, descriptors = sift.detectAndCompute(read_grey(image, LONGEST_SIDE, "stored"), None)
    positions = np.array([keypoint.pt for keypoint in keypoints], np.float32).reshape(-1, 2)
    return positions, np.empty((0, 128), np.float32) if descriptors is None else descriptors
