"""HPatches' three tasks for a real-valued descriptor by its signs, as DSM's Figure 4 has HardNet's."""

from lib.data.hpatches.tasks import HPatchesSplit
from lib.evaluation import hpatches
from lib.evaluation.signs import of_signs
from lib.evaluation.subject import Subject


def measure(subject: Subject, split: HPatchesSplit) -> dict[str, float]:
    """`lib.evaluation.hpatches.measure` of the signs."""
    return hpatches.measure(of_signs(subject), split)
