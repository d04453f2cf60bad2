"""Hardpos: always the hardest positive, AdaSample's limit λ → ∞ (Sec. 3.2 and 5.4)."""

from collections.abc import Callable

import torch
from torch import Tensor

from lib.losses.distances import Distance
from lib.samplers.adasample import anchor_distances
from lib.samplers.candidates import Choice, Pool, uniform_below


class Hardpos:
    """The sampler, which draws the farthest positive.

    Args:
        distance: taken at power 1.
        of: "anchor", the candidate farthest from a random anchor, or "class", the two candidates
            of the class that are farthest apart.

    Raises:
        ValueError: an unknown ``of``.
    """

    reuse = False

    def __init__(self, distance: Distance, of: str = "anchor"):
        if of not in ("anchor", "class"):
            raise ValueError(f"of must be 'anchor' or 'class', got {of!r}")
        self.distance, self.of = distance, of

    def choose(self, pool: Pool, describe: Callable[[], Tensor], generator: torch.Generator) -> Choice:
        """Choose a pair of each class as ``of`` says, at random among equally far ones.

        Args:
            pool: candidates of n classes, at most c for each.
            describe: called once, returns their unit descriptors (n, c, k).
            generator: on the pool's device.
        """
        descriptors = describe()
        n, c = pool.valid.shape
        if self.of == "anchor":
            anchor = uniform_below(pool.counts, generator)
            distance = anchor_distances(pool, descriptors, anchor, self.distance)
            drawn, positive = farthest(distance, generator)
            return Choice(anchor, positive, drawn)
        every = torch.arange(c, device=pool.valid.device)
        distance = torch.stack(
            [
                anchor_distances(pool, descriptors, every[i].expand(n), self.distance).masked_fill(
                    ~pool.valid[:, i : i + 1], torch.nan
                )
                for i in range(c)
            ],
            dim=1,
        )
        drawn, pair = farthest(distance.flatten(1), generator)
        return Choice(pair // c, pair % c, drawn)


def farthest(distance: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return the largest distance of each row and its column; ties are broken at random.

    Args:
        distance: (n, c), NaN where there is no candidate.
        generator: on its device.

    Returns:
        (n,) distances and (n,) int64 columns.
    """
    filled = distance.nan_to_num(-torch.inf)
    largest = filled.amax(dim=1, keepdim=True)
    column = torch.multinomial((filled == largest).double(), 1, generator=generator)
    return filled.gather(1, column).squeeze(1), column.squeeze(1)
