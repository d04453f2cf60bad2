"""BRISK's keypoints: of a square the corners, at its scale; in a total order; of nothing none."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from lib.features import detectors
from lib.features.detectors import brisk_keypoints


def squares(side: int = 40) -> np.ndarray:
    """Two squares, with a little noise: of equally strong corners side by side FAST takes none."""
    image = np.full((240, 320), 60.0, np.float32)
    for x, y in ((60, 60), (200, 120)):
        image[y : y + side, x : x + side] = np.linspace(160, 250, side)
    noisy = cv2.GaussianBlur(image, (0, 0), 1.0) + np.random.default_rng(0).normal(0, 1, image.shape)
    return np.uint8(noisy.clip(0, 255))


def blobs(sigma: float) -> np.ndarray:
    """Bright spots, far from each other."""
    image = np.zeros((300, 400), np.float32)
    for x, y in ((80, 70), (200, 150), (320, 230)):
        image[y, x] = 1.0
    image = cv2.GaussianBlur(image, (0, 0), sigma)
    return np.uint8(40 + 200 * image / image.max())


def test_the_corners_of_squares_are_found_to_within_two_pixels_of_their_layer() -> None:
    found = brisk_keypoints(squares(), 300)
    pixel = found.scale / detectors.BRISK_SCALE
    for x, y in ((60, 60), (99, 60), (60, 99), (99, 99), (200, 120), (239, 159)):
        assert (np.abs(found.position - (x, y)).max(1) / pixel).min() <= 2


@pytest.mark.parametrize("times", [2.0, 3.0])
def test_a_larger_blob_is_found_in_a_coarser_layer_at_the_same_place(times: float) -> None:
    """An image enlarged so many times has its keypoints at scales as many times as large."""
    small, large = (brisk_keypoints(blobs(of), 3) for of in (2.0, 2.0 * times))
    assert len(small) == len(large) == 3
    for place in ((80, 70), (200, 150), (320, 230)):
        for of in (small, large):
            assert np.linalg.norm(of.position - place, axis=1).min() <= times
    assert np.median(large.scale) / np.median(small.scale) == pytest.approx(times, rel=0.51)
    assert large.scale.min() > small.scale.max()


def test_no_keypoint_has_a_stronger_one_near_it_in_a_layer_beside() -> None:
    random = np.random.default_rng(0)
    image = cv2.GaussianBlur(random.integers(0, 255, (160, 200)).astype(np.uint8), (0, 0), 1.5)
    image = cv2.normalize(image, None, 0, 255, cv2.NORM_MINMAX)
    every = np.concatenate([detectors._brisk_corners(image, pixel) for pixel in detectors.BRISK_LAYERS])
    found = brisk_keypoints(image, 10_000)
    assert 0 < len(found) < len(every)
    layers = np.searchsorted(detectors.BRISK_LAYERS, every[:, 2])
    for place, scale in zip(found.position, found.scale, strict=True):
        layer = int(np.argmin(np.abs(np.array(detectors.BRISK_LAYERS) - scale / detectors.BRISK_SCALE)))
        [own] = every[(every[:, :2] == place).all(1) & (layers == layer)]
        away = np.linalg.norm(every[:, :2] - place, axis=1)
        near = every[(np.abs(layers - layer) == 1) & (away <= detectors.BRISK_REACH * own[2])]
        assert (near[:, 3] <= own[3]).all()


def test_fewer_are_the_strongest_and_twice_the_same() -> None:
    image = squares()
    every, some = brisk_keypoints(image, 300), brisk_keypoints(image, 5)
    assert len(some) == 5
    np.testing.assert_array_equal(some.position, every.position[:5])
    np.testing.assert_array_equal(some.orientation, every.orientation[:5])


def test_an_orientation_turns_with_the_image() -> None:
    image = squares()
    turned = cv2.rotate(image, cv2.ROTATE_90_CLOCKWISE)
    before, after = brisk_keypoints(image, 300), brisk_keypoints(turned, 300)
    turns = []
    for place, angle in zip(before.position, before.orientation, strict=True):
        away = np.linalg.norm(after.position - (len(image) - 1 - place[1], place[0]), axis=1)
        if away.min() < 0.5:
            turns.append((after.orientation[away.argmin()] - angle) % (2 * np.pi))
    assert len(turns) >= 6
    assert np.median(turns) == pytest.approx(np.pi / 2, abs=0.2)


def test_a_plain_image_has_none() -> None:
    assert len(brisk_keypoints(np.full((64, 64), 90, np.uint8), 300)) == 0
