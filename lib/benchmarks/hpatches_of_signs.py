"""HPatches' three tasks for a real-valued descriptor by its signs, as DSM's Figure 4 has HardNet's."""

from lib.benchmarks import hpatches
from lib.benchmarks.signs import of_signs
from lib.benchmarks.subject import Subject
from lib.data.hpatches.tasks import HPatchesSplit


def measure(subject: Subject, split: HPatchesSplit) -> dict[str, float]:
    """`lib.benchmarks.hpatches.measure` of the signs."""
    return hpatches.measure(of_signs(subject), split)
