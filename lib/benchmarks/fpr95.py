"""FPR95: false positive rate at 95% recall, the measure of UBC PhotoTour (Brown et al., PAMI 2011).

The threshold is the first at which 95% of the matching pairs are within it, and the rate is the share
of non-matching pairs within it, as in HardNet's and DSM's code. Their unstable sort puts equally
distant pairs in an arbitrary order; this module gives the expected rate over all such orders, and the
lowest and the highest. Tables show the expected value. HPatches breaks ties by a stable sort
(`lib.benchmarks.ranking`).

Which pairs do not match depends on the set. UBC PhotoTour lists them. On places, all pairs of different
points count, one patch of each point.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from lib.arrays import as_array
from lib.benchmarks.pair_distances import count_within, distances_between

if TYPE_CHECKING:
    from lib.benchmarks.subject import Subject
    from lib.data.patchset import PatchSet

RECALL = 0.95


@dataclass(frozen=True)
class Fpr95:
    """False positive rates in percent, 0 to 100.

    Attributes:
        expected: mean over all orders of equally distant pairs.
        low, high: rates in the most and the least favourable order.
        threshold: the distance at which the recall is reached.
    """

    expected: float
    low: float
    high: float
    threshold: float


def fpr95(distances: np.ndarray, match: np.ndarray) -> Fpr95:
    """Compute FPR95 from distances, in one sort.

    Args:
        distances: (M,) finite.
        match: (M,) bool, or numbers that are 0 or 1.

    Raises:
        ValueError: a distance is not finite, `match` has other values, or one kind of pair is missing.
    """
    distances, match = as_array(distances), as_array(match)
    if match.dtype != bool and not np.isin(match, (0, 1)).all():
        raise ValueError("match holds values other than 0 and 1: give the distances first, then match")
    match = match.astype(bool)
    if not np.isfinite(distances).all():
        raise ValueError(f"distance {np.flatnonzero(~np.isfinite(distances))[0]} is not finite")
    negatives = int((~match).sum())
    if negatives in (0, len(match)):
        raise ValueError(f"FPR95 needs both kinds of pairs; {negatives} of {len(match)} do not match")

    matching, others = distances[match], distances[~match]
    threshold = _threshold(matching)
    within = int((others < threshold.distance).sum()), int((others == threshold.distance).sum())
    return threshold.rates(*within, negatives)


@dataclass(frozen=True)
class _Threshold:
    """The distance at which the recall is reached.

    Attributes:
        distance: of the last matching pair that is needed.
        needed: how many of the matching pairs at that distance are needed, 1 or more.
        tied: how many there are.
    """

    distance: float
    needed: int
    tied: int

    def rates(self, closer: int, tied: int, negatives: int) -> Fpr95:
        """Return the rates for non-matching pairs, given how many are closer, tied, and there."""
        # In a random order of a positives and b negatives, r·b/(a + 1) negatives precede the r-th
        # positive.
        before = self.needed * tied / (self.tied + 1)
        counts = closer + before, closer, closer + tied
        return Fpr95(*(100 * count / negatives for count in counts), threshold=self.distance)


def _threshold(matching: np.ndarray) -> _Threshold:
    """Find the threshold from the distances of matching pairs (M,)."""
    levels, counts = np.unique(matching, return_counts=True)
    level, needed = threshold_level(counts)
    return _Threshold(float(levels[level]), needed, int(counts[level]))


def threshold_level(matching: np.ndarray) -> tuple[int, int]:
    """Find the threshold: the first level at which the recall is reached. Defined only here.

    Args:
        matching: (L,) matching pairs by ascending distance; a level is a distance that occurs, or a
            bin.

    Returns:
        The level, and how many of its matching pairs are needed to reach the recall, 1 or more.
    """
    within = np.cumsum(matching)
    needed = max(1, math.ceil(RECALL * int(within[-1])))
    level = int(np.searchsorted(within, needed))
    return level, needed - int(within[level] - matching[level])


def fpr95_of_points(
    descriptors: np.ndarray, first: np.ndarray, second: np.ndarray, representatives: np.ndarray
) -> Fpr95:
    """Compute FPR95 with all pairs of different points, one patch each, as non-matching ones.

    Args:
        descriptors: (P, k) floats, or (P, k / 8) uint8 of packed bits, compared by Hamming distance.
        first, second: (M,) the patches of matching pairs.
        representatives: (C,) a patch of each point, C at least 2.

    Raises:
        ValueError: there is no matching pair, or only one point.
    """
    if not len(first) or len(representatives) < 2:
        raise ValueError("FPR95 needs matching pairs, and patches of two points")
    is_binary = descriptors.dtype == np.uint8
    # The squared distance of bits is their Hamming distance.
    rows = np.unpackbits(descriptors, axis=1) if is_binary else descriptors
    rows = rows.astype(np.float64)
    threshold = _threshold(distances_between(rows, rows, (first, second)))
    alone = rows[representatives]
    closer, tied = count_within(alone, alone, threshold.distance)
    rates = threshold.rates(closer, tied, len(alone) * (len(alone) - 1) // 2)
    if is_binary:
        return replace(rates, threshold=round(rates.threshold**2))
    return rates


def fpr95_of_set(describe: Callable[[np.ndarray], np.ndarray], test_set: PatchSet) -> Fpr95:
    """Compute a descriptor's FPR95 on a set; the set says which pairs do not match.

    Args:
        describe: as in `lib.benchmarks.subject.Subject`.
        test_set: with labelled pairs.

    Raises:
        ValueError: the set has no labelled pairs, or a descriptor is not finite (its patch is named).
    """
    from lib.benchmarks.subject import check_finite, pair_distances

    if test_set.pairs is None:
        raise ValueError(f"{test_set.name} has no labelled pairs to measure FPR95 on")
    if test_set.representatives is None:
        return fpr95(*pair_distances(describe, test_set))
    descriptors = describe(test_set.patches)
    if descriptors.dtype != np.uint8:
        check_finite(descriptors, np.arange(len(descriptors)), test_set.name)
    match = test_set.pairs.match
    first, second = test_set.pairs.first[match], test_set.pairs.second[match]
    return fpr95_of_points(descriptors, first, second, test_set.representatives)


def measure(subject: Subject, test_set: PatchSet) -> dict[str, float]:
    """Return a descriptor's FPR95 on a set: the fields of `Fpr95`."""
    return asdict(fpr95_of_set(subject.describe, test_set))
