"""Which points make up a batch: one module each, with `build(count, device, **options)` returning a
`Points`. A recipe without one draws new points for each batch.
"""

from collections.abc import Callable

import torch
from torch import Tensor

# From n, the number of points wanted, to n distinct points, int64; has state_dict if it keeps a state.
Points = Callable[[int, torch.Generator], Tensor]
