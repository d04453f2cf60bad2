"""The surface that a view's sparse points span, and keypoints carried on it into other views.

The surface consists of Delaunay triangles between the sparse points that the view sees. In the plane of
undistorted coordinates (u, v) = (X / Z, Y / Z), a flat triangle's inverse depth is linear. A keypoint in
the triangle therefore has a point in space and a tangent plane there, and both are projected into
another view through its full camera model. A triangle across a large depth jump would be seen edge-on,
and is left out.
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

# Longest side of a triangle, as a share of the image's longer side.
LONGEST_SIDE = 0.1
# Largest angle between a triangle's normal and the ray to it.
MOST_OBLIQUE = np.deg2rad(75.0)
# Share by which a carried point's depth may differ from the other view's own depth.
DEPTH_AGREEMENT = 0.03
# Px from a keypoint to the points that give its tangents.
_STEP = 1.0
# Fewest sparse points that a view must see.
FEWEST_POINTS = 10
# A coordinate outside every triangle.
_FAR = 1e9


@dataclass(frozen=True)
class View:
    """A photograph with its camera and the surface that its sparse points span.

    Attributes:
        name: the image's name.
        camera: COLMAP's camera, with any distortion it has.
        rotation, translation: (3, 3) and (3,) float64, world to camera.
        points: (S, 3) float64, the sparse points that the view sees, in the world.
        observed: (S, 2) float64, where the view sees these points, px.
    """

    name: str
    camera: pycolmap.Camera
    rotation: np.ndarray
    translation: np.ndarray
    points: np.ndarray
    observed: np.ndarray

    @cached_property
    def triangles(self) -> Delaunay:
        """The triangles between the sparse points, in undistorted coordinates."""
        seen = self._in_camera(self.points)
        return Delaunay(seen[:, :2] / seen[:, 2:])

    @cached_property
    def planes(self) -> np.ndarray:
        """Triangles' planes (T, 3): inverse depth is plane · (u, v, 1); NaN if too long or oblique."""
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
        """The camera's centre in the world, (3,)."""
        return -self.rotation.T @ self.translation

    def rays(self, pixels: np.ndarray) -> np.ndarray:
        """Return the undistorted u, v, 1 (N, 3) of pixels (N, 2), the first pixel's centre at 0, 0."""
        undistorted = self.camera.cam_from_img(np.ascontiguousarray(pixels) + HALF_PIXEL)
        return np.column_stack([undistorted, np.ones(len(undistorted))])

    def project(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Project (N, 3) world points to (N, 2) pixels and (N,) depths; NaN behind the camera."""
        seen = self._in_camera(points)
        seen[~(seen[:, 2] > 0)] = np.nan
        return self.camera.img_from_cam(seen, check_cheirality=False) - HALF_PIXEL, seen[:, 2]

    def sees(self, position: np.ndarray, depth: np.ndarray) -> np.ndarray:
        """Return which points it sees: inside the image and as deep as its own surface there.

        Args:
            position, depth: (N, 2) px and (N,), from `project`.

        Returns:
            (N,) bool.
        """
        last = [self.camera.width - 1, self.camera.height - 1]
        seen = ((position >= 0) & (position <= last)).all(axis=1)
        rays = self.rays(position[seen])
        own = np.einsum("ni,ni->n", rays, self.planes_at(rays))
        seen[seen] = np.abs(own * depth[seen] - 1) <= DEPTH_AGREEMENT
        return seen

    def planes_at(self, rays: np.ndarray) -> np.ndarray:
        """Return planes (N, 3), as in `planes`, of the triangles that rays (N, 3) meet; NaN if none."""
        triangle = self.triangles.find_simplex(np.nan_to_num(rays[:, :2], nan=_FAR))
        return np.where(triangle[:, None] < 0, np.nan, self.planes[triangle])


def views_of(model: pycolmap.Reconstruction) -> list[View]:
    """Return the views of a model, ordered by name; each sees the points whose tracks it is in.

    An image that sees fewer than ten points is left out, because these span no useful surface.
    """
    views = []
    for image in sorted((model.image(n) for n in model.reg_image_ids()), key=lambda image: image.name):
        ends = image.get_observation_points2D()
        if len(ends) < FEWEST_POINTS:
            continue
        points = np.array([model.point3D(end.point3D_id).xyz for end in ends])
        observed = np.array([end.xy for end in ends]) - HALF_PIXEL
        pose = image.cam_from_world()
        # Copy the camera, because the model owns its cameras and frees them with itself.
        camera, rotation = deepcopy(image.camera), pose.rotation.matrix()
        views.append(View(image.name, camera, rotation, pose.translation.copy(), points, observed))
    return views


def lift(view: View, keypoints: Keypoints) -> np.ndarray:
    """Lift a view's N keypoints onto its surface.

    Returns:
        (3, N, 3) float64 points in the world: of the keypoints, of the pixels 1 px to their right, and
        of the pixels 1 px below; NaN where the view has no surface.
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
        keypoints: N keypoints of one view.
        lifted: (3, N, 3), these keypoints from `lift`.
        view: the other view.

    Returns:
        The N keypoints as a detector without error would find them in the other view, and (N,) bool,
        which of them are visible: inside the image, seen from the front, and as deep as the view's own
        surface. Values of keypoints that are not visible have no meaning.
    """
    (position, depth), *tangents = map(view.project, lifted)
    affine = np.stack([ends - position for ends, _ in tangents], axis=2) / _STEP
    visible = np.linalg.det(np.nan_to_num(affine)) > 0
    visible[visible] = view.sees(position[visible], depth[visible])
    shown = np.where(visible[:, None, None], affine, np.eye(2))
    return carried_keypoints(keypoints, position, shown), visible


def angles_between(
    views: Sequence[View], first: np.ndarray, second: np.ndarray, points: np.ndarray
) -> np.ndarray:
    """Compute viewing angles, between the rays from points to the centres of two views.

    Args:
        views: a scene's views.
        first, second: (M,) int64, indices of views.
        points: (M, 3) float64, points in the world.

    Returns:
        (M,) float64, radians.
    """
    centres = np.array([view.centre for view in views])
    one, other = (centres[view] - points for view in (first, second))
    lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    return np.arccos(np.clip(np.einsum("mi,mi->m", one, other) / lengths, -1, 1))
