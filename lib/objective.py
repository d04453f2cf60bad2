"""The objective that a training step minimises: from the descriptors of n pairs to one scalar.

Training, analyses and figures of losses all use it, and so can any loop that has a network's raw
descriptors of matching pairs:

    network, objective = L2Net(), build(RECIPES["dsm_aug"])
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
    for anchors, positives in pairs:                                # (n, 1, 32, 32) each
        raw = network.raw(torch.cat([anchors, positives]))          # (2n, 128), one batch for batch norm
        loss = objective(*raw.chunk(2))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

`Objective` combines the axes of a recipe, each of which is a part of `lib.losses` that does not know the
others. The distance of a pair and the distance to its mined negative make a triplet, from which the loss
is computed; regularisers use all descriptors of the batch.
"""

import warnings
from collections.abc import Callable, Iterator
from functools import wraps

import torch
from torch import Tensor, nn

from lib import parts
from lib.losses.descriptions import Descriptions, Triplets, descriptions
from lib.losses.distances import Distance
from lib.losses.negatives import Mining, Negatives
from lib.losses.regularizers import find_reduction
from lib.losses.topology import Positive
from lib.models.l2net import L2Net
from lib.recipes import Recipe

# Where more than this share of a batch's pairs has no negative, the objective says so once.
MOST_ALONE = 0.5
# From triplets to losses (n,); a module, so that any state it keeps goes into the checkpoint.
Loss = Callable[[Triplets], Tensor]
# From the batch's descriptors to a scalar, its weight included.
Regulariser = Callable[[Descriptions], Tensor]
# What `Objective` says once if the recipe also chooses or weighs pairs, which happens before the loss.
_SEPARATE = """this is {label}'s loss of the pairs that you give, each of weight 1. {label} also has a \
{what}, separate from the loss; lib/training.py uses it as follows:
    choice = sampler.choose(pool, describe, generator)     # which two patches of each class are a pair
    triplets = objective.triplets(described)               # described: lib.losses.descriptions of them
    losses = objective.losses(triplets)
    objective.total(losses, described, weigh(choice)).backward()
    sampler.observe(triplets, losses)                      # AdaSample's average loss, L_avg of Eq. 13
with sampler = parts.build("sampler", recipe.sampler), weigh = parts.build("pair_weight", \
recipe.pair_weight). With pairs and weights of your own, call objective(…, weights=w)."""
_ALONE = """{share:.0%} of the pairs have no negative: all candidates are closer than the floor, below \
which a patch is taken for one of the same point. Such a pair counts as if its negative were as far \
away as can be, so the loss is small although the descriptors may have collapsed"""
_ZEROS = """{zeros} of the descriptors are zero and have no direction: leave their pairs out of the \
batch or, if the network has collapsed, take a lower learning rate"""
# Between the caller of an objective and `forward` lie two functions of torch and `_in_float32`.
_CALLER = 5


def _in_float32(step: Callable[..., Tensor | Triplets]) -> Callable[..., Tensor | Triplets]:
    """Compute a step of the objective outside autocast, whatever surrounds it."""

    @wraps(step)
    def outside(*arguments, **named):
        with torch.autocast("cpu", enabled=False), torch.autocast("cuda", enabled=False):
            return step(*arguments, **named)

    return outside


