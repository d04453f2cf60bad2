"""W1BS as TCDesc's Figure 5 draws it: recall over 1 − precision."""

import numpy as np

from lib.benchmarks.subject import Subject
from lib.benchmarks.w1bs import curves
from lib.data.w1bs import PatchPairs


def probe(subject: Subject, test_set: PatchPairs) -> dict[str, np.ndarray]:
    """The curves of TCDesc's Figure 5.

    Returns:
        By subset, S of them: "subset" (S,) text, "recall" and "precision" (S, 100) float32, means over
        pairs at the same number of threshold, as the authors' code averages them.
    """
    found: dict[str, list] = {}
    for pair in test_set.pairs:
        found.setdefault(pair.subset, []).append(curves(subject, *pair.patches())["ratio"])
    means = np.array([np.mean(of, axis=0) for of in found.values()], np.float32)
    return {"subset": np.array(list(found)), "recall": means[:, 0], "precision": means[:, 1]}
