"""Which points a batch is made of: one module each, with `build(count, device, **options)` giving a
`Points`. A recipe that names none draws anew for each batch.
"""

from collections.abc import Callable

import torch
from torch import Tensor

# From the number of points wanted, n, to n distinct ones, int64; with state_dict where it keeps a state.
Points = Callable[[int, torch.Generator], Tensor]
