"""DSM's dynamic soft margin: d_pos − d_neg, weighted by how hard a triplet is (Eq. 4, 5).

The weight compares the triplet with recent ones: it is the value of a CDF that is updated with every
batch (Sec. 4.2), and a constant for the gradient. The CDF is of distances as compared at test, which for
binary descriptors are distances between signs. The loss itself takes distances that have a gradient
(Sec. 3.2).
"""

from copy import deepcopy
from dataclasses import replace

import torch
from torch import Tensor, nn

from lib.losses.descriptions import Triplets, at_least_float32
from lib.losses.distances import Distance

OF = ("difference", "positive", "negative")
FORMS = ("histogram", "gaussian")
LOOKUPS = ("floor", "interpolated")
# The least running deviation, as a share of the extent; a smaller one is raised to it.
LEAST_DEVIATION = 1e-4


class Weighted(nn.Module):
    """Losses w_i (d_pos − d_neg), (n,) in float32 at least (Eq. 4).

    A subclass is a form of the distribution. It keeps buffers, which `of_batch` computes for one batch
    and `cdf` reads. The first batch sets them and each later one moves them; whether there has been a
    batch is part of the state. Only batches in training mode and with gradients enabled count for later
    ones.

    Args:
        of: the quantity with this distribution: the "difference" d_pos − d_neg (Eq. 5), "positive"
            d_pos or "negative" d_neg (Table 4). For "negative" the weight is 1 − CDF, because a
            triplet is harder the closer its negative.
        momentum: weight of the newest batch, in (0, 1].
        extent: the largest distance, on the scale that the loss takes.
        distance: distance between codes; needed where they are binary and ``of`` is not "difference".

    Raises:
        ValueError: the momentum is out of range, or the extent is not positive and finite.
    """

    def __init__(self, of: str, momentum: float, extent: float, distance: Distance | None):
        super().__init__()
        if not 0 < momentum <= 1:
            raise ValueError(f"momentum must be above 0 and at most 1, got {momentum}")
        if not 0 < extent < float("inf"):
            raise ValueError(f"extent must be positive and finite, got {extent}")
        self.of, self.momentum, self.extent, self.distance = of, momentum, extent, distance
        self.register_buffer("started", torch.tensor(False))
        self.latest: Tensor | None = None

    def forward(self, triplets: Triplets) -> Tensor:
        """Return the losses (n,), with weights in which this batch already counts.

        `seen` holds the mean weight as "mean_weight" and the share of values beyond ±extent as
        "beyond_share".

        Raises:
            FloatingPointError: a distance is not finite; the state from earlier batches is unchanged.
            ValueError: descriptors are binary and there is no distance between codes.
        """
        values = self.values(triplets)
        difference = at_least_float32(triplets.positive) - at_least_float32(triplets.negative)
        bad = int((~(values.isfinite() & difference.isfinite())).sum())
        if bad:
            raise FloatingPointError(f"distances of {bad} triplets are not finite; take a lower rate")
        moved = self if self.training and torch.is_grad_enabled() else deepcopy(self)
        moved.update(values)
        weights = moved.weights(values)
        beyond = (values.abs() > self.extent).float().mean()
        self.seen = {"mean_weight": weights.mean(), "beyond_share": beyond}
        return weights * difference

    @torch.no_grad()
    def values(self, triplets: Triplets) -> Tensor:
        """Return the values (n,) that the distribution is of, computed on the codes."""
        difference = at_least_float32(triplets.mined)
        if self.of == "difference":
            return difference
        positive = triplets.positive
        if triplets.descriptions is not None and triplets.descriptions.binary is not None:
            if self.distance is None:
                raise ValueError('give the loss the distance of signs, e.g. distance=part("hamming")')
            positive = self.distance.paired(*triplets.descriptions.code)
        positive = at_least_float32(positive)
        return positive if self.of == "positive" else positive - difference

    @torch.no_grad()
    def update(self, values: Tensor) -> None:
        """Move the distribution towards a batch of values (n,), or set it from the first batch.

        The same batch twice in a row moves it once: gradient checkpointing computes a forward again. If
        several forwards come before a backward pass, their batches alternate, and each moves it twice.
        """
        if self.latest is not None and torch.equal(values, self.latest):
            return
        self.latest = values
        rate = self.momentum if self.started else 1.0
        for name, now in self.of_batch(values).items():
            setattr(self, name, (1 - rate) * getattr(self, name) + rate * now)
        self.started = torch.ones_like(self.started)

    @torch.no_grad()
    def weights(self, values: Tensor) -> Tensor:
        """Weights (n,) in [0, 1] of values (n,) by the current distribution (Eq. 5)."""
        below = self.cdf(values)
        return 1 - below if self.of == "negative" else below


