"""Probe: W1BS curves of recall over 1 − precision, as in TCDesc's Figure 5."""

from collections.abc import Mapping

import numpy as np

from lib.benchmarks.subject import Subject
from lib.benchmarks.w1bs import curve
from lib.data.whole_images import PatchPair


def probe(subject: Subject, test_set: Mapping[tuple[str, str], PatchPair]) -> dict[str, np.ndarray]:
    """Compute the curves of TCDesc's Figure 5.

    Returns:
        For S subsets: "subset" (S,) text, "recall" and "precision" (S, 100) float32, means over pairs at
        the same index of threshold, as in the authors' code.
    """
    by_subset: dict[str, list] = {}
    for (subset, _), patches in test_set.items():
        by_subset.setdefault(subset, []).append(curve(subject, *patches))
    means = np.array([np.mean(pairs, axis=0) for pairs in by_subset.values()], np.float32)
    return {"subset": np.array(list(by_subset)), "recall": means[:, 0], "precision": means[:, 1]}
