"""Which points make up a batch. A recipe that says nothing draws new points for each batch."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

# From n, the number of points wanted, to n distinct points, int64; has state_dict if it keeps a state.
Points = Callable[[int, torch.Generator], Tensor]


class Shuffled(nn.Module):
    """All points in one random order after another: each is used once before any is used again.

    DSM's code does this (Sec. 5.1, "without replacement", leaves it open). Points left at the end of an
    order that are too few for a batch are dropped, as a batch loader does.

    Args:
        count: number of points.
        device: device of their indices.
    """

    def __init__(self, count: int, device: str = "cpu"):
        super().__init__()
        self.register_buffer("order", torch.arange(count, device=device))
        self.register_buffer("used", torch.tensor(count))

    def forward(self, n: int, generator: torch.Generator) -> Tensor:
        """Return n distinct points, (n,) int64; n is at most ``count``."""
        if int(self.used) + n > len(self.order):
            self.order = torch.randperm(len(self.order), generator=generator, device=self.order.device)
            self.used.zero_()
        start = int(self.used)
        self.used += n
        return self.order[start : start + n]
