"""FPR95: false positive rate at 95% recall, the measure of UBC PhotoTour (Brown et al., PAMI 2011).

The threshold is the first at which 95% of the matching pairs are within it, and the rate is the share
of non-matching pairs within it, as in HardNet's and DSM's code. Their unstable sort puts equally
distant pairs in an arbitrary order; this module gives the expected rate over all such orders, and the
lowest and the highest. Tables show the expected value. HPatches breaks ties by a stable sort
(`lib.benchmarks.ranking`).
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

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
        match: (M,) bool.

    Raises:
        ValueError: a distance is not finite, or one kind of pair is missing.
    """
    distances, match = np.asarray(distances), np.asarray(match, dtype=bool)
    if not np.isfinite(distances).all():
        raise ValueError(f"distance {np.flatnonzero(~np.isfinite(distances))[0]} is not finite")
    negatives = int((~match).sum())
    if negatives in (0, len(match)):
        raise ValueError(f"FPR95 needs both kinds of pairs; {negatives} of {len(match)} do not match")

    levels, matching, non_matching = counts_by_distance(distances, match)
    level, rank = threshold_level(matching)
    sure, tied = int(non_matching[:level].sum()), int(non_matching[level])
    # In a random order of a positives and b negatives, r·b/(a + 1) negatives precede the r-th positive.
    before = rank * tied / (int(matching[level]) + 1)
    rates = (100 * count / negatives for count in (sure + before, sure, sure + tied))
    return Fpr95(*rates, threshold=float(levels[level]))


def counts_by_distance(
    distances: np.ndarray, match: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Count the pairs of both kinds at each of the L distances that occur, ascending.

    Args:
        distances: (M,).
        match: (M,) bool.

    Returns:
        (L,) distances, (L,) matching and (L,) non-matching pairs.
    """
    levels, level = np.unique(distances, return_inverse=True)
    counts = (np.bincount(level[kind], minlength=len(levels)) for kind in (match, ~match))
    return levels, *counts


def threshold_level(matching: np.ndarray) -> tuple[int, int]:
    """Find the threshold: the first level at which the recall is reached. Defined only here.

    Args:
        matching: (L,) matching pairs by ascending distance; a level is a distance that occurs, or a
            bin.

    Returns:
        The level, and how many of its matching pairs are needed to reach the recall, 1 or more.
    """
    within = np.cumsum(matching)
    # The small subtraction avoids one pair too many where the product rounds up.
    needed = max(1, math.ceil(RECALL * int(within[-1]) - 1e-9))
    level = int(np.searchsorted(within, needed))
    return level, needed - int(within[level] - matching[level])


def measure(subject: Subject, test_set: PatchSet) -> dict[str, float]:
    """Return a descriptor's FPR95 on a set's labelled pairs: the fields of `Fpr95`."""
    return asdict(fpr95(*subject.pair_distances(test_set)))
