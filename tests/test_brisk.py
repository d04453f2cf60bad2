"""BRISK's keypoints: a square's corners, at its scale; in a total order; none without structure, and
none at the border."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from lib.features import detectors
from lib.features.detectors import brisk_keypoints

# Far enough from the border for the pattern of the coarsest layer.
CENTRES = ((180, 170), (350, 300), (520, 430))


def squares(side: int = 40) -> np.ndarray:
    """Return two squares with a little noise: FAST takes no equally strong corners side by side."""
    image = np.full((240, 320), 60.0, np.float32)
    for x, y in ((60, 60), (200, 120)):
        image[y : y + side, x : x + side] = np.linspace(160, 250, side)
    noisy = cv2.GaussianBlur(image, (0, 0), 1.0) + np.random.default_rng(0).normal(0, 1, image.shape)
    return np.uint8(noisy.clip(0, 255))


def blobs(sigma: float) -> np.ndarray:
    """Return bright spots, far from each other."""
    image = np.zeros((600, 700), np.float32)
    for x, y in CENTRES:
        image[y, x] = 1.0
    image = cv2.GaussianBlur(image, (0, 0), sigma)
    return np.uint8(40 + 200 * image / image.max())


def test_the_corners_of_squares_are_found_to_within_two_pixels_of_their_layer() -> None:
    keypoints = brisk_keypoints(squares(), 300)
    pixel = keypoints.scale / detectors.BRISK_SCALE
    for x, y in ((60, 60), (99, 60), (60, 99), (99, 99), (200, 120), (239, 159)):
        assert (np.abs(keypoints.position - (x, y)).max(1) / pixel).min() <= 2


@pytest.mark.parametrize("times", [2.0, 3.0])
def test_a_larger_blob_is_found_in_a_coarser_layer_at_the_same_place(times: float) -> None:
    """Enlarging an image enlarges its keypoints' scales by the same factor. A blob may have several."""
    small, large = (brisk_keypoints(blobs(size), 100) for size in (2.0, 2.0 * times))
    for centre in CENTRES:
        scales = []
        for size in (small, large):
            away = np.linalg.norm(size.position - centre, axis=1)
            assert away.min() <= times
            scales.append(size.scale[away < 3 * times].max())
        assert scales[1] / scales[0] == pytest.approx(times, rel=0.51)


def test_fewer_keypoints_are_the_strongest_every_time() -> None:
    image = squares()
    full, strongest = brisk_keypoints(image, 300), brisk_keypoints(image, 5)
    assert len(strongest) == 5
    np.testing.assert_array_equal(strongest.position, full.position[:5])
    np.testing.assert_array_equal(strongest.orientation, full.orientation[:5])


def test_an_orientation_turns_with_the_image() -> None:
    image = squares()
    turned = cv2.rotate(image, cv2.ROTATE_90_CLOCKWISE)
    before, after = brisk_keypoints(image, 300), brisk_keypoints(turned, 300)
    turns = []
    for position, angle in zip(before.position, before.orientation, strict=True):
        distances = np.linalg.norm(after.position - (len(image) - 1 - position[1], position[0]), axis=1)
        if distances.min() < 0.5:
            turns.append((after.orientation[distances.argmin()] - angle) % (2 * np.pi))
    assert len(turns) >= 6
    assert np.median(turns) == pytest.approx(np.pi / 2, abs=0.2)


def test_a_plain_image_has_no_keypoints() -> None:
    assert len(brisk_keypoints(np.full((64, 64), 90, np.uint8), 300)) == 0


def test_corners_whose_pattern_leaves_the_image_are_left_out() -> None:
    whole = brisk_keypoints(squares(), 300)
    cut = brisk_keypoints(np.ascontiguousarray(squares()[:, 55:]), 300)
    # The left square's left corners are 5 px from the border now.
    assert len(whole) > len(cut) > 0
    assert cut.position[:, 0].min() > 10
