"""Properties of every network that describes patches."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from lib.models import cs_l2net, hynet, l2net, l2net_binary, l2net_maps, tfeat

FLOAT = {
    "l2net": l2net.L2Net,
    "l2net with maps": l2net_maps.L2NetMaps,
    "cs-l2net": cs_l2net.CSL2Net,
    "tfeat": tfeat.TFeat,
    **{
        f"hynet, {norm} around {around}": lambda width, norm=norm, around=around: hynet.HyNet(
            width, norm, around=around
        )
        for norm, around in [
            ("frn", "hynet"),
            *((norm, around) for norm in ("batch", "instance") for around in ("l2net", "hynet")),
        ]
    },
}
NETWORKS = {**FLOAT, "l2net, binary": l2net_binary.L2NetBinary}
EVERY = pytest.mark.parametrize("name", NETWORKS)


def build_network(name: str, width: float = 0.25) -> nn.Module:
    torch.manual_seed(0)
    return NETWORKS[name](width)


def patches(network: nn.Module, seed: int, count: int) -> Tensor:
    draw = torch.Generator().manual_seed(seed)
    return 255 * torch.rand(count, 1, network.input_size, network.input_size, generator=draw)


def flat(network: nn.Module, value: float) -> Tensor:
    return torch.full((1, 1, network.input_size, network.input_size), value)


@EVERY
def test_every_weight_has_a_finite_gradient_in_training_with_a_flat_patch_in_the_batch(name):
    network = build_network(name).train()
    batch = torch.cat([patches(network, 6, 4), flat(network, 77.0)])
    descriptors = network.normalise(network.raw(batch)) if name == "l2net, binary" else network(batch)
    (descriptors[:, ::7] * torch.randn(descriptors[:, ::7].shape)).sum().backward()
    for parameter_name, parameter in network.named_parameters():
        assert torch.isfinite(parameter.grad).all(), parameter_name
        # Grey values are not negative, so none at HyNet's input is below its threshold.
        assert (parameter.grad.abs().max() > 0) == (parameter_name != "layer1.1.tau"), parameter_name


@EVERY
def test_patches_of_another_size_are_refused_with_what_resizes_them(name: str) -> None:
    network = build_network(name).eval()
    for side in {32, 64, 65} - {network.input_size}:
        with pytest.raises(ValueError, match=rf"got {side} by {side}: resize them, as lib\.features"):
            network(torch.zeros(2, 1, side, side))


@pytest.mark.parametrize("value", [0.0, 37.0, 255.0])
@pytest.mark.parametrize("name", FLOAT)
def test_a_patch_without_contrast_has_a_finite_descriptor_and_gradient(name, value):
    network = build_network(name).eval()
    patch = flat(network, value).requires_grad_()
    descriptors = network(patch)
    descriptors.sum().backward()
    assert torch.isfinite(descriptors).all()
    assert torch.isfinite(patch.grad).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", sorted(set(FLOAT) - {"tfeat"}))
def test_half_precision_descriptors_are_normalised_in_float32(name, dtype):
    network = build_network(name).eval()
    raw = network.raw(patches(network, 4, 2))
    raw = raw[0] if isinstance(raw, tuple) else raw
    # The square of float16's largest value overflows it.
    for values in (raw.detach().to(dtype), torch.full_like(raw, 6e4, dtype=dtype)):
        descriptors = network.normalise(values)
        assert descriptors.dtype == torch.float32
        torch.testing.assert_close(descriptors.norm(dim=1), torch.ones(2))


@pytest.mark.parametrize("width", [1 / 32, 0.25, 1])
@EVERY
def test_width_scales_the_inner_channels_and_not_the_descriptors(name, width):
    network = build_network(name, width).eval()
    with torch.no_grad():
        descriptors = network(patches(network, 7, 2))
    assert descriptors.shape[1] == {"cs-l2net": 256, "l2net, binary": 256}.get(name, 128)
    convolutions = [layer for layer in network.modules() if isinstance(layer, nn.Conv2d)]
    inner = {layer.out_channels for layer in convolutions} - {descriptors.shape[1], 128}
    published = {32, 64} if name == "tfeat" else {32, 64, 128}
    assert inner == {round(width * channels) for channels in published} - {128}


@pytest.mark.parametrize("name", ["l2net", "l2net, binary"])
def test_weights_begin_orthogonal_with_gain_six_tenths(name):
    for layer in build_network(name).modules():
        if isinstance(layer, nn.Conv2d):
            weight = layer.weight.detach().flatten(1)
            gram = weight @ weight.T if weight.shape[0] <= weight.shape[1] else weight.T @ weight
            torch.testing.assert_close(gram, 0.36 * torch.eye(len(gram)), atol=1e-4, rtol=0)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")
@pytest.mark.parametrize("name", ["l2net", "hynet, frn around hynet"])
def test_a_network_traced_or_exported_with_four_patches_describes_any_number(name: str) -> None:
    network = build_network(name).eval()
    few, more = patches(network, 1, 4), patches(network, 2, 9)
    with torch.no_grad():
        traced = torch.jit.trace(network, few)
        count = torch.export.Dim("count", min=2, max=64)
        exported = torch.export.export(network, (few,), dynamic_shapes=({0: count},)).module()
        for recorded in (traced, exported):
            torch.testing.assert_close(recorded(more), network(more), atol=1e-5, rtol=0)
