"""The rate multiplied by a factor at given moments (AdaSample, Sec. 5.1: 30, 60, 80 of 90 epochs)."""

from collections.abc import Sequence

from lib.schedules import Schedule


def build(at: Sequence[float], factor: float) -> Schedule:
    """The schedule.

    Args:
        at: fractions of training, 0 to 1.
        factor: taken once for each of them that has passed.
    """
    return lambda progress: factor ** sum(progress >= fraction for fraction in at)
