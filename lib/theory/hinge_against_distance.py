"""AdaSample's Eq. 12: is the hinge triplet loss "positively (or even linearly) correlated" with d_pos²?

L = t + d_pos² − d_neg² is linear in d_pos² with slope 1 for a given d_neg. Over a batch d_neg varies:
with k = σ(d_neg²)/σ(d_pos²) and ρ their correlation, Pearson's r of L and d_pos² is
(1 − ρk)/√(1 + k² − 2ρk) while no hinge is zero. The sampling of Eq. 12 takes more than correlation: it
puts d_pos² in L's place under a power, which needs L proportional to d_pos².
"""

from collections.abc import Sequence

import numpy as np
import torch

from lib.distances import Distance, angular, euclidean
from lib.negatives.hardest import hardest

LOSSES = {"HT": euclidean, "AHT": angular}


def compute(
    batches: Sequence[int] = (64, 1024), dimensions: int = 32, seed: int = 0
) -> tuple[dict[str, float | list], dict[str, np.ndarray]]:
    """Loss against squared matching distance over random descriptors with mined negatives.

    Matching descriptors are a class's random direction plus noise of a strength of the class's own; of
    each batch size as many batches are drawn as make 4096 pairs.

    Args:
        batches: pairs a batch.
        dimensions: of the descriptors; few, so that hard negatives come as close as in training.
        seed: of the descriptors.

    Returns:
        Numbers: "rows" of "loss", "batch", "positive" and "negative" (mean distances),
        "correlation" (Pearson of L and d_pos²), "formula" (the same by the module's formula),
        "ratio" (k), "rho", "zero_share", "elasticity" (median of d_pos²/L over positive losses: by
        what power of d_pos² the loss grows there; 1 where they are proportional). Arrays: "negative"
        (B,) and "zero_<loss>" (B,), see `zero_below`, also for "HardNet".
    """
    rows = []
    for name, module in LOSSES.items():
        distance = module.build(power=2)
        for batch in batches:
            positive, negative = _mined(distance, batch, 4096 // batch, dimensions, seed)
            losses = np.maximum(1 + positive - negative, 0)
            rows.append({"loss": name, "batch": batch, **_row(positive, negative, losses)})
    negative = np.linspace(0.0, 2.0, 201)
    zero = {f"zero_{name}": of for name, of in zero_below(negative).items()}
    return {"rows": rows}, {"negative": negative, **zero}


def zero_below(negative: np.ndarray, margin: float = 1.0) -> dict[str, np.ndarray]:
    """The Euclidean matching distance up to which the hinge is zero, NaN where it is zero for none.

    Args:
        negative: (B,) Euclidean distances of the negative, 0 to 2.
        margin: t, on the scale of each loss.

    Returns:
        (B,) by loss: "HardNet" (on d), "HT" (on d²), "AHT" (on the squared angle).
    """
    angle = 2 * np.arcsin(negative / 2)
    with np.errstate(invalid="ignore"):
        return {
            "HardNet": np.where(negative >= margin, negative - margin, np.nan),
            "HT": np.sqrt(negative**2 - margin),
            "AHT": 2 * np.sin(np.sqrt(angle**2 - margin) / 2),
        }


def correlation_by_formula(ratio: float, rho: float) -> float:
    """(1 − ρk)/√(1 + k² − 2ρk), Pearson's r of d_pos² − d_neg² with d_pos²."""
    return (1 - rho * ratio) / (1 + ratio**2 - 2 * rho * ratio) ** 0.5


def _row(positive: np.ndarray, negative: np.ndarray, losses: np.ndarray) -> dict[str, float]:
    ratio = float(negative.std() / positive.std())
    rho = float(np.corrcoef(positive, negative)[0, 1])
    above = losses > 0
    return {
        "positive": float(np.sqrt(positive).mean()),
        "negative": float(np.sqrt(negative).mean()),
        "correlation": float(np.corrcoef(losses, positive)[0, 1]),
        "formula": correlation_by_formula(ratio, rho),
        "ratio": ratio,
        "rho": rho,
        "zero_share": float((~above).mean()),
        "elasticity": float(np.median(positive[above] / losses[above])),
    }


def _mined(
    distance: Distance, batch: int, count: int, dimensions: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Squared distances of matching pairs and of their hardest negatives (Eq. 14), (count · batch,)."""
    generator = torch.Generator().manual_seed(seed)
    found = []
    for _ in range(count):
        centre = torch.randn(batch, dimensions, generator=generator, dtype=torch.float64)
        strength = torch.rand(batch, 1, generator=generator, dtype=torch.float64)
        noise = torch.randn(2, batch, dimensions, generator=generator, dtype=torch.float64)
        pairs = torch.nn.functional.normalize(centre + strength * noise, dim=-1)
        mined = hardest(pairs, distance, scope="within", floor=0.008)
        found.append(torch.stack([distance.paired(*pairs), mined.distances(pairs, distance)]))
    positive, negative = torch.cat(found, dim=1).numpy()
    return positive, negative
