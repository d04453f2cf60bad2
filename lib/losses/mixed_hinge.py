"""HyNet's L_A (Eq. 9): positives by similarity, negatives by distance, max(0, m + (1 − s⁺) − d⁻).

As printed, max(0, m + s⁺ − d⁻), it pulls positives apart, because s is a similarity; the sign is
corrected here. The distance is Euclidean, at power 1, so that 1 − s = d²/2 for unit descriptors. The ε
under its root adds ε/2 to 1 − s, and so to the margin.
"""

from dataclasses import replace

from torch import Tensor

from lib.descriptions import Triplets
from lib.losses.hinge import Hinge


class MixedHinge(Hinge):
    """Losses (n,) of n triplets with Euclidean distances between unit descriptors.

    Args:
        margin: m.
    """

    def forward(self, triplets: Triplets) -> Tensor:
        """Return the losses; `seen` holds the share of triplets without loss as "zero_share"."""
        return super().forward(replace(triplets, positive=triplets.positive.square() / 2))


def build(margin: float = 1.0) -> MixedHinge:
    """Build the loss; see `MixedHinge`."""
    return MixedHinge(margin)
