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

from collections.abc import Iterator

import numpy as np

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
    ranked = Ranked(distances[matching], distances[others])

    random = np.random.default_rng([SEED, len(points)])
    rates, pair_rates = [], []
    for drawn in _draws(len(points), resamples, random):
        while True:
            weights = drawn[first[matching]], drawn[first[others]] * drawn[second[others]]
            # A draw that leaves no pair of a kind has no FPR95; a further one takes its place.
            empty = ~(weights[0].any(axis=0) & weights[1].any(axis=0))
            if not empty.any():
                break
            drawn[:, empty] = next(_draws(len(points), int(empty.sum()), random))
        rates.append(ranked.rates(*map(_running, weights)))

    fixed = _running(np.ones((len(matching), BLOCK), dtype=np.int32))
    # Pairs are drawn in the set's order, since `others` is in that of the descriptor's distances.
    number = (np.cumsum(~match) - 1)[others]
    for drawn in _draws(len(others), resamples, np.random.default_rng([SEED, len(others)])):
        pair_rates.append(ranked.rates(fixed[:, : drawn.shape[1]], _running(drawn[number])))
    return np.concatenate(rates), np.concatenate(pair_rates)


def _draws(things: int, resamples: int, random: np.random.Generator) -> Iterator[np.ndarray]:
    for start in range(0, resamples, BLOCK):
        width = min(BLOCK, resamples - start)
        drawn = random.integers(things, size=(width, things)) + things * np.arange(width)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=width * things)
        yield np.ascontiguousarray(counts.reshape(width, things).T, dtype=np.int32)


def _running(weights: np.ndarray) -> np.ndarray:
    """(n + 1, block) sums of the first 0 to n of (n, block) weights."""
    return np.concatenate([np.zeros_like(weights[:1]), np.cumsum(weights, axis=0, dtype=np.int32)])


class Ranked:
    """Where equal distances begin and end, for FPR95 of pairs that are repeated.

    Args:
        matching: (m,) distances of the matching pairs, ascending.
        others: (k,) of the non-matching pairs, ascending.
    """

    def __init__(self, matching: np.ndarray, others: np.ndarray):
        self.start = np.searchsorted(matching, matching, "left")
        self.end = np.searchsorted(matching, matching, "right")
        self.before = np.searchsorted(others, matching, "left")
        self.through = np.searchsorted(others, matching, "right")

    def rates(self, matching: np.ndarray, others: np.ndarray) -> np.ndarray:
        """FPR95 in percent, (b,), of pairs that each count as often as they are repeated.

        Args:
            matching: (m + 1, b) how many matching pairs there are among the first 0 to m; at last more
                than 0.
            others: (k + 1, b) likewise.
        """
        needed = np.maximum(1, np.ceil(RECALL * matching[-1] - 1e-9))
        pair = [np.searchsorted(sums, n) - 1 for sums, n in zip(matching.T, needed, strict=True)]
        column = np.arange(len(pair))
        within, level = matching[self.start[pair], column], matching[self.end[pair], column]
        sure, reached = others[self.before[pair], column], others[self.through[pair], column]
        before = (needed - within) * (reached - sure) / (level - within + 1)
        return 100 * (sure + before) / others[-1]
