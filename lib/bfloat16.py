"""Convolutions in bfloat16 on processors that have no instructions for them.

A processor without AVX-512 convolves bfloat16 by a loop that takes ten times as long as float32. The
product of two bfloat16 numbers is exact in float32, in which both ways sum: rounding the operands as
autocast does, convolving them in float32 and rounding the result gives the same numbers up to the order
of a sum, in float32's time.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

_CONVOLUTIONS = frozenset(
    {torch.ops.aten.convolution.default, torch.ops.aten.convolution_backward.default}
)


def fast_convolutions(device: str) -> AbstractContextManager:
    """Within it convolutions in bfloat16, and their gradients, take no longer than those in float32.

    Args:
        device: as torch names it. On anything but a CPU without bfloat16 of its own nothing is changed.
    """
    native = torch.device(device).type != "cpu" or torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return nullcontext() if native else ByFloat32()


class ByFloat32(TorchDispatchMode):
    """Convolves bfloat16 in float32 and rounds what comes out, forward and backward."""

    def __torch_dispatch__(
        self, func: object, types: Sequence[type], args: tuple = (), kwargs: Mapping | None = None
    ) -> object:
        if func not in _CONVOLUTIONS or args[0].dtype is not torch.bfloat16:
            return func(*args, **(kwargs or {}))
        wide = tree_map_only(torch.Tensor, torch.Tensor.float, args)
        return tree_map_only(torch.Tensor, torch.Tensor.bfloat16, func(*wide, **(kwargs or {})))
