"""The layout of ETH's structure from motion benchmark (Schönberger et al., CVPR 2017), read and written.

A scene's folder holds ``images`` and ``database.db``, a COLMAP database of any version with the
cameras and images. Where poses are known, ``sparse`` holds them as a COLMAP model, as South Building's
does, or ``cameras`` as Strecha's files (`lib.data.strecha`), as those of Fountain and Herzjesu are
published; such files stand in the place of a database that is not there. COLMAP has the first pixel's
centre at 0.5, 0.5 (`lib.data.colmap`).
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pycolmap

from lib.data.colmap import DATABASE, HALF_PIXEL, posed_model, read_model, write_database
from lib.data.images import write_image
from lib.data.strecha import read_strecha_cameras
from lib.data.synthetic.geometry import Camera
from lib.data.views import ROUNDING, View, checked_intrinsics, checked_pose

IMAGES, SPARSE, CAMERAS = "images", "sparse", "cameras"
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
        FileNotFoundError: no scene, or the database names, or a camera file is of, an image that is not
            there.
        ValueError: the database or a camera file is damaged, or poses are missing of some images,
            singular or mirrored; the message names the file.
    """
    folders = sorted({path.parent for part in (DATABASE, CAMERAS) for path in folder.glob(f"*/{part}")})
    if not folders:
        raise FileNotFoundError(f"{folder} holds no scene: {IMAGES} with {DATABASE} or {CAMERAS}")
    return EthScenes(name, tuple(_read_scene(path) for path in folders))


def _read_scene(folder: Path) -> EthScene:
    files = sorted((folder / CAMERAS).glob("*.camera"))
    photographs = [folder / IMAGES / file.stem for file in files]
    known = read_strecha_cameras(photographs, folder / CAMERAS)
    poses = {
        name: View(folder / IMAGES / name, camera.intrinsics, camera.rotation, camera.translation)
        for name, camera in known.items()
    }
    if (folder / DATABASE).is_file():
        images, cameras = _read_database(folder)
        poses = poses or _read_poses(folder / SPARSE, images)
    else:
        images = {name: view.path for name, view in poses.items()}
        posed = posed_model(known).images.values()
        cameras = {image.name: deepcopy(image.camera) for image in posed}
    if poses and (absent := sorted(images.keys() - poses.keys())):
        raise ValueError(f"{folder} has no pose of {absent[0]}: give poses of all images, or of none")
    return EthScene(folder.name, images, cameras, {name: poses[name] for name in images if poses})


def _read_database(folder: Path) -> tuple[dict[str, Path], dict[str, pycolmap.Camera]]:
    """Images and cameras by name; pycolmap itself would bring an older database up to date."""
    database = folder / DATABASE
    try:
        with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
            rows = connection.execute(_CAMERAS).fetchall()
    except sqlite3.Error as error:
        raise ValueError(f"{database} is no COLMAP database ({error}): unpack it again") from error
    images = {name: folder / IMAGES / name for name, *_ in rows}
    if absent := [name for name, path in images.items() if not path.is_file()]:
        raise FileNotFoundError(f"{database} names {absent[0]}, which is not in {folder / IMAGES}")
    if not images:
        raise ValueError(f"{database} names no images: unpack it again")
    cameras = {}
    for name, number, model, width, height, params, is_known in rows:
        lens = {"model": pycolmap.CameraModelId(model), "params": np.frombuffer(params)}
        cameras[name] = pycolmap.Camera(camera_id=number, width=width, height=height, **lens)
        cameras[name].has_prior_focal_length = bool(is_known)
    return images, cameras


def _read_poses(sparse: Path, images: Mapping[str, Path]) -> dict[str, View]:
    """Poses by name of those images that the model has; none where there is no model."""
    if not sparse.is_dir():
        return {}
    poses = {}
    for image in read_model(sparse).images.values():
        if image.name not in images or not image.has_pose:
            continue
        name, rigid = f"{sparse}, image {image.name},", image.cam_from_world()
        matrix = np.array(image.camera.calibration_matrix())
        matrix[:2, 2] -= HALF_PIXEL
        # A matrix is made of any quaternion, of zeros the identity.
        if abs((length := rigid.rotation.norm()) - 1) > ROUNDING:
            raise ValueError(f"{name} holds a singular pose: its quaternion is {length:g} long, not 1")
        pose = checked_pose(name, rigid.rotation.matrix(), rigid.translation)
        poses[image.name] = View(images[image.name], checked_intrinsics(name, matrix), *pose)
    if not poses:
        raise ValueError(f"{sparse} has no pose of any image: give poses of all, or of none")
    return poses


def write_scene(folder: Path, images: Iterable[np.ndarray], cameras: Sequence[Camera]) -> None:
    """Write a scene that one camera took: images, its intrinsics as known, and poses.

    Args:
        folder: of the scene, made here.
        images: (height, width) uint8, one for each pose.
        cameras: poses, with the same intrinsics.

    Raises:
        OSError: the folder cannot be written.
    """
    (folder / SPARSE).mkdir(parents=True)
    model = posed_model({f"{number:04}.png": camera for number, camera in enumerate(cameras, 1)})
    for number, grey in enumerate(images, 1):
        write_image(folder / IMAGES / model.image(number).name, grey)
    write_database(folder / DATABASE, model)
    model.write_text(folder / SPARSE)
