"""DOAP's loss (He, Lu and Sclaroff, CVPR 2018): the average precision of every descriptor of the batch
as a query among all others, made differentiable by soft histograms of distance.

    AP = (1/N⁺) Σ_l c⁺_l (C⁺_{l−1} + C⁺_l + 1) / (C_{l−1} + C_l + 1)

c counts all others and c⁺ the matching ones at nodes l of the distance, and C are running sums. Each
descriptor is shared between its two neighbouring nodes by linear interpolation. This is the simplified
tie-aware AP of the same author's released hashing code (kunhe/TALR, ``apr_s_forward.m``), which has the
same nodes. A query has one match in a batch of pairs, so N⁺ = 1.
"""

import torch
from torch import Tensor, nn

from lib.losses.descriptions import Triplets, at_least_float32
from lib.losses.distances import Distance


class AveragePrecision(nn.Module):
    """Losses (n,) in [−1, 0] of n pairs: the mean −AP of the anchor and the positive as queries.

    Args:
        distance: ranks the other descriptors; Hamming distance for tanh values. A root needs its ε,
            because the query's distance to itself is computed too.
        bins: number of bins between 0 and the largest distance, with bins + 1 nodes. DOAP's number
            could not be read for this study; FastAP, by the same author, has 10.

    Raises:
        ValueError: fewer than 1 bin.
    """

    def __init__(self, distance: Distance, bins: int = 10):
        super().__init__()
        if bins < 1:
            raise ValueError(f"take 1 bin or more, got {bins}")
        self.distance, self.bins = distance, bins

    def forward(self, triplets: Triplets) -> Tensor:
        """Return −AP of each pair; a distance outside the range counts at its end."""
        both = at_least_float32(triplets.descriptions.value.flatten(0, 1))
        every = torch.arange(len(both), device=both.device)
        reach = self.distance.matrix(both, both) / self.distance.maximum
        position = (reach * self.bins).clamp(0, self.bins)
        match = position[every, every.roll(len(both) // 2), None]
        others = (every != every[:, None]).to(position.dtype)
        at, at_match = self._counts(position, others), self._counts(match, torch.ones_like(match))
        through, through_match = at.cumsum(dim=1), at_match.cumsum(dim=1)
        # C_{l−1} + C_l = 2 C_l − c_l.
        precision = (2 * through_match - at_match + 1) / (2 * through - at + 1)
        return -(at_match * precision).sum(dim=1).view(2, -1).mean(dim=0)

    def _counts(self, position: Tensor, counted: Tensor) -> Tensor:
        """Soft counts (m, bins + 1) of positions (m, c) in 0…bins, each weighted by ``counted``."""
        nodes = self.bins + 1
        # NaN gets a node too, and its share is NaN, so that the loss becomes NaN.
        lower = position.detach().nan_to_num().floor().clamp(max=self.bins - 1)
        upper_share = position - lower
        row = nodes * torch.arange(len(position), device=position.device)[:, None]
        node = (row + lower.long()).flatten()
        # Add along one axis, where a GPU adds in a fixed order too.
        counts = position.new_zeros(len(position) * nodes)
        counts = counts.index_add(0, node, (counted * (1 - upper_share)).flatten())
        counts = counts.index_add(0, node + 1, (counted * upper_share).flatten())
        return counts.view(len(position), nodes)
