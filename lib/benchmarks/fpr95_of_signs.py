"""FPR95 of a real-valued descriptor by its signs, as DSM's Table 1 has L2-Net's."""

from lib.benchmarks import fpr95
from lib.benchmarks.signs import of_signs
from lib.benchmarks.subject import Subject
from lib.data.patchset import PatchSet


def measure(subject: Subject, test_set: PatchSet) -> dict[str, float]:
    """`lib.benchmarks.fpr95.measure` of the signs; "threshold" is a number of bits."""
    return fpr95.measure(of_signs(subject), test_set)
