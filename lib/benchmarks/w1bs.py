"""W1BS: nearest neighbours among patches of two images that differ greatly (Mishkin et al., BMVC 2015).

As its authors' code has it (ducha-aiki/wxbs-descriptors-benchmark): every patch of the first image takes
its nearest of the second, which is right if it has the same number. Matches whose ratio of the nearest's
distance to the second-nearest's is below a threshold are accepted, for 100 thresholds from 0 to the
largest ratio; recall is the share of right ones accepted in all patches, precision in those accepted,
1 where none is. The area under recall over 1 − precision is by trapezoids from point to point, also
where precision turns back; mAUC is its mean over the pairs of a subset, and the total the mean over
subsets.
"""

from __future__ import annotations

from collections.abc import Mapping

import cv2
import numpy as np
import pandas as pd

from lib.augmentation import PATCH_SIZE
from lib.benchmarks.subject import Subject
from lib.data.whole_images import PatchPair
from lib.features.matches import nearest

THRESHOLDS = 100
# Added to what a distance is divided by.
_EPSILON = 1e-12


def measure(subject: Subject, test_set: Mapping[tuple[str, str], PatchPair]) -> dict[str, float]:
    """Areas of a descriptor in percent.

    Returns:
        "mauc", over all subsets; "mauc.SUBSET" and "mauc.SUBSET.PAIR".

    Raises:
        ValueError: a pair has fewer than two patches.
    """
    areas = pd.Series(
        {pair: 100 * area(*curve(subject, *patches)) for pair, patches in test_set.items()}
    )
    subsets = areas.groupby(level=0, sort=False).mean()
    numbers = {f"mauc.{subset}.{name}": value for (subset, name), value in areas.items()}
    numbers |= {f"mauc.{subset}": mean for subset, mean in subsets.items()}
    return numbers | {"mauc": float(subsets.mean())}


def curve(subject: Subject, first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Recall and precision at each threshold, (100,) each.

    Args:
        subject: what describes.
        first, second: (n, s, s) uint8 patches of the same spots.

    Raises:
        ValueError: fewer than two patches, which have no second-nearest.
    """
    if len(first) < 2:
        raise ValueError(f"{len(first)} patch has no second-nearest: a pair needs two at least")
    described = [subject.describe(at_64(patches)) for patches in (first, second)]
    distances, columns = nearest(*described, count=2)
    right = columns[:, 0] == np.arange(len(columns))
    near, far = distances.astype(float).T
    ratio = near / (far + _EPSILON)
    accepted = ratio < np.linspace(0, ratio.max(), THRESHOLDS)[:, None]
    hits, count = (accepted & right).sum(axis=1), accepted.sum(axis=1)
    return hits / len(right), np.where(count > 0, hits / np.maximum(count, 1), 1.0)


def area(recall: np.ndarray, precision: np.ndarray) -> float:
    """Under recall over 1 − precision, (t,) each, by the trapezoid rule in their order."""
    return float(np.trapezoid(recall, 1 - precision))


def at_64(patches: np.ndarray) -> np.ndarray:
    """Patches (n, s, s) uint8 at the size that descriptors are given, (n, 64, 64), bilinear."""
    return np.stack([cv2.resize(patch, (PATCH_SIZE, PATCH_SIZE)) for patch in patches])
