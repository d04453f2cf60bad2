"""d_pos − d_neg of only the hardest triplets of the batch: a margin that is hard and dynamic.

DeepDesc back-propagates the hardest eighth; DSM compares with it (Sec. 2, Table 3).
"""

import torch
from torch import Tensor, nn

from lib.descriptions import Triplets


class HardestFraction(nn.Module):
    """Losses (n,) of n triplets, whose mean is the mean of d_pos − d_neg over the triplets kept.

    Args:
        fraction: share of the batch that is kept, in (0, 1]; rounded to whole triplets, at least one.

    Raises:
        ValueError: the fraction is out of range.
    """

    def __init__(self, fraction: float):
        super().__init__()
        if not 0 < fraction <= 1:
            raise ValueError(f"fraction must be above 0 and at most 1, got {fraction}")
        self.fraction = fraction

    def forward(self, triplets: Triplets) -> Tensor:
        """Return d_pos − d_neg times n over the number kept, and 0 for the other triplets.

        A triplet is hard if the difference is large on the descriptors compared at test; of equally hard
        ones the first are kept. `seen` holds as "margin" the margin that would have cut at this place.
        """
        n = len(triplets.mined)
        kept = max(1, round(self.fraction * n))
        hardest = triplets.mined.argsort(descending=True, stable=True)[:kept]
        self.seen = {"margin": -triplets.mined[hardest[-1]]}
        difference = triplets.positive - triplets.negative
        return torch.zeros_like(difference).index_fill(0, hardest, n / kept) * difference


def build(fraction: float) -> HardestFraction:
    """Build the loss; see `HardestFraction`."""
    return HardestFraction(fraction)
