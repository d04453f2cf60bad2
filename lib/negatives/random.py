"""The positive of a random other pair as the negative: TFeat (Balntas et al., BMVC 2016).

TFeat draws the negative from all patches of other points. Here it comes from the batch, whose points are
themselves drawn at random. With anchor swapping (``*`` in TFeat's own tables and in DSM's Table 1),
d_neg is the distance to the closer of the two matching patches, min(d(a, n), d(p, n)).
"""

import torch
from torch import Tensor

from lib.distances import Distance
from lib.negatives import Mine, Negatives


def build(swap: bool = False) -> Mine:
    """Drawing by `another`, with or without anchor swapping."""
    return lambda descriptors, distance: another(descriptors, distance, swap=swap)


@torch.no_grad()
def another(descriptors: Tensor, distance: Distance, *, swap: bool) -> Negatives:
    """Return the positive of a uniformly random other pair for each of the n pairs.

    It is drawn with torch's global generator of the descriptors' device. Training seeds this generator
    and keeps its state in the checkpoint.

    Args:
        descriptors: (2, n, k) of anchors and positives, n ≥ 2; row i of both is a matching pair.
        distance: decides which patch is closer for a swap.
        swap: whether the query is the anchor or the positive, whichever is closer (the anchor if
            equally close); otherwise it is always the anchor.

    Returns:
        Negatives, all of them found.

    Raises:
        ValueError: fewer than two pairs.
    """
    n, device = descriptors.shape[1], descriptors.device
    if n < 2:
        raise ValueError(f"a batch of {n} pair(s) holds no negative; take 2 pairs or more")
    query = torch.arange(n, device=device)
    other = (query + torch.randint(1, n, (n,), device=device)) % n
    if swap:
        from_anchor, from_positive = distance.paired(descriptors, descriptors[1, other])
        query = torch.where(from_positive < from_anchor, n + query, query)
    return Negatives(query, n + other, torch.ones(n, dtype=torch.bool, device=device))
