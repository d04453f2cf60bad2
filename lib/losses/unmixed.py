"""A weighted loss whose weights come from the pairs' plain distances, although d_pos is a mixed one.

TCDesc mixes a topology distance into d_pos. With DSM's loss it then weights by d_pos − d_neg, with the
mixed d_pos. Here the loss takes the mixed d_pos too, but the histogram and CDF (DSM, Eq. 5) take the
plain distance.
"""

from dataclasses import replace

import torch
from torch import Tensor, nn

from lib.descriptions import Triplets
from lib.distances import Distance


class Unmixed(nn.Module):
    """Losses (n,) of a loss that weights by ``mined``.

    Args:
        loss: the loss.
        distance: the triplets' plain distance, before anything is mixed in.
    """

    def __init__(self, loss: nn.Module, distance: Distance):
        super().__init__()
        self.loss, self.distance = loss, distance

    def forward(self, triplets: Triplets) -> Tensor:
        """Return the losses; `seen` is that of the loss."""
        with torch.no_grad():
            code = triplets.descriptions.code
            mined = self.distance.paired(*code) - triplets.negatives.distances(code, self.distance)
        losses = self.loss(replace(triplets, mined=mined))
        self.seen = self.loss.seen
        return losses


def build(loss: nn.Module, distance: Distance) -> Unmixed:
    """Build the loss; see `Unmixed`."""
    return Unmixed(loss, distance)
