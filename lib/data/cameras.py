"""Cameras of photographs, checked as they are read, and the camera files of Strecha et al. (CVPR 2008).

These files hold the true poses of fountain-P11, Herz-Jesus-P8 and others. ``IMAGE.camera`` holds K in
three rows, three zeros (radial distortion), the rotation from camera to world in three rows, the
camera's centre, and the width and height of the image that K is of.

K has the first pixel's centre at 0.5, 0.5, which no file says. With the files' poses, points that four
photographs or more show are reprojected with less error so than with the centre at 0, 0, in fountain-P11
(root mean square 0.618 against 0.623 px) and in Herz-Jesus-P8 (0.625 against 0.627 px).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from lib.data.images import read_image
from lib.data.synthetic.imaging import Camera
from lib.files import write_bytes

_HALF_PIXEL = 0.5
# How far a rotation times its transpose may be from the identity: files hold few digits.
_ROTATION_ROUNDING = 1e-3
# Rows and columns by which an image that was reduced may differ from the stated size, reduced likewise.
_SIZE_ROUNDING = 1.0


def checked_camera(
    path: Path,
    intrinsics: np.ndarray,
    rotation: np.ndarray,
    translation: np.ndarray,
    size: tuple[int, int],
) -> Camera:
    """A camera as a file states it.

    Args:
        path: of the file.
        intrinsics: (3, 3), px, the first pixel's centre at 0, 0.
        rotation, translation: (3, 3) and three numbers, world to camera.
        size: width and height of its image, px.

    Raises:
        ValueError: it is singular, mirrored, not finite or no pinhole's; the message names the file.
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


def read_strecha_cameras(images: Iterable[Path], folder: Path) -> dict[str, Camera]:
    """Cameras of photographs by their files' names, scaled to the photographs' sizes.

    Args:
        images: the photographs.
        folder: with a file ``NAME.camera`` for each.

    Raises:
        FileNotFoundError: a photograph or its camera is missing.
        ValueError: as `read_strecha_camera`, or a photograph is no image.
    """
    sizes = {image.name: read_image(image, header_only=True).size for image in images}
    return {name: read_strecha_camera(folder / f"{name}.camera", sizes[name]) for name in sizes}


def read_strecha_camera(path: Path, size: tuple[int, int]) -> Camera:
    """A photograph's camera.

    Args:
        path: of the ``.camera`` file.
        size: width and height of the photograph, px, which may have been enlarged or reduced since; K is
            scaled to it.

    Returns:
        The camera, the first pixel's centre at 0, 0, its translation in the file's unit (metres).

    Raises:
        ValueError: the file does not hold these numbers; its lens has distortion, or its pixels skew;
            `size` has other proportions; or as `checked_camera`.
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
    """Write a camera as `read_strecha_camera` reads it, up to rounding."""
    matrix = camera.intrinsics.copy()
    matrix[:2, 2] += _HALF_PIXEL
    rows = [*matrix, np.zeros(3), *camera.rotation.T, camera.centre]
    lines = [" ".join(repr(float(value)) for value in row) for row in rows]
    write_bytes(path, "\n".join([*lines, f"{camera.width} {camera.height}", ""]).encode())
