"""A weighted loss whose weights are of the pairs' own distances, where the positive is a mixed one.

TCDesc mixes a topology distance into d_pos, and on DSM it then weighs by d_pos − d_neg of the mixed one.
Here the loss is of the mixed one too, but histogram and CDF (DSM, Eq. 5) are of the distance alone.
"""

from dataclasses import replace

import torch
from torch import Tensor, nn

from lib.descriptions import Triplets
from lib.distances import Distance


class Unmixed(nn.Module):
    """Losses (n,) of a loss that looks at ``mined``.

    Args:
        loss: weighs by it.
        distance: what the triplets' distances are of, but for what is mixed in.
    """

    def __init__(self, loss: nn.Module, distance: Distance):
        super().__init__()
        self.loss, self.distance = loss, distance

    def forward(self, triplets: Triplets) -> Tensor:
        """The losses; `seen` is that of the loss."""
        with torch.no_grad():
            code = triplets.descriptions.code
            mined = self.distance.paired(*code) - triplets.negatives.distances(code, self.distance)
        losses = self.loss(replace(triplets, mined=mined))
        self.seen = self.loss.seen
        return losses


def build(loss: nn.Module, distance: Distance) -> Unmixed:
    """The loss; see `Unmixed`."""
    return Unmixed(loss, distance)
