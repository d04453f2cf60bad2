"""A soft margin that stays where it is put: softplus of d_pos − d_neg + margin.

Its slope by d_pos is the CDF of a logistic distribution of d_pos − d_neg: DSM's weight (Eq. 5) if no
batch moved the distribution. With no margin it is softplus itself.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lib.descriptions import Triplets


class SoftMargin(nn.Module):
    """Losses (n,) of n triplets.

    Args:
        margin: minus the distribution's mean: a triplet with d_neg − d_pos at the margin weighs ½.
        deviation: its standard deviation, π / (√3 β) of softplus' β; both on the scale of the distance.

    Raises:
        ValueError: the deviation is not positive and finite.
    """

    def __init__(self, margin: float, deviation: float):
        super().__init__()
        if not 0 < deviation < float("inf"):
            raise ValueError(f"deviation must be positive and finite, got {deviation}")
        self.margin, self.beta = margin, math.pi / (math.sqrt(3) * deviation)

    def forward(self, triplets: Triplets) -> Tensor:
        """The losses; `seen` holds the mean slope by d_pos, between 0 and 1, as "mean_weight"."""
        beyond = triplets.positive - triplets.negative + self.margin
        self.seen = {"mean_weight": torch.sigmoid(self.beta * beyond.detach()).float().mean()}
        return F.softplus(beyond, beta=self.beta)


def build(margin: float, deviation: float) -> SoftMargin:
    """The loss; see `SoftMargin`."""
    return SoftMargin(margin, deviation)
