"""Negatives within the batch: which other patch is the negative of each matching pair.

One module each, with `build(**options)` returning a `Mine`, which finds `Negatives` for a batch.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from lib.distances import Distance


@dataclass(frozen=True)
class Negatives:
    """A negative for each of the n pairs.

    Rows are counted through both sides: i is anchor i, n + i is positive i.

    Attributes:
        query: (n,) int64, the patch of the pair that the negative lies close to.
        patch: (n,) int64, the negative itself.
        found: (n,) bool, false where every candidate was taken for a false negative.
    """

    query: Tensor
    patch: Tensor
    found: Tensor

    def distances(self, descriptors: Tensor, distance: Distance) -> Tensor:
        """Return d_neg (n,) with its gradient; the largest possible distance where none was found.

        Args:
            descriptors: (2, n, k) of anchors and positives.
            distance: the distance, at the power that the loss takes.
        """
        both = descriptors.flatten(0, 1)
        mined = distance.paired(both[self.query], both[self.patch])
        return torch.where(self.found, mined, torch.full_like(mined, distance.maximum))


# From (2, n, k) descriptors of anchors and positives, as they are compared at test, to negatives.
Mine = Callable[[Tensor, Distance], Negatives]
