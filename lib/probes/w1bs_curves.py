"""W1BS as TCDesc's Figure 5 draws it: recall over 1 − precision."""

from collections.abc import Mapping

import numpy as np

from lib.benchmarks.subject import Subject
from lib.benchmarks.w1bs import curve
from lib.data.whole_images import PatchPair


def probe(subject: Subject, test_set: Mapping[tuple[str, str], PatchPair]) -> dict[str, np.ndarray]:
    """The curves of TCDesc's Figure 5.

    Returns:
        By subset, S of them: "subset" (S,) text, "recall" and "precision" (S, 100) float32, means over
        pairs at the same number of threshold, as the authors' code averages them.
    """
    by_subset: dict[str, list] = {}
    for (subset, _), patches in test_set.items():
        by_subset.setdefault(subset, []).append(curve(subject, *patches))
    means = np.array([np.mean(pairs, axis=0) for pairs in by_subset.values()], np.float32)
    return {"subset": np.array(list(by_subset)), "recall": means[:, 0], "precision": means[:, 1]}
