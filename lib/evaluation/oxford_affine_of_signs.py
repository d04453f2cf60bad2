"""The Oxford Affine set by the signs of a real-valued descriptor."""

from lib.data.oxford_affine import AffineSequences
from lib.evaluation import oxford_affine
from lib.evaluation.signs import of_signs
from lib.evaluation.subject import Subject


def measure(subject: Subject, test_set: AffineSequences) -> dict[str, float]:
    """As `lib.evaluation.oxford_affine.measure`."""
    return oxford_affine.measure(of_signs(subject), test_set)
