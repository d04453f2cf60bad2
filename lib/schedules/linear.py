"""From the initial rate at the first step down to 0 at the end (HardNet's code; DSM, Sec. 5.1)."""

from lib.schedules import Schedule


def build() -> Schedule:
    """Build the schedule: a factor of one minus the fraction done."""
    return lambda progress: 1.0 - progress
