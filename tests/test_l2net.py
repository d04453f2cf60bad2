"""L2-Net: the published layout, its input normalisation, its descriptors."""

from __future__ import annotations

import copy

import numpy as np
import oracles
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.models import l2net


def patches(seed: int, m: int) -> torch.Tensor:
    return 255 * torch.rand(m, 1, 32, 32, generator=torch.Generator().manual_seed(seed))


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    return l2net.L2Net().eval()


@given(seed=st.integers(0, 2**31))
@settings(max_examples=10)
def test_the_input_has_zero_mean_and_unit_unbiased_deviation(seed):
    batch = patches(seed, 2)
    standardised = l2net.standardise(batch)
    for patch, image in zip(batch, standardised, strict=True):
        expected = oracles.standardised(patch[0].tolist())
        np.testing.assert_allclose(image[0], expected, atol=1e-5)


def test_a_descriptor_is_the_normalised_raw_descriptor(network):
    batch = patches(3, 3)
    with torch.no_grad():
        raw, descriptors = network.raw(batch), network(batch)
    for descriptor, raw_descriptor in zip(descriptors, raw, strict=True):
        assert descriptor.tolist() == pytest.approx(oracles.unit(raw_descriptor.tolist()), abs=1e-6)


def test_dropout_is_the_recipes_and_acts_only_in_training(network):
    assert l2net.L2Net(width=0.25, dropout=0.1).features[18].p == 0.1
    batch = patches(7, 2)
    with torch.no_grad():
        assert torch.equal(network(batch), network(batch))
        training = copy.deepcopy(network).train()
        assert not torch.equal(training(batch), training(batch))
