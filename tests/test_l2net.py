"""L2-Net: the published layout, its input normalisation, its descriptors."""

from __future__ import annotations

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
    return l2net.build().eval()


@given(seed=st.integers(0, 2**31))
@settings(max_examples=10)
def test_the_input_has_zero_mean_and_unit_unbiased_deviation(seed):
    some = patches(seed, 2)
    found = l2net.standardise(some)
    for patch, image in zip(some, found, strict=True):
        expected = oracles.standardised(patch[0].tolist())
        np.testing.assert_allclose(image[0], expected, atol=1e-5)


def test_describing_is_normalising_the_raw_descriptor(network):
    some = patches(3, 3)
    with torch.no_grad():
        raw, described = network.raw(some), network(some)
    for ours, literal in zip(described, raw, strict=True):
        assert ours.tolist() == pytest.approx(oracles.unit(literal.tolist()), abs=1e-6)


def test_dropout_is_the_recipes_and_acts_in_training_alone(network):
    assert l2net.build(width=0.25, dropout=0.1).features[18].p == 0.1
    some = patches(7, 2)
    with torch.no_grad():
        assert torch.equal(network(some), network(some))
