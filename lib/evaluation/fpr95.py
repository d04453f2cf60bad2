"""FPR95: false positive rate at 95% recall, the measure of UBC PhotoTour (Brown et al., PAMI 2011).

The threshold is the first at which 95% of the matching pairs are within it, and the rate is the share
of non-matching pairs within it, as in HardNet's and DSM's code. There an unstable sort decides which
of several equally distant pairs come first; here the expected value over all their orders is given,
and the two ends.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lib.data.patchset import PatchSet
    from lib.evaluation.subject import Subject

RECALL = 0.95


@dataclass(frozen=True)
class Fpr95:
    """False positive rates in percent, 0 to 100.

    Attributes:
        expected: mean over all orders of equally distant pairs.
        low, high: the most and the least favourable order.
        threshold: the distance at which the recall is reached.
    """

    expected: float
    low: float
    high: float
    threshold: float


def pairs_needed(positives: int, recall: float = RECALL) -> int:
    """How many of so many matching pairs are to be within the threshold, the closest first."""
    # The small subtraction keeps a recall of 0.07 of 100 pairs, 7.000000000000001, from asking for
    # eight.
    return max(1, math.ceil(recall * positives - 1e-9))


def threshold_of_bins(
    edges: Sequence[float], matching: Sequence[float], recall: float = RECALL
) -> float:
    """The threshold where distances are known by bins only, pairs taken as spread evenly within each.

    Args:
        edges: (B + 1,) ascending.
        matching: (B,) counts of matching pairs, not all zero.
        recall: as in `fpr95`.
    """
    below = np.concatenate([[0.0], np.cumsum(np.asarray(matching, dtype=np.float64))])
    return float(np.interp(recall * below[-1], below, np.asarray(edges, dtype=np.float64)))


def fpr95(distances: np.ndarray, match: np.ndarray, recall: float = RECALL) -> Fpr95:
    """The measure, from distances, in one sort.

    Args:
        distances: (M,) finite.
        match: (M,) bool.
        recall: share of the matching pairs to be within the threshold, in (0, 1].

    Raises:
        ValueError: lengths differ, a distance is not finite, one kind of pair is missing, or the
            recall is out of range.
    """
    if not 0 < recall <= 1:
        raise ValueError(f"recall must be above 0 and at most 1, got {recall}")
    distances, match = np.asarray(distances), np.asarray(match, dtype=bool)
    if distances.shape != match.shape:
        raise ValueError(f"{distances.shape} distances and {match.shape} labels do not go together")
    if not np.isfinite(distances).all():
        raise ValueError(f"distance {np.flatnonzero(~np.isfinite(distances))[0]} is not finite")
    positives = int(match.sum())
    negatives = len(match) - positives
    if positives == 0 or negatives == 0:
        raise ValueError(f"FPR95 needs both kinds of pairs, got {positives} matching of {len(match)}")

    needed = pairs_needed(positives, recall)
    threshold = np.partition(distances[match], needed - 1)[needed - 1]
    closer = distances < threshold
    tied = distances == threshold
    sure = int((closer & ~match).sum())
    tied_negatives = int((tied & ~match).sum())
    tied_positives = int((tied & match).sum())
    rank = needed - int((closer & match).sum())
    # In a random order of a positives and b negatives, r·b/(a + 1) negatives precede the r-th positive.
    before = rank * tied_negatives / (tied_positives + 1)
    rates = (100 * count / negatives for count in (sure + before, sure, sure + tied_negatives))
    return Fpr95(*rates, threshold=float(threshold))


def measure(subject: Subject, test_set: PatchSet) -> dict[str, float]:
    """FPR95 of a descriptor on a set's labelled pairs: the fields of `Fpr95`."""
    from lib.evaluation.subject import pair_distances

    return asdict(fpr95(*pair_distances(subject, test_set)))
