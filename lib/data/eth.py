"""The layout of ETH's structure from motion benchmark (Schönberger et al., CVPR 2017).

A scene's folder holds ``images`` and either of two: ``database.db``, a COLMAP database of any version
with the cameras and images, as the benchmark has it; or ``cameras``, Strecha's files
(`lib.data.strecha`), as those of Fountain and Herzjesu are published. Where there are both, the cameras
are the database's and the poses are the files'. COLMAP has the first pixel's centre at 0.5, 0.5
(`lib.data.colmap`).
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pycolmap

from lib.data.colmap import DATABASE, posed_model
from lib.data.strecha import read_strecha_cameras
from lib.data.views import View

IMAGES, CAMERAS = "images", "cameras"
_CAMERAS = (
    "SELECT name, camera_id, model, width, height, params, prior_focal_length"
    " FROM images JOIN cameras USING (camera_id) ORDER BY name"
)


@dataclass(frozen=True)
class EthScene:
    """A scene of ETH's benchmark.

    Attributes:
        name: of its folder.
        images: by name.
        cameras: COLMAP's by the same names; one may have taken several images. Those without a prior
            focal length have one that is to be found.
        poses: known ones by the same names, or none of any.
    """

    name: str
    images: Mapping[str, Path]
    cameras: Mapping[str, pycolmap.Camera]
    poses: Mapping[str, View]


@dataclass(frozen=True)
class EthScenes:
    """The scenes of a set, by name."""

    name: str
    scenes: tuple[EthScene, ...]


def read(name: str, folder: Path) -> EthScenes:
    """Open a folder of scenes.

    Raises:
        FileNotFoundError: no scene, or an image or a camera file among others is not there.
        ValueError: the database or a camera file is damaged; the message names the file.
    """
    folders = sorted({path.parent for part in (DATABASE, CAMERAS) for path in folder.glob(f"*/{part}")})
    if not folders:
        raise FileNotFoundError(f"{folder} holds no scene: {IMAGES} with {DATABASE} or {CAMERAS}")
    return EthScenes(name, tuple(map(_read_scene, folders)))


def _read_scene(folder: Path) -> EthScene:
    cameras = _read_database(folder / DATABASE) if (folder / DATABASE).is_file() else {}
    posed = sorted(file.stem for file in (folder / CAMERAS).glob("*.camera"))
    images = {name: folder / IMAGES / name for name in cameras or posed}
    known = read_strecha_cameras(images.values(), folder / CAMERAS) if posed else {}
    poses = {
        name: View(images[name], camera.intrinsics, camera.rotation, camera.translation)
        for name, camera in known.items()
    }
    if not cameras:
        model = posed_model(known)
        cameras = {image.name: deepcopy(image.camera) for image in model.images.values()}
    return EthScene(folder.name, images, cameras, poses)


def _read_database(database: Path) -> dict[str, pycolmap.Camera]:
    """Cameras by image; pycolmap itself would bring an older database up to date."""
    try:
        with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
            rows = connection.execute(_CAMERAS).fetchall()
    except sqlite3.Error as error:
        raise ValueError(f"{database} is no COLMAP database ({error}): unpack it again") from error
    cameras = {}
    for name, number, model, width, height, params, is_known in rows:
        lens = {"model": pycolmap.CameraModelId(model), "params": np.frombuffer(params)}
        cameras[name] = pycolmap.Camera(camera_id=number, width=width, height=height, **lens)
        cameras[name].has_prior_focal_length = bool(is_known)
    return cameras
