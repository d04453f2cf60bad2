"""HyNet's L_B (Eq. 9): a hinge on similarities plus a hinge on distances of the same triplet.

L_B = α max(0, m₁ + s⁻ − s⁺) + max(0, m₂ + d⁺ − d⁻). The paper prints s⁺ − s⁻, which pulls positives
apart as in L_A, because s is a similarity; the sign is corrected here. The distance is Euclidean, at
power 1, so that s⁻ − s⁺ = (d⁺² − d⁻²)/2 for unit descriptors, and the ε under the root drops out.
"""

from torch import Tensor, nn

from lib.descriptions import Triplets


class StackedHinge(nn.Module):
    """Losses (n,) of n triplets with Euclidean distances between unit descriptors.

    Args:
        alpha: α, the weight of the hinge on similarities.
        similarity_margin: m₁.
        distance_margin: m₂.

    Raises:
        ValueError: α is below 0.
    """

    def __init__(self, alpha: float, similarity_margin: float, distance_margin: float):
        super().__init__()
        if not alpha >= 0:
            raise ValueError(f"α must be 0 or more, got {alpha}")
        self.alpha = alpha
        self.similarity_margin, self.distance_margin = similarity_margin, distance_margin

    def forward(self, triplets: Triplets) -> Tensor:
        """Return the losses; `seen` holds the share of triplets without loss as "zero_share"."""
        positive, negative = triplets.positive, triplets.negative
        by_similarity = self.similarity_margin + (positive.square() - negative.square()) / 2
        by_distance = self.distance_margin + positive - negative
        losses = self.alpha * by_similarity.clamp(min=0) + by_distance.clamp(min=0)
        self.seen = {"zero_share": (losses.detach() <= 0).float().mean()}
        return losses


def build(
    alpha: float = 2.0, similarity_margin: float = 0.9, distance_margin: float = 1.2
) -> StackedHinge:
    """Build the loss; see `StackedHinge`."""
    return StackedHinge(alpha, similarity_margin, distance_margin)
