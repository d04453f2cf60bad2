"""Weights of a batch's matching pairs: one module each, with `build(**options)` returning a `Weigh`."""

from collections.abc import Callable

from torch import Tensor

from lib.samplers.candidates import Choice

# From the pairs that a sampler chose to their weights (n,), without gradient.
Weigh = Callable[[Choice], Tensor]
