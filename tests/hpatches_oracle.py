"""Slow, literal float64 transcription of HPatches' three tasks: plain Python, one loop per index.

Written from the evaluation code that the benchmark's authors published (``hpatches-benchmark``: its
metrics, its tasks and its summary of results), not from `lib`. Descriptors are dicts of dicts,
``descriptors[sequence name][file name]`` an (N, k) array; floats are compared by Euclidean distance,
uint8 bits by the number that differ. Everything is in percent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from scipy.spatial import distance

Descriptors = Mapping[str, Mapping[str, np.ndarray]]
Numbers = dict[str, float]

LEVELS = {"easy": "e", "hard": "h", "tough": "t"}
KINDS = {"viewpoint": "v", "illumination": "i"}
POOL_SIZES = (100, 500, 1000, 5000, 10000, 15000, 20000)
SMALL = 1e-10  # avoids divisions by zero in the curves, and sets the precision of no retrieved pair to 1


def file_of(image: int, level: str) -> str:
    """Name of the file that holds an image's patches at a level."""
    return "ref" if image == 0 else f"{LEVELS[level]}{image}"


def retrieved(
    distances: Sequence[float], match: Sequence[bool], positives: int | None = None
) -> tuple[list[int], list[int], int, int]:
    """Count matches and mismatches among the 0, 1, 2, … nearest, all matches and all mismatches.

    Equal distances stay in the order given. `positives` replaces the number of all matches: those
    missing from `match` count, too, but are never retrieved.
    """
    p = sum(1 for m in match if m)
    n = len(match) - p
    if positives is not None:
        p = positives
    true, false = [0], [0]
    for index in sorted(range(len(distances)), key=lambda index: distances[index]):
        true.append(true[-1] + (1 if match[index] else 0))
        false.append(false[-1] + (0 if match[index] else 1))
    return true, false, p, n


def area(y: Sequence[float], x: Sequence[float]) -> float:
    """Area under the polygon through the points (x, y)."""
    total = 0.0
    for i in range(1, len(x)):
        total += (x[i] - x[i - 1]) * (y[i] + y[i - 1]) / 2
    return total


def average_precision(
    distances: Sequence[float], match: Sequence[bool], positives: int | None = None
) -> float:
    """Area under the precision-recall curve, which starts at precision 1 and recall 0."""
    true, false, p, _ = retrieved(distances, match, positives)
    precision = [max(t, SMALL) / max(t + f, SMALL) for t, f in zip(true, false, strict=True)]
    recall = [t / max(p, SMALL) for t in true]
    return area(precision, recall)


def roc_auc(distances: Sequence[float], match: Sequence[bool]) -> float:
    """Area under the true positive rate over the false positive rate."""
    true, false, p, n = retrieved(distances, match)
    return area([t / max(p, SMALL) for t in true], [f / max(n, SMALL) for f in false])


def between(x: np.ndarray, y: np.ndarray) -> float:
    """Distance between two descriptors (k,)."""
    metric = "cityblock" if x.dtype == np.uint8 else "euclidean"
    return float(distance.cdist(x[None].astype(np.float64), y[None].astype(np.float64), metric)[0, 0])


def mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def verification(descriptors: Descriptors, sequences: Sequence[str], tasks) -> Numbers:
    """Rank positives against negatives of the same sequence (intra) or of any (inter)."""

    def distances(pairs, level: str) -> list[float]:
        values = []
        for (s1, image1, patch1), (s2, image2, patch2) in pairs.tolist():
            first = descriptors[sequences[s1]][file_of(image1, level)][patch1]
            second = descriptors[sequences[s2]][file_of(image2, level)][patch2]
            values.append(between(first, second))
        return values

    numbers, aps, aucs = {}, [], []
    for level in LEVELS:
        positive = distances(tasks.positives, level)
        for setup, pairs in (("intra", tasks.intra), ("inter", tasks.inter)):
            # The negatives come first, so that they rank first at a tie.
            d = distances(pairs, level) + positive
            match = [False] * len(positive) + [True] * len(positive)
            ap_size = len(positive) + int(len(positive) * 0.2)
            aps.append(100 * average_precision(d[:ap_size], match[:ap_size]))
            aucs.append(100 * roc_auc(d, match))
            numbers[f"verification.{level}.{setup}.ap"] = aps[-1]
            numbers[f"verification.{level}.{setup}.auc"] = aucs[-1]
    numbers["verification"] = mean(aps)
    numbers["verification.auc"] = mean(aucs)
    return numbers


