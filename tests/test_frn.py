"""FRN and TLU: their values, and that the fused layer gives the same values and gradients."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from lib.models import frn
from lib.models.frn import FRN, FRNTLU, TLU, Fused

seeds = st.integers(0, 2**31)
# Channels that do and do not fill a processor's vectors, one pixel, and an odd number of pixels.
SHAPES = [(3, 1, 4, 4), (2, 5, 3, 7), (4, 16, 8, 8), (1, 300, 2, 2), (5, 2, 1, 1)]


def maps(seed: int, *shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    drawn = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return drawn.to(dtype)


def layers(channels: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Fused:
    """An FRN and a TLU whose parameters all differ."""
    draw = torch.Generator().manual_seed(seed)
    fused = Fused(FRN(channels), TLU(channels)).to(dtype)
    for parameter in fused.parameters():
        parameter.data += 0.5 * torch.randn(parameter.shape, generator=draw, dtype=torch.float64)
    return fused


def unfused(fused: Fused, features: Tensor) -> Tensor:
    return nn.Sequential.forward(fused, features)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_map_is_divided_by_its_own_root_mean_square(shape) -> None:
    """Eq. 8 pixel by pixel; no mean is subtracted."""
    features, fused = maps(1, *shape), layers(shape[1])
    with torch.no_grad():
        normalised = fused[0](features)
    for i in range(shape[0]):
        for c in range(shape[1]):
            pixels = features[i, c].flatten().tolist()
            power = sum(f * f for f in pixels) / len(pixels)
            gamma, beta = (float(p.detach().flatten()[c]) for p in (fused[0].weight, fused[0].bias))
            expected = [gamma * f / (power + 1e-6) ** 0.5 + beta for f in pixels]
            assert normalised[i, c].flatten().tolist() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_the_sign_of_epsilon_does_not_matter(sign: float) -> None:
    features, fused = maps(1, 2, 3, 4, 4), layers(3)
    fused[0].eps.fill_(sign * 0.5)
    expected = features / (features.square().mean((2, 3), keepdim=True) + 0.5).sqrt()
    scaled = fused[0].weight * expected + fused[0].bias
    torch.testing.assert_close(fused[0](features), scaled)
    torch.testing.assert_close(fused(features), torch.maximum(scaled, fused[1].tau))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("channels_last", [False, True])
@given(seed=seeds, stretch=st.sampled_from([1, 50, 2**17]))
@settings(max_examples=8)
def test_the_fused_layer_gives_the_values_and_gradients_of_the_two(
    shape, channels_last, seed, stretch
) -> None:
    fused, upstream = layers(shape[1], seed), maps(seed + 1, *shape)
    features = maps(seed, *shape)
    if channels_last:
        features, upstream = (
            tensor.contiguous(memory_format=torch.channels_last) for tensor in (features, upstream)
        )
    features.requires_grad_()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(frn, "STRETCH", stretch)
        actual = fused(features)
        gradients = torch.autograd.grad((actual * upstream).sum(), [features, *fused.parameters()])
    expected = unfused(fused, features)
    expected_gradients = torch.autograd.grad(
        (expected * upstream).sum(), [features, *fused.parameters()]
    )
    torch.testing.assert_close(actual, expected)
    assert actual.is_contiguous(memory_format=torch.channels_last)
    for ours, theirs in zip(gradients, expected_gradients, strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("shape", [(2, 3, 4, 4), (3, 1, 2, 3)])
def test_the_manual_gradient_equals_finite_differences(shape) -> None:
    norm, threshold = layers(shape[1], seed=3)
    # No value lies on its threshold, where there is no slope.
    tensors = [maps(4, *shape), norm.weight.detach(), norm.bias.detach(), threshold.tau.detach()]
    leaves = [tensor.clone().requires_grad_() for tensor in tensors]
    above = (unfused(nn.Sequential(norm), leaves[0]) > threshold.tau).double().mean()
    assert 0.1 < above < 0.9, "both sides of the threshold are looked at"
    assert torch.autograd.gradcheck(lambda *leaf: FRNTLU.apply(*leaf, norm.eps), leaves)


def test_the_gradient_on_the_threshold_goes_to_tau() -> None:
    features = torch.zeros(1, 1, 2, 2, requires_grad=True)
    weight, bias, tau = (torch.full((1, 1, 1, 1), v, requires_grad=True) for v in (1.0, -1.0, -1.0))
    FRNTLU.apply(features, weight, bias, tau, torch.tensor([1e-6])).sum().backward()
    assert (tau.grad.item(), bias.grad.item()) == (4.0, 0.0)


@pytest.mark.parametrize("value", [0.0, 1e-30, 37.0, 1e15])
def test_a_flat_map_gives_finite_values_and_gradients(value: float) -> None:
    features = torch.full((2, 3, 4, 4), value, requires_grad=True)
    fused = layers(3, dtype=torch.float32)
    fused(features).sum().backward()
    for gradient in (features.grad, *(parameter.grad for parameter in fused.parameters())):
        assert torch.isfinite(gradient).all()


def test_squares_of_bfloat16_are_summed_in_float32() -> None:
    """1,024 ones: in bfloat16 their sum would stay at 256."""
    features = torch.ones(1, 1, 32, 32, dtype=torch.bfloat16)
    for layer in (Fused(FRN(1), TLU(1)), nn.Sequential(FRN(1), TLU(1))):
        assert layer(features).dtype == torch.bfloat16
        assert torch.equal(layer(features), features)


@given(seed=seeds, scale=st.sampled_from([1e-8, 1.0, 1e9]))
def test_both_ways_agree_and_stay_finite_in_bfloat16(seed: int, scale: float) -> None:
    features = (scale * maps(seed, 3, 8, 6, 6)).bfloat16().requires_grad_()
    fused, upstream = layers(8, seed, torch.float32), maps(seed + 1, 3, 8, 6, 6).bfloat16()
    actual, expected = fused(features), unfused(fused, features)
    torch.testing.assert_close(actual, expected, rtol=0.01, atol=0.01)
    wide = features.detach().float().requires_grad_()
    ours = torch.autograd.grad((actual * upstream).sum(), [features, *fused.parameters()])
    theirs = torch.autograd.grad((unfused(fused, wide) * upstream).sum(), [wide, *fused.parameters()])
    for actual, expected in zip(ours, theirs, strict=True):
        assert torch.isfinite(actual).all()
        # Where all values lie below their thresholds, no gradient passes.
        error = (actual.float() - expected).norm()
        assert error <= 0.03 * expected.norm()


def test_the_backward_pass_stores_no_more_than_the_input() -> None:
    features, fused, saved = maps(0, 4, 8, 16, 16).requires_grad_(), layers(8), []
    with torch.autograd.graph.saved_tensors_hooks(saved.append, lambda tensor: tensor):
        fused(features)
    assert sum(tensor.numel() for tensor in saved) < 1.1 * features.numel()
    assert any(tensor.data_ptr() == features.data_ptr() for tensor in saved)
