"""What the network of any recipe hands to its objective, at a sixteenth of the width."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lib import parts
from lib.recipes import Recipe

PAIRS = 18


def outputs(recipe: Recipe, n: int = PAIRS) -> tuple[nn.Module, Tensor | tuple[Tensor, ...]]:
    """Return a recipe's network, and what its `raw` returns of 2n patches of noise."""
    torch.manual_seed(0)
    network = parts.build("model", recipe.model, width=1 / 16)
    size = network.input_size
    return network, network.raw(255 * torch.rand(2 * n, 1, size, size))


def halves(output: Tensor | tuple[Tensor, ...]) -> list:
    """Return the output for the anchors and for the positives, as an objective takes them."""
    if isinstance(output, tuple):
        return list(zip(*(each.chunk(2) for each in output), strict=True))
    return list(output.chunk(2))