def matching(descriptors: Descriptors, sequences: Sequence[str]) -> Numbers:
    """Match each reference patch to its nearest in each other image; the same patch is correct."""
    numbers: Numbers = {}
    by_kind: dict[str, list[float]] = {}
    for level in LEVELS:
        ap_by_name, success_by_name = {}, {}
        for name in sequences:
            reference = descriptors[name]["ref"]
            aps, successes = [], []
            for image in range(1, 6):
                candidates = descriptors[name][file_of(image, level)]
                nearest, correct = [], []
                for i, patch in enumerate(reference):
                    distances = [between(patch, candidate) for candidate in candidates]
                    best = distances.index(min(distances))
                    nearest.append(distances[best])
                    correct.append(best == i)
                aps.append(100 * average_precision(nearest, correct, positives=len(correct)))
                successes.append(100 * sum(correct) / len(correct))
            ap_by_name[name], success_by_name[name] = mean(aps), mean(successes)
            numbers[f"matching.{level}.{name}"] = ap_by_name[name]
        for kind, initial in KINDS.items():
            names = [name for name in sequences if name.split("_")[0] == initial]
            if names:
                numbers[f"matching.{level}.{kind}"] = mean([ap_by_name[name] for name in names])
                numbers[f"matching.success.{level}.{kind}"] = mean(
                    [success_by_name[name] for name in names]
                )
                by_kind.setdefault(kind, []).append(numbers[f"matching.{level}.{kind}"])
    numbers["matching"] = mean([mean(levels) for levels in by_kind.values()])
    return numbers


def retrieval(descriptors: Descriptors, sequences: Sequence[str], tasks) -> Numbers:
    """Rank each query's five other images among reference patches of other sequences."""
    numbers: Numbers = {}
    totals, pools = [], []
    for level in LEVELS:
        by_size: dict[int, list[float]] = {size: [] for size in POOL_SIZES}
        full: list[float] = []
        by_sequence: dict[str, list[float]] = {}
        for s, patch in tasks.queries.tolist():
            query = descriptors[sequences[s]]["ref"][patch]
            distances = []
            for image in range(1, 6):
                distances.append(between(query, descriptors[sequences[s]][file_of(image, level)][patch]))
            for source, index in tasks.distractors.tolist():
                if source != s:
                    distances.append(between(query, descriptors[sequences[source]]["ref"][index]))
            match = [True] * 5 + [False] * (len(distances) - 5)
            for size in POOL_SIZES:
                by_size[size].append(100 * average_precision(distances[:size], match[:size]))
            full.append(100 * average_precision(distances, match))
            by_sequence.setdefault(sequences[s], []).append(full[-1])
        for size in POOL_SIZES:
            numbers[f"retrieval.{level}.{size}"] = mean(by_size[size])
        for name, aps in by_sequence.items():
            numbers[f"retrieval.{level}.{name}"] = mean(aps)
        numbers[f"retrieval.{level}.all"] = mean(full)
        numbers[f"retrieval.{level}.pools"] = mean([mean(by_size[size]) for size in POOL_SIZES])
        totals.append(numbers[f"retrieval.{level}.all"])
        pools.append(numbers[f"retrieval.{level}.pools"])
    numbers["retrieval"] = mean(totals)
    numbers["retrieval.pools"] = mean(pools)
    return numbers
