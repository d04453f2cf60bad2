"""L2-Net: the published layout, its input normalisation, its descriptors."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import oracles
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.models import l2net
from networks import check_patch_without_contrast

# HardNet's checkpoints: convolution and batch norm without affine parameters, ReLU, six times;
# dropout at 18; convolution over the whole 8×8 map, batch norm.
PUBLISHED = {
    "features.0.weight": (32, 1, 3, 3),
    "features.1.running_mean": (32,),
    "features.1.running_var": (32,),
    "features.3.weight": (32, 32, 3, 3),
    "features.4.running_mean": (32,),
    "features.4.running_var": (32,),
    "features.6.weight": (64, 32, 3, 3),
    "features.7.running_mean": (64,),
    "features.7.running_var": (64,),
    "features.9.weight": (64, 64, 3, 3),
    "features.10.running_mean": (64,),
    "features.10.running_var": (64,),
    "features.12.weight": (128, 64, 3, 3),
    "features.13.running_mean": (128,),
    "features.13.running_var": (128,),
    "features.15.weight": (128, 128, 3, 3),
    "features.16.running_mean": (128,),
    "features.16.running_var": (128,),
    "features.19.weight": (128, 128, 8, 8),
    "features.20.running_mean": (128,),
    "features.20.running_var": (128,),
}
# Strides by convolution; the second and third 2 take 32×32 to 8×8.
STRIDES = {0: 1, 3: 1, 6: 2, 9: 1, 12: 2, 15: 1}


def patches(seed: int, m: int) -> torch.Tensor:
    return 255 * torch.rand(m, 1, 32, 32, generator=torch.Generator().manual_seed(seed))


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    return l2net.build().eval()


def published(seed: int = 1) -> OrderedDict[str, torch.Tensor]:
    """A checkpoint of 2017: no `num_batches_tracked`, which PyTorch had not yet."""
    random = torch.Generator().manual_seed(seed)
    return OrderedDict(
        (name, torch.rand(shape, generator=random) / 10 + (name.endswith("var")))
        for name, shape in PUBLISHED.items()
    )


def test_the_state_dict_has_the_keys_and_shapes_of_the_published_checkpoints(network):
    state = network.state_dict()
    ours = {k: tuple(v.shape) for k, v in state.items() if not k.endswith("num_batches_tracked")}
    assert ours == PUBLISHED


def test_the_order_of_layers_is_the_published_one(network):
    names = [type(layer).__name__ for layer in network.features]
    assert names == ["Conv2d", "BatchNorm2d", "ReLU"] * 6 + ["Dropout", "Conv2d", "BatchNorm2d"]
    for index, stride in STRIDES.items():
        assert network.features[index].stride == (stride, stride)
        assert network.features[index].padding == (1, 1)
    assert network.features[19].padding == (0, 0)
    assert network.features[18].p == 0.3


def test_the_network_has_1_334_560_parameters(network):
    by_hand = 9 * (1 * 32 + 32 * 32 + 32 * 64 + 64 * 64 + 64 * 128 + 128 * 128) + 64 * 128 * 128
    assert by_hand == 1_334_560
    assert sum(p.numel() for p in network.parameters()) == by_hand


@pytest.mark.parametrize("ordered", [True, False])
def test_a_checkpoint_without_batch_counts_or_metadata_loads_strictly(ordered):
    checkpoint = published()
    assert not hasattr(checkpoint, "_metadata")
    network = l2net.build()
    network.load_state_dict(checkpoint if ordered else dict(checkpoint), strict=True)
    for name, value in network.state_dict().items():
        if not name.endswith("num_batches_tracked"):
            assert torch.equal(value, checkpoint[name])


def test_a_checkpoint_that_lacks_a_layer_is_refused():
    checkpoint = published()
    del checkpoint["features.19.weight"]
    with pytest.raises(RuntimeError, match=r"features\.19\.weight"):
        l2net.build().load_state_dict(checkpoint)


@given(seed=st.integers(0, 2**31), m=st.integers(1, 4))
@settings(deadline=None, max_examples=10)
def test_descriptors_have_length_128_and_unit_norm(network, seed, m):
    with torch.no_grad():
        described = network(patches(seed, m))
    assert described.shape == (m, 128)
    torch.testing.assert_close(described.norm(dim=1), torch.ones(m))


@given(seed=st.integers(0, 2**31), gain=st.floats(0.1, 5), offset=st.floats(-200, 200))
@settings(deadline=None, max_examples=10)
def test_brightness_and_contrast_do_not_change_a_descriptor(network, seed, gain, offset):
    some = patches(seed, 2)
    with torch.no_grad():
        torch.testing.assert_close(network(gain * some + offset), network(some), atol=1e-3, rtol=0)


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


def test_the_gradient_through_the_normalisation_is_orthogonal_to_the_raw_descriptor():
    raw = torch.randn(2, 128, generator=torch.Generator().manual_seed(5)).requires_grad_()
    network = l2net.build(width=1 / 32)
    weights = torch.randn(2, 128, generator=torch.Generator().manual_seed(6))
    (network.normalise(raw) * weights).sum().backward()
    radial = (raw.grad * raw.detach()).sum(dim=1)
    assert radial.abs().max().item() < 1e-4
    assert raw.grad.norm().item() > 0.1


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


def test_a_width_that_leaves_no_channel_is_refused():
    with pytest.raises(ValueError, match=r"width 0\.01 leaves no channel"):
        l2net.build(width=0.01)


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
