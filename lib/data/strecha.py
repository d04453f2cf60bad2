"""Camera files of Strecha et al. (CVPR 2008): the true poses of fountain-P11, Herz-Jesus-P8 and others.

A file ``IMAGE.camera`` holds K in three rows, three zeros (radial distortion), the rotation from camera
to world in three rows, the camera's centre, and the width and height of the image that K is of.

K has the first pixel's centre at 0.5, 0.5, which no file says. With the files' poses, points that four
photographs or more show are reprojected with less error so than with the centre at 0, 0, in fountain-P11
(root mean square 0.618 against 0.623 px) and in Herz-Jesus-P8 (0.625 against 0.627 px).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lib.data.synthetic.geometry import Camera
from lib.data.views import checked_intrinsics, checked_pose
from lib.files import write_bytes

_HALF_PIXEL = 0.5
# K, distortion, rotation, centre, size.
_NUMBERS = 9 + 3 + 9 + 3 + 2
# Rows and columns by which an image that was reduced may differ from the stated size, reduced likewise.
_ROUNDING = 1.0


def read_strecha_camera(
    path: Path, size: tuple[int, int] | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int, int]:
    """A photograph's camera.

    Args:
        path: of the ``.camera`` file.
        size: width and height of the photograph, px, where it was enlarged or reduced since; K is then
            scaled to it. None: as the file states.

    Returns:
        (3, 3) float64 intrinsics, px, the first pixel's centre at 0, 0; (3, 3) and (3,) float64 rotation
        and translation, world to camera, in the file's unit (metres); width and height, px.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it does not hold these numbers, or they are singular, mirrored or not finite; its
            lens has distortion; `size` has other proportions. The message names the file.
    """
    try:
        numbers = np.array(path.read_text(encoding="utf-8").split(), float)
    except ValueError as error:
        raise ValueError(f"{path} is no camera file: {error}") from error
    if len(numbers) != _NUMBERS:
        raise ValueError(f"{path} is no camera file: it holds {len(numbers)} numbers, not {_NUMBERS}")
    matrix, distortion, turn, centre, stated = np.split(numbers, [9, 12, 21, 24])
    if distortion.any():
        raise ValueError(f"{path} states lens distortion {distortion}, which a pinhole camera has not")
    if not (np.isfinite(stated).all() and (stated >= 1).all() and (stated % 1 == 0).all()):
        raise ValueError(f"{path} states an image of {stated[0]:g} by {stated[1]:g} px")
    intrinsics = checked_intrinsics(path, matrix.reshape(3, 3))
    rotation = turn.reshape(3, 3).T
    rotation, translation = checked_pose(path, rotation, -rotation @ centre)
    width, height = map(int, stated if size is None else size)
    if abs(height - stated[1] * width / stated[0]) > _ROUNDING:
        raise ValueError(
            f"{path} is of an image of {stated[0]:g} by {stated[1]:g} px, and one of {width} by "
            f"{height} has other proportions: it was cut or is another"
        )
    intrinsics = np.diag([width / stated[0], height / stated[1], 1]) @ intrinsics
    intrinsics[:2, 2] -= _HALF_PIXEL
    return intrinsics, rotation, translation, width, height


def write_strecha_camera(path: Path, camera: Camera) -> None:
    """Write a camera as `read_strecha_camera` reads it, up to rounding."""
    matrix = camera.intrinsics.copy()
    matrix[:2, 2] += _HALF_PIXEL
    rows = [*matrix, np.zeros(3), *camera.rotation.T, camera.centre]
    lines = [" ".join(repr(float(value)) for value in row) for row in rows]
    write_bytes(path, "\n".join([*lines, f"{camera.width} {camera.height}", ""]).encode())