class Objective(nn.Module):
    """The parts of a recipe that turn descriptors into a loss.

    ``objective(anchors, positives)`` is all that a loop of one's own needs. Training takes the steps one
    by one: `triplets`, `losses`, `total`. Each computes in float32 at least, also under autocast: in
    half precision other negatives would be the hardest, and products of feature maps would overflow.

    The state of a loss (DSM's distribution) moves in training mode and with gradients enabled only. In
    ``eval()`` or under ``no_grad`` the loss is what training would minimise, and leaves no trace.

    AdaSample's recipe is more than its loss: the sampler draws harder positives as L_avg falls, and
    weighs each pair by w_i (Eq. 13). Both need to see candidates before there are pairs, so they are no
    part of the objective, and the first call without ``weights`` warns and shows how training uses them.

    Args:
        distance: distance between descriptors, at the power that the loss takes.
        positive: the distance of a matching pair.
        negatives: finds the patch of the batch that is a pair's negative.
        loss: maps triplets to losses.
        regularizers: added to the loss of the batch.
        reduction: "mean" or "sum" over the batch.
        network: the class of network whose raw descriptors `__call__` takes; its ``normalise`` makes
            them what the loss compares.
        separate: a warning about what else belongs to the method, given at the first call.

    Raises:
        ValueError: an unknown reduction.
    """

    def __init__(
        self,
        distance: Distance,
        positive: Positive,
        negatives: Mining,
        loss: Loss,
        regularizers: tuple[Regulariser, ...] = (),
        reduction: str = "mean",
        network: type[nn.Module] = L2Net,
        separate: str = "",
    ):
        super().__init__()
        self.distance, self.positive, self.negatives, self.loss = distance, positive, negatives, loss
        self.regularizers, self.reduce = regularizers, find_reduction(reduction)
        for number, regularizer in enumerate(regularizers):
            # As attributes too, so that torch knows those that are modules.
            setattr(self, f"regularizer{number}", regularizer)
        self.network, self.separate = network, separate
        self.has_warned = False

    @_in_float32
    def forward(
        self,
        anchors: Tensor | tuple[Tensor, ...],
        positives: Tensor | tuple[Tensor, ...],
        weights: Tensor | None = None,
    ) -> Tensor:
        """Return the scalar to differentiate, for n pairs of a network's raw descriptors.

        The pairs must be of n distinct points: of a point that is in the batch twice, the second pair
        would be the hardest negative of the first.

        Args:
            anchors, positives: (n, k) each, row i of both a matching pair and n ≥ 2, as the recipe's
                network returns them by ``raw``: before normalisation, and before the tanh and the sign
                of a binary head. For L2-Net's loss a tuple each, of descriptors and feature maps (n, …).
            weights: (n,) weights of the pairs, or None for ones.

        Raises:
            ValueError: shapes that are no n pairs; bits in place of raw descriptors; a loss of feature
                maps that gets none; a batch too small for the recipe's negatives or neighbours.
            FloatingPointError: a descriptor is zero, and has no direction that could be compared.
        """
        sides = [side if isinstance(side, tuple) else (side,) for side in (anchors, positives)]
        _check_pairs(*sides, weights)
        if self.separate and weights is None:
            warnings.warn(self.separate, stacklevel=_CALLER)
            self.separate = ""
        output = tuple(torch.cat(both) for both in zip(*sides, strict=True))
        zeros = int((output[0] == 0).all(dim=1).sum())
        if zeros:
            raise FloatingPointError(_ZEROS.format(zeros=zeros))
        described = descriptions(self.network, output)
        triplets = self.triplets(described)
        alone = 1 - triplets.negatives.found.float().mean().item()
        if alone > MOST_ALONE and not self.has_warned:
            self.has_warned = True
            warnings.warn(_ALONE.format(share=alone), stacklevel=_CALLER)
        return self.total(self.losses(triplets), described, weights)

    @_in_float32
    def triplets(self, described: Descriptions) -> Triplets:
        """Return the pairs with their negatives, mined on the descriptors as compared at test."""
        negatives = self.negatives(described.code, self.distance)
        positive, negative = self._distances(described, negatives)
        if described.binary is None:
            mined = (positive - negative).detach()
        else:
            with torch.no_grad():
                compared = self._distances(described.as_compared(), negatives)
            mined = compared[0] - compared[1]
        return Triplets(described, positive, negative, negatives, mined)

    def _distances(self, described: Descriptions, negatives: Negatives) -> tuple[Tensor, Tensor]:
        return self.positive(described), negatives.distances(described.value, self.distance)

    @_in_float32
    def losses(self, triplets: Triplets) -> Tensor:
        """Return the losses (n,) of n triplets; a loss with a state moves it."""
        return self.loss(triplets)

    @_in_float32
    def total(self, losses: Tensor, described: Descriptions, weights: Tensor | None = None) -> Tensor:
        """Return the scalar that a step differentiates.

        Args:
            losses: (n,) losses of the pairs.
            described: their descriptors, for the regularisers.
            weights: (n,) weights of the pairs, or None for ones.

        Raises:
            ValueError: weights of another shape than the losses.
        """
        if weights is not None and weights.shape != losses.shape:
            shapes = f"losses of shape {tuple(losses.shape)}, but weights of shape"
            raise ValueError(f"{shapes} {tuple(weights.shape)}")
        weighted = losses if weights is None else weights * losses
        total = self.reduce(weighted)
        return sum((regularizer(described) for regularizer in self.regularizers), total)

    def parts(self) -> Iterator[tuple[str, object]]:
        """Yield the parts by name; any of them may keep state or report curve values in `seen`."""
        yield from (("positive", self.positive), ("negatives", self.negatives), ("loss", self.loss))
        yield from ((f"regularizer{i}", part) for i, part in enumerate(self.regularizers))


def build(recipe: Recipe, device: str = "cpu") -> Objective:
    """Build the objective of a recipe, with its state on a device.

    Raises:
        ValueError: the recipe names an unknown part or an unknown reduction.
    """
    distance = parts.build("distance", recipe.distance)
    chosen = {
        "sampler": recipe.sampler.name != "random_pair",
        "weight of each pair": recipe.pair_weight is not None,
    }
    what = " and a ".join(name for name, has in chosen.items() if has)
    return Objective(
        distance,
        parts.build("positive", recipe.positive, distance=distance),
        parts.build("negatives", recipe.negatives),
        parts.build("loss", recipe.loss),
        tuple(parts.build("regularizers", part) for part in recipe.regularizers),
        recipe.reduction,
        parts.find("model", recipe.model.name),
        _SEPARATE.format(label=recipe.label, what=what) if what else "",
    ).to(device)


def _check_pairs(
    anchors: tuple[Tensor, ...], positives: tuple[Tensor, ...], weights: Tensor | None
) -> None:
    """Raise ValueError if these are no n pairs of raw descriptors, with maps or without."""
    shapes = [[tuple(each.shape) for each in side] for side in (anchors, positives)]
    if shapes[0] != shapes[1] or len(shapes[0][0]) != 2:
        raise ValueError(
            f"give anchors and positives of one shape (n, k), got {shapes[0][0]} and {shapes[1][0]}"
        )
    if not all(side[0].is_floating_point() for side in (anchors, positives)):
        raise ValueError(
            "the loss has no gradient by bits: give the network's raw descriptors, before tanh and sign"
        )
    if weights is not None and weights.shape != anchors[0].shape[:1]:
        raise ValueError(f"{len(anchors[0])} pairs, but weights of shape {tuple(weights.shape)}")
