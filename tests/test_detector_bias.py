"""Every detector finds blobs at their centres, in reduced images and in full ones."""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from lib.data.hpatches import detection as hpatches_detection
from lib.data.images import reduced
from lib.features.detectors import Detector, detect
from lib.features.keypoints import Keypoints, dog_keypoints

SIDE, SIGMA = 900, 9


def detector(kind: str) -> Callable[[np.ndarray], np.ndarray]:
    return lambda image: detect(image, Detector(kind, upright=True, most=4000)).position.astype(float)


@cache
def hpatches_frames(pixels: bytes, side: int) -> Keypoints:
    """Return the keypoints of all three detectors in a square image, cached for the three."""
    return hpatches_detection.detect(np.frombuffer(pixels, np.uint8).reshape(side, side))


def hpatches_detector(kind: str) -> Callable[[np.ndarray], np.ndarray]:
    def positions(image: np.ndarray) -> np.ndarray:
        frames = hpatches_frames(image.tobytes(), len(image))
        return frames.position[frames.detector == hpatches_detection.DETECTORS.index(kind)]

    return positions


# The largest mean error, in px of the searched image. Harris does not interpolate, and errs by more, to
# either side; BRISK compares whole grey levels, and a blob has several pixels of the highest.
DETECTORS = {
    "dog": (detector("dog"), 0.05),
    "colmap": (detector("colmap"), 0.05),
    "hessian": (detector("hessian"), 0.05),
    "brisk": (detector("brisk"), 0.5),
    "synthetic": (lambda image: dog_keypoints(image, 0.01, 1.0).position, 0.05),
    "hpatches hessian": (hpatches_detector("hessian"), 0.05),
    "hpatches harris": (hpatches_detector("harris"), 0.6),
    "hpatches dog": (hpatches_detector("dog"), 0.05),
}
# In the blob's sigmas: BRISK leaves out what is closer to the border, where its pattern does not fit.
BORDER = {"brisk": 20}


@pytest.fixture(scope="module")
def blobs() -> tuple[np.ndarray, np.ndarray]:
    """An image of Gaussian blobs, and their (N, 2) centres."""
    rng = np.random.default_rng(0)
    grid = np.arange(8 * SIGMA, SIDE - 8 * SIGMA, 16 * SIGMA, dtype=float)
    centres = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
    centres += rng.uniform(-2 * SIGMA, 2 * SIGMA, centres.shape)
    pixels = np.arange(SIDE)
    x, y = (np.exp(-((pixels - c[:, None]) ** 2) / (2 * SIGMA**2)) for c in centres.T)
    return np.rint(40 + 170 * np.einsum("ny,nx->yx", y, x)).clip(0, 255).astype(np.uint8), centres


@pytest.mark.parametrize("side", [900, 450, 225])
@pytest.mark.parametrize("name", DETECTORS)
def test_blobs_are_found_at_their_centres(
    name: str, side: int, blobs: tuple[np.ndarray, np.ndarray]
) -> None:
    (positions, largest), (image, centres) = DETECTORS[name], blobs
    border = BORDER.get(name, 0) * SIGMA
    centres = centres[((centres >= border) & (centres < SIDE - border)).all(axis=1)]
    searched = reduced(image, side)
    detected = (positions(searched) + 0.5) * SIDE / side - 0.5
    error = detected[:, None] - centres
    nearest = np.linalg.norm(error, axis=2).argmin(axis=0)
    error = error[nearest, np.arange(len(centres))]
    error = error[np.linalg.norm(error, axis=1) < SIGMA / 2]
    assert len(error) > 0.9 * len(centres)
    assert np.abs(error.mean(axis=0)).max() < largest * SIDE / side
