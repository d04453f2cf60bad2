"""Negatives within the batch: which other patch is the negative of each matching pair.

All four papers take the hardest one (HardNet), but from different sets of patches; TFeat draws one at
random.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from lib.losses.distances import Distance


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
Mining = Callable[[Tensor, Distance], Negatives]

# The (query's side, negative's side) that compete, 0 for anchors and 1 for positives.
SCOPES = {
    "across": ((0, 1), (1, 0)),
    "within": ((0, 0), (1, 1)),
    "all": ((0, 0), (1, 1), (0, 1), (1, 0)),
}


@dataclass(frozen=True)
class Hardest:
    """The non-matching patch that lies closest to one of the two matching ones.

    Attributes:
        scope: which pairs of patches compete, for pair i over all j ≠ i:
            "across": (a_i, p_j) and (a_j, p_i), the rows and columns of HardNet's distance matrix;
            "within": (a_i, a_j) and (p_i, p_j), AdaSample's Eq. 14 as printed;
            "all": all four, (a_i, a_j), (p_i, p_j), (a_i, p_j) and (p_i, a_j), SOSNet and HyNet.
        floor: a negative closer than this (the distance itself, not its square) is taken for a
            false negative and passed over; 0 passes over none. A pair whose candidates are all closer
            has no negative, as in HardNet's and DSM's code. Under "all" it gets the closest of them,
            as in SOSNet's and HyNet's, where the floor only decides the choice.

    Raises:
        ValueError: an unknown scope.
    """

    scope: str
    floor: float = 0.008

    def __post_init__(self) -> None:
        if self.scope not in SCOPES:
            raise ValueError(f"scope must be 'across', 'within' or 'all', got {self.scope!r}")

    @torch.no_grad()
    def __call__(self, descriptors: Tensor, distance: Distance) -> Negatives:
        """Find the negatives of n pairs.

        Args:
            descriptors: (2, n, k) of anchors a and positives p, n ≥ 2; row i of both is a matching pair.
            distance: decides which patch is closest.

        Returns:
            Of equally close negatives the first, in the order above and then by j.

        Raises:
            ValueError: fewer than two pairs.
        """
        n = _pairs(descriptors)
        indices = torch.arange(n, device=descriptors.device)
        blocks: dict[tuple[int, int], Tensor] = {}
        for query, side in SCOPES[self.scope]:
            twin = blocks.get((side, query))
            blocks[query, side] = (
                distance.matrix(descriptors[query], descriptors[side]) if twin is None else twin.mT
            )

        # Rounding can put a squared distance of zero a little below zero, and so below a floor of zero.
        competing = torch.cat(list(blocks.values()), dim=1).clamp(min=0)
        own = indices.repeat(len(blocks)) == indices[:, None]
        skipped = own | (competing < self.floor**distance.power)
        closest, column = competing.masked_fill(skipped, torch.inf).min(dim=1)
        found = torch.isfinite(closest)
        if self.scope == "all":
            regardless = competing.masked_fill(own, torch.inf).min(dim=1).indices
            column = torch.where(found, column, regardless)
            found = torch.ones_like(found)
        block = column // n
        query_side, patch_side = torch.tensor(list(blocks), device=descriptors.device)[block].unbind(1)
        return Negatives(
            query=query_side * n + indices,
            patch=patch_side * n + column % n,
            found=found,
        )


@dataclass(frozen=True)
class Random:
    """The positive of a uniformly random other pair: TFeat (Balntas et al., BMVC 2016).

    TFeat draws the negative from all patches of other points. Here it comes from the batch, whose points
    are themselves drawn at random. With anchor swapping (``*`` in TFeat's own tables and in DSM's
    Table 1), d_neg is the distance to the closer of the two matching patches, min(d(a, n), d(p, n)).

    Attributes:
        swap: whether the query is the anchor or the positive, whichever is closer (the anchor if
            equally close); otherwise it is always the anchor.
    """

    swap: bool = False

    @torch.no_grad()
    def __call__(self, descriptors: Tensor, distance: Distance) -> Negatives:
        """Draw the negatives of n pairs; all of them are found.

        They are drawn with torch's global generator of the descriptors' device. Training seeds this
        generator and keeps its state in the checkpoint.

        Args:
            descriptors: (2, n, k) of anchors and positives, n ≥ 2; row i of both is a matching pair.
            distance: decides which patch is closer for a swap.

        Raises:
            ValueError: fewer than two pairs.
        """
        n, device = _pairs(descriptors), descriptors.device
        query = torch.arange(n, device=device)
        other = (query + torch.randint(1, n, (n,), device=device)) % n
        if self.swap:
            from_anchor, from_positive = distance.paired(descriptors, descriptors[1, other])
            query = torch.where(from_positive < from_anchor, n + query, query)
        return Negatives(query, n + other, torch.ones(n, dtype=torch.bool, device=device))


def _pairs(descriptors: Tensor) -> int:
    n = descriptors.shape[1]
    if n < 2:
        raise ValueError(f"a batch of {n} pair(s) holds no negative; take 2 pairs or more")
    return n
