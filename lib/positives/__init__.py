"""Distances of matching pairs: one module each, whose `build(distance, **options)` returns a `Positive`.

They are an axis of their own because TCDesc's depends on the whole batch. `lib.samplers` draws the patch
that is the positive.
"""

from collections.abc import Callable

from torch import Tensor

from lib.descriptions import Descriptions

# From n described pairs to their distances (n,).
Positive = Callable[[Descriptions], Tensor]
