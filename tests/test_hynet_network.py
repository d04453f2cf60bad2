"""HyNet's network: the published layout, its descriptors, and its forms with batch and instance norm."""

from __future__ import annotations

import kornia.feature
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from lib.models import hynet
from lib.models.frn import FRN, TLU


def patches(seed: int, m: int) -> Tensor:
    return 255 * torch.rand(m, 1, 32, 32, generator=torch.Generator().manual_seed(seed))


@pytest.fixture(scope="module")
def published() -> nn.Module:
    """Another implementation of the published network, whose parameters all differ."""
    torch.manual_seed(0)
    network = kornia.feature.HyNet(pretrained=False)
    with torch.no_grad():
        for name, value in network.state_dict().items():
            if name.endswith(("tau", "bias", "running_mean")):
                value += 0.2 * torch.randn_like(value)
            elif value.is_floating_point() and "eps" not in name and value.dim() != 4:
                value += torch.rand_like(value)
    return network.eval()


@pytest.fixture(scope="module")
def network(published: nn.Module) -> hynet.HyNet:
    network = hynet.HyNet().eval()
    network.load_state_dict(published.state_dict(), strict=True)
    return network


@given(seed=st.integers(0, 2**31))
@settings(max_examples=5)
def test_the_descriptors_equal_those_of_another_implementation(network, published, seed):
    batch = patches(seed, 3)
    with torch.no_grad():
        torch.testing.assert_close(network(batch), published(batch), atol=2e-6, rtol=0)


def test_the_gradients_equal_those_of_the_other_implementation(published):
    """One backward pass in training mode: the fused FRN and TLU against the two written out."""
    ours, theirs = hynet.HyNet(dropout=0.0).train(), kornia.feature.HyNet(False, drop_rate=0.0).train()
    for model in (ours, theirs):
        model.load_state_dict(published.state_dict())
        (model(patches(1, 6))[:, ::7].sum()).backward()
    for (name, mine), other in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        assert (mine.grad - other.grad).norm() <= 1e-3 * other.grad.norm(), name


def test_the_initial_weights_are_pytorchs_and_the_thresholds_minus_one():
    torch.manual_seed(3)
    ours = hynet.HyNet()
    torch.manual_seed(3)
    theirs = kornia.feature.HyNet(pretrained=False)
    for name, value in theirs.state_dict().items():
        assert torch.equal(ours.state_dict()[name], value), name
    assert all((layer.tau == -1).all() for layer in ours.modules() if isinstance(layer, TLU))


@pytest.mark.parametrize("norm", ["batch", "instance"])
def test_another_norm_is_built_into_the_authors_l2net_or_into_hynet(norm):
    kind = hynet.NORMS[norm]
    theirs, ours = hynet.HyNet(0.25, norm), hynet.HyNet(0.25, norm, around="hynet")
    kinds = [[type(layer) for layer in network.modules()] for network in (theirs, ours)]
    assert [types.count(nn.ReLU) for types in kinds] == [6, 0]
    assert [types.count(TLU) for types in kinds] == [0, 7]
    assert [types.count(FRN) for types in kinds] == [0, 1]
    assert isinstance(theirs.layer1[0], nn.InstanceNorm2d)
    assert isinstance(theirs.layer2[1], kind)
    assert [network.layer2[0].bias is None for network in (theirs, ours)] == [True, False]
    assert [network.layer2[1].affine for network in (theirs, ours)] == [False, True]
    assert {name for name, _ in theirs.named_parameters()} == {
        "layer1.1.weight",
        *(f"layer{i}.0.weight" for i in range(2, 7)),
        "layer7.1.weight",
    }
    for network in (theirs, ours):
        assert isinstance(network.layer7[2], nn.BatchNorm2d)
        assert not network.layer7[2].affine
        assert network.layer7[1].bias is None


def test_the_form_with_batch_norm_is_the_published_l2net_of_hynets_code():
    """Its layers are SOSNet's in order, as in another implementation."""
    torch.manual_seed(1)
    theirs = kornia.feature.SOSNet(pretrained=False).eval()
    ours = hynet.HyNet(norm="batch").eval()
    values = iter(theirs.state_dict().values())
    ours.load_state_dict({name: next(values) for name in ours.state_dict()})
    with torch.no_grad():
        torch.testing.assert_close(ours(patches(3, 3)), theirs(patches(3, 3)), atol=1e-6, rtol=0)


def test_a_raw_descriptor_of_zero_gets_a_direction(network):
    """The authors add 1e-10 to each value, so that nothing is divided by zero."""
    torch.testing.assert_close(network.normalise(torch.zeros(1, 128)), torch.full((1, 128), 128**-0.5))
