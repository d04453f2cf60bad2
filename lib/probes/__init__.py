"""What figures need of a network beyond measures: one module each, with `probe(subject, data)`."""

from collections.abc import Mapping, Sequence

import numpy as np
from torch import Tensor


def stacked(stages: Sequence[Mapping[str, object]]) -> dict[str, np.ndarray]:
    """Arrays by name, of S stages of training that have the same ones, with an axis (S, …) before."""
    return {name: np.stack([array(stage[name]) for stage in stages]) for name in stages[0]}


def array(value: object) -> np.ndarray:
    """A tensor on any device, or what NumPy takes, as an array."""
    return value.cpu().numpy() if isinstance(value, Tensor) else np.asarray(value)
