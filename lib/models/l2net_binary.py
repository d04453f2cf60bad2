"""L2-Net with a binary head, as DSM trains it (Sec. 3.2).

The loss takes tanh of the last layer in place of unit descriptors. Its signs are compared at test, so
negatives are mined on the signs too.
"""

import torch
from torch import Tensor, nn

from lib.models.l2net import L2Net


class L2NetBinary(L2Net):
    """L2-Net's convolutions from a 32×32 patch to a binary descriptor.

    Args:
        width: share of the inner channels; the output keeps its length.
        dropout: dropout rate before the last convolution.
        length: length of the descriptor in bits.

    Raises:
        ValueError: the length is not a multiple of 8.
    """

    def __init__(self, width: float = 1.0, dropout: float = 0.1, length: int = 256):
        if length < 8 or length % 8:
            raise ValueError(f"length must be a multiple of 8, so that bits fill bytes, got {length}")
        super().__init__(width, dropout)
        last = self.features[-2]
        head = nn.Conv2d(last.in_channels, length, last.kernel_size, bias=False)
        nn.init.orthogonal_(head.weight, gain=0.6)
        self.features[-2] = head
        self.features[-1] = nn.BatchNorm2d(length, affine=False)

    @staticmethod
    def normalise(raw: Tensor) -> Tensor:
        """tanh values (n, length), which the loss differentiates, in float32 for any input type."""
        return raw.float().tanh()

    @staticmethod
    def code(value: Tensor) -> Tensor:
        """Signs (n, length), which are compared at test: 1 where the value is above 0, else −1."""
        return torch.where(value > 0, 1.0, -1.0)

    def forward(self, patches: Tensor) -> Tensor:
        """Bits (n, length) bool, true for a sign of 1, of grey patches (n, 1, 32, 32) on any scale.

        Raises:
            ValueError: a value is NaN, which has no sign.
        """
        value = self.normalise(self.raw(patches))
        if value.isnan().any():
            raise ValueError("a descriptor is not finite: the network diverged")
        return value > 0
