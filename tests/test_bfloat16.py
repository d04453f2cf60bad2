"""Convolutions in bfloat16 by float32 kernels: the numbers of autocast, in float32's time."""

import torch
from torch import Tensor
from torch.nn.functional import conv2d

from lib.bfloat16 import ByFloat32, fast_convolutions

# A number of bfloat16 stands for those within half a unit of its eighth binary digit.
ROUNDING = 2**-8


def convolved(images: Tensor, kernels: Tensor) -> list[Tensor]:
    """A convolution under autocast, and the gradients of its sum of squares."""
    images, kernels = images.clone().requires_grad_(), kernels.clone().requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        out = conv2d(images, kernels, stride=2, padding=1)
    out.float().square().sum().backward()
    return [out.detach(), images.grad, kernels.grad]


def drawn() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(4, 8, 9, 9, generator=generator)
    return images, torch.randn(16, 8, 3, 3, generator=generator)


def test_a_convolution_and_its_gradients_are_autocast_s_up_to_the_order_of_sums() -> None:
    plain = convolved(*drawn())
    with ByFloat32():
        ours = convolved(*drawn())
    for one, other in zip(ours, plain, strict=True):
        assert one.dtype == other.dtype
        scale = other.float().abs().max()
        assert (one.float() - other.float()).abs().max() <= 2 * ROUNDING * scale


def test_what_comes_out_is_the_rounded_convolution_of_the_rounded_operands() -> None:
    images, kernels = drawn()
    exact = conv2d(images.bfloat16().double(), kernels.bfloat16().double(), stride=2, padding=1)
    with ByFloat32():
        ours = convolved(images, kernels)[0]
    torch.testing.assert_close(ours.double(), exact, rtol=ROUNDING, atol=1e-5)
    assert not torch.equal(ours.double(), exact)


def test_float32_is_left_alone() -> None:
    plain = conv2d(*drawn())
    with ByFloat32():
        assert torch.equal(conv2d(*drawn()), plain)


def test_it_is_for_processors_without_bfloat16_alone() -> None:
    own = torch.ops.mkldnn._is_mkldnn_bf16_supported()
    assert isinstance(fast_convolutions("cpu"), ByFloat32) == (not own)
    assert not isinstance(fast_convolutions("cuda:0"), ByFloat32)
