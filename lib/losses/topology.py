"""The distance of a matching pair: the plain one, or TCDesc's with topology (Sec. III-C, III-D).

TCDesc compares how far apart the two descriptors are, and how differently they relate to their
neighbours: d⁺ = λ d_T + (1 − λ) d_E (Eq. 10). d_T compares topology vectors (Eq. 7, 8), d_E is the
recipe's distance, and λ rises with the share of neighbours that the two have in common (Eq. 11).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from lib.losses.descriptions import Descriptions, at_least_float32
from lib.losses.distances import Distance
from lib.losses.topology_weights import heat_kernel, linear_combination, nearest

# From n described pairs to their distances (n,).
Positive = Callable[[Descriptions], Tensor]
WEIGHTS = ("linear", "heat", "none")
# The upper limit of λ (Eq. 11).
CAP = 0.5


@dataclass(frozen=True)
class Pair:
    """The distance of the pair itself, d(a_i, p_i), as all papers but TCDesc take it.

    Attributes:
        distance: the recipe's distance.
    """

    distance: Distance

    def __call__(self, described: Descriptions) -> Tensor:
        """Return the distances (n,) of n pairs."""
        return self.distance.paired(*described.value)


class Topology(nn.Module):
    """TCDesc's distances d⁺ (n,) of n pairs, in float32 at least; `topology` makes one.

    Args:
        distance: d_E, at the power that the loss takes.
        neighbours: k, the number of nearest descriptors in the same set, as compared at test.
        weigh: from descriptors (n, d) and their neighbours (n, k, d) to topology weights (n, k); None
            for d_T = 0.
        gamma: γ of Eq. 11.
        lam: a fixed λ, or None for Eq. 11's.
        per: "sample" for Eq. 11's λ of each pair, "batch" for its mean over the batch; a constant for
            the gradient.
        mutual: which neighbours of a pair match. True: neighbours of a_i and of p_i that are each
            other's nearest among these neighbours. False: the j for which a_j is a neighbour of a_i
            and p_j one of p_i.
        detached: whether neighbours are constants for the gradient.
    """

    def __init__(
        self,
        distance: Distance,
        neighbours: int,
        weigh: Callable[[Tensor, Tensor], Tensor] | None,
        gamma: float,
        lam: float | None,
        per: str,
        mutual: bool,
        detached: bool,
    ):
        super().__init__()
        self.distance, self.neighbours, self.weigh = distance, neighbours, weigh
        self.gamma, self.lam, self.per = gamma, lam, per
        self.mutual, self.detached = mutual, detached

    def forward(self, described: Descriptions) -> Tensor:
        """Return d⁺ (Eq. 10).

        `seen` holds the mean λ as "mean_lambda", the share of pairs for which Eq. 11 reaches `CAP` as
        "capped_share", the share of neighbours that match as "matched_share", and the mean d_T as
        "d_topology".

        Raises:
            ValueError: the batch has fewer than k neighbours for each descriptor, or descriptors have
                too few dimensions for linear weights.
            FloatingPointError: a distance is not finite, e.g. because all descriptors are zero.
        """
        value = at_least_float32(described.value)
        code = at_least_float32(described.code)
        n = value.shape[1]
        if self.neighbours >= n:
            raise ValueError(
                f"a batch of {n} pairs has no {self.neighbours} neighbours for each; "
                "take a larger batch or fewer neighbours"
            )
        near = torch.stack([nearest(side, self.neighbours) for side in code])
        matched = matches(code, near, mutual=self.mutual).to(value) / self.neighbours
        lam = (matched**self.gamma).clamp(max=CAP)
        capped = (lam == CAP).float().mean()
        if self.lam is not None:
            lam = torch.full_like(lam, self.lam)
        elif self.per == "batch":
            lam = lam.mean()
        if self.weigh is None:
            between = torch.zeros_like(lam)
        else:
            around = value.detach() if self.detached else value
            between = topology_distance(
                *(self.weigh(value[side], around[side][near[side]]) for side in (0, 1)), near
            )
        self.seen = {
            "mean_lambda": lam.mean(),
            "capped_share": capped,
            "matched_share": matched.mean(),
            "d_topology": between.detach().mean(),
        }
        mixed = lam * between + (1 - lam) * self.distance.paired(*value)
        bad = int((~mixed.isfinite()).sum())
        if bad:
            raise FloatingPointError(f"distances of {bad} pairs are not finite; take a lower rate")
        return mixed


def topology_distance(anchor_weights: Tensor, positive_weights: Tensor, near: Tensor) -> Tensor:
    """d_T(a_i, p_i) = ‖T_i^a − T_i^p‖₁ / k of topology vectors T_i (Eq. 7, 8).

    Element j of T_i is the weight of neighbour j, or 0 if j is not a neighbour.

    Args:
        anchor_weights: (n, k) topology weights of the anchors.
        positive_weights: (n, k) of the positives.
        near: (2, n, k) int64, the neighbours that the weights belong to.

    Returns:
        (n,) 0 or more, unbounded.
    """
    n, k = anchor_weights.shape
    vectors = [
        anchor_weights.new_zeros(n, n).scatter(1, neighbours, weights)
        for neighbours, weights in zip(near, (anchor_weights, positive_weights), strict=True)
    ]
    return (vectors[0] - vectors[1]).abs().sum(1) / k


@torch.no_grad()
def matches(descriptors: Tensor, near: Tensor, *, mutual: bool = False) -> Tensor:
    """Return m(N(a_i), N(p_i)), the number of neighbours that match (Eq. 11).

    Args:
        descriptors: (2, n, d) of anchors and positives.
        near: (2, n, k) int64, their neighbours.
        mutual: whether to count pairs of an a_j in N(a_i) and a p_l in N(p_i) that are each other's
            nearest in these sets, instead of the j for which a_j is in N(a_i) and p_j in N(p_i).

    Returns:
        (n,) int64, 0 to k.
    """
    if not mutual:
        return (near[0][:, :, None] == near[1][:, None]).sum((1, 2))
    between = torch.cdist(descriptors[0][near[0]], descriptors[1][near[1]])
    back = between.argmin(1).gather(1, between.argmin(2))
    return (back == torch.arange(near.shape[2], device=near.device)).sum(1)


def topology(
    distance: Distance,
    neighbours: int = 16,
    weights: str = "linear",
    gamma: float = 1.0,
    lam: float | None = None,
    per: str = "sample",
    mutual: bool = False,
    detached: bool = False,
    sum_to_one: bool = False,
    ridge: float = 0.0,
    t: float = 1.0,
    squared: bool = False,
) -> Topology:
    """Return TCDesc's positive; see `Topology`, and for the weights `lib.losses.topology_weights`.

    Args:
        distance, neighbours, gamma, lam, per, mutual, detached: as in `Topology`.
        weights: "linear" (Eq. 6), with the options ``sum_to_one`` and ``ridge``; "heat" (Eq. 3, 12),
            with ``t`` and ``squared``; "none" for the control (1 − λ) d_E.

    Raises:
        ValueError: an unknown name, k below 1, γ or the ridge below 0, a fixed λ outside [0, 1], or t
            that is not positive.
    """
    for name, chosen, known in (("weights", weights, WEIGHTS), ("per", per, ("sample", "batch"))):
        if chosen not in known:
            raise ValueError(f"{name} must be one of {', '.join(known)}, got {chosen!r}")
    if not neighbours > 0:
        raise ValueError(f"neighbours must be 1 or more, got {neighbours}")
    if not gamma >= 0:
        raise ValueError(f"γ must be 0 or more, got {gamma}")
    if lam is not None and not 0 <= lam <= 1:
        raise ValueError(f"λ must be between 0 and 1, got {lam}")
    if not ridge >= 0:
        raise ValueError(f"ridge must be 0 or more, got {ridge}")
    if not t > 0:
        raise ValueError(f"t must be positive, got {t}")
    weigh = {
        "linear": partial(linear_combination, sum_to_one=sum_to_one, ridge=ridge),
        "heat": partial(heat_kernel, t=t, squared=squared),
        "none": None,
    }[weights]
    return Topology(distance, neighbours, weigh, gamma, lam, per, mutual, detached)
