"""Two random different patches of each class, as in HardNet, DSM and all others but AdaSample."""

from collections.abc import Callable

import torch
from torch import Tensor

from lib.samplers.candidates import Choice, Pool, uniform_below


class RandomPair:
    """The sampler; it ignores descriptors and has no state."""

    reuse = False

    def choose(self, pool: Pool, describe: Callable[[], Tensor], generator: torch.Generator) -> Choice:
        """Choose a uniformly random ordered pair of different candidates of each class."""
        anchor = uniform_below(pool.counts, generator)
        step = 1 + uniform_below(pool.counts - 1, generator)
        return Choice(anchor, (anchor + step) % pool.counts)
