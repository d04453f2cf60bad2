"""The Mann-Whitney test by enumeration and by formula, one comparison at a time."""

from __future__ import annotations

import itertools
import math
import statistics


def u_by_hand(lower, higher) -> float:
    return sum((a > b) + 0.5 * (a == b) for a in lower for b in higher)


def exact_by_hand(lower, higher) -> float:
    pooled, observed = [*lower, *higher], u_by_hand(lower, higher)
    as_small = []
    for chosen in itertools.combinations(range(len(pooled)), len(lower)):
        first = [pooled[i] for i in chosen]
        second = [pooled[i] for i in range(len(pooled)) if i not in chosen]
        as_small.append(u_by_hand(first, second) <= observed)
    return sum(as_small) / len(as_small)


def normal_by_hand(lower, higher, continuity: float) -> float:
    n, m = len(lower), len(higher)
    pooled = [*lower, *higher]
    ties = sum(t**3 - t for t in (pooled.count(v) for v in set(pooled)))
    variance = n * m / 12 * ((n + m + 1) - ties / ((n + m) * (n + m - 1)))
    if variance < 1e-12:
        return 1.0
    z = (u_by_hand(lower, higher) - n * m / 2 + continuity) / math.sqrt(variance)
    return statistics.NormalDist().cdf(z)
