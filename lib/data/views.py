"""What is known of a photograph's camera, checked as it is read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

# How far a rotation times its transpose may be from the identity: files hold few digits.
ROUNDING = 1e-3


@dataclass(frozen=True)
class View:
    """A photograph of a scene.

    Attributes:
        path: of the image.
        intrinsics: (3, 3) float64, px, the first pixel's centre at 0, 0.
        rotation, translation: (3, 3) and (3,) float64, world to camera.
    """

    path: Path
    intrinsics: np.ndarray
    rotation: np.ndarray
    translation: np.ndarray

    @property
    def centre(self) -> np.ndarray:
        """(3,) the camera's place in the world."""
        return -self.rotation.T @ self.translation


def relative_pose(first: View, second: View) -> tuple[np.ndarray, np.ndarray]:
    """(3, 3) and (3,) from the first camera's coordinates to the second's."""
    rotation = second.rotation @ first.rotation.T
    return rotation, second.translation - rotation @ first.translation


def checked_intrinsics(where: object, intrinsics: np.ndarray) -> np.ndarray:
    """(3, 3) float64 of a pinhole camera.

    Raises:
        ValueError: they are singular, not finite, or no matrix of a pinhole camera; the message names
            `where` they were read.
    """
    matrix = np.asarray(intrinsics, float)
    pinhole = matrix.shape == (3, 3) and np.isfinite(matrix).all() and np.allclose(matrix[2], [0, 0, 1])
    if not pinhole or matrix[0, 0] <= 0 or matrix[1, 1] <= 0:
        raise ValueError(f"{where} holds intrinsics that are singular or no pinhole camera's:\n{matrix}")
    return matrix


def checked_pose(
    where: object, rotation: np.ndarray, translation: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(3, 3) and (3,) float64.

    Raises:
        ValueError: they are singular, mirrored, or not finite; the message names `where` they were read.
    """
    turn, shift = np.asarray(rotation, float), np.asarray(translation, float).reshape(-1)
    sized = turn.shape == (3, 3) and shift.shape == (3,)
    finite = sized and np.isfinite(turn).all() and np.isfinite(shift).all()
    if not finite or np.abs(turn @ turn.T - np.eye(3)).max() > ROUNDING or np.linalg.det(turn) < 0:
        raise ValueError(f"{where} holds a pose that is singular, mirrored or not finite:\n{turn}")
    return turn, shift
