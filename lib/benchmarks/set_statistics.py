"""What a set of patches holds: how many points, patches and views a point. Of the data alone."""

import numpy as np

from lib.benchmarks.subject import Subject
from lib.data.patchset import PatchSet


def measure(subject: Subject, test_set: PatchSet) -> dict[str, float]:
    """Counts of a set.

    Args:
        subject: not asked; a metric is given one.
        test_set: P patches of C points.

    Returns:
        "patches" P, "points" C, "matching_pairs", "non_matching_pairs", and "share_of_2" … the shares
        of points by number of patches, from 2 to 5 and "share_of_more".
    """
    _, counts = np.unique(test_set.point_ids, return_counts=True)
    match = test_set.pairs.match if test_set.pairs is not None else np.zeros(0, dtype=bool)
    return {
        "patches": len(test_set.patches),
        "points": len(counts),
        "matching_pairs": int(match.sum()),
        "non_matching_pairs": int((~match).sum()),
        **{f"share_of_{n}": float((counts == n).mean()) for n in range(2, 6)},
        "share_of_more": float((counts > 5).mean()),
    }
