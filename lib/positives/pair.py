"""The distance of the pair itself, as all papers but TCDesc take it."""

from lib.distances import Distance
from lib.positives import Positive


def build(distance: Distance) -> Positive:
    """Return a function that computes d(a_i, p_i) of each pair."""
    return lambda described: distance.paired(*described.value)
