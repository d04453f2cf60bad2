"""W1BS: nearest neighbours among patches of two images that differ greatly (Mishkin et al., BMVC 2015).

The measure follows its authors' code (ducha-aiki/wxbs-descriptors-benchmark). Each patch of the first
image is matched with its nearest of the second; the match is right if both have the same number. It is
accepted if its ratio of nearest to second-nearest distance is below a threshold, for 100 thresholds from
0 to the largest ratio. Recall is the number of right accepted matches over all patches. Precision is
that number over all accepted matches, 1 if there are none. The area under recall over 1 − precision is
summed by trapezoids from point to point, even where precision turns back. mAUC is its mean over the
pairs of a subset, and the total is the mean over subsets.
"""

from __future__ import annotations

from collections.abc import Mapping

import cv2
import numpy as np
import pandas as pd

from lib.benchmarks.subject import Subject
from lib.data.whole_images import PatchPair
from lib.features.matches import nearest
from lib.samplers.augmentation import PATCH_SIZE

THRESHOLDS = 100
# Added to the denominator of the ratio.
_EPSILON = 1e-12


def measure(subject: Subject, test_set: Mapping[tuple[str, str], PatchPair]) -> dict[str, float]:
    """Measure a descriptor's areas under the curve, in percent.

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
    """Compute recall and precision at each threshold, (100,) each.

    Args:
        subject: the descriptor.
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
    """Compute the area under recall over 1 − precision, (t,) each, by the trapezoid rule in order."""
    return float(np.trapezoid(recall, 1 - precision))


def at_64(patches: np.ndarray) -> np.ndarray:
    """Resize patches (n, s, s) uint8 bilinearly to the size that descriptors take, (n, 64, 64)."""
    return np.stack([cv2.resize(patch, (PATCH_SIZE, PATCH_SIZE)) for patch in patches])
