"""Probe: how a pair's distance hangs on how full its histograms are, which costs RootSIFT its FPR95.

A histogram x of k bins and unit length has N = (Σ x)² filled bins: 1 where all lies in one, k where
all are equal. Of two that nothing else relates, the product in a bin is that of their means, so that
x·y ≈ √(N_x N_y) / k and d² ≈ 2 − 2 √(N_x N_y) / k: full histograms lie close to each other whatever they
show. FPR95 and verification take one threshold for all pairs. Matching and retrieval compare distances
from one and the same patch, where N_x is the same in all.
"""

import numpy as np

from lib.benchmarks.fpr95 import fpr95
from lib.benchmarks.subject import Subject, patches_used
from lib.data.patchset import PatchSet

GROUPS = 10
# Of the distances in a group of pairs, in percent.
PERCENTILES = (5, 25, 50, 75, 95)


def probe(subject: Subject, test_set: PatchSet) -> dict[str, np.ndarray]:
    """Distances in ten groups of pairs by filled bins, equally many matching pairs in each.

    Args:
        subject: what describes: histograms, so no value is negative.
        test_set: with labelled pairs of both kinds.

    Returns:
        All float32: "filled" (10,), √(N_x N_y), the mean of each group; "matching" and "non_matching"
        (10, 5), distances at `PERCENTILES`; NaN where a group has no such pair; "threshold" (), FPR95's.
        "own_thresholds" (), the share of non-matching pairs in percent that pass if each group has the
        threshold at which 95% of its own matching pairs pass; "correlation" (), Pearson's, of distance
        and filled bins over non-matching pairs.
    """
    distances, match = subject.pair_distances(test_set)
    used, (first, second) = patches_used(test_set)
    described = subject.described(test_set.patches[used]).astype(np.float64)
    # The square root of N; of unit length or not, since a sum of squares divides it.
    fullness = described.sum(axis=1) / np.linalg.norm(described, axis=1)
    filled = fullness[first] * fullness[second]
    edges = np.quantile(filled[match], np.linspace(0, 1, GROUPS + 1)[1:-1])
    group = np.searchsorted(edges, filled, side="right")
    groups = [group == number for number in range(GROUPS)]

    def percentiles(kind: np.ndarray) -> np.ndarray:
        by_group = [distances[kind & some] for some in groups]
        return np.array([np.percentile(d, PERCENTILES) if len(d) else [np.nan] * 5 for d in by_group])

    passed = [
        fpr95(distances[some], match[some]).expected * (some & ~match).sum()
        for some in groups
        if match[some].any() and not match[some].all()
    ]
    arrays = {
        "filled": np.array([filled[some].mean() if some.any() else np.nan for some in groups]),
        "matching": percentiles(match),
        "non_matching": percentiles(~match),
        "threshold": fpr95(distances, match).threshold,
        "own_thresholds": sum(passed) / (~match).sum(),
        "correlation": np.corrcoef(filled[~match], distances[~match])[0, 1],
    }
    return {name: np.asarray(array, np.float32) for name, array in arrays.items()}
