"""Weights of a batch's matching pairs: AdaSample's re-weighting scalar."""

from dataclasses import dataclass

import torch
from torch import Tensor

from lib.samplers.candidates import Choice

# Identical descriptors have d = 0, and their weight would be infinite; here 1/d is at most 100.
# The smaller constant of the same name in `lib.samplers.adasample` only keeps log d finite.
SMALLEST_DISTANCE = 1e-2


@dataclass(frozen=True)
class InverseDistance:
    """Weights of the pairs that a sampler chose, by `inverse_distance`.

    Attributes:
        scale: "batch_mean", "raw" or "class"; see `inverse_distance`.
    """

    scale: str = "batch_mean"

    def __call__(self, choice: Choice) -> Tensor:
        """Return the weights (n,) of n pairs."""
        return inverse_distance(choice.distance, choice.log_normaliser, scale=self.scale)


def inverse_distance(distance: Tensor, log_normaliser: Tensor | None, *, scale: str) -> Tensor:
    """Return AdaSample's w_i ∝ 1/d of matching pairs (Eq. 11 to 13), without gradient.

    With probabilities that Alg. 1 normalises within each class, only the scale "class" meets Eq. 9; the
    default, 1/d with a batch mean of 1, does not (`lib.analysis.unbiasedness`).

    Args:
        distance: (n,) distances d(x_i, x_i0) by which the pairs were drawn; floored at 0.01.
        log_normaliser: (n,) log Z of each class, Z = Σ_j d_j^(λ / L_avg) over its candidates; only
            "class" needs it.
        scale: "batch_mean": 1/d scaled to a batch mean of 1, so that the learning rate keeps its
            meaning; "raw": 1/d; "class": Z/d scaled to a batch mean of 1, as Eq. 9 requires when
            probabilities are normalised within each class as in Alg. 1.

    Returns:
        (n,) weights, positive.

    Raises:
        ValueError: the scale is unknown, or "class" with a sampler that has no Z (Hardpos).
    """
    logarithm = -distance.detach().clamp(min=SMALLEST_DISTANCE).log()
    if scale == "raw":
        return logarithm.exp()
    if scale == "class":
        if log_normaliser is None:
            raise ValueError("pair weights of scale 'class' need AdaSample with a finite λ")
        logarithm = logarithm + log_normaliser.detach()
    elif scale != "batch_mean":
        raise ValueError(f"scale must be 'batch_mean', 'raw' or 'class', got {scale!r}")
    # (1/d) / mean(1/d), as a softmax of logarithms: positive, and without the overflow of Z.
    return torch.softmax(logarithm, dim=0) * len(logarithm)
