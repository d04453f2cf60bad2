"""Points and their surroundings carried by a homography."""

import numpy as np


def transfer(homography: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Points (N, 2) carried by a (3, 3) homography, (N, 2)."""
    carried = points @ homography[:, :2].T + homography[:, 2]
    return carried[:, :2] / carried[:, 2:]


def local_affine(homography: np.ndarray, points: np.ndarray) -> np.ndarray:
    """(N, 2, 2) Jacobians of a homography at points (N, 2)."""
    scale = points @ homography[2, :2] + homography[2, 2]
    image = transfer(homography, points)
    return (homography[None, :2, :2] - image[:, :, None] * homography[2, :2]) / scale[:, None, None]
