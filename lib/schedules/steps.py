"""The rate is multiplied by a factor at given times (AdaSample, Sec. 5.1: 30, 60, 80 of 90 epochs)."""

from collections.abc import Sequence

from lib.schedules import Schedule


def build(at: Sequence[float], factor: float) -> Schedule:
    """Build the schedule.

    Args:
        at: fractions of training, 0 to 1.
        factor: multiplied in once for each fraction that has passed.
    """
    return lambda progress: factor ** sum(progress >= fraction for fraction in at)
