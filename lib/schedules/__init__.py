"""Learning rate schedules: one module each, with `build(**options)` giving a `Schedule`.

Fractions and not epochs, so that a short profile keeps the shape of the authors' schedule.
"""

from collections.abc import Callable

# From the fraction of training done, 0 to 1, to the factor on the initial rate.
Schedule = Callable[[float], float]
