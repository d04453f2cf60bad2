"""AdaSample's Eq. 12: is the hinge triplet loss "positively (or even linearly) correlated" with d_pos²?

L = t + d_pos² − d_neg² is linear in d_pos² with slope 1 for a given d_neg. Over a batch d_neg varies:
with k = σ(d_neg²)/σ(d_pos²) and ρ their correlation, Pearson's r of L and d_pos² is
(1 − ρk)/√(1 + k² − 2ρk) while no hinge is zero. The sampling of Eq. 12 takes more than correlation: it
puts d_pos² in L's place under a power, which needs L proportional to d_pos².
"""

from collections.abc import Sequence
from itertools import product

import numpy as np
import torch

from lib.distances import Distance, angular, euclidean
from lib.negatives.hardest import hardest
from lib.theory import Computed

LOSSES = {"HT": euclidean, "AHT": angular}
# Few, so that hard negatives come as close as in training.
DIMENSIONS = 32


def compute(batches: Sequence[int] = (64, 1024)) -> Computed:
    """Loss against squared matching distance over random descriptors with mined negatives.

    Matching descriptors are a class's random direction plus noise of a strength of the class's own; of
    each batch size as many batches are drawn as make 4096 pairs.

    Args:
        batches: pairs a batch.

    Returns:
        Numbers: "rows" of "loss", "batch", "positive" and "negative" (mean distances),
        "correlation" (Pearson of L and d_pos²), "formula" (the same by the module's formula),
        "zero_share", "elasticity" (median of d_pos²/L over positive losses: by
        what power of d_pos² the loss grows there; 1 where they are proportional). Arrays: "negative"
        (B,) and "zero_<loss>" (B,), see `zero_below`, also for "HardNet".
    """
    rows = [
        {"loss": name, "batch": batch, **_row(*_mined(module.build(power=2), batch))}
        for (name, module), batch in product(LOSSES.items(), batches)
    ]
    negative = np.linspace(0.0, 2.0, 201)
    zero = {f"zero_{name}": below for name, below in zero_below(negative).items()}
    return {"rows": rows}, {"negative": negative, **zero}


def zero_below(negative: np.ndarray) -> dict[str, np.ndarray]:
    """The Euclidean matching distance up to which the hinge is zero, NaN where it is zero for none.

    Args:
        negative: (B,) Euclidean distances of the negative, 0 to 2.

    Returns:
        (B,) by loss, of margin 1 on its own scale: "HardNet" (on d), "HT" (on d²), "AHT" (on the
        squared angle).
    """
    angle = 2 * np.arcsin(negative / 2)
    with np.errstate(invalid="ignore"):
        return {
            "HardNet": np.where(negative >= 1, negative - 1, np.nan),
            "HT": np.sqrt(negative**2 - 1),
            "AHT": 2 * np.sin(np.sqrt(angle**2 - 1) / 2),
        }


def correlation_by_formula(ratio: float, rho: float) -> float:
    """(1 − ρk)/√(1 + k² − 2ρk), Pearson's r of d_pos² − d_neg² with d_pos²."""
    return (1 - rho * ratio) / (1 + ratio**2 - 2 * rho * ratio) ** 0.5


def _row(positive: np.ndarray, negative: np.ndarray) -> dict[str, float]:
    losses = np.maximum(1 + positive - negative, 0)
    ratio, rho = negative.std() / positive.std(), np.corrcoef(positive, negative)[0, 1]
    above = losses > 0
    row = {"positive": np.sqrt(positive).mean(), "negative": np.sqrt(negative).mean()}
    row["correlation"] = np.corrcoef(losses, positive)[0, 1]
    row["formula"] = correlation_by_formula(ratio, rho)
    row |= {"zero_share": (~above).mean(), "elasticity": np.median(positive[above] / losses[above])}
    return {name: float(value) for name, value in row.items()}


def _mined(distance: Distance, batch: int) -> np.ndarray:
    """(2, 4096) squared distances of matching pairs and of their hardest negatives (Eq. 14)."""
    drawn = {"generator": torch.Generator().manual_seed(0), "dtype": torch.float64}
    distances = []
    for _ in range(4096 // batch):
        centre, strength = torch.randn(batch, DIMENSIONS, **drawn), torch.rand(batch, 1, **drawn)
        noise = torch.randn(2, batch, DIMENSIONS, **drawn)
        pairs = torch.nn.functional.normalize(centre + strength * noise, dim=-1)
        mined = hardest(pairs, distance, scope="within", floor=0.008)
        distances.append(torch.stack([distance.paired(*pairs), mined.distances(pairs, distance)]))
    return torch.cat(distances, dim=1).numpy()
