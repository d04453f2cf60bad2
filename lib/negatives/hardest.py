"""The hardest negative in the batch (HardNet). All four papers take it, but from different sets of
patches: see `hardest`.
"""

import torch
from torch import Tensor

from lib.distances import Distance
from lib.negatives import Mine, Negatives


def build(scope: str, floor: float = 0.008) -> Mine:
    """Mining by `hardest`, with its scope and floor."""
    return lambda descriptors, distance: hardest(descriptors, distance, scope=scope, floor=floor)


@torch.no_grad()
def hardest(descriptors: Tensor, distance: Distance, *, scope: str, floor: float) -> Negatives:
    """The non-matching patch that lies closest to one of the two matching ones.

    Args:
        descriptors: (2, n, k) of anchors a and positives p, n ≥ 2; row i of both is a matching pair.
        distance: decides which patch is closest.
        scope: which pairs of patches compete, for pair i over all j ≠ i:
            "across": (a_i, p_j) and (a_j, p_i), the rows and columns of HardNet's distance matrix;
            "within": (a_i, a_j) and (p_i, p_j), AdaSample's Eq. 14 as printed;
            "all": all four, (a_i, a_j), (p_i, p_j), (a_i, p_j) and (p_i, a_j), SOSNet and HyNet.
        floor: a negative closer than this (the distance itself, not its square) is taken for a
            false negative and skipped, as all released codes do; 0 skips none.

    Returns:
        Of equally close negatives the first, in the order above and then by j.

    Raises:
        ValueError: fewer than two pairs, or an unknown scope.
    """
    n = descriptors.shape[1]
    if n < 2:
        raise ValueError(f"a batch of {n} pair(s) holds no negative; take 2 pairs or more")
    indices = torch.arange(n, device=descriptors.device)
    blocks: dict[tuple[int, int], Tensor] = {}
    for query, side in blocks_of(scope):
        twin = blocks.get((side, query))
        blocks[query, side] = (
            distance.matrix(descriptors[query], descriptors[side]) if twin is None else twin.mT
        )

    # Rounding can put a squared distance of zero a little below zero, and so below a floor of zero.
    competing = torch.cat(list(blocks.values()), dim=1).clamp(min=0)
    own = indices.repeat(len(blocks)) == indices[:, None]
    skipped = own | (competing < floor**distance.power)
    closest, column = competing.masked_fill(skipped, torch.inf).min(dim=1)
    block = column // n
    query_side, patch_side = torch.tensor(list(blocks), device=descriptors.device)[block].unbind(1)
    return Negatives(
        query=query_side * n + indices,
        patch=patch_side * n + column % n,
        found=torch.isfinite(closest),
    )


def blocks_of(scope: str) -> tuple[tuple[int, int], ...]:
    """The (query's side, negative's side) that compete, 0 for anchors and 1 for positives.

    Raises:
        ValueError: an unknown scope.
    """
    scopes = {
        "across": ((0, 1), (1, 0)),
        "within": ((0, 0), (1, 1)),
        "all": ((0, 0), (1, 1), (0, 1), (1, 0)),
    }
    if scope not in scopes:
        raise ValueError(f"scope must be 'across', 'within' or 'all', got {scope!r}")
    return scopes[scope]
