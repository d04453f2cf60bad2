"""SOSNet's triplet loss (Tian et al., CVPR 2019): the square of the hinge, max(0, m + d⁺ − d⁻)²."""

from torch import Tensor

from lib.descriptions import Triplets
from lib.losses.hinge import Hinge


class SquaredHinge(Hinge):
    """Losses (n,) of n triplets.

    Args:
        margin: m, on the scale of the distance.
    """

    def forward(self, triplets: Triplets) -> Tensor:
        """Return the losses; `seen` holds the share of triplets without loss as "zero_share"."""
        return super().forward(triplets).square()


def build(margin: float = 1.0) -> SquaredHinge:
    """Build the loss; see `SquaredHinge`."""
    return SquaredHinge(margin)
