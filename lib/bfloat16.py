"""Convolutions in bfloat16 on processors that have no instructions for them.

A processor without AVX-512 convolves bfloat16 by a loop that takes ten times as long as float32. The
product of two bfloat16 numbers is exact in float32, in which both ways sum: rounding the operands as
autocast does, convolving them in float32 and rounding the result gives the same numbers up to the order
of a sum, in float32's time.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode


def fast_convolutions(device: str) -> AbstractContextManager:
    """Within it convolutions in bfloat16, and their gradients, take no longer than those in float32.

    Args:
        device: as torch names it. On anything but a CPU without bfloat16 of its own nothing is changed.
    """
    native = torch.device(device).type != "cpu" or torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return nullcontext() if native else ByFloat32()


class ByFloat32(TorchFunctionMode):
    """Has what autocast convolves in bfloat16 convolved in float32, operands and results rounded."""

    def __torch_function__(
        self,
        func: Callable[..., Tensor],
        types: Sequence[type],
        args: tuple = (),
        kwargs: Mapping | None = None,
    ) -> Tensor:
        if func is not torch.conv2d or not torch.is_autocast_enabled("cpu"):
            return func(*args, **(kwargs or {}))
        # Back through each change of precision a gradient is rounded as autocast rounds it.
        rounded = [each.bfloat16().float() if isinstance(each, Tensor) else each for each in args]
        with torch.autocast("cpu", enabled=False):
            return func(*rounded, **(kwargs or {})).bfloat16()
