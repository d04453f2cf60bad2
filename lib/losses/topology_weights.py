"""Topology weights: how a descriptor relates to its neighbours in its own set (TCDesc, Sec. III-B).

`lib.losses.topology` compares the weights of matching descriptors.
"""

import torch
from torch import Tensor

from lib.losses.distances import euclidean, without_own

# Neighbours are nearly collinear if one lies this close to the span of nearer ones: squared distance, as
# a share of the mean squared length. In trained networks, 16 neighbours in batches of up to 1024 points
# of a scene have at least five times this with topology, and twice this without
# (tests/test_topology.py).
COLLINEAR = 1e-3
# Added to the diagonal of NᵀN in that case, as a share of the mean squared length.
RIDGE = 1e-2


@torch.no_grad()
def nearest(descriptors: Tensor, neighbours: int) -> Tensor:
    """Return N(a_i), the k descriptors of the same set that are nearest by Euclidean distance.

    Args:
        descriptors: (n, d) float32 or wider, n > k.
        neighbours: k.

    Returns:
        (n, k) int64, the nearest first. No descriptor is its own neighbour, but an identical one is its
        first. Ties are broken arbitrarily.
    """
    apart = without_own(torch.cdist(descriptors, descriptors))
    return apart.topk(neighbours, largest=False).indices


def linear_combination(
    centres: Tensor, near: Tensor, *, sum_to_one: bool = False, ridge: float = 0.0
) -> Tensor:
    """W_i = (N_iᵀ N_i)⁻¹ N_iᵀ a_i, with which neighbours best combine to their centre (Eq. 4 to 6).

    Nearly collinear neighbours have no such weights, or large ones with larger gradients. A centre that
    has such neighbours gets weights with a ridge of at least `RIDGE`, and identical neighbours share
    theirs evenly. The weights of other centres are unchanged.

    Args:
        centres: (n, d) float32 or wider, the a_i.
        near: (n, k, d) the neighbours of each, k < d; the columns of N_i, here as rows.
        sum_to_one: whether to return the best weights that sum to one, as in Locally Linear Embedding
            (ref. 38).
        ridge: added to the diagonal of N_iᵀ N_i, as a share of the neighbours' mean squared length,
            which is 1 for unit descriptors; 0 is Eq. 6, except for nearly collinear neighbours.

    Returns:
        (n, k) in the type of the centres, whether or not autocast is on.

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
        # `cholesky` would raise in a diverging run, with a message that does not name the cause.
        factor, _ = torch.linalg.cholesky_ex(gram + torch.diag_embed(added.expand(-1, k)))
        weights = torch.cholesky_solve(near @ centres[:, :, None], factor).squeeze(2)
        if sum_to_one:
            # A Lagrange multiplier adds a multiple of (NᵀN)⁻¹ 1.
            along = torch.cholesky_solve(torch.ones_like(weights)[:, :, None], factor).squeeze(2)
            missing = 1 - weights.sum(1, keepdim=True)
            weights = weights + along * missing / along.sum(1, keepdim=True)
    return weights


def _ridge(gram: Tensor, ridge: float) -> Tensor:
    """Return what to add, (n, 1), to the diagonals of ``gram`` (n, k, k)."""
    factor, failed = torch.linalg.cholesky_ex(gram)
    # Squares of a factor's diagonal are squared distances from the span of the neighbours before.
    apart = factor.diagonal(dim1=1, dim2=2).square().amin(1)
    length = gram.diagonal(dim1=1, dim2=2).mean(1)
    collinear = (failed > 0) | (apart < COLLINEAR * length)
    return torch.where(collinear, length * max(ridge, RIDGE), length * ridge)[:, None]


def heat_kernel(centres: Tensor, near: Tensor, *, t: float, squared: bool = False) -> Tensor:
    """exp(−‖a_i − a_ij‖ / t) (Eq. 3); t = 1000 gives the paper's hard weight (Eq. 12), nearly 1.

    Args:
        centres: (n, d).
        near: (n, k, d) the neighbours of each.
        t: above 0.
        squared: whether to take the squared distance.

    Returns:
        (n, k) in [0, 1].
    """
    distance = euclidean(power=2 if squared else 1, unit=False)
    return torch.exp(-distance.paired(centres[:, None], near) / t)
