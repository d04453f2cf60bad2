"""Global orthogonal regularisation (Zhang et al., "Learning spread-out local feature descriptors",
ICCV 2017): non-matching descriptors should be as spread out as points uniform on the sphere.

For such points x·y has mean 0 and second moment 1/k, so L_gor = M1² + max(0, M2 − 1/k) with M1 and M2
the mean and second moment of x·y over non-matching pairs.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from lib.descriptions import Descriptions


def build(weight: float = 1.0, pairs: str = "all") -> Callable[[Descriptions], Tensor]:
    """Build the regulariser.

    Args:
        weight: α of the paper, 1 in its experiments.
        pairs: which pairs count as non-matching. "all": the n(n − 1) pairs of an anchor and another
            class's positive. "one": each anchor with the positive of its neighbour in the batch, whose
            classes are in random order, as HardNet's code draws them.

    Returns:
        A function from n ≥ 2 described pairs to a scalar.

    Raises:
        ValueError: ``pairs`` is unknown.
    """
    if pairs not in ("all", "one"):
        raise ValueError(f"pairs must be 'all' or 'one', got {pairs!r}")

    def gor(described: Descriptions) -> Tensor:
        anchors, positives = described.value
        n, k = anchors.shape
        if pairs == "one":
            similarity = (anchors * positives.roll(1, dims=0)).sum(dim=1)
        else:
            others = ~torch.eye(n, dtype=torch.bool, device=anchors.device)
            similarity = (anchors @ positives.mT)[others]
        return weight * (similarity.mean() ** 2 + (similarity.square().mean() - 1 / k).clamp(min=0))

    return gor
