"""Statistics of a set of patches: points, patches, and patches per point. They need no descriptor."""

import numpy as np

from lib.benchmarks.subject import Subject
from lib.data.patchset import PatchSet


def measure(subject: Subject, test_set: PatchSet) -> dict[str, float]:
    """Count a set's patches, points and pairs.

    Args:
        subject: ignored; every metric is passed one.
        test_set: P patches of C points.

    Returns:
        "patches" P, "points" C; "matching_pairs" and "non_matching_pairs", those of FPR95; "share_of_2"
        to "share_of_5", the shares of points with that many patches, and "share_of_more".
    """
    _, counts = np.unique(test_set.point_ids, return_counts=True)
    match = test_set.pairs.match if test_set.pairs is not None else np.zeros(0, dtype=bool)
    non_matching = int((~match).sum())
    if test_set.representatives is not None:
        non_matching = len(counts) * (len(counts) - 1) // 2
    return {
        "patches": len(test_set.patches),
        "points": len(counts),
        "matching_pairs": int(match.sum()),
        "non_matching_pairs": non_matching,
        **{f"share_of_{n}": float((counts == n).mean()) for n in range(2, 6)},
        "share_of_more": float((counts > 5).mean()),
    }
