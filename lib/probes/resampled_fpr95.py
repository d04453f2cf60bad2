"""Probe: FPR95 on resampled 3D points of a test set, because its pairs share points.

A resample draws as many points as there are, with replacement (multinomial, so all resamples have the
same size). It repeats a matching pair as often as its point was drawn, and a non-matching pair as often
as the product of its two points' counts (bootstraps of a sampled graph, Snijders and Borgatti 1999, and
of two-way data, Owen 2007). FPR95 of the repeated pairs is defined as in `lib.benchmarks.fpr95`, with
the expected value for equally distant pairs too.

The product counts three times the variance that belongs to a non-matching pair itself and not to its
points (Var(w v) = 3 for independent w and v of mean and variance 1), so a low rate would seem half as
uncertain again as it is. FPR95 is therefore also computed with only the non-matching pairs resampled,
at the set's own threshold. The variance over test points is then

    Var(rates) − 2 Var(pair_rates),

of a rate or of any sum of rates over descriptors and sets (`lib.statistics.intervals`): the b-th
resample of a set is the same for every descriptor. By simulation, this is the variance that is robust
to pairs that share points (Fafchamps and Gubert, 2007).
"""

import math
from collections.abc import Sequence

import numpy as np
from scipy import sparse

from lib.benchmarks.fpr95 import RECALL
from lib.benchmarks.subject import Subject
from lib.data.patchset import PatchSet

RESAMPLES = 400
SEED = 95


def probe(subject: Subject, test_set: PatchSet) -> dict[str, np.ndarray]:
    """Compute FPR95 on 400 resamples of a set's points, and on 400 of its non-matching pairs.

    Args:
        subject: the descriptor.
        test_set: with labelled pairs.

    Returns:
        "rates" and "pair_rates" (400,) float32, in percent.
    """
    pairs = test_set.pairs
    shown = test_set.point_ids[np.stack([pairs.first, pairs.second])]
    rates, pair_rates = resampled(*subject.pair_distances(test_set), shown)
    return {"rates": rates.astype(np.float32), "pair_rates": pair_rates.astype(np.float32)}


def resampled(
    distances: np.ndarray, match: np.ndarray, shown: np.ndarray, resamples: int = RESAMPLES
) -> tuple[np.ndarray, np.ndarray]:
    """Compute FPR95 with points resampled, and with non-matching pairs alone resampled.

    Args:
        distances: (M,) finite.
        match: (M,) bool, both kinds.
        shown: (2, M) the points that a pair's two patches show.
        resamples: number of resamples of each kind.

    Returns:
        (resamples,) and (resamples,) rates in percent.
    """
    points, place = np.unique(shown, return_inverse=True)
    first, second = place.reshape(2, -1)
    order = np.argsort(distances, kind="stable")
    matching, others = order[match[order]], order[~match[order]]
    kinds, sides = (distances[matching], distances[others]), (first[others], second[others])

    # Number of non-matching pairs between each two points. Few of a real place's 2,000,000 pairs lie
    # below any threshold, and of the others only the number matters.
    often = sparse.coo_array((np.ones(len(others), int), sides), (len(points),) * 2).tocsr()
    random, rates = np.random.default_rng([SEED, len(points)]), []
    while len(rates) < resamples:
        times = _times_drawn(len(points), random)
        weights, total = times[first[matching]], times @ often @ times
        # A draw that leaves no pair of a kind has no FPR95; another draw replaces it.
        if weights.any() and total:
            rates.append(repeated_fpr95(*kinds, weights, times, sides, total))

    # Pairs are drawn in the set's order, because `others` is in the order of the descriptor's distances.
    number, once = (np.cumsum(~match) - 1)[others], np.ones(len(matching), int)
    random, pair_rates = np.random.default_rng([SEED, len(others)]), []
    for _ in range(resamples):
        times = _times_drawn(len(others), random)
        pair_rates.append(repeated_fpr95(*kinds, once, times, [number], len(others)))
    return np.array(rates), np.array(pair_rates)


def _times_drawn(things: int, random: np.random.Generator) -> np.ndarray:
    """Draw as many things with replacement as there are; return how often each is drawn, (things,)."""
    return np.bincount(random.integers(things, size=things), minlength=things)


def repeated_fpr95(
    matching: np.ndarray,
    others: np.ndarray,
    weights: np.ndarray,
    times: np.ndarray,
    drawn: Sequence[np.ndarray],
    total: int,
) -> float:
    """Compute FPR95 in percent of repeated pairs.

    Args:
        matching: (m,) distances of the matching pairs, ascending.
        others: (k,) distances of the non-matching pairs, ascending.
        weights: (m,) how often each matching pair is repeated; not all 0.
        times: (n,) how often each of n things was drawn.
        drawn: (k,) each, things; a non-matching pair is repeated by the product of their ``times``.
        total: repetitions of all non-matching pairs, more than 0.
    """
    needed = max(1, math.ceil(RECALL * weights.sum() - 1e-9))
    threshold = matching[np.searchsorted(weights.cumsum(), needed)]
    start, end, sure, through = (
        np.searchsorted(kind, threshold, side)
        for kind in (matching, others)
        for side in ("left", "right")
    )
    repeated = math.prod(times[things[:through]] for things in drawn)
    rank = needed - weights[:start].sum()
    # As in `lib.benchmarks.fpr95`.
    before = rank * repeated[sure:].sum() / (weights[start:end].sum() + 1)
    return 100 * (repeated[:sure].sum() + before) / total
