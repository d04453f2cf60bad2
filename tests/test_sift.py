"""SIFT and RootSIFT of a patch: their descriptors, and the smoothing at which gradients are taken."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from kornia.feature import SIFTDescriptor
from scipy.ndimage import gaussian_filter

from lib.models import sift

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
def test_by_default_it_is_kornias_on_the_cut_as_it_is(root):
    some = patches(0, 4)
    expected = SIFTDescriptor(patch_size=32, rootsift=root)(some / 255)
    assert torch.equal(sift.build(root=root)(some), expected)


@SMOOTHINGS
@BOTH
def test_descriptors_are_finite_non_negative_and_of_unit_length(root, smoothing):
    described = sift.build(root=root, smoothing=smoothing)(patches(1, 5))
    assert described.shape == (5, 128)
    assert described.dtype == torch.float32
    assert described.min() >= 0
    np.testing.assert_allclose(described.norm(dim=1), 1, atol=1e-4)


@given(value=st.integers(0, 255))
@settings(max_examples=10)
@SMOOTHINGS
@BOTH
def test_a_patch_of_one_grey_value_has_the_flat_histogram_and_leaves_others_as_they_are(
    root, smoothing, value
):
    model, some = sift.build(root=root, smoothing=smoothing), patches(3, 2)
    described = model(torch.cat([some[:1], torch.full((1, 1, 32, 32), float(value)), some[1:]]))
    np.testing.assert_allclose(described[1], 128**-0.5, rtol=1e-6)
    assert torch.equal(described[[0, 2]], model(some))


def test_smoothing_brings_the_patch_from_what_it_has_already_to_what_is_asked_for():
    """Half a px of the 64 by the camera and half a px by the 2×2 means are there."""
    some = patches(4, 3)
    # A px of the 32 is two of the 64.
    sigma = np.sqrt(4.6**2 - 0.5**2 - 0.5**2) / 2
    smooth = np.stack([gaussian_filter(p[0].double().numpy(), sigma, mode="mirror") for p in some])
    expected = sift.build()(torch.from_numpy(smooth[:, None]).float())
    found = sift.build(smoothing=4.6)(some)
    np.testing.assert_allclose(found, expected, atol=2e-3)
    assert (found - sift.build()(some)).abs().max() > 0.05
