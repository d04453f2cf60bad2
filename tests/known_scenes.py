"""Views of a slanted plane by known cameras, without COLMAP, and handmade tables of carried keypoints.

All of it follows from the equations of the camera and the plane. None of it is the library's, so
that the two can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pycolmap

from lib.data.scenes.correspondences import Scene
from lib.data.scenes.views import View
from lib.features.keypoints import Keypoints

SIZE = (640, 480)
# The plane is NORMAL · X = OFFSET.
NORMAL, OFFSET = np.array([-0.3, 0.2, 1.0]), 4.0
PINHOLE = (600.0, 610.0, 330.0, 235.0)
# k1, k2, p1, p2 of COLMAP's OPENCV model.
LENS = (-0.12, 0.03, 0.002, -0.001)


def turned(x: float, y: float, z: float) -> np.ndarray:
    """Return the (3, 3) rotation about x, then y, then z, in radians."""
    (cx, cy, cz), (sx, sy, sz) = np.cos([x, y, z]), np.sin([x, y, z])
    about_x = np.array([[1, 0, 0], [0, cx, -sx], [0, sx, cx]])
    about_y = np.array([[cy, 0, sy], [0, 1, 0], [-sy, 0, cy]])
    return np.array([[cz, -sz, 0], [sz, cz, 0], [0, 0, 1]]) @ about_y @ about_x


@dataclass(frozen=True)
class Known:
    """A camera at a pose (world to camera), with or without the distortion of `LENS`."""

    rotation: np.ndarray = field(default_factory=lambda: np.eye(3))
    translation: np.ndarray = field(default_factory=lambda: np.zeros(3))
    lens: tuple[float, ...] = ()

    @property
    def colmap(self) -> pycolmap.Camera:
        model, params = "OPENCV" if self.lens else "PINHOLE", [*PINHOLE, *self.lens]
        return pycolmap.Camera(model=model, width=SIZE[0], height=SIZE[1], params=params)

    @property
    def matrix(self) -> np.ndarray:
        """K. The first pixel's centre is at (0, 0), half a pixel before COLMAP's."""
        fx, fy, cx, cy = PINHOLE
        return np.array([[fx, 0, cx - 0.5], [0, fy, cy - 0.5], [0, 0, 1]])

    def bent(self, ideal: np.ndarray) -> np.ndarray:
        """Return the shift by the lens of (N, 2) coordinates X / Z, Y / Z."""
        if not self.lens:
            return np.zeros_like(ideal)
        (u, v), (k1, k2, p1, p2) = ideal.T, self.lens
        r2 = u**2 + v**2
        radial = k1 * r2 + k2 * r2**2
        dx = u * radial + 2 * p1 * u * v + p2 * (r2 + 2 * u**2)
        dy = v * radial + 2 * p2 * u * v + p1 * (r2 + 2 * v**2)
        return np.column_stack([dx, dy])

    def project(self, world: np.ndarray) -> np.ndarray:
        """Project (N, 3) points to (N, 2) px."""
        in_camera = world @ self.rotation.T + self.translation
        ideal = in_camera[:, :2] / in_camera[:, 2:]
        return (ideal + self.bent(ideal)) @ self.matrix[:2, :2].T + self.matrix[:2, 2]

    def on_plane(self, pixels: np.ndarray, offset: float = OFFSET) -> np.ndarray:
        """Return the (N, 3) points where rays of (N, 2) px meet the plane."""
        distorted = (pixels - self.matrix[:2, 2]) / np.diag(self.matrix)[:2]
        ideal = distorted
        for _ in range(100):
            ideal = distorted - self.bent(ideal)
        rays = np.column_stack([ideal, np.ones(len(ideal))]) @ self.rotation
        centre = -self.rotation.T @ self.translation
        return centre + ((offset - NORMAL @ centre) / (rays @ NORMAL))[:, None] * rays


POSES = (
    Known(),
    Known(turned(0.1, -0.25, 0.4), np.array([0.7, -0.3, -0.4])),
    Known(turned(-0.15, 0.2, -0.2), np.array([-0.6, 0.2, 0.1])),
)


def grid(spacing: float = 24.0) -> np.ndarray:
    """Return (N, 2) px all over an image."""
    axes = (np.arange(4.0, length, spacing) for length in SIZE)
    return np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)


def inside(pixels: np.ndarray) -> np.ndarray:
    return ((pixels >= 0) & (pixels <= np.array(SIZE) - 1)).all(axis=1)


def view(known: Known, points: np.ndarray, name: str = "0000.png") -> View:
    """Return a view that sees all (S, 3) points in its image or up to 40 px outside it."""
    pixels = known.project(points)
    visible = (np.abs(pixels - np.array(SIZE) / 2) < np.array(SIZE) / 2 + 40).all(axis=1)
    visible &= points @ known.rotation[2] + known.translation[2] > 0
    pose = (known.rotation, known.translation)
    return View(name, known.colmap, *pose, points[visible], pixels[visible])


def plane_views(poses: Sequence[Known] = POSES) -> list[View]:
    """Return views of the same sparse points, exactly on the plane."""
    points = Known().on_plane(2 * grid(10) - np.array(SIZE) / 2)
    return [view(known, points, f"{number:04}.png") for number, known in enumerate(poses)]


def keypoints(position: np.ndarray, seed: int = 0) -> Keypoints:
    """Return keypoints at (N, 2) px with random scales and orientations."""
    rng = np.random.default_rng(seed)
    n = len(position)
    return Keypoints(np.asarray(position, float), rng.uniform(2, 6, n), rng.uniform(-3, 3, n))


def table(
    view_ids: Sequence[int],
    rows: Sequence[tuple],
    points: np.ndarray | None = None,
    views: Sequence[View] = (),
    left_out: tuple[str, ...] = (),
) -> Marked:
    """Make a scene by hand from its keypoints and their pairs.

    Args:
        view_ids: the view of each keypoint.
        rows: (source, target, position, octaves, angle); the last two are 0 by default.
        points: (N, 3) in the world.
        views: the views of the scene.
        left_out: images that are not among the views.
    """
    names = ["source", "target", "position", "octaves", "angle"]
    filled = [(*row, *(0.0,) * (5 - len(row))) for row in rows]
    pairs = pd.DataFrame(filled, columns=names).astype({"source": int, "target": int})
    n = len(view_ids)
    placeholder = Keypoints(np.zeros((n, 2)), np.ones(n), np.zeros(n))
    world = np.zeros((n, 3)) if points is None else points
    return Marked("scene", (), tuple(views), left_out, placeholder, np.array(view_ids), world, pairs)


def both_ways(source: int, target: int, *differences: float) -> list[tuple]:
    return [(source, target, *differences), (target, source, *differences)]


class Marked(Scene):
    """A scene without images, in which each patch holds its keypoint's number."""

    def patches(self, keypoints: np.ndarray) -> np.ndarray:
        numbered = np.zeros((len(keypoints), 64, 64), np.uint8)
        numbered[:, 0, 0], numbered[:, 0, 1] = np.divmod(keypoints, 256)
        return numbered


def numbers(patches: np.ndarray) -> np.ndarray:
    """Return the (n,) numbers of keypoints that patches of a `Marked` scene hold."""
    return patches[:, 0, 0].astype(int) * 256 + patches[:, 0, 1]
