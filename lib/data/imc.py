"""The layout of the image matching challenge of 2020 (Jin et al., IJCV 2020).

A scene's folder holds ``set_100`` with ``images/NAME.jpg``, ``calibration/calibration_NAME.h5`` (K,
and R and T from the world to the camera), ``new-vis-pairs/keys-th-0.X.npy`` (the pairs whose two
photographs share at least that much, "NAME1-NAME2" with the greater name first) and
``sub_set/NNbag_III.txt`` (the photographs of a subset, a line each, below ``set_100``). Beside the
scenes' folders `KEYNET` may lie, which is not the challenge's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import h5py
import numpy as np

from lib.data.views import View, checked_intrinsics, checked_pose

SET = "set_100"
IMAGES, CALIBRATION, PAIRS, BAGS = "images", "calibration", "new-vis-pairs", "sub_set"
# A checkpoint of Key.Net, for who has one.
KEYNET = "keynet.pth"
# The challenge's own: pairs that share less are not asked for.
COVISIBLE = 0.1
LIST = f"keys-th-{COVISIBLE:.1f}.npy"


@dataclass(frozen=True)
class ChallengeScene:
    """A scene of the challenge.

    Attributes:
        name: of its folder.
        views: by their image's name without its ending.
        pairs: of these names, those with enough in common.
        bags: of these names, the subsets that are reconstructed.
    """

    name: str
    views: Mapping[str, View]
    pairs: tuple[tuple[str, str], ...]
    bags: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class ChallengeScenes:
    """The scenes of a set, by name.

    Attributes:
        name: of the set.
        scenes: by name.
        keynet: the checkpoint of Key.Net that lies beside them, or none.
    """

    name: str
    scenes: tuple[ChallengeScene, ...]
    keynet: Path | None = None


def read(name: str, folder: Path) -> ChallengeScenes:
    """Open a folder of scenes.

    Args:
        name: of the set.
        folder: with a folder a scene.

    Raises:
        FileNotFoundError: no scene.
        ValueError: a scene lacks a file or holds a damaged one, or a camera is singular or mirrored; the
            message names the scene.
    """
    folders = [path.parent for path in sorted(folder.glob(f"*/{SET}"))]
    if not folders:
        raise FileNotFoundError(f"{folder} holds no scene of the challenge: each has a folder {SET}")
    weights = folder / KEYNET
    scenes = tuple(map(_read_scene, folders))
    return ChallengeScenes(name, scenes, weights if weights.exists() else None)


def _read_scene(folder: Path) -> ChallengeScene:
    data = folder / SET
    try:
        images = sorted((data / IMAGES).glob("*.jpg"))
        views = {image.stem: _read_view(image, data / CALIBRATION) for image in images}
        pairs = tuple(tuple(key.split("-")) for key in np.load(data / PAIRS / LIST).tolist())
        files = sorted((data / BAGS).glob("*bag_*.txt"))
        lists = [file.read_text(encoding="utf-8").split() for file in files]
        bags = tuple(tuple(Path(line).stem for line in listed) for listed in lists)
        if not pairs or not bags or not views.keys() >= {*chain(*pairs, *bags)}:
            raise ValueError("pairs or subsets are missing, or of photographs that are not there")
    except (KeyError, OSError, ValueError) as error:
        raise ValueError(f"{data} lacks a file or holds a damaged one: {error}") from error
    return ChallengeScene(folder.name, views, pairs, bags)


def _read_view(image: Path, calibrations: Path) -> View:
    path = calibrations / f"calibration_{image.stem}.h5"
    with h5py.File(path) as file:
        intrinsics, rotation, translation = (file[name][()] for name in ("K", "R", "T"))
    return View(image, checked_intrinsics(path, intrinsics), *checked_pose(path, rotation, translation))