class Histogram(Weighted):
    """The distribution as a histogram that decays exponentially; see `Weighted`.

    A value between two nodes counts for both, more for the closer one. If all triplets are alike, with
    a value at a share f of the way from one node to the next, each gets the same weight: 1 − f for
    "floor", 1 − f + f² for "interpolated".

    Args:
        bins: length B of the histogram; its nodes are −extent + j · 2 extent / (B − 1), j from 0 to
            B − 1.
        lookup: "floor" takes the cumulative sum up to the last node that is not above the value, so
            that the hardest triplet can get less than 1; "interpolated" interpolates between two nodes.
        weighted: arguments of `Weighted`; a value beyond ±extent counts at the end.

    Raises:
        ValueError: fewer than two bins; or as `Weighted` raises.
    """

    def __init__(self, bins: int, lookup: str, **weighted: object):
        super().__init__(**weighted)
        if bins < 2:
            raise ValueError(f"a histogram needs 2 bins or more, got {bins}")
        self.lookup = lookup
        self.register_buffer("histogram", torch.zeros(bins))

    def of_batch(self, values: Tensor) -> dict[str, Tensor]:
        """The batch's histogram (B,), which sums to one."""
        return {"histogram": (1 - self._beyond(values).abs()).clamp(min=0).mean(0)}

    def cdf(self, values: Tensor) -> Tensor:
        """Return the CDF at values (n,), cumulative sums of the histogram in [0, 1]."""
        beyond = self._beyond(values)
        counted = beyond >= 0 if self.lookup == "floor" else (beyond + 1).clamp(0, 1)
        # Not a matrix product, which autocast would compute in half precision, and not a running sum,
        # whose order of additions a GPU does not fix.
        return (counted * self.histogram).sum(1).clamp(max=1)

    def _beyond(self, values: Tensor) -> Tensor:
        """Return by how many bins each value lies beyond each node, (n, B)."""
        inside = values.clamp(-self.extent, self.extent) + self.extent
        bins = len(self.histogram)
        # No buffer: a cast of the module to bfloat16 would round numbers above 256.
        nodes = torch.arange(bins, dtype=torch.float32, device=values.device)
        return (inside * (bins - 1) / (2 * self.extent))[:, None] - nodes


class Gaussian(Weighted):
    """The distribution as a Gaussian, w = ½ (1 + erf((x − μ) / (σ √2))); see `Weighted`.

    Mean and variance are running averages with the momentum as rate; a batch's variance is about its own
    mean and divided by n. If all triplets are alike, each gets the weight ½, because σ is at least
    `LEAST_DEVIATION` of the extent.
    """

    def __init__(self, **weighted: object):
        super().__init__(**weighted)
        self.register_buffer("mean", torch.zeros(()))
        self.register_buffer("variance", torch.zeros(()))

    def of_batch(self, values: Tensor) -> dict[str, Tensor]:
        """The batch's mean and variance."""
        return {"mean": values.mean(), "variance": values.var(correction=0)}

    def cdf(self, values: Tensor) -> Tensor:
        """Return the CDF at values (n,), in [0, 1]."""
        deviation = self.variance.sqrt().clamp(min=LEAST_DEVIATION * self.extent)
        return torch.special.ndtr((values - self.mean) / deviation)


def dynamic_soft_margin(
    of: str = "difference",
    form: str = "histogram",
    bins: int = 512,
    momentum: float = 0.1,
    lookup: str = "floor",
    extent: float = 2.0,
    distance: Distance | None = None,
) -> Weighted:
    """Return DSM's loss; see `Weighted` and its forms `Histogram` and `Gaussian`, which has no bins.

    Raises:
        ValueError: a name is unknown, or as the form raises.
    """
    named = {"of": (of, OF), "form": (form, FORMS), "lookup": (lookup, LOOKUPS)}
    for name, (chosen, known) in named.items():
        if chosen not in known:
            raise ValueError(f"{name} must be one of {', '.join(known)}, got {chosen!r}")
    shared = {"of": of, "momentum": momentum, "extent": extent, "distance": distance}
    return Histogram(bins, lookup, **shared) if form == "histogram" else Gaussian(**shared)


class Unmixed(nn.Module):
    """DSM's loss with weights from the pairs' plain distances, although d_pos is a mixed one.

    TCDesc mixes a topology distance into d_pos. With DSM's loss it then weights by d_pos − d_neg, with
    the mixed d_pos. Here the loss takes the mixed d_pos too, but the histogram and CDF (DSM, Eq. 5) take
    the plain distance.

    Args:
        loss: a loss that weights by ``mined``.
        distance: the triplets' plain distance, before anything is mixed in.
    """

    def __init__(self, loss: nn.Module, distance: Distance):
        super().__init__()
        self.loss, self.distance = loss, distance

    def forward(self, triplets: Triplets) -> Tensor:
        """Return the losses (n,); `seen` is that of the loss."""
        with torch.no_grad():
            code = triplets.descriptions.code
            mined = self.distance.paired(*code) - triplets.negatives.distances(code, self.distance)
        losses = self.loss(replace(triplets, mined=mined))
        self.seen = self.loss.seen
        return losses
