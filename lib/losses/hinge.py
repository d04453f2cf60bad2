"""Hinge triplet loss, max(t + d_pos − d_neg, 0).

HardNet takes it on distances; on squared Euclidean distances it is AdaSample's HT (Eq. 14), on squared
angles its AHT (Eq. 15). On `lib.distances.hybrid` it is HyNet's Eq. 6, on `lib.positives.topology`
TCDesc's Eq. 9. The distance is an axis of its own (`lib.distances`).
"""

from torch import Tensor, nn

from lib.descriptions import Triplets


class Hinge(nn.Module):
    """Losses (n,) of n triplets.

    Args:
        margin: t of Eq. 14, on the scale of the distance.
    """

    def __init__(self, margin: float):
        super().__init__()
        self.margin = margin

    def forward(self, triplets: Triplets) -> Tensor:
        """max(t + d_pos − d_neg, 0); `seen` holds the share of triplets without loss as "zero_share"."""
        losses = (self.margin + triplets.positive - triplets.negative).clamp(min=0)
        self.seen = {"zero_share": (losses.detach() <= 0).float().mean()}
        return losses


def build(margin: float = 1.0) -> Hinge:
    """Build the loss; see `Hinge`."""
    return Hinge(margin)
