"""Fast bfloat16 convolutions on processors that have no instructions for them.

On a processor without AVX-512, a bfloat16 convolution is a loop that takes ten times as long as in
float32. Here the operands are rounded as autocast does, convolved in float32, and the result is rounded.
This gives the same numbers up to the order of a sum, in float32's time, because the product of two
bfloat16 numbers is exact in float32, and both ways sum in float32.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode


def fast_convolutions(device: str) -> AbstractContextManager:
    """Return a context in which bfloat16 convolutions and their gradients take no longer than float32.

    Args:
        device: torch's name of it. Only a CPU without native bfloat16 is affected.
    """
    native = torch.device(device).type != "cpu" or torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return nullcontext() if native else ByFloat32()


class ByFloat32(TorchFunctionMode):
    """A mode that runs autocast's bfloat16 convolutions in float32, rounding operands and results."""

    def __torch_function__(
        self,
        func: Callable[..., Tensor],
        types: Sequence[type],
        args: tuple = (),
        kwargs: Mapping | None = None,
    ) -> Tensor:
        if func is not torch.conv2d or not torch.is_autocast_enabled("cpu"):
            return func(*args, **(kwargs or {}))
        # In the backward pass each conversion rounds the gradient as autocast does.
        rounded = [each.bfloat16().float() if isinstance(each, Tensor) else each for each in args]
        with torch.autocast("cpu", enabled=False):
            return func(*rounded, **(kwargs or {})).bfloat16()
