"""Probe: the distributions of the distances of matching and of non-matching pairs."""

import numpy as np

from lib.benchmarks.subject import Subject
from lib.data.patchset import PatchSet

BINS = 80


def probe(subject: Subject, test_set: PatchSet) -> dict[str, np.ndarray]:
    """Count labelled pairs by Euclidean distance.

    Args:
        subject: the descriptor.
        test_set: with labelled pairs.

    Returns:
        "edges" (81,) float32 from 0 to 2, or to the largest distance where that is larger;
        "matching" and "non_matching" (80,) int32 counts.
    """
    distances, match = subject.pair_distances(test_set)
    edges = np.linspace(0, max(2.0, float(distances.max())), BINS + 1)
    return {
        "edges": edges.astype(np.float32),
        "matching": np.histogram(distances[match], edges)[0].astype(np.int32),
        "non_matching": np.histogram(distances[~match], edges)[0].astype(np.int32),
    }
