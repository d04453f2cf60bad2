"""The objective that a training step minimises: from the descriptors of n pairs to a loss for each pair.
Training, probes and figures of losses all use it.

`Objective` combines the axes of a recipe. Each axis is a module of its own package that does not know
the others. The distance of a pair and the distance to its mined negative make a triplet, from which the
loss is computed; regularisers use all descriptors of the batch.
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

# From triplets to losses (n,); a module, so that any state it keeps goes into the checkpoint.
Loss = Callable[[Triplets], Tensor]
# From the batch's descriptors to a scalar, its weight included.
Regulariser = Callable[[Descriptions], Tensor]


@dataclass(frozen=True)
class Objective:
    """The parts of a recipe that turn descriptors into a loss.

    Attributes:
        distance: distance between descriptors, at the power that the loss takes.
        positive: the distance of a matching pair.
        mine: finds the patch of the batch that is a pair's negative.
        loss: maps triplets to losses.
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
        """Return the pairs with their negatives, mined on the descriptors as compared at test."""
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
        """Return the scalar that a step differentiates.

        Args:
            losses: (n,) losses of the pairs.
            described: their descriptors, for the regularisers.
            weights: (n,) weights of the pairs, or None for ones.
        """
        weighted = losses if weights is None else weights * losses
        total = weighted.mean() if self.reduction == "mean" else weighted.sum()
        return sum((regularizer(described) for regularizer in self.regularizers), total)

    def parts(self) -> Iterator[tuple[str, object]]:
        """Yield the parts by name; any of them may keep state or report curve values in `seen`."""
        yield from (("positive", self.positive), ("negatives", self.mine), ("loss", self.loss))
        yield from ((f"regularizer{i}", part) for i, part in enumerate(self.regularizers))


def build(recipe: Recipe, device: str = "cpu") -> Objective:
    """Build the objective of a recipe, with its state on a device.

    Raises:
        ValueError: the recipe names an unknown part or an unknown reduction.
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
