"""FPR95 at each stage of training whose weights were kept, on all pairs of a set.

What is followed through training is on few pairs (`lib.benchmarks.following`): too few to choose an
epoch by.
"""

from functools import partial

from lib.benchmarks.fpr95 import fpr95
from lib.benchmarks.subject import Subject, describe, pair_distances
from lib.data.patchset import PatchSet


def measure(subject: Subject, test_set: PatchSet) -> dict[str, float]:
    """FPR95 in percent, the expected value over tie orders, by fraction of training as text, ascending.

    Networks that have not made a step yet are left out: batch norms hold the statistics of no data.
    """
    rates = {}
    for stage in sorted(subject.stages, key=float):
        if float(stage) > 0:
            by = partial(describe, subject.stages[stage], device=subject.device)
            rates[stage] = fpr95(*pair_distances(by, test_set)).expected
    return rates
