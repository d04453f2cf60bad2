"""The Oxford Affine set by the signs of a real-valued descriptor."""

from lib.benchmarks import oxford_affine
from lib.benchmarks.signs import of_signs
from lib.benchmarks.subject import Subject
from lib.data.oxford_affine import AffineSequences


def measure(subject: Subject, test_set: AffineSequences) -> dict[str, float]:
    """As `lib.benchmarks.oxford_affine.measure`."""
    return oxford_affine.measure(of_signs(subject), test_set)
