"""ORB of a patch against OpenCV itself."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
import torch
from scipy.ndimage import gaussian_filter

from lib.benchmarks.subject import describe
from lib.models import orb

SIZES = pytest.mark.parametrize("size", [32, 64])


def patches(seed: int, m: int, size: int) -> np.ndarray:
    """(m, size, size) uint8 smooth textures."""
    rng = np.random.default_rng(seed)
    images = np.stack([gaussian_filter(rng.standard_normal((size, size)), 2) for _ in range(m)])
    return (127 + 40 * images / images.std()).clip(0, 255).astype(np.uint8)


def as_input(images: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(images[:, None].astype(np.float32))


def opencvs(image: np.ndarray) -> np.ndarray:
    """(32,) uint8 of the upright patch around its centre, far from any border."""
    size = image.shape[0]
    wide = np.pad(image, 40, mode="reflect")
    at = 40 + size // 2
    orb = cv2.ORB_create(nlevels=1, scaleFactor=1.2, patchSize=31)
    keypoints, described = orb.compute(wide, [cv2.KeyPoint(at, at, 31.0, 0.0)])
    assert len(keypoints) == 1
    return described[0]


@SIZES
def test_bits_are_those_of_opencv_at_the_centre(size: int) -> None:
    some = patches(0, 6, size)
    described = orb.build(size)(as_input(some))
    assert described.shape == (6, 256)
    assert described.dtype == torch.bool
    for image, bits in zip(some, described, strict=True):
        assert np.packbits(bits.numpy().astype(np.uint8)).tolist() == opencvs(image).tolist()


def test_a_patch_of_64_is_described_whole_or_by_its_middle() -> None:
    some = patches(2, 3, 64)
    halved = some.reshape(3, 32, 2, 32, 2).mean(axis=(2, 4)).round().astype(np.uint8)
    whole = describe(orb.build(), some)
    assert (whole == np.stack([opencvs(image) for image in halved])).all()
    # Smoothing reaches three pixels beyond the window.
    changed = some.copy()
    changed[:, :10], changed[:, :, :10] = 0, 0
    assert (describe(orb.build(64), changed) == describe(orb.build(64), some)).all()
    assert (describe(orb.build(), changed) != whole).any()


def test_brightness_does_not_change_it_and_a_turn_does() -> None:
    some = patches(3, 2, 32).clip(20, 200)
    model = orb.build()
    bits = model(as_input(some))
    assert torch.equal(model(as_input(some + 20)), bits)
    assert (model(as_input(np.rot90(some, axes=(1, 2)).copy())) != bits).float().mean() > 0.2


def test_a_patch_of_one_grey_value_has_no_bit_and_no_patch_gives_none() -> None:
    model = orb.build()
    assert not model(torch.full((2, 1, 32, 32), 77.0)).any()
    assert model(torch.empty(0, 1, 32, 32)).shape == (0, 256)
