"""What one view knows of the surface that it shows, and keypoints carried by it into other views.

The surface is made of Delaunay triangles between the sparse points that the view sees. In the plane of
undistorted coordinates (u, v) = (X / Z, Y / Z) a flat triangle's inverse depth is linear, so a
keypoint in it has a point in space and a tangent plane there, and both are projected into another view
through its full camera model. A triangle across a large depth jump would be seen edge-on, and is left
out.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pycolmap
from scipy.spatial import Delaunay

from lib.data.colmap import HALF_PIXEL
from lib.features.keypoints import Keypoints, carried_keypoints

# Longest side of a triangle, in widths or heights of the image, whichever is longer.
LONGEST_SIDE = 0.1
# Between a triangle's normal and the ray to it.
MOST_OBLIQUE = np.deg2rad(75.0)
# Of a carried point's depth, by how much the other view's own may differ.
DEPTH_AGREEMENT = 0.03
# Px from a keypoint to the points that give its tangents.
_STEP = 1.0
# That a view sees.
FEWEST_POINTS = 10
# Outside every triangle.
_FAR = 1e9


@dataclass(frozen=True)
class View:
    """A photograph with its camera and the surface that its sparse points span.

    Attributes:
        name: of the image.
        camera: COLMAP's, with whatever distortion it has.
        rotation, translation: (3, 3) and (3,) float64, world to camera.
        points: (S, 3) float64, the sparse points that it sees, in the world.
        observed: (S, 2) float64, where it sees them, px.
    """

    name: str
    camera: pycolmap.Camera
    rotation: np.ndarray
    translation: np.ndarray
    points: np.ndarray
    observed: np.ndarray

    @cached_property
    def triangles(self) -> Delaunay:
        """Between the sparse points, in undistorted coordinates."""
        seen = self._in_camera(self.points)
        return Delaunay(seen[:, :2] / seen[:, 2:])

    @cached_property
    def planes(self) -> np.ndarray:
        """(T, 3): a triangle's inverse depth is planes · (u, v, 1); NaN of a too long or oblique one."""
        seen = self._in_camera(self.points)
        corners = (seen / seen[:, 2:])[self.triangles.simplices]
        inverse_depth = (1 / seen[:, 2:])[self.triangles.simplices]
        thin = np.abs(np.linalg.det(corners)) < np.finfo(float).eps
        solvable = np.where(thin[:, None, None], np.eye(3), corners)
        planes = np.linalg.solve(solvable, inverse_depth)[..., 0]
        # The plane (a, b, c) · X = 1 has the normal (a, b, c).
        ray = corners.mean(axis=1)
        lengths = np.linalg.norm(planes, axis=1) * np.linalg.norm(ray, axis=1)
        oblique = np.einsum("ti,ti->t", planes, ray) < np.cos(MOST_OBLIQUE) * lengths
        sides = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).max(axis=1)
        longest = LONGEST_SIDE * max(self.camera.width, self.camera.height)
        planes[thin | oblique | (sides * self.camera.mean_focal_length() > longest)] = np.nan
        return planes

    def _in_camera(self, points: np.ndarray) -> np.ndarray:
        return points @ self.rotation.T + self.translation

    @property
    def centre(self) -> np.ndarray:
        """(3,) the camera's centre in the world."""
        return -self.rotation.T @ self.translation

    def rays(self, pixels: np.ndarray) -> np.ndarray:
        """(N, 3) undistorted u, v, 1 of (N, 2) pixels, the first pixel's centre at 0, 0."""
        undistorted = self.camera.cam_from_img(np.ascontiguousarray(pixels) + HALF_PIXEL)
        return np.column_stack([undistorted, np.ones(len(undistorted))])

    def project(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(N, 2) pixels and (N,) depths of (N, 3) points of the world; NaN behind the camera."""
        seen = self._in_camera(points)
        seen[~(seen[:, 2] > 0)] = np.nan
        return self.camera.img_from_cam(seen, check_cheirality=False) - HALF_PIXEL, seen[:, 2]

    def planes_at(self, rays: np.ndarray) -> np.ndarray:
        """(N, 3) the plane of the triangle that a ray of (N, 3) meets, as `planes`; NaN outside all."""
        triangle = self.triangles.find_simplex(np.nan_to_num(rays[:, :2], nan=_FAR))
        return np.where(triangle[:, None] < 0, np.nan, self.planes[triangle])


def views_of(model: pycolmap.Reconstruction) -> list[View]:
    """The views of a model, by name; each sees the points whose tracks it is in.

    An image that sees fewer than ten points is left out: these span no surface worth the name.
    """
    views = []
    for image in sorted((model.image(n) for n in model.reg_image_ids()), key=lambda image: image.name):
        ends = image.get_observation_points2D()
        if len(ends) < FEWEST_POINTS:
            continue
        points = np.array([model.point3D(end.point3D_id).xyz for end in ends])
        observed = np.array([end.xy for end in ends]) - HALF_PIXEL
        pose = image.cam_from_world()
        # The model owns its cameras, and takes them along when it goes.
        camera, rotation = deepcopy(image.camera), pose.rotation.matrix()
        views.append(View(image.name, camera, rotation, pose.translation.copy(), points, observed))
    return views


def lift(view: View, keypoints: Keypoints) -> np.ndarray:
    """Put a view's N keypoints on its surface.

    Returns:
        (3, N, 3) float64 in the world, NaN where the view knows no surface: of the keypoints, and of the
        pixels 1 px to the right of them and below.
    """
    planes = view.planes_at(view.rays(keypoints.position))
    surface = []
    for shift in ([0.0, 0.0], [_STEP, 0.0], [0.0, _STEP]):
        rays = view.rays(keypoints.position + shift)
        inverse_depth = np.einsum("ni,ni->n", rays, planes)
        inverse_depth = np.where(inverse_depth > 0, inverse_depth, np.nan)
        surface.append((rays / inverse_depth[:, None] - view.translation) @ view.rotation)
    return np.array(surface)


def carry(keypoints: Keypoints, lifted: np.ndarray, view: View) -> tuple[Keypoints, np.ndarray]:
    """Carry keypoints into another view by the local map of their surface.

    Args:
        keypoints: N of them, of one view.
        lifted: (3, N, 3) what `lift` says of them.
        view: the other.

    Returns:
        The N keypoints as a detector without error would find them there, and (N,) bool, which are
        visible: inside the image, from the front, and as deep as the other view's own surface. Those
        that are not have no meaning.
    """
    (position, depth), *tangents = map(view.project, lifted)
    affine = np.stack([ends - position for ends, _ in tangents], axis=2) / _STEP
    last = [view.camera.width - 1, view.camera.height - 1]
    inside = ((position >= 0) & (position <= last)).all(axis=1)
    visible = inside & (np.linalg.det(np.nan_to_num(affine)) > 0)
    rays = view.rays(position[visible])
    own = np.einsum("ni,ni->n", rays, view.planes_at(rays))
    visible[visible] = np.abs(own * depth[visible] - 1) <= DEPTH_AGREEMENT
    shown = np.where(visible[:, None, None], affine, np.eye(2))
    return carried_keypoints(keypoints, position, shown), visible


def angles_between(
    views: Sequence[View], first: np.ndarray, second: np.ndarray, points: np.ndarray
) -> np.ndarray:
    """Viewing angles: between the rays from points to the centres of two views.

    Args:
        views: of a scene.
        first, second: (M,) int64, indices of views.
        points: (M, 3) float64 of the world.

    Returns:
        (M,) float64, radians.
    """
    centres = np.array([view.centre for view in views])
    one, other = (centres[view] - points for view in (first, second))
    lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    return np.arccos(np.clip(np.einsum("mi,mi->m", one, other) / lengths, -1, 1))
