"""L2-Net's loss (Tian et al., CVPR 2017), E1 + E2 + E3, over all descriptors and maps of the batch.

The paper could not be read for this study: the terms are from memory of it, and a public port has the
same terms. With y¹ and y² the unit descriptors of anchors and positives:

    E1 = −½ Σ_i (log s^c_ii + log s^r_ii), s the softmax of 2 − ‖y¹_i − y²_j‖ over columns and over rows
    E2 = ½ Σ_{p ≠ q} (r¹_pq² + r²_pq²), r the correlations between dimensions before normalisation
    E3 = −½ Σ_maps Σ_i (log v^c_ii + log v^r_ii), v the same softmax of inner products of the maps
"""

import torch.nn.functional as F
from torch import Tensor, nn

from lib.losses.descriptions import Triplets, at_least_float32
from lib.losses.distances import euclidean


class L2NetLoss(nn.Module):
    """Losses (n,) of n pairs, whose sum is E1 + E2 + E3.

    A pair's loss is its own terms of E1 and E3 plus 1/n of E2, which belongs to the batch. The mean of
    the losses is therefore 1/n of the paper's sum, with the weights of the terms unchanged.
    """

    def __init__(self):
        super().__init__()
        self.distance = euclidean(power=1)

    def forward(self, triplets: Triplets) -> Tensor:
        """Return the losses; `seen` holds the three terms' means over pairs as "e1", "e2" and "e3".

        Raises:
            ValueError: there are no feature maps.
        """
        described = triplets.descriptions
        if not described.maps:
            raise ValueError(
                "L2-Net's loss takes feature maps too: give descriptors and maps as they come from raw "
                "of a network that returns them, e.g. lib.models.l2net_maps"
            )
        # The 2 of 2 − D changes no softmax.
        anchors, positives = at_least_float32(described.value)
        similarity = _unlikeliness(-self.distance.matrix(anchors, positives))
        anchors, positives = at_least_float32(described.raw)
        redundancy = (_redundancy(anchors) + _redundancy(positives)) / 2
        shared = redundancy / len(similarity)
        # Products of maps in half precision, as autocast leaves them, would overflow.
        flat = (at_least_float32(sides).flatten(2) for sides in described.maps)
        maps = sum(_unlikeliness(anchors @ positives.mT) for anchors, positives in flat)
        terms = {"e1": similarity.mean(), "e2": shared, "e3": maps.mean()}
        self.seen = {name: term.detach() for name, term in terms.items()}
        return similarity + shared + maps


def _unlikeliness(scores: Tensor) -> Tensor:
    """−½ (log softmax over columns + log softmax over rows) of scores (n, n), its diagonal (n,)."""
    return -(scores.log_softmax(dim=1) + scores.log_softmax(dim=0)).diagonal() / 2


def _redundancy(descriptors: Tensor) -> Tensor:
    """The sum of squared correlations between different dimensions of descriptors (n, k)."""
    centred = descriptors - descriptors.mean(dim=0)
    # A dimension that is the same everywhere correlates with nothing.
    unit = F.normalize(centred, dim=0, eps=1e-6)
    squares = (unit.mT @ unit).square()
    return squares.sum() - squares.diagonal().sum()
