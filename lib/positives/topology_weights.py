"""Topology weights: how a descriptor stands to its neighbours in its own set (TCDesc, Sec. III-B).

A module without `build`: `lib.positives.topology` compares the weights of matching descriptors.
"""

import torch
from torch import Tensor

from lib.distances import euclidean

# Neighbours are nearly collinear if one lies so close to the span of nearer ones: squared distance, as a
# share of the mean squared length. Of trained networks, 16 neighbours in batches of up to 1024 points of
# a scene have five times that and more with topology, and twice that without (tests/test_topology.py).
COLLINEAR = 1e-3
# What then is added to the diagonal of NᵀN, likewise.
RIDGE = 1e-2


@torch.no_grad()
def nearest(descriptors: Tensor, neighbours: int) -> Tensor:
    """N(a_i): which k descriptors of the same set are nearest by Euclidean distance.

    Args:
        descriptors: (n, d) float32 or wider, n > k.
        neighbours: k.

    Returns:
        (n, k) int64, the nearest first. No descriptor is its own neighbour, but one that is identical
        to it is its first; of equally near ones any are taken.
    """
    apart = torch.cdist(descriptors, descriptors).fill_diagonal_(torch.inf)
    return apart.topk(neighbours, largest=False).indices


def linear_combination(
    centres: Tensor, near: Tensor, *, sum_to_one: bool = False, ridge: float = 0.0
) -> Tensor:
    """W_i = (N_iᵀ N_i)⁻¹ N_iᵀ a_i, by which neighbours come closest to their centre (Eq. 4 to 6).

    Nearly collinear neighbours have no such weights, or large ones with larger gradients; those of a
    centre that has such neighbours are of a ridge of `RIDGE` at least, and identical ones share theirs
    evenly. No other centre's weights are touched.

    Args:
        centres: (n, d) float32 or wider, the a_i.
        near: (n, k, d) the neighbours of each, k < d; the columns of N_i, here as rows.
        sum_to_one: the best weights that sum to one, as in Locally Linear Embedding (ref. 38).
        ridge: what is added to the diagonal of N_iᵀ N_i, as a share of the neighbours' mean squared
            length, which is 1 for unit descriptors; 0 is Eq. 6, except at nearly collinear neighbours.

    Returns:
        (n, k) in the type of the centres, whatever the autocast.

    Raises:
        ValueError: k ≥ d.
    """
    _, k, d = near.shape
    if k >= d:
        raise ValueError(
            f"descriptors of {d} dimensions are combinations of any {k} neighbours, which have no "
            "single best weights; take fewer neighbours"
        )
    with torch.autocast(centres.device.type, enabled=False):
        gram = near @ near.mT
        added = _ridge(gram.detach(), ridge)
        # The form that raises would end a diverging run in words that do not say so.
        factor, _ = torch.linalg.cholesky_ex(gram + torch.diag_embed(added.expand(-1, k)))
        weights = torch.cholesky_solve(near @ centres[:, :, None], factor).squeeze(2)
        if sum_to_one:
            # What a Lagrange multiplier adds: a multiple of (NᵀN)⁻¹ 1.
            along = torch.cholesky_solve(torch.ones_like(weights)[:, :, None], factor).squeeze(2)
            missing = 1 - weights.sum(1, keepdim=True)
            weights = weights + along * missing / along.sum(1, keepdim=True)
    return weights


def _ridge(gram: Tensor, ridge: float) -> Tensor:
    """(n, 1) what to add to the diagonals of (n, k, k)."""
    factor, failed = torch.linalg.cholesky_ex(gram)
    # Squares of a factor's diagonal are squared distances from the span of those before.
    apart = factor.diagonal(dim1=1, dim2=2).square().amin(1)
    length = gram.diagonal(dim1=1, dim2=2).mean(1)
    collinear = (failed > 0) | (apart < COLLINEAR * length)
    return torch.where(collinear, length * max(ridge, RIDGE), length * ridge)[:, None]


def heat_kernel(centres: Tensor, near: Tensor, *, t: float, squared: bool = False) -> Tensor:
    """exp(−‖a_i − a_ij‖ / t) (Eq. 3); with t = 1000 the paper's hard weight (Eq. 12), which is nearly 1.

    Args:
        centres: (n, d).
        near: (n, k, d) the neighbours of each.
        t: above 0.
        squared: of the squared distance.

    Returns:
        (n, k) in [0, 1].
    """
    distance = euclidean.build(power=2 if squared else 1, unit=False)
    return torch.exp(-distance.paired(centres[:, None], near) / t)
