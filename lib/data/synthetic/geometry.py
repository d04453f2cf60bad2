"""Pinhole cameras and textured planes in 3D: projection, homographies and occlusion.

World points are right-handed with y down and z away from the reference camera; image points are
pixel centres, x right and y down.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lib.features.homographies import transfer


@dataclass(frozen=True)
class Plane:
    """A rectangle of texture in space: texel (u, v) lies at origin + u * u_axis + v * v_axis.

    Attributes:
        origin, u_axis, v_axis: (3,) float64, world units and world units a texel.
        width, height: texels.
    """

    origin: np.ndarray
    u_axis: np.ndarray
    v_axis: np.ndarray
    width: int
    height: int


@dataclass(frozen=True)
class Camera:
    """A pinhole camera: x ~ intrinsics (rotation X + translation).

    Attributes:
        intrinsics: (3, 3) float64, px.
        rotation: (3, 3) float64, world to camera.
        translation: (3,) float64, world units.
        width, height: of its images, px.
    """

    intrinsics: np.ndarray
    rotation: np.ndarray
    translation: np.ndarray
    width: int
    height: int

    @property
    def centre(self) -> np.ndarray:
        """(3,) the camera's place in the world."""
        return -self.rotation.T @ self.translation


def centred_plane(middle: np.ndarray, axes: np.ndarray, width: int, height: int) -> Plane:
    """A plane whose middle lies at a point of the world, (3,).

    Args:
        middle: world units.
        axes: (2, 3) the plane's u and v axis.
        width, height: texels.
    """
    u_axis, v_axis = axes
    origin = middle - u_axis * (width - 1) / 2 - v_axis * (height - 1) / 2
    return Plane(origin, u_axis, v_axis, width, height)


def intrinsics(focal: float, width: int, height: int) -> np.ndarray:
    """(3, 3) of a camera whose axis meets the middle of its image; all in px."""
    return np.array([[focal, 0, (width - 1) / 2], [0, focal, (height - 1) / 2], [0, 0, 1.0]])


def axis_rotation(axis: np.ndarray, radians: float) -> np.ndarray:
    """(3, 3) rotation about an axis by Rodrigues' formula."""
    x, y, z = np.asarray(axis, float) / np.linalg.norm(axis)
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(radians) * cross + (1 - np.cos(radians)) * cross @ cross


def orbiting_camera(
    target: np.ndarray,
    distance: float,
    yaw: float,
    pitch: float,
    roll: float,
    intrinsics: np.ndarray,
    size: tuple[int, int],
) -> Camera:
    """A camera that looks at `target` from `distance`, turned around it by angles in radians.

    All angles 0 puts it straight before the target, looking along +z.
    """
    rotation = (
        axis_rotation(np.array([0, 0, 1]), roll)
        @ axis_rotation(np.array([1, 0, 0]), pitch)
        @ axis_rotation(np.array([0, 1, 0]), yaw)
    )
    centre = target - distance * rotation[2]
    return Camera(intrinsics, rotation, -rotation @ centre, *size)


def plane_homography(plane: Plane, camera: Camera) -> np.ndarray:
    """(3, 3) homography from texels of the plane to pixels; its third row gives depth."""
    columns = np.stack(
        [
            camera.rotation @ plane.u_axis,
            camera.rotation @ plane.v_axis,
            camera.rotation @ plane.origin + camera.translation,
        ],
        axis=1,
    )
    return camera.intrinsics @ columns


def inverse_depth(plane: Plane, camera: Camera) -> np.ndarray:
    """(3,) coefficients c such that 1 / depth of the plane at pixel (x, y) is c . (x, y, 1)."""
    normal = camera.rotation @ np.cross(plane.u_axis, plane.v_axis)
    offset = normal @ (camera.rotation @ plane.origin + camera.translation)
    return np.linalg.solve(camera.intrinsics.T, normal) / offset


def nearest_plane(planes: Sequence[Plane], camera: Camera, pixels: np.ndarray) -> np.ndarray:
    """Which plane is seen at each pixel.

    Args:
        planes: the scene.
        camera: the view.
        pixels: (N, 2) float64.

    Returns:
        (N,) int64 index of the nearest plane on the pixel's ray, -1 where the ray meets none.
    """
    nearest = np.full(len(pixels), -1)
    best = np.zeros(len(pixels))
    homogeneous = np.column_stack([pixels, np.ones(len(pixels))])
    for index, plane in enumerate(planes):
        closeness = homogeneous @ inverse_depth(plane, camera)
        u, v = transfer(np.linalg.inv(plane_homography(plane, camera)), pixels).T
        inside = (u >= 0) & (v >= 0) & (u <= plane.width - 1) & (v <= plane.height - 1)
        nearer = inside & (closeness > best)
        nearest[nearer] = index
        best[nearer] = closeness[nearer]
    return nearest
