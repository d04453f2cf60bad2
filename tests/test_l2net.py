"""L2-Net: the published layout, its input normalisation, its descriptors."""

from __future__ import annotations

import numpy as np
import oracles
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.models import l2net
from networks import check_patch_without_contrast


def patches(seed: int, m: int) -> torch.Tensor:
    return 255 * torch.rand(m, 1, 32, 32, generator=torch.Generator().manual_seed(seed))


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    return l2net.build().eval()


@given(seed=st.integers(0, 2**31))
@settings(deadline=None, max_examples=10)
def test_the_input_has_zero_mean_and_unit_unbiased_deviation(seed):
    some = patches(seed, 2)
    found = l2net.standardise(some)
    for patch, image in zip(some, found, strict=True):
        expected = oracles.standardised(patch[0].tolist())
        np.testing.assert_allclose(image[0], expected, atol=1e-5)


@pytest.mark.parametrize("value", [0.0, 37.0, 255.0])
def test_a_patch_without_contrast_gives_no_nan(network, value):
    check_patch_without_contrast(network, value)


def test_describing_is_normalising_the_raw_descriptor(network):
    some = patches(3, 3)
    with torch.no_grad():
        raw, described = network.raw(some), network(some)
    for ours, literal in zip(described, raw, strict=True):
        assert ours.tolist() == pytest.approx(oracles.unit(literal.tolist()), abs=1e-6)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_descriptors_are_normalised_in_float32(network, dtype):
    raw = network.raw(patches(4, 2)).detach()
    described = network.normalise(raw.to(dtype))
    assert described.dtype == torch.float32
    torch.testing.assert_close(described.norm(dim=1), torch.ones(2))
    # Its largest value squared would overflow float16.
    assert torch.isfinite(network.normalise(torch.full((1, 128), 6e4, dtype=torch.float16))).all()


def test_every_weight_has_a_finite_gradient_in_training():
    torch.manual_seed(0)
    network = l2net.build(width=0.25).train()
    network(patches(6, 4))[:, :3].sum().backward()
    for name, parameter in network.named_parameters():
        assert torch.isfinite(parameter.grad).all(), name
        assert parameter.grad.abs().max() > 0, name


@pytest.mark.parametrize(
    ("width", "channels"), [(1, (32, 64, 128)), (0.25, (8, 16, 32)), (1 / 32, (1, 2, 4))]
)
def test_a_thin_network_keeps_128_outputs(width, channels):
    network = l2net.build(width=width)
    outgoing = [network.features[i].out_channels for i in (0, 3, 6, 9, 12, 15, 19)]
    assert outgoing == [c for c in channels for _ in range(2)] + [128]


def test_dropout_is_the_recipes_and_acts_in_training_alone(network):
    assert l2net.build(width=0.25, dropout=0.1).features[18].p == 0.1
    some = patches(7, 2)
    with torch.no_grad():
        assert torch.equal(network(some), network(some))


def test_weights_begin_orthogonal_with_gain_six_tenths(network):
    for index in (0, 3, 6, 9, 12, 15, 19):
        weight = network.features[index].weight.detach().flatten(1)
        wide = weight.shape[0] <= weight.shape[1]
        gram = weight @ weight.T if wide else weight.T @ weight
        torch.testing.assert_close(gram, 0.36 * torch.eye(len(gram)), atol=1e-4, rtol=0)
