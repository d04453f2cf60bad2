"""Convolutions in bfloat16 by float32 kernels: autocast's numbers in float32's time."""

import torch
from torch import Tensor
from torch.nn.functional import conv2d

from lib.bfloat16 import ByFloat32, fast_convolutions

# A bfloat16 number represents those within half a unit of its eighth binary digit.
ROUNDING = 2**-8


def convolved(images: Tensor, kernels: Tensor) -> list[Tensor]:
    """Return a convolution under autocast and the gradients of its sum of squares."""
    images, kernels = images.clone().requires_grad_(), kernels.clone().requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        out = conv2d(images, kernels, stride=2, padding=1)
    out.float().square().sum().backward()
    return [out.detach(), images.grad, kernels.grad]


def random_operands() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(4, 8, 9, 9, generator=generator)
    return images, torch.randn(16, 8, 3, 3, generator=generator)


def test_a_convolution_and_its_gradients_equal_autocast_s_up_to_the_order_of_sums() -> None:
    plain = convolved(*random_operands())
    with ByFloat32():
        ours = convolved(*random_operands())
    for actual, expected in zip(ours, plain, strict=True):
        assert actual.dtype == expected.dtype
        scale = expected.float().abs().max()
        assert (actual.float() - expected.float()).abs().max() <= 2 * ROUNDING * scale


def test_the_output_is_the_rounded_convolution_of_the_rounded_operands() -> None:
    images, kernels = random_operands()
    exact = conv2d(images.bfloat16().double(), kernels.bfloat16().double(), stride=2, padding=1)
    with ByFloat32():
        ours = convolved(images, kernels)[0]
    torch.testing.assert_close(ours.double(), exact, rtol=ROUNDING, atol=1e-5)
    assert not torch.equal(ours.double(), exact)


def test_float32_is_unchanged() -> None:
    plain = conv2d(*random_operands())
    with ByFloat32():
        assert torch.equal(conv2d(*random_operands()), plain)


def test_only_processors_without_bfloat16_use_float32() -> None:
    supported = torch.ops.mkldnn._is_mkldnn_bf16_supported()
    assert isinstance(fast_convolutions("cpu"), ByFloat32) == (not supported)
    assert not isinstance(fast_convolutions("cuda:0"), ByFloat32)
