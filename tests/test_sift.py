"""SIFT and RootSIFT of a patch: their descriptors, and the smoothing at which gradients are taken."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from kornia.feature import SIFTDescriptor
from scipy.ndimage import gaussian_filter

from lib.models import handcrafted

BOTH = pytest.mark.parametrize("root", [False, True])
SMOOTHINGS = pytest.mark.parametrize("smoothing", [0.0, 4.6])


def patches(seed: int, m: int) -> torch.Tensor:
    """Smooth textures with some noise, 0 to 255."""
    rng = np.random.default_rng(seed)
    images = [gaussian_filter(rng.standard_normal((32, 32)), 3) for _ in range(m)]
    images = np.stack([127 + 40 * image / image.std() for image in images])
    images = (images + rng.normal(0, 4, images.shape)).clip(0, 255)
    return torch.from_numpy(images[:, None].astype(np.float32))


@BOTH
def test_the_default_is_kornias_sift_of_the_unchanged_patch(root):
    batch = patches(0, 4)
    expected = SIFTDescriptor(patch_size=32, rootsift=root)(batch / 255)
    assert torch.equal(handcrafted.Sift(root=root)(batch), expected)


@SMOOTHINGS
@BOTH
def test_descriptors_are_finite_non_negative_and_of_unit_length(root, smoothing):
    descriptors = handcrafted.Sift(root=root, smoothing=smoothing)(patches(1, 5))
    assert descriptors.shape == (5, 128)
    assert descriptors.dtype == torch.float32
    assert descriptors.min() >= 0
    np.testing.assert_allclose(descriptors.norm(dim=1), 1, atol=1e-4)


@SMOOTHINGS
@BOTH
def test_patches_of_0_to_1_have_the_descriptors_of_those_of_0_to_255(root, smoothing):
    model, batch = handcrafted.Sift(root=root, smoothing=smoothing), patches(5, 4)
    # Faint ones too, and those of one grey value.
    batch = torch.cat([batch, 100 + batch / 100, torch.full((1, 1, 32, 32), 80.0)])
    np.testing.assert_allclose(model(batch / 255), model(batch), atol=1e-4)


@given(value=st.integers(0, 255))
@settings(max_examples=10)
@SMOOTHINGS
@BOTH
def test_a_patch_of_one_grey_value_has_a_flat_histogram_and_leaves_others_unchanged(
    root, smoothing, value
):
    model, batch = handcrafted.Sift(root=root, smoothing=smoothing), patches(3, 2)
    descriptors = model(torch.cat([batch[:1], torch.full((1, 1, 32, 32), float(value)), batch[1:]]))
    np.testing.assert_allclose(descriptors[1], 128**-0.5, rtol=1e-6)
    assert torch.equal(descriptors[[0, 2]], model(batch))


def test_smoothing_takes_the_existing_blur_of_the_patch_into_account():
    """The camera and the 2×2 means have each blurred it by half a px of the 64."""
    batch = patches(4, 3)
    # One px of the 32 is two of the 64.
    sigma = np.sqrt(4.6**2 - 0.5**2 - 0.5**2) / 2
    smooth = np.stack([gaussian_filter(p[0].double().numpy(), sigma, mode="mirror") for p in batch])
    expected = handcrafted.Sift()(torch.from_numpy(smooth[:, None]).float())
    actual = handcrafted.Sift(smoothing=4.6)(batch)
    np.testing.assert_allclose(actual, expected, atol=2e-3)
    assert (actual - handcrafted.Sift()(batch)).abs().max() > 0.05
