"""Probe: FPR95 when a test set's 3D points are drawn anew, since its pairs share points.

A resample draws as many points as there are, with replacement (multinomial, so that all resamples are
of one size), and keeps of the labelled pairs what the drawn points induce: a matching pair as often as
its point was drawn, a non-matching one as often as the product of its two points' numbers (bootstraps
of a sampled graph, Snijders and Borgatti 1999, and of two-way data, Owen 2007). FPR95 is then
`lib.benchmarks.fpr95`'s, of the pairs so repeated, equally distant ones by the expected value too.

The product counts three times what belongs to a non-matching pair itself and not to its points
(Var(w v) = 3 for independent w and v of mean and variance 1), so that a low rate would seem half as
uncertain again as it is. FPR95 is therefore also given when the non-matching pairs alone are drawn
anew, at the set's own threshold. The variance over test points is then

    Var(rates) − 2 Var(pair_rates),

of a rate or of any sum of rates over descriptors and sets (`lib.statistics.intervals`): the b-th
resample of a set
is the same for every descriptor. This is, by simulation, the variance that is robust to pairs that
share points (Fafchamps and Gubert, 2007).
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np
from scipy import sparse

from lib.benchmarks.fpr95 import RECALL
from lib.benchmarks.subject import Subject
from lib.data.patchset import PatchSet

RESAMPLES = 400
SEED = 95
# Resamples at once: 100,000 pairs take some 20 MB.
BLOCK = 16


def probe(subject: Subject, test_set: PatchSet) -> dict[str, np.ndarray]:
    """FPR95 on 400 resamples of a set's points, and on 400 of its non-matching pairs.

    Args:
        subject: what describes.
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
    """FPR95 when points, and when non-matching pairs alone, are drawn anew.

    Args:
        distances: (M,) finite.
        match: (M,) bool, both kinds.
        shown: (2, M) the points that a pair's two patches show.
        resamples: how many of either.

    Returns:
        (resamples,) and (resamples,) rates in percent.
    """
    points, place = np.unique(shown, return_inverse=True)
    first, second = place.reshape(2, -1)
    order = np.argsort(distances, kind="stable")
    matching, others = order[match[order]], order[~match[order]]
    kinds = distances[matching], distances[others]

    # How often two points have a non-matching pair: of the 2,000,000 pairs of a real place few lie below
    # any threshold, and of the others their number alone matters.
    sides = first[others], second[others]
    ones = np.ones(len(others), dtype=np.int32)
    often = sparse.coo_array((ones, sides), (len(points),) * 2).tocsr()
    random, rates = np.random.default_rng([SEED, len(points)]), []
    for times in _draws(len(points), resamples, random):
        while True:
            weights, totals = times[:, first[matching]], ((times @ often) * times).sum(axis=1)
            # A draw that leaves no pair of a kind has no FPR95; a further one takes its place.
            empty = ~weights.any(axis=1) | (totals == 0)
            if not empty.any():
                break
            times[empty] = next(_draws(len(points), int(empty.sum()), random))
        rates.append(repeated_fpr95(*kinds, weights, times, sides, totals))

    # Pairs are drawn in the set's order, since `others` is in that of the descriptor's distances.
    number, pair_rates = (np.cumsum(~match) - 1)[others], []
    for times in _draws(len(others), resamples, np.random.default_rng([SEED, len(others)])):
        once = np.ones((len(times), len(matching)), dtype=np.int32)
        pair_rates.append(repeated_fpr95(*kinds, once, times, [number], times.sum(axis=1)))
    return np.concatenate(rates), np.concatenate(pair_rates)


def _draws(things: int, resamples: int, random: np.random.Generator) -> Iterator[np.ndarray]:
    """(block, things) how often each is drawn, block after block."""
    for start in range(0, resamples, BLOCK):
        rows = (
            random.integers(things, size=things) for _ in range(start, min(start + BLOCK, resamples))
        )
        counts = [np.bincount(row, minlength=things) for row in rows]
        yield np.array(counts, dtype=np.int32)


def repeated_fpr95(
    matching: np.ndarray,
    others: np.ndarray,
    weights: np.ndarray,
    times: np.ndarray,
    drawn: Sequence[np.ndarray],
    totals: np.ndarray,
) -> np.ndarray:
    """FPR95 in percent, (b,), of pairs that each count as often as they are repeated.

    Args:
        matching: (m,) distances of the matching pairs, ascending.
        others: (k,) of the non-matching pairs, ascending.
        weights: (b, m) how often each matching pair is repeated; some are in every row.
        times: (b, n) how often each of n things was drawn.
        drawn: (k,) each, things: a non-matching pair is repeated as often as the product of theirs.
        totals: (b,) repetitions of all non-matching pairs, more than 0.
    """
    sums = _running(weights)
    needed = np.maximum(1, np.ceil(RECALL * sums[:, -1] - 1e-9))
    pair = [np.searchsorted(row, count) - 1 for row, count in zip(sums, needed, strict=True)]
    within, level = _around(sums, matching, matching[pair])
    # Most lie beyond every threshold.
    others = others[: np.searchsorted(others, matching[pair].max(), "right")]
    repeated = math.prod(times[:, things[: len(others)]] for things in drawn)
    sure, reached = _around(_running(repeated), others, matching[pair])
    tied = (needed - within) * (reached - sure) / (level - within + 1)
    return 100 * (sure + tied) / totals


def _running(weights: np.ndarray) -> np.ndarray:
    """(b, n + 1) sums of the first 0 to n of (b, n) weights."""
    return np.pad(np.cumsum(weights, axis=1, dtype=np.int32), ((0, 0), (1, 0)))


def _around(sums: np.ndarray, distances: np.ndarray, threshold: np.ndarray) -> list[np.ndarray]:
    """Of each row of running sums that of the distances below a threshold, and of those up to it."""
    row = np.arange(len(sums))
    return [sums[row, np.searchsorted(distances, threshold, side)] for side in ("left", "right")]
