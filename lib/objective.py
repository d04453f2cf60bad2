"""What a step minimises: from the descriptors of n pairs to a loss for each pair. Training, probes and
figures of losses all take it from here.

The axes of a recipe meet here (`Objective`). Each is a module of its own package, and none of them
knows the others: the distance of the pair and that of its mined negative make triplets, of which a
loss is taken; regularisers look at all descriptors of the batch.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lib import parts
from lib.descriptions import Descriptions, Triplets
from lib.distances import Distance
from lib.negatives import Mine, Negatives
from lib.positives import Positive
from lib.recipes import Recipe

# From triplets to losses (n,); a module, so that a state it keeps goes into the checkpoint.
Loss = Callable[[Triplets], Tensor]
# From the batch's descriptors to a scalar, its weight included.
Regulariser = Callable[[Descriptions], Tensor]


@dataclass(frozen=True)
class Objective:
    """The parts of a recipe that turn descriptors into a loss.

    Attributes:
        distance: of descriptors, at the power that the loss takes.
        positive: the distance of a matching pair.
        mine: which patch of the batch is a pair's negative.
        loss: of triplets.
        regularizers: added to the loss of the batch.
        reduction: "mean" or "sum" over the batch.
    """

    distance: Distance
    positive: Positive
    mine: Mine
    loss: Loss
    regularizers: tuple[Regulariser, ...] = ()
    reduction: str = "mean"

    def triplets(self, described: Descriptions) -> Triplets:
        """The pairs with their negatives, which are mined on what is compared at test."""
        negatives = self.mine(described.code, self.distance)
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

    def total(self, losses: Tensor, described: Descriptions, weights: Tensor | None = None) -> Tensor:
        """The scalar that a step differentiates.

        Args:
            losses: (n,) of the pairs.
            described: their descriptors, for the regularisers.
            weights: (n,) of the pairs, or None for ones.
        """
        weighted = losses if weights is None else weights * losses
        total = weighted.mean() if self.reduction == "mean" else weighted.sum()
        return sum((regularizer(described) for regularizer in self.regularizers), total)

    def parts(self) -> Iterator[tuple[str, object]]:
        """The parts by name, any of which may keep a state or say what it saw."""
        yield from (("positive", self.positive), ("negatives", self.mine), ("loss", self.loss))
        yield from ((f"regularizer{i}", part) for i, part in enumerate(self.regularizers))


def build(recipe: Recipe, device: str = "cpu") -> Objective:
    """The objective of a recipe, its state on a device.

    Raises:
        ValueError: the recipe names a part that is not there, or an unknown reduction.
    """
    if recipe.reduction not in ("mean", "sum"):
        raise ValueError(f"reduction must be 'mean' or 'sum', got {recipe.reduction!r}")
    distance = parts.build("distance", recipe.distance)
    positive = parts.build("positive", recipe.positive, distance=distance)
    loss = parts.build("loss", recipe.loss)
    regularizers = tuple(parts.build("regularizers", part) for part in recipe.regularizers)
    for part in (positive, loss, *regularizers):
        if isinstance(part, nn.Module):
            part.to(device)
    mine = parts.build("negatives", recipe.negatives)
    return Objective(distance, positive, mine, loss, regularizers, recipe.reduction)
