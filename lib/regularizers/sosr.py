"""Second order similarity regularisation (SOSNet; Tian et al., CVPR 2019): two matching sets of
descriptors should have the same distances within each set.

R = mean over i of √Σ_{j ∈ c_i} (d(x_i, x_j) − d(x⁺_i, x⁺_j))², c_i the indices of the nearest
neighbours of x_i among the x or of x⁺_i among the x⁺.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from lib.descriptions import Descriptions
from lib.distances import euclidean

# Added under the root of the sum, whose gradient at zero is infinite (authors' code).
EPSILON = 1e-6


def build(
    weight: float = 1.0,
    neighbours: int = 8,
    reduction: str = "mean",
    symmetric: bool = False,
    across: bool = False,
) -> Callable[[Descriptions], Tensor]:
    """Build the regulariser, on unit descriptors, with the Euclidean distance.

    Args:
        weight: weight of the regulariser, 1 in the paper.
        neighbours: k, the number of nearest neighbours in each set.
        reduction: "mean" over pairs, or "sum" as in the released code.
        symmetric: whether j also belongs to c_i where i belongs to c_j, as in the released code.
        across: whether the nearest x⁺_j of x_i and the nearest x_j of x⁺_i belong to c_i too, k each,
            as in the released code.

    Returns:
        A function from more than k described pairs to a scalar; it raises ValueError for fewer.

    Raises:
        ValueError: k is not positive, or the reduction is unknown.
    """
    if not neighbours > 0:
        raise ValueError(f"neighbours must be 1 or more, got {neighbours}")
    if reduction not in ("mean", "sum"):
        raise ValueError(f"reduction must be 'mean' or 'sum', got {reduction!r}")
    distance = euclidean.build(power=1)

    def sosr(described: Descriptions) -> Tensor:
        anchors, positives = described.value
        if neighbours >= len(anchors):
            raise ValueError(
                f"a batch of {len(anchors)} pairs has no {neighbours} neighbours for each; "
                "take a larger batch or fewer neighbours"
            )
        within = [distance.matrix(side, side) for side in (anchors, positives)]
        with torch.no_grad():
            compared = list(within)
            if across:
                between = distance.matrix(anchors, positives)
                compared += [between, between.mT]
            near = sum(nearest(distances, neighbours) for distances in compared) > 0
            if symmetric:
                near = near | near.mT
        differences = (within[0] - within[1]).square() * near
        roots = (differences.sum(dim=1) + EPSILON).sqrt()
        return weight * (roots.mean() if reduction == "mean" else roots.sum())

    return sosr


def nearest(distances: Tensor, neighbours: int) -> Tensor:
    """Return (n, n) bool, whether j is one of the nearest neighbours of i, by distances (n, n).

    No i is its own neighbour; of equally near neighbours the first are taken.
    """
    others = distances.clone().fill_diagonal_(torch.inf)
    order = others.argsort(dim=1, stable=True)[:, :neighbours]
    return torch.zeros_like(distances, dtype=torch.bool).scatter_(1, order, True)
