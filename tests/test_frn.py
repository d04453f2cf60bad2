"""FRN and TLU: what they compute, and that run as one they compute the same, gradients included."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from lib.models import frn
from lib.models.frn import FRN, FRNTLU, TLU, Fused

seeds = st.integers(0, 2**31)
# Channels that fill a processor's vectors and that do not, one pixel, and pixels of an odd number.
SHAPES = [(3, 1, 4, 4), (2, 5, 3, 7), (4, 16, 8, 8), (1, 300, 2, 2), (5, 2, 1, 1)]


def maps(seed: int, *shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    drawn = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return drawn.to(dtype)


def layers(channels: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Fused:
    """An FRN and a TLU with parameters of which none is alike."""
    draw = torch.Generator().manual_seed(seed)
    both = Fused(FRN(channels), TLU(channels)).to(dtype)
    for parameter in both.parameters():
        parameter.data += 0.5 * torch.randn(parameter.shape, generator=draw, dtype=torch.float64)
    return both


def written_out(both: Fused, of: Tensor) -> Tensor:
    return nn.Sequential.forward(both, of)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_map_is_divided_by_its_own_root_mean_square(shape) -> None:
    """Eq. 8 pixel by pixel; no mean is subtracted."""
    of, both = maps(1, *shape), layers(shape[1])
    with torch.no_grad():
        normalised = both[0](of)
    for i in range(shape[0]):
        for c in range(shape[1]):
            pixels = of[i, c].flatten().tolist()
            power = sum(f * f for f in pixels) / len(pixels)
            gamma, beta = (float(p.detach().flatten()[c]) for p in (both[0].weight, both[0].bias))
            expected = [gamma * f / (power + 1e-6) ** 0.5 + beta for f in pixels]
            assert normalised[i, c].flatten().tolist() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_the_sign_of_epsilon_does_not_matter(sign: float) -> None:
    of, both = maps(1, 2, 3, 4, 4), layers(3)
    both[0].eps.fill_(sign * 0.5)
    expected = of / (of.square().mean((2, 3), keepdim=True) + 0.5).sqrt()
    scaled = both[0].weight * expected + both[0].bias
    torch.testing.assert_close(both[0](of), scaled)
    torch.testing.assert_close(both(of), torch.maximum(scaled, both[1].tau))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("channels_last", [False, True])
@given(seed=seeds, stretch=st.sampled_from([1, 50, 2**17]))
@settings(max_examples=8)
def test_run_as_one_they_give_the_values_and_gradients_of_the_two(
    shape, channels_last, seed, stretch
) -> None:
    both, toward = layers(shape[1], seed), maps(seed + 1, *shape)
    of = maps(seed, *shape)
    if channels_last:
        of, toward = (each.contiguous(memory_format=torch.channels_last) for each in (of, toward))
    of.requires_grad_()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(frn, "STRETCH", stretch)
        found = both(of)
        gradients = torch.autograd.grad((found * toward).sum(), [of, *both.parameters()])
    expected = written_out(both, of)
    literal = torch.autograd.grad((expected * toward).sum(), [of, *both.parameters()])
    torch.testing.assert_close(found, expected)
    assert found.is_contiguous(memory_format=torch.channels_last)
    for ours, theirs in zip(gradients, literal, strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("shape", [(2, 3, 4, 4), (3, 1, 2, 3)])
def test_the_gradient_by_hand_is_that_of_differences(shape) -> None:
    norm, threshold = layers(shape[1], seed=3)
    # No value on its threshold, where there is no slope.
    of = [maps(4, *shape), norm.weight.detach(), norm.bias.detach(), threshold.tau.detach()]
    leaves = [each.clone().requires_grad_() for each in of]
    passed = (written_out(nn.Sequential(norm), leaves[0]) > threshold.tau).double().mean()
    assert 0.1 < passed < 0.9, "both sides of the threshold are looked at"
    assert torch.autograd.gradcheck(lambda *leaf: FRNTLU.apply(*leaf, norm.eps), leaves)


def test_on_the_threshold_the_gradient_is_tau_s() -> None:
    of = torch.zeros(1, 1, 2, 2, requires_grad=True)
    weight, bias, tau = (torch.full((1, 1, 1, 1), v, requires_grad=True) for v in (1.0, -1.0, -1.0))
    FRNTLU.apply(of, weight, bias, tau, torch.tensor([1e-6])).sum().backward()
    assert (tau.grad.item(), bias.grad.item()) == (4.0, 0.0)


@pytest.mark.parametrize("value", [0.0, 1e-30, 37.0, 1e15])
def test_a_flat_map_gives_finite_values_and_gradients(value: float) -> None:
    of = torch.full((2, 3, 4, 4), value, requires_grad=True)
    both = layers(3, dtype=torch.float32)
    both(of).sum().backward()
    for gradient in (of.grad, *(parameter.grad for parameter in both.parameters())):
        assert torch.isfinite(gradient).all()


def test_squares_of_bfloat16_are_summed_in_float32() -> None:
    """1,024 ones and small values behind them: in bfloat16 the sum would stay at 256."""
    of = torch.ones(1, 1, 32, 32, dtype=torch.bfloat16)
    for both in (Fused(FRN(1), TLU(1)), nn.Sequential(FRN(1), TLU(1))):
        assert both(of).dtype == torch.bfloat16
        assert torch.equal(both(of), of)


@given(seed=seeds, scale=st.sampled_from([1e-8, 1.0, 1e9]))
def test_in_bfloat16_both_ways_agree_and_stay_finite(seed: int, scale: float) -> None:
    of = (scale * maps(seed, 3, 8, 6, 6)).bfloat16().requires_grad_()
    both, toward = layers(8, seed, torch.float32), maps(seed + 1, 3, 8, 6, 6).bfloat16()
    found, expected = both(of), written_out(both, of)
    torch.testing.assert_close(found, expected, rtol=0.01, atol=0.01)
    wide = of.detach().float().requires_grad_()
    ours = torch.autograd.grad((found * toward).sum(), [of, *both.parameters()])
    theirs = torch.autograd.grad((written_out(both, wide) * toward).sum(), [wide, *both.parameters()])
    for found, expected in zip(ours, theirs, strict=True):
        assert torch.isfinite(found).all()
        # Where all lie below their thresholds, no gradient passes.
        apart = (found.float() - expected).norm()
        assert apart <= 0.03 * expected.norm()


def test_no_more_than_the_input_is_kept_for_the_backward_pass() -> None:
    of, both, kept = maps(0, 4, 8, 16, 16).requires_grad_(), layers(8), []
    with torch.autograd.graph.saved_tensors_hooks(kept.append, lambda tensor: tensor):
        both(of)
    assert sum(tensor.numel() for tensor in kept) < 1.1 * of.numel()
    assert any(tensor.data_ptr() == of.data_ptr() for tensor in kept)
