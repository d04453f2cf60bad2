"""Regularisers, each a module from the descriptors of a batch to a scalar that is added to its loss."""

import warnings
from collections.abc import Callable

import torch
from torch import Tensor, nn

from lib.losses.descriptions import Descriptions
from lib.losses.distances import euclidean, without_own

# Added under a root, whose gradient at zero is infinite (SOSNet's and HyNet's code).
EPSILON = 1e-6
# Descriptors whose squared lengths differ from 1 by less than this were normalised.
_UNIT = 1e-3
# How values (n,) of pairs become a scalar.
_REDUCTIONS = {"mean": torch.mean, "sum": torch.sum}


def find_reduction(name: str) -> Callable[[Tensor], Tensor]:
    """Return the function from values (n,) of pairs to their "mean" or their "sum", a scalar.

    Raises:
        ValueError: another name.
    """
    if name not in _REDUCTIONS:
        raise ValueError(f"reduction must be 'mean' or 'sum', got {name!r}")
    return _REDUCTIONS[name]


class Gor(nn.Module):
    """Global orthogonal regularisation (Zhang et al., "Learning spread-out local feature descriptors",
    ICCV 2017): non-matching descriptors should be as spread out as points uniform on the sphere.

    For such points x·y has mean 0 and second moment 1/k, so L_gor = M1² + max(0, M2 − 1/k) with M1 and
    M2 the mean and second moment of x·y over non-matching pairs.

    Args:
        weight: α of the paper, 1 in its experiments.
        pairs: which pairs count as non-matching. "all": the n(n − 1) pairs of an anchor and another
            class's positive. "one": each anchor with the positive of its neighbour in the batch, whose
            classes are in random order, as HardNet's code draws them.

    Raises:
        ValueError: ``pairs`` is unknown.
    """

    def __init__(self, weight: float = 1.0, pairs: str = "all"):
        super().__init__()
        if pairs not in ("all", "one"):
            raise ValueError(f"pairs must be 'all' or 'one', got {pairs!r}")
        self.weight, self.pairs = weight, pairs

    def forward(self, described: Descriptions) -> Tensor:
        """Return the weighted regulariser of n ≥ 2 pairs, a scalar."""
        anchors, positives = described.value
        n, k = anchors.shape
        if self.pairs == "one":
            similarity = (anchors * positives.roll(1, dims=0)).sum(dim=1)
        else:
            others = ~torch.eye(n, dtype=torch.bool, device=anchors.device)
            similarity = (anchors @ positives.mT)[others]
        spread = (similarity.square().mean() - 1 / k).clamp(min=0)
        return self.weight * (similarity.mean() ** 2 + spread)


class Norm(nn.Module):
    """HyNet's R_L2 (Eq. 5): matching descriptors should have the same length before normalisation,
    (‖x‖ − ‖x⁺‖)² of raw descriptors.

    Descriptors that were normalised leave nothing to regularise: the first batch warns of it.

    Args:
        weight: γ of Eq. 7.
        reduction: "mean" over pairs (Eq. 5), or "sum" as in the authors' code.

    Raises:
        ValueError: the reduction is unknown.
    """

    def __init__(self, weight: float = 0.1, reduction: str = "mean"):
        super().__init__()
        self.weight, self.reduce = weight, find_reduction(reduction)
        self.looked = False

    def forward(self, described: Descriptions) -> Tensor:
        """Return the weighted regulariser of the pairs, a scalar.

        Raises:
            FloatingPointError: a raw descriptor is zero and has no direction to compare.
        """
        squares = described.raw.square().sum(dim=-1)
        zeros = int((squares.detach() == 0).sum())
        if zeros:
            raise FloatingPointError(
                f"{zeros} raw descriptors are zero and have no direction: the network collapsed; "
                "take a lower learning rate"
            )
        if not self.looked:
            self.looked = True
            if bool(((squares.detach() - 1).abs() < _UNIT).all()):
                warnings.warn(
                    "all descriptors have length 1, so that R_L2 is 0: give raw ones, as "
                    "network.raw(patches) returns them, not network(patches)",
                    stacklevel=2,
                )
        anchors, positives = (squares + EPSILON).sqrt()
        differences = (anchors - positives).square()
        return self.weight * self.reduce(differences)


class Sosr(nn.Module):
    """Second order similarity regularisation (SOSNet; Tian et al., CVPR 2019): two matching sets of
    descriptors should have the same distances within each set.

    R = mean over i of √Σ_{j ∈ c_i} (d(x_i, x_j) − d(x⁺_i, x⁺_j))², with unit descriptors, d Euclidean
    and c_i the indices of the nearest neighbours of x_i among the x or of x⁺_i among the x⁺.

    Args:
        weight: weight of the regulariser, 1 in the paper.
        neighbours: k, the number of nearest neighbours in each set.
        reduction: "mean" over pairs, or "sum" as in the released code.
        symmetric: whether j also belongs to c_i where i belongs to c_j, as in the released code.
        across: whether the nearest x⁺_j of x_i and the nearest x_j of x⁺_i belong to c_i too, k each,
            as in the released code.

    Raises:
        ValueError: k is not positive, or the reduction is unknown.
    """

    def __init__(
        self,
        weight: float = 1.0,
        neighbours: int = 8,
        reduction: str = "mean",
        symmetric: bool = False,
        across: bool = False,
    ):
        super().__init__()
        if not neighbours > 0:
            raise ValueError(f"neighbours must be 1 or more, got {neighbours}")
        self.weight, self.neighbours, self.reduce = weight, neighbours, find_reduction(reduction)
        self.symmetric, self.across = symmetric, across
        self.distance = euclidean(power=1)

    def forward(self, described: Descriptions) -> Tensor:
        """Return the weighted regulariser of the pairs, a scalar.

        Raises:
            ValueError: there are not more than k pairs.
        """
        anchors, positives = described.value
        if self.neighbours >= len(anchors):
            raise ValueError(
                f"a batch of {len(anchors)} pairs has no {self.neighbours} neighbours for each; "
                "take a larger batch or fewer neighbours"
            )
        within = [self.distance.matrix(side, side) for side in (anchors, positives)]
        with torch.no_grad():
            compared = list(within)
            if self.across:
                between = self.distance.matrix(anchors, positives)
                compared += [between, between.mT]
            near = sum(is_nearest(distances, self.neighbours) for distances in compared) > 0
            if self.symmetric:
                near = near | near.mT
        differences = (within[0] - within[1]).square() * near
        roots = (differences.sum(dim=1) + EPSILON).sqrt()
        return self.weight * self.reduce(roots)


def is_nearest(distances: Tensor, neighbours: int) -> Tensor:
    """Return (n, n) bool, whether j is one of the nearest neighbours of i, by distances (n, n).

    No i is its own neighbour; of equally near neighbours the first are taken.
    """
    order = without_own(distances).argsort(dim=1, stable=True)[:, :neighbours]
    return torch.zeros_like(distances, dtype=torch.bool).scatter_(1, order, True)
