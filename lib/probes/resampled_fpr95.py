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

from collections.abc import Callable, Iterator

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
    ranked = Ranked(distances[matching], distances[others])

    # How often two points have a non-matching pair: of the 2,000,000 pairs of a real place few lie below
    # any threshold, and of the others their number alone matters.
    often = sparse.coo_array(
        (np.ones(len(others), dtype=np.int32), (first[others], second[others])), (len(points),) * 2
    ).tocsr()
    random = np.random.default_rng([SEED, len(points)])
    rates, pair_rates = [], []
    for drawn in _draws(len(points), resamples, random):
        while True:
            weights, totals = drawn[:, first[matching]], ((drawn @ often) * drawn).sum(axis=1)
            # A draw that leaves no pair of a kind has no FPR95; a further one takes its place.
            empty = ~weights.any(axis=1) | (totals == 0)
            if not empty.any():
                break
            drawn[empty] = next(_draws(len(points), int(empty.sum()), random))

        def repeated(count: int, drawn: np.ndarray = drawn) -> np.ndarray:
            return drawn[:, first[others[:count]]] * drawn[:, second[others[:count]]]

        rates.append(ranked.rates(weights, repeated, totals))

    # Pairs are drawn in the set's order, since `others` is in that of the descriptor's distances.
    number = (np.cumsum(~match) - 1)[others]
    for drawn in _draws(len(others), resamples, np.random.default_rng([SEED, len(others)])):
        once = np.ones((len(drawn), len(matching)), dtype=np.int32)
        rates_of_pairs = ranked.rates(
            once, lambda count, drawn=drawn: drawn[:, number[:count]], np.full(len(drawn), len(others))
        )
        pair_rates.append(rates_of_pairs)
    return np.concatenate(rates), np.concatenate(pair_rates)


def _draws(things: int, resamples: int, random: np.random.Generator) -> Iterator[np.ndarray]:
    """(block, things) how often each is drawn, block after block."""
    for start in range(0, resamples, BLOCK):
        width = min(BLOCK, resamples - start)
        counts = [
            np.bincount(random.integers(things, size=things), minlength=things) for _ in range(width)
        ]
        yield np.array(counts, dtype=np.int32)


def _running(weights: np.ndarray) -> np.ndarray:
    """(block, n + 1) sums of the first 0 to n of (block, n) weights."""
    return np.pad(np.cumsum(weights, axis=1, dtype=np.int32), ((0, 0), (1, 0)))


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

    def rates(
        self, matching: np.ndarray, repeated: Callable[[int], np.ndarray], totals: np.ndarray
    ) -> np.ndarray:
        """FPR95 in percent, (b,), of pairs that each count as often as they are repeated.

        Args:
            matching: (b, m) how often each matching pair is repeated; some are in every row.
            repeated: from n to (b, n), how often each of the first n non-matching pairs is.
            totals: (b,) of all non-matching pairs, more than 0.
        """
        sums = _running(matching)
        needed = np.maximum(1, np.ceil(RECALL * sums[:, -1] - 1e-9))
        pair = np.array([np.searchsorted(row, n) - 1 for row, n in zip(sums, needed, strict=True)])
        row = np.arange(len(pair))
        within, level = sums[row, self.start[pair]], sums[row, self.end[pair]]
        others = _running(repeated(int(self.through[pair].max())))
        sure, reached = others[row, self.before[pair]], others[row, self.through[pair]]
        before = (needed - within) * (reached - sure) / (level - within + 1)
        return 100 * (sure + before) / totals
