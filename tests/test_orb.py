"""ORB of a patch against OpenCV itself."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
import torch
from scipy.ndimage import gaussian_filter

from lib.benchmarks.subject import describe
from lib.models import handcrafted

SIZES = pytest.mark.parametrize("size", [32, 64])


def patches(seed: int, m: int, size: int) -> np.ndarray:
    """(m, size, size) uint8 smooth textures."""
    rng = np.random.default_rng(seed)
    images = np.stack([gaussian_filter(rng.standard_normal((size, size)), 2) for _ in range(m)])
    return (127 + 40 * images / images.std()).clip(0, 255).astype(np.uint8)


def as_input(images: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(images[:, None].astype(np.float32))


def opencv_descriptor(image: np.ndarray) -> np.ndarray:
    """OpenCV's (32,) uint8 at the centre of an upright patch, far from any border."""
    size = image.shape[0]
    padded = np.pad(image, 40, mode="reflect")
    centre = 40 + size // 2
    detector = cv2.ORB_create(nlevels=1, scaleFactor=1.2, patchSize=31)
    keypoints, descriptors = detector.compute(padded, [cv2.KeyPoint(centre, centre, 31.0, 0.0)])
    assert len(keypoints) == 1
    return descriptors[0]


@SIZES
def test_bits_are_those_of_opencv_at_the_centre(size: int) -> None:
    images = patches(0, 6, size)
    described = handcrafted.Orb(size)(as_input(images))
    assert described.shape == (6, 256)
    assert described.dtype == torch.bool
    for image, bits in zip(images, described, strict=True):
        assert np.packbits(bits.numpy().astype(np.uint8)).tolist() == opencv_descriptor(image).tolist()


def test_a_patch_of_64_is_described_whole_or_by_its_middle() -> None:
    images = patches(2, 3, 64)
    halved = images.reshape(3, 32, 2, 32, 2).mean(axis=(2, 4)).round().astype(np.uint8)
    whole = describe(handcrafted.Orb(), images)
    assert (whole == np.stack([opencv_descriptor(image) for image in halved])).all()
    # Smoothing reaches three pixels beyond the window.
    changed = images.copy()
    changed[:, :10], changed[:, :, :10] = 0, 0
    assert (describe(handcrafted.Orb(64), changed) == describe(handcrafted.Orb(64), images)).all()
    assert (describe(handcrafted.Orb(), changed) != whole).any()


def test_brightness_does_not_change_bits_and_a_turn_does() -> None:
    images = patches(3, 2, 32).clip(20, 200)
    model = handcrafted.Orb()
    bits = model(as_input(images))
    assert torch.equal(model(as_input(images + 20)), bits)
    assert (model(as_input(np.rot90(images, axes=(1, 2)).copy())) != bits).float().mean() > 0.2


def test_kornias_patches_of_0_to_1_have_the_bits_of_0_to_255() -> None:
    model, images = handcrafted.Orb(), as_input(patches(4, 5, 32))
    assert torch.equal(model(images / 255), model(images))
    overshot = (images / 255 * 1.3).clamp(max=1.1)
    assert torch.equal(model(overshot), model((255 * overshot).clamp(max=255)))


def test_a_uniform_patch_sets_no_bit_and_an_empty_batch_gives_no_row() -> None:
    model = handcrafted.Orb()
    assert not model(torch.full((2, 1, 32, 32), 77.0)).any()
    assert model(torch.empty(0, 1, 32, 32)).shape == (0, 256)
