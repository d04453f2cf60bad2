"""Distances of matching pairs: one module each, with `build(distance, **options)` giving a `Positive`.

A module of its own, since TCDesc's depends on the whole batch. Which patch is the positive is drawn by
`lib.samplers`.
"""

from collections.abc import Callable

from torch import Tensor

from lib.descriptions import Descriptions

# From n described pairs to their distances (n,).
Positive = Callable[[Descriptions], Tensor]
