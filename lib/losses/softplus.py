"""Softplus triplet loss, log(1 + exp(β (d_pos − d_neg))) / β: a margin that is soft and static.

Hermans et al. (2017) propose it; DSM compares with it at β = 1 (Sec. 2, Table 3).
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lib.descriptions import Triplets


class Softplus(nn.Module):
    """Losses (n,) of n triplets.

    Args:
        beta: β > 0, the inverse of a distance; for large β the loss nears max(d_pos − d_neg, 0).

    Raises:
        ValueError: β is not positive and finite.
    """

    def __init__(self, beta: float):
        super().__init__()
        if not 0 < beta < float("inf"):
            raise ValueError(f"beta must be positive and finite, got {beta}")
        self.beta = beta

    def forward(self, triplets: Triplets) -> Tensor:
        """Return the losses; `seen` holds the mean slope in d_pos, from 0 to 1, as "mean_weight"."""
        difference = triplets.positive - triplets.negative
        self.seen = {"mean_weight": torch.sigmoid(self.beta * difference.detach()).float().mean()}
        return F.softplus(difference, beta=self.beta)


def build(beta: float = 1.0) -> Softplus:
    """Build the loss; see `Softplus`."""
    return Softplus(beta)
