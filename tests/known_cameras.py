"""Cameras and points that are known, for tests of what is estimated from their pictures."""

from __future__ import annotations

import numpy as np

from lib.data.synthetic.imaging import Camera, orbiting_camera

SIZE = (480, 360)
INTRINSICS = np.array([[576.0, 0, 239.5], [0, 576.0, 179.5], [0, 0, 1]])


def cameras(count: int) -> list[Camera]:
    """Cameras on an arc around the world's origin, from 4 units away."""
    turns = np.linspace(-0.5, 0.5, count)
    angles = [(turn, 0.3 * turn**2, 0.1 * turn) for turn in turns]
    return [orbiting_camera(INTRINSICS[0, 0], SIZE, 4.0, *of, np.zeros(3)) for of in angles]


def points(count: int, seed: int = 0) -> np.ndarray:
    """(count, 3) in a cube of side 2 around the origin, seen by all `cameras`."""
    return np.random.default_rng(seed).uniform(-1, 1, (count, 3))


def project(camera: Camera, world: np.ndarray) -> np.ndarray:
    """(N, 2) px of points (N, 3)."""
    seen = (world @ camera.rotation.T + camera.translation) @ camera.intrinsics.T
    return seen[:, :2] / seen[:, 2:]
