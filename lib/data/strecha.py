"""Camera files of Strecha et al. (CVPR 2008): the true poses of fountain-P11, Herz-Jesus-P8 and others.

A file ``IMAGE.camera`` holds K in three rows, three zeros (radial distortion), the rotation from camera
to world in three rows, the camera's centre, and the width and height of the image that K is of.

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
# K, distortion, rotation, centre, size.
_NUMBERS = 9 + 3 + 9 + 3 + 2
# How far a rotation times its transpose may be from the identity: files hold few digits.
_ROTATION_ROUNDING = 1e-3
# Rows and columns by which an image that was reduced may differ from the stated size, reduced likewise.
_ROUNDING = 1.0


def read_strecha_cameras(images: Iterable[Path], folder: Path) -> dict[str, Camera]:
    """Cameras of photographs by their files' names, scaled to the photographs' sizes.

    Args:
        images: the photographs.
        folder: with a file ``NAME.camera`` for each.

    Raises:
        FileNotFoundError: a photograph or its camera is missing.
        ValueError: as `read_strecha_camera`, or a photograph is no image.
    """
    cameras = {}
    for image in images:
        path = folder / f"{image.name}.camera"
        if not path.is_file():
            raise FileNotFoundError(f"{path} is missing: give the poses of all images, or of none")
        cameras[image.name] = read_strecha_camera(path, read_image(image, header_only=True).size)
    return cameras


def read_strecha_camera(path: Path, size: tuple[int, int] | None = None) -> Camera:
    """A photograph's camera.

    Args:
        path: of the ``.camera`` file.
        size: width and height of the photograph, px, where it was enlarged or reduced since; K is then
            scaled to it. None: as the file states.

    Returns:
        The camera, the first pixel's centre at 0, 0, its translation in the file's unit (metres).

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it does not hold these numbers, or they are singular, mirrored or not finite; its
            lens has distortion, or its pixels skew; `size` has other proportions.
    """
    try:
        numbers = np.array(path.read_text(encoding="utf-8").split(), float)
        matrix, distortion, turn, centre, stated = np.split(numbers, [9, 12, 21, 24])
        width, height = stated if size is None else size
    except ValueError as error:
        raise ValueError(f"{path} is no camera file of {_NUMBERS} numbers: {error}") from error
    if not (np.isfinite(stated).all() and (stated >= 1).all()):
        raise ValueError(f"{path} states an image of {stated[0]:g} by {stated[1]:g} px")
    rotation = turn.reshape(3, 3).T
    given = matrix.reshape(3, 3), rotation, -rotation @ centre
    intrinsics, rotation, translation = checked_camera(path, *given)
    if distortion.any() or intrinsics[0, 1]:
        raise ValueError(f"{path} states lens distortion {distortion} or a skew of {intrinsics[0, 1]:g}")
    if abs(height - stated[1] * width / stated[0]) > _ROUNDING:
        raise ValueError(f"{path} is of an image of {stated[0]:g} by {stated[1]:g} px, not {size}")
    intrinsics = np.diag([width / stated[0], height / stated[1], 1]) @ intrinsics
    intrinsics[:2, 2] -= _HALF_PIXEL
    return Camera(intrinsics, rotation, translation, int(width), int(height))


def checked_camera(
    where: object, intrinsics: np.ndarray, rotation: np.ndarray, translation: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(3, 3), (3, 3) and (3,) float64 of a pinhole camera.

    Raises:
        ValueError: they are of other shapes, singular, mirrored, not finite, or no pinhole camera's; the
            message names `where` they were read.
    """
    matrix, turn = np.asarray(intrinsics, float), np.asarray(rotation, float)
    shift = np.asarray(translation, float).reshape(-1)
    right = (matrix.shape, turn.shape, shift.shape) == ((3, 3), (3, 3), (3,))
    right = right and np.isfinite([*matrix, *turn, shift]).all() and np.allclose(matrix[2], [0, 0, 1])
    right = right and min(matrix[0, 0], matrix[1, 1], np.linalg.det(turn)) > 0
    if not right or np.abs(turn @ turn.T - np.eye(3)).max() > _ROTATION_ROUNDING:
        raise ValueError(f"{where} holds no pinhole camera:\n{matrix}\n{turn}\n{shift}")
    return matrix, turn, shift


def write_strecha_camera(path: Path, camera: Camera) -> None:
    """Write a camera as `read_strecha_camera` reads it, up to rounding."""
    matrix = camera.intrinsics.copy()
    matrix[:2, 2] += _HALF_PIXEL
    rows = [*matrix, np.zeros(3), *camera.rotation.T, camera.centre]
    lines = [" ".join(repr(float(value)) for value in row) for row in rows]
    write_bytes(path, "\n".join([*lines, f"{camera.width} {camera.height}", ""]).encode())
