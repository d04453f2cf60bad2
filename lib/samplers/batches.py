"""Batches of classes with their candidate patches, from which a training step draws its pairs.

These are the steps of AdaSample's Alg. 1 that do not depend on the network: drawing n distinct classes
and making their candidates, with ``*`` and ``+`` as in the recipe.
"""

import warnings
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lib import parts
from lib.data.patchset import PatchSet
from lib.recipes import Recipe
from lib.samplers import augmentation, candidates
from lib.samplers.candidates import Classes, Generation, Pool
from lib.samplers.points import Points


@dataclass(frozen=True)
class Batch:
    """The candidates of n classes, at most c for each.

    Attributes:
        pool: which patches are the candidates.
        turn: (n, c) int64, the flip and quarter turn of each candidate, or None.
        bank: (P, 64, 64) uint8, the patches of the set.
        size: side of the network's input.
    """

    pool: Pool
    turn: Tensor | None
    bank: Tensor
    size: int

    def images(self, slots: Tensor | tuple[Tensor, Tensor]) -> Tensor:
        """Return the images of some candidates, (m, 1, size, size) float32, 0 to 255.

        Args:
            slots: those of the candidates in the pool, (n, c) bool, or (m,) int64 rows and columns.
        """
        angle = self.pool.angle[slots]
        patches = self.bank[self.pool.patch[slots].to(self.bank.device)].to(angle.device)
        turn = None if self.turn is None else self.turn[slots]
        return augmentation.cut(patches, angle, turn, self.size)

    def lay_out(self, described: Tensor) -> Tensor:
        """Arrange descriptors (m, k) of the candidates, in order, as (n, c, k), zero at empty slots."""
        filled = described.new_zeros(*self.pool.valid.shape, described.shape[1])
        return filled.masked_scatter(self.pool.valid[:, :, None], described)

    @property
    def seen(self) -> dict[str, Tensor]:
        """The curve "two_share": the share of classes with two candidates, which leave no choice."""
        return {"two_share": (self.pool.counts == 2).float().mean()}


@dataclass(frozen=True)
class Batches:
    """The source of a recipe's batches.

    Attributes:
        bank: (P, 64, 64) uint8, the patches of the set.
        classes: the patches grouped by point.
        generation: how positives are generated (``*``), or None.
        turns: flips and quarter turns (``+``), or None.
        size: side of the network's input.
        points: which points make up a batch; None draws new ones each time.
    """

    bank: Tensor
    classes: Classes
    generation: Generation | None
    turns: augmentation.Turns | None
    size: int
    points: Points | None = None

    def draw(self, n: int, generator: torch.Generator) -> Batch:
        """Draw a batch of n distinct classes.

        Raises:
            ValueError: n is below 2 or above the number of classes.
        """
        pool = candidates.draw_pool(self.classes, n, self.generation, generator, self.points)
        turn = self.turns.draw(pool.valid.shape, generator) if self.turns else None
        return Batch(pool, turn, self.bank, self.size)


def open_batches(
    recipe: Recipe, patch_set: PatchSet, device: str = "cpu", size: int = augmentation.INPUT_SIZE
) -> Batches:
    """Return the batches of a recipe on a patch set.

    Args:
        recipe: says how candidates are made.
        patch_set: the set; each class has 2 patches or more.
        device: the device on which images are made; a GPU also holds the patches.
        size: side of the network's input.

    Raises:
        ValueError: a class has a single patch, or the recipe names an unknown part.
    """
    with warnings.catch_warnings():
        # The patches are memory-mapped for reading, and nothing here writes to them.
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        bank = torch.from_numpy(np.asarray(patch_set.patches))
    classes = candidates.group(patch_set.point_ids, device)
    return Batches(
        bank.to(device),
        classes,
        parts.build("generate", recipe.generate),
        parts.build("augment", recipe.augment),
        size,
        parts.build("points", recipe.points, count=len(classes), device=device),
    )
