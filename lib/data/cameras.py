"""Pinhole cameras of photographs, checked when read, and the camera files of Strecha et al. (CVPR 2008).

These files hold the true poses of fountain-P11, Herz-Jesus-P8 and others. ``IMAGE.camera`` holds K in
three rows, three zeros (radial distortion), the rotation from camera to world in three rows, the
camera's centre, and the width and height of the image that K applies to.

K puts the first pixel's centre at 0.5, 0.5, although no file says so. With the files' poses, the
reprojection error of points seen in four or more photographs is lower for this convention than for a
centre at 0, 0: root mean square 0.618 against 0.623 px in fountain-P11, and 0.625 against 0.627 px in
Herz-Jesus-P8.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lib.data.images import read_image
from lib.files import write_bytes

_HALF_PIXEL = 0.5
# Largest deviation of a rotation times its transpose from the identity, since files hold few digits.
_ROTATION_ROUNDING = 1e-3
# Px by which a resized image's height may differ from the stated height, scaled like the width.
_SIZE_ROUNDING = 1.0
# Largest distance of a principal point from the middle, in widths or heights of the image. Lenses' are
# within a twentieth; that of a portrait of 3 to 4 is a sixth off in a landscape, that of half the size a
# quarter.
_OFF_CENTRE = 0.1


@dataclass(frozen=True)
class Camera:
    """A pinhole camera: x ~ intrinsics (rotation X + translation).

    Attributes:
        intrinsics: (3, 3) float64, px.
        rotation: (3, 3) float64, world to camera.
        translation: (3,) float64, world units.
        width, height: size of the camera's images, px.
    """

    intrinsics: np.ndarray
    rotation: np.ndarray
    translation: np.ndarray
    width: int
    height: int

    @property
    def centre(self) -> np.ndarray:
        """The camera's position in the world, (3,)."""
        return -self.rotation.T @ self.translation


def checked_camera(
    path: Path,
    intrinsics: np.ndarray,
    rotation: np.ndarray,
    translation: np.ndarray,
    size: tuple[int, int],
) -> Camera:
    """Return a file's camera after checking it.

    Args:
        path: the file, for the error message.
        intrinsics: (3, 3), px, the first pixel's centre at 0, 0.
        rotation, translation: (3, 3) and three numbers, world to camera.
        size: width and height of its image, px.

    Raises:
        ValueError: the camera is singular, mirrored, not finite or no pinhole camera; the message names
            the file.
    """
    pose = np.asarray(rotation, float), np.asarray(translation, float).reshape(-1)
    camera = Camera(np.asarray(intrinsics, float), *pose, *size)
    values = (camera.intrinsics, camera.rotation, camera.translation)
    if [value.shape for value in values] == [(3, 3), (3, 3), (3,)]:
        pinhole = np.allclose(camera.intrinsics[2], [0, 0, 1]) and np.diag(camera.intrinsics).min() > 0
        off = np.abs(camera.rotation @ camera.rotation.T - np.eye(3)).max()
        rigid = off <= _ROTATION_ROUNDING and np.linalg.det(camera.rotation) > 0
        if pinhole and rigid and np.isfinite(np.column_stack(values)).all():
            return camera
    raise ValueError(f"{path} holds a camera that is singular, mirrored, not finite or no pinhole's")


def is_central(point: Sequence[float], size: tuple[int, int]) -> bool:
    """Return whether a principal point is as near to the middle of an image as a lens has it.

    Otherwise the camera is that of images of another size, or the image was cut out of a larger one.

    Args:
        point: x and y, px, the first pixel's centre at 0.5, 0.5.
        size: width and height of the image, px.
    """
    return bool((np.abs(np.divide(point, size) - 0.5) <= _OFF_CENTRE).all())


def read_strecha_cameras(images: Iterable[Path], folder: Path) -> dict[str, Camera]:
    """Read the cameras of photographs, by file name, scaled to the photographs' sizes.

    Args:
        images: the photographs.
        folder: holds a file ``NAME.camera`` for each photograph.

    Raises:
        FileNotFoundError: a photograph or its camera is missing.
        ValueError: as `read_strecha_camera`, or a photograph is not an image.
    """
    sizes = {image.name: read_image(image, header_only=True).size for image in images}
    return {name: read_strecha_camera(folder / f"{name}.camera", sizes[name]) for name in sizes}


def read_strecha_camera(path: Path, size: tuple[int, int]) -> Camera:
    """Read a photograph's camera.

    Args:
        path: the ``.camera`` file.
        size: width and height of the photograph, px, to which K is scaled, because the photograph may
            have been enlarged or reduced since.

    Returns:
        The camera, with the first pixel's centre at 0, 0 and its translation in the file's unit, metres.

    Raises:
        ValueError: the file does not hold these numbers; it states lens distortion or skewed pixels;
            `size` has another aspect ratio; or as `checked_camera`.
    """
    try:
        numbers = np.array(path.read_text(encoding="utf-8").split(), float)
        matrix, distortion, turn, centre, (width, height) = np.split(numbers, [9, 12, 21, 24])
        intrinsics, rotation = matrix.reshape(3, 3), turn.reshape(3, 3).T
    except ValueError as error:
        raise ValueError(f"{path} is no camera file of 26 numbers: {error}") from error
    if distortion.any() or intrinsics[0, 1]:
        raise ValueError(f"{path} states lens distortion {distortion} or a skew of {intrinsics[0, 1]:g}")
    if not (min(width, height) >= 1 and abs(size[1] - height * size[0] / width) <= _SIZE_ROUNDING):
        raise ValueError(f"{path} is of an image of {width:g} by {height:g} px, not {size}")
    intrinsics = np.diag([size[0] / width, size[1] / height, 1]) @ intrinsics
    intrinsics[:2, 2] -= _HALF_PIXEL
    return checked_camera(path, intrinsics, rotation, -rotation @ centre, size)


def write_strecha_camera(path: Path, camera: Camera) -> None:
    """Write a camera so that `read_strecha_camera` reads it back, up to rounding."""
    matrix = camera.intrinsics.copy()
    matrix[:2, 2] += _HALF_PIXEL
    rows = [*matrix, np.zeros(3), *camera.rotation.T, camera.centre]
    lines = [" ".join(repr(float(value)) for value in row) for row in rows]
    write_bytes(path, "\n".join([*lines, f"{camera.width} {camera.height}", ""]).encode())
