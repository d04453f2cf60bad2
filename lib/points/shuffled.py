"""All points in random order, then in another: each is used once before any is used again.

DSM's code goes through its points so (Sec. 5.1, "without replacement", leaves it open). What is left of
an order and too few for a batch is dropped, as a loader of batches does.
"""

import torch
from torch import Tensor, nn


class Shuffled(nn.Module):
    """Takes the points of a batch from the present order, and makes the next one where it ends.

    Args:
        count: points that there are.
        device: where their numbers live.
    """

    def __init__(self, count: int, device: str = "cpu"):
        super().__init__()
        self.register_buffer("order", torch.arange(count, device=device))
        self.register_buffer("used", torch.tensor(count))

    def forward(self, n: int, generator: torch.Generator) -> Tensor:
        """(n,) int64 distinct points; n is at most their count."""
        if int(self.used) + n > len(self.order):
            self.order = torch.randperm(len(self.order), generator=generator, device=self.order.device)
            self.used.zero_()
        start = int(self.used)
        self.used += n
        return self.order[start : start + n]


def build(count: int, device: str = "cpu") -> Shuffled:
    """The order; see `Shuffled`."""
    return Shuffled(count, device)
