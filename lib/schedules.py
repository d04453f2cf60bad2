"""Learning rate schedules, each a function that returns a `Schedule` for some options.

They take fractions of training, not epochs, so that a short profile keeps the authors' schedule's shape.
"""

from collections.abc import Callable, Sequence

# From the fraction of training done, 0 to 1, to the factor on the initial rate.
Schedule = Callable[[float], float]


def constant() -> Schedule:
    """The initial rate throughout (HyNet's code)."""
    return lambda progress: 1.0


def linear() -> Schedule:
    """From the initial rate at the first step down to 0 at the end (HardNet's code; DSM, Sec. 5.1)."""
    return lambda progress: 1.0 - progress


def steps(at: Sequence[float], factor: float) -> Schedule:
    """The rate is multiplied by a factor at given times (AdaSample, Sec. 5.1: 30, 60, 80 of 90 epochs).

    Args:
        at: fractions of training, 0 to 1.
        factor: multiplied in once for each fraction that has passed.
    """
    return lambda progress: factor ** sum(progress >= fraction for fraction in at)
