"""Learning rate schedules: one module each, with `build(**options)` returning a `Schedule`.

They take fractions of training, not epochs, so that a short profile keeps the authors' schedule's shape.
"""

from collections.abc import Callable

# From the fraction of training done, 0 to 1, to the factor on the initial rate.
Schedule = Callable[[float], float]
