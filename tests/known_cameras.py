"""Known cameras and points, for tests of estimates from their pictures."""

from __future__ import annotations

import numpy as np

from lib.data.cameras import Camera
from lib.data.synthetic.imaging import orbiting_camera

SIZE = (480, 360)
INTRINSICS = np.array([[576.0, 0, 239.5], [0, 576.0, 179.5], [0, 0, 1]])


def cameras(count: int) -> list[Camera]:
    """Return cameras on an arc around the world's origin, 4 units away."""
    turns = np.linspace(-0.5, 0.5, count)
    rotations = [(turn, 0.3 * turn**2, 0.1 * turn) for turn in turns]
    return [
        orbiting_camera(INTRINSICS[0, 0], SIZE, 4.0, *rotation, np.zeros(3)) for rotation in rotations
    ]


def points(count: int, seed: int = 0) -> np.ndarray:
    """Return (count, 3) points in a cube of side 2 around the origin, seen by all `cameras`."""
    return np.random.default_rng(seed).uniform(-1, 1, (count, 3))


def project(camera: Camera, world: np.ndarray) -> np.ndarray:
    """Return the (N, 2) px of points (N, 3)."""
    projected = (world @ camera.rotation.T + camera.translation) @ camera.intrinsics.T
    return projected[:, :2] / projected[:, 2:]
