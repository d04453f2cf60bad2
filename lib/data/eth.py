"""The layout of ETH's structure from motion benchmark (Schönberger et al., CVPR 2017), read and written.

A scene's folder holds ``images`` and ``database.db``, a COLMAP database of any version with the
cameras and images. Where poses are known, ``sparse`` holds them as a COLMAP model, as South Building's
does, or ``cameras`` as Strecha's files (`lib.data.strecha`), as those of Fountain and Herzjesu are
published; such files stand in the place of a database that is not there. COLMAP has the first pixel's
centre at 0.5, 0.5.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import pycolmap

from lib.data.images import read_image
from lib.data.strecha import read_strecha_camera
from lib.data.synthetic.geometry import Camera
from lib.data.views import ROUNDING, View, checked_intrinsics, checked_pose
from lib.files import write_bytes

IMAGES, DATABASE, SPARSE, CAMERAS = "images", "database.db", "sparse", "cameras"
_OF_CAMERA = ".camera"
HALF_PIXEL = 0.5
_PINHOLE = pycolmap.CameraModelId.PINHOLE.value
_CAMERAS = (
    "SELECT name, camera_id, model, width, height, params, prior_focal_length"
    " FROM images JOIN cameras USING (camera_id) ORDER BY name"
)


@dataclass(frozen=True)
class Intrinsics:
    """A camera as COLMAP has it.

    Attributes:
        number: which camera of its scene; one may have taken several images.
        model: COLMAP's number of the camera model.
        width, height: px.
        params: of the model.
        known: whether its focal length is, or is to be found.
    """

    number: int
    model: int
    width: int
    height: int
    params: tuple[float, ...]
    known: bool


@dataclass(frozen=True)
class EthScene:
    """A scene of ETH's benchmark.

    Attributes:
        name: of its folder.
        images: by name.
        cameras: of each, by the same names.
        poses: known ones by the same names, or none of any.
    """

    name: str
    images: Mapping[str, Path]
    cameras: Mapping[str, Intrinsics]
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
        raise FileNotFoundError(
            f"{folder} holds no scene: each has {IMAGES} and {DATABASE}, or {IMAGES} and {CAMERAS}"
        )
    return EthScenes(name, tuple(_read_scene(path) for path in folders))


def _read_scene(folder: Path) -> EthScene:
    views, pinholes = _of_camera_files(folder) if (folder / CAMERAS).is_dir() else ({}, {})
    if not (folder / DATABASE).is_file():
        return EthScene(folder.name, {name: view.path for name, view in views.items()}, pinholes, views)
    images, cameras = _of_database(folder)
    if not views:
        return EthScene(folder.name, images, cameras, _poses(folder / SPARSE, images))
    if absent := sorted(images.keys() - views.keys()):
        raise ValueError(f"{folder / CAMERAS} has no pose of {absent[0]}: give poses of all images")
    return EthScene(folder.name, images, cameras, {name: views[name] for name in images})


def _of_camera_files(folder: Path) -> tuple[dict[str, View], dict[str, Intrinsics]]:
    """Poses and cameras by name, without distortion and of known focal length; images whose cameras are
    the same share one."""
    views: dict[str, View] = {}
    cameras: dict[str, Intrinsics] = {}
    numbers: dict[tuple, int] = {}
    for file in sorted((folder / CAMERAS).glob(f"*{_OF_CAMERA}")):
        path = folder / IMAGES / file.name.removesuffix(_OF_CAMERA)
        if not path.is_file():
            raise FileNotFoundError(f"{file} is of {path.name}, which is not in {folder / IMAGES}")
        size = read_image(path, header_only=True).size
        matrix, *pose, width, height = read_strecha_camera(file, size)
        if matrix[0, 1]:
            raise ValueError(f"{file} states a skew of {matrix[0, 1]:g}, for which COLMAP has no camera")
        lens = (width, height, (matrix[0, 0], matrix[1, 1], *(matrix[:2, 2] + HALF_PIXEL)))
        number = numbers.setdefault(lens, len(numbers) + 1)
        views[path.name] = View(path, matrix, *pose)
        cameras[path.name] = Intrinsics(number, _PINHOLE, *lens, known=True)
    if not views:
        raise FileNotFoundError(f"{folder / CAMERAS} holds no file *{_OF_CAMERA}")
    return views, cameras


def _of_database(folder: Path) -> tuple[dict[str, Path], dict[str, Intrinsics]]:
    """Images and cameras by name."""
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
    cameras = {
        name: Intrinsics(*facts, tuple(np.frombuffer(params)), bool(known))
        for name, *facts, params, known in rows
    }
    return images, cameras


def _poses(sparse: Path, images: Mapping[str, Path]) -> dict[str, View]:
    if not sparse.is_dir():
        return {}
    try:
        model = pycolmap.Reconstruction(sparse)
    except (ValueError, RuntimeError) as error:
        raise ValueError(f"{sparse} is no COLMAP model, or a damaged one ({error})") from error
    posed = {image.name: image for image in model.images.values() if image.has_pose}
    if absent := sorted(images.keys() - posed.keys()):
        raise ValueError(f"{sparse} has no pose of {absent[0]}: give poses of all images, or none")
    poses = {}
    for name, path in images.items():
        image, where = posed[name], f"{sparse}, image {name},"
        matrix = np.array(image.camera.calibration_matrix())
        matrix[:2, 2] -= HALF_PIXEL
        rigid = image.cam_from_world()
        # A matrix is made of any quaternion, of zeros the identity.
        if abs((length := rigid.rotation.norm()) - 1) > ROUNDING:
            raise ValueError(f"{where} holds a singular pose: its quaternion is {length:g} long, not 1")
        pose = checked_pose(where, rigid.rotation.matrix(), rigid.translation)
        poses[name] = View(path, checked_intrinsics(where, matrix), *pose)
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
    (folder / IMAGES).mkdir(parents=True)
    (folder / SPARSE).mkdir()
    lens = colmap_camera(cameras[0])
    model = pycolmap.Reconstruction()
    model.add_camera_with_trivial_rig(lens)
    with pycolmap.Database.open(folder / DATABASE) as database:
        database.write_camera(lens, use_camera_id=True)
        for number, (grey, camera) in enumerate(zip(images, cameras, strict=True), 1):
            image = pycolmap.Image(image_id=number, camera_id=lens.camera_id, name=f"{number:04}.png")
            write_bytes(folder / IMAGES / image.name, cv2.imencode(".png", grey)[1].tobytes())
            database.write_image(image, use_image_id=True)
            pose = pycolmap.Rigid3d(pycolmap.Rotation3d(camera.rotation), camera.translation)
            model.add_image_with_trivial_frame(image, pose)
    model.write_text(folder / SPARSE)


def colmap_camera(camera: Camera, number: int = 1) -> pycolmap.Camera:
    """COLMAP's camera of that number for a pinhole camera whose focal length is known."""
    matrix = camera.intrinsics
    params = [matrix[0, 0], matrix[1, 1], *(matrix[:2, 2] + HALF_PIXEL)]
    size = {"width": camera.width, "height": camera.height}
    made = pycolmap.Camera(camera_id=number, model="PINHOLE", params=params, **size)
    made.has_prior_focal_length = True
    return made
