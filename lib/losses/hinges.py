"""Losses of one triplet each, functions of d_pos and d_neg: the hinge in its forms, and other margins.

None of them is a whole paper, because the distance is an axis of its own (`lib.losses.distances`).
`Hinge` on Euclidean distances is HardNet's loss, on their squares AdaSample's HT (Eq. 14), on squared
angles its AHT (Eq. 15), on HyNet's hybrid similarity its Eq. 6, and with `lib.losses.topology` TCDesc's
Eq. 9.
"""

from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lib.losses.descriptions import Triplets


class Hinge(nn.Module):
    """max(t + d_pos − d_neg, 0) of n triplets, (n,).

    Args:
        margin: t of Eq. 14, on the scale of the distance.
    """

    def __init__(self, margin: float = 1.0):
        super().__init__()
        self.margin = margin

    def forward(self, triplets: Triplets) -> Tensor:
        """Return the losses; `seen` holds the share of triplets without loss as "zero_share"."""
        losses = (self.margin + triplets.positive - triplets.negative).clamp(min=0)
        self.seen = {"zero_share": (losses.detach() <= 0).float().mean()}
        return losses


class SquaredHinge(Hinge):
    """SOSNet's loss (Tian et al., CVPR 2019), max(t + d_pos − d_neg, 0)² of n triplets, (n,)."""

    def forward(self, triplets: Triplets) -> Tensor:
        """Return the losses; `seen` as `Hinge` has it."""
        return super().forward(triplets).square()


class MixedHinge(Hinge):
    """HyNet's L_A (Eq. 9): positives by similarity, negatives by distance, max(0, m + (1 − s⁺) − d⁻).

    As printed, max(0, m + s⁺ − d⁻), it pulls positives apart, because s is a similarity; the sign is
    corrected here. The distance is Euclidean, at power 1, so that 1 − s = d²/2 for unit descriptors. The
    ε under its root adds ε/2 to 1 − s, and so to the margin.
    """

    def forward(self, triplets: Triplets) -> Tensor:
        """Return the losses (n,); `seen` as `Hinge` has it."""
        return super().forward(replace(triplets, positive=triplets.positive.square() / 2))


class StackedHinge(nn.Module):
    """HyNet's L_B (Eq. 9): a hinge on similarities plus a hinge on distances of the same triplet.

    L_B = α max(0, m₁ + s⁻ − s⁺) + max(0, m₂ + d⁺ − d⁻). The paper prints s⁺ − s⁻, which pulls positives
    apart as in L_A; the sign is corrected here. The distance is Euclidean, at power 1, so that
    s⁻ − s⁺ = (d⁺² − d⁻²)/2 for unit descriptors, and the ε under the root drops out.

    Args:
        alpha: α, the weight of the hinge on similarities.
        similarity_margin: m₁.
        distance_margin: m₂.

    Raises:
        ValueError: α is below 0.
    """

    def __init__(self, alpha: float = 2.0, similarity_margin: float = 0.9, distance_margin: float = 1.2):
        super().__init__()
        if not alpha >= 0:
            raise ValueError(f"α must be 0 or more, got {alpha}")
        self.alpha = alpha
        self.similarity_margin, self.distance_margin = similarity_margin, distance_margin

    def forward(self, triplets: Triplets) -> Tensor:
        """Return the losses (n,); `seen` as `Hinge` has it."""
        positive, negative = triplets.positive, triplets.negative
        by_similarity = self.similarity_margin + (positive.square() - negative.square()) / 2
        by_distance = self.distance_margin + positive - negative
        losses = self.alpha * by_similarity.clamp(min=0) + by_distance.clamp(min=0)
        self.seen = {"zero_share": (losses.detach() <= 0).float().mean()}
        return losses


class Softplus(nn.Module):
    """log(1 + exp(β (d_pos − d_neg))) / β of n triplets, (n,): a margin that is soft and static.

    Hermans et al. (2017) propose it; DSM compares with it at β = 1 (Sec. 2, Table 3).

    Args:
        beta: β > 0, the inverse of a distance; for large β the loss nears max(d_pos − d_neg, 0).

    Raises:
        ValueError: β is not positive and finite.
    """

    def __init__(self, beta: float = 1.0):
        super().__init__()
        if not 0 < beta < float("inf"):
            raise ValueError(f"beta must be positive and finite, got {beta}")
        self.beta = beta

    def forward(self, triplets: Triplets) -> Tensor:
        """Return the losses; `seen` holds the mean slope in d_pos, from 0 to 1, as "mean_weight"."""
        difference = triplets.positive - triplets.negative
        self.seen = {"mean_weight": torch.sigmoid(self.beta * difference.detach()).float().mean()}
        return F.softplus(difference, beta=self.beta)


class HardestFraction(nn.Module):
    """d_pos − d_neg of only the hardest of n triplets: a margin that is hard and dynamic.

    DeepDesc back-propagates the hardest eighth; DSM compares with it (Sec. 2, Table 3). The mean of the
    n losses is the mean of d_pos − d_neg over the triplets kept.

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
        """Return d_pos − d_neg times n over the number kept, and 0 for the other triplets, (n,).

        A triplet is hard if the difference is large on the descriptors compared at test; of equally hard
        ones the first are kept. `seen` holds as "margin" the margin that would have cut at this place.
        """
        n = len(triplets.mined)
        kept = max(1, round(self.fraction * n))
        hardest = triplets.mined.argsort(descending=True, stable=True)[:kept]
        self.seen = {"margin": -triplets.mined[hardest[-1]]}
        difference = triplets.positive - triplets.negative
        return torch.zeros_like(difference).index_fill(0, hardest, n / kept) * difference
