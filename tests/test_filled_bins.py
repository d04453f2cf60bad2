"""How distances hang on filled bins: against a loop over pairs, and on histograms made to show it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from lib.benchmarks.fpr95 import fpr95
from lib.benchmarks.subject import Subject
from lib.data.patchset import LabelledPairs, PatchSet
from lib.probes.filled_bins import GROUPS, PERCENTILES, probe

BINS = 32


def a_set(points: int, seed: int = 0) -> tuple[PatchSet, np.ndarray]:
    """Two patches a point, whose first pixel tells which, and a histogram for each.

    Histograms of a point are filled alike, those of different points very differently.
    """
    rng = np.random.default_rng(seed)
    patches = np.zeros((2 * points, 64, 64), np.uint8)
    patches[:, 0, 0], patches[:, 0, 1] = np.divmod(np.arange(2 * points), 256)
    power = rng.uniform(0.2, 4, points)
    histograms = (rng.random((points, BINS)) ** power[:, None]).repeat(2, axis=0)
    histograms += 0.15 * rng.random(histograms.shape)
    order = np.arange(2 * points)
    first = np.concatenate([order[::2], rng.permutation(2 * points)])
    second = np.concatenate([order[1::2], rng.permutation(2 * points)])
    match = np.arange(len(first)) < points
    different = match | (first // 2 != second // 2)
    pairs = LabelledPairs(first[different], second[different], match[different])
    return PatchSet("some", patches, order // 2, None, pairs), histograms


def described_by(histograms: np.ndarray, root: bool) -> Subject:
    values = histograms / histograms.sum(axis=1, keepdims=True)
    values = np.sqrt(values) if root else values
    values = values / np.linalg.norm(values, axis=1, keepdims=True)

    def describe(patches: np.ndarray) -> np.ndarray:
        return values[patches[:, 0, 0].astype(int) * 256 + patches[:, 0, 1]].astype(np.float32)

    return Subject(describe)


def literal(test_set: PatchSet, values: np.ndarray) -> tuple[list[float], list[float]]:
    """Distance and filled bins of each pair."""
    distances, filled = [], []
    for i, j in zip(test_set.pairs.first, test_set.pairs.second, strict=True):
        a, b = values[i].tolist(), values[j].tolist()
        distances.append(sum((x - y) ** 2 for x, y in zip(a, b, strict=True)) ** 0.5)
        n = [sum(v) ** 2 / sum(x * x for x in v) for v in (a, b)]
        filled.append((n[0] * n[1]) ** 0.5)
    return distances, filled


@pytest.mark.parametrize("root", [False, True])
def test_the_probe_is_that_of_a_loop_over_pairs(root):
    test_set, histograms = a_set(60)
    subject = described_by(histograms, root)
    distances, filled = literal(test_set, subject.describe(test_set.patches).astype(np.float64))
    match = test_set.pairs.match
    arrays = probe(subject, test_set)
    assert arrays["threshold"] == pytest.approx(fpr95(distances, match).threshold)
    # Six matching pairs a group, the emptiest first.
    order = sorted(np.flatnonzero(match), key=lambda pair: filled[pair])
    for group in range(GROUPS):
        of_group = order[6 * group : 6 * group + 6]
        expected = np.percentile([distances[pair] for pair in of_group], PERCENTILES)
        np.testing.assert_allclose(arrays["matching"][group], expected, rtol=1e-5)
    assert (np.diff(arrays["filled"]) > 0).all()
    assert arrays["filled"][0] > 1
    assert arrays["filled"][-1] < BINS


def test_own_thresholds_are_those_of_each_group_alone():
    test_set, histograms = a_set(60, seed=3)
    subject = described_by(histograms, True)
    distances, filled = map(
        np.array, literal(test_set, subject.describe(test_set.patches).astype(np.float64))
    )
    match = test_set.pairs.match
    edges = np.quantile(filled[match], np.linspace(0, 1, GROUPS + 1))
    edges[[0, -1]] = -np.inf, np.inf
    passed = 0
    for low, high in itertools.pairwise(edges):
        here = (filled >= low) & (filled < high)
        # 95% of six matching pairs are all six.
        passed += (distances[here & ~match] <= distances[here & match].max()).sum()
    measured = probe(subject, test_set)
    assert measured["own_thresholds"] == pytest.approx(100 * passed / (~match).sum())
    expected = np.corrcoef(filled[~match], distances[~match])[0, 1]
    assert measured["correlation"] == pytest.approx(expected, abs=1e-4)
