"""Speed of HPatches' three tasks against plain loops over scipy's distances, and that they agree.

``python tests/speed_hpatches.py [--device cuda] [--threads N]``. No test: sides are measured in turns
within one process, since machines are shared.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import joblib
import numpy as np
import torch
from scipy.spatial.distance import cdist, euclidean
from speed_training import show

from lib.benchmarks import hpatches
from lib.data.hpatches.release import FILES, LEVELS, Sequence, file_index
from lib.data.hpatches.tasks import HPatchesSplit, Tasks

# Sequences, patches an image, numbers a descriptor, pairs of each of three sorts, queries,
# distractors, and the part of pairs and queries that the plain loops are measured on.
SEQUENCES, PATCHES, LENGTH, VERIFIED, QUERIES, DISTRACTORS = 8, 1300, 128, 66_667, 1000, 20_000
PART = 0.05


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=joblib.cpu_count())
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    hpatches_tasks(chosen.device)


def hpatches_data() -> tuple[np.ndarray, HPatchesSplit]:
    """Unit descriptors, a spot's the less alike the tougher their level, and tasks drawn at random."""
    random = np.random.default_rng(0)
    sequences = tuple(
        Sequence(f"{'vi'[index % 2]}_{index}", Path(), PATCHES) for index in range(SEQUENCES)
    )
    spots = random.standard_normal((SEQUENCES * PATCHES, LENGTH), dtype=np.float32)
    noise = np.repeat([0, 1, 1.5, 2], [1, 5, 5, 5])[:, None, None].astype(np.float32)
    shape = (len(FILES), SEQUENCES * PATCHES, LENGTH)
    values = spots + noise * random.standard_normal(shape, dtype=np.float32)
    values /= np.linalg.norm(values, axis=-1, keepdims=True)

    def draw(columns: dict[str, int], count: int) -> np.ndarray:
        return np.stack([random.integers(end, size=count) for end in columns.values()], axis=1)

    patch = {"sequence": SEQUENCES, "patch": PATCHES}
    first, other = (
        draw({"sequence": SEQUENCES, "image": 6, "patch": PATCHES}, VERIFIED) for _ in range(2)
    )
    tasks = Tasks(
        positives=np.stack([first, np.stack([first[:, 0], other[:, 1], first[:, 2]], 1)], 1),
        intra=np.stack([first, np.stack([first[:, 0], other[:, 1], other[:, 2]], 1)], 1),
        inter=np.stack([first, other], 1),
        queries=draw(patch, QUERIES),
        distractors=draw(patch, DISTRACTORS),
    )
    return values, HPatchesSplit("x", sequences, tasks)


def hpatches_part(split: HPatchesSplit) -> HPatchesSplit:
    """The same split with the first of the pairs and of the queries only."""
    kinds = ("positives", "intra", "inter")
    pairs = {kind: getattr(split.tasks, kind)[: int(PART * VERIFIED)] for kind in kinds}
    queries = split.tasks.queries[: int(PART * QUERIES)]
    return replace(split, tasks=replace(split.tasks, queries=queries, **pairs))


def hpatches_tasks(device: str) -> None:
    """The three tasks against plain loops, which two of them run on a part of the work."""
    described, whole = hpatches_data()
    table = torch.from_numpy(described).to(device)
    part = hpatches_part(whole)
    matched = f"matching, {SEQUENCES} sequences of {PATCHES:,} patches, {LENGTH} floats"
    verified = f"verification, {3 * VERIFIED:,} pairs at three levels"
    retrieved = f"retrieval, {QUERIES:,} queries × {DISTRACTORS:,} distractors"
    for title, task, plain, split, share, wanted in (
        (matched, hpatches.matching, plain_matching, whole, 1, "10 or more"),
        (verified, hpatches.verification, plain_verification, part, PART, "10 or more"),
        (retrieved, hpatches.retrieval, plain_retrieval, part, PART, ""),
    ):
        agree(task(table, split), plain(described, split))
        ways = {
            "batched": lambda task=task: timed(lambda: task(table, whole)),
            "plain, scipy": lambda plain=plain, split=split, share=share: (
                timed(lambda: plain(described, split)) / share
            ),
        }
        note = "" if share == 1 else f", of which the plain way does {100 * share:.0f}%, scaled"
        show(f"HPatches: {title}{note}", ways, lambda fast, slow: slow / fast, wanted)


def timed(work: Callable[[], object]) -> float:
    """Seconds that some work takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def agree(ours: dict[str, float], plain: dict[str, float]) -> None:
    """Raises RuntimeError where the plain side's numbers are not ours."""
    for key, number in plain.items():
        if not abs(ours[key] - number) < 1e-6:
            raise RuntimeError(f"{key} is {ours[key]}, but {number} by the plain loop")


def plain_matching(described: np.ndarray, split: HPatchesSplit) -> dict[str, float]:
    """Pair of images by pair of images."""
    every = np.arange(PATCHES)
    numbers = {}
    for place, sequence in enumerate(split.sequences):
        reference = described[0, place * PATCHES + every]
        for level in LEVELS:
            precisions = []
            for image in range(1, 6):
                other = described[file_index(image, level), place * PATCHES + every]
                distances = cdist(reference, other)
                nearest = distances.argmin(axis=1)
                match = nearest == every
                precisions.append(plain_precision(distances[every, nearest], match, PATCHES))
            numbers[f"matching.{level}.{sequence.name}"] = 100 * float(np.mean(precisions))
    return numbers


def plain_verification(described: np.ndarray, split: HPatchesSplit) -> dict[str, float]:
    """Pair by pair; which rows they are is looked up in one go, so that the loop only measures."""
    values = described.reshape(-1, LENGTH).astype(np.float64)

    def rows(side: np.ndarray, level: str) -> list[int]:
        file, spot = file_index(side[:, 1], level), side[:, 0] * PATCHES + side[:, 2]
        return (file * described.shape[1] + spot).tolist()

    def distances(pairs: np.ndarray, level: str) -> np.ndarray:
        both = zip(rows(pairs[:, 0], level), rows(pairs[:, 1], level), strict=True)
        return np.array([euclidean(values[one], values[other]) for one, other in both])

    numbers = {}
    for level in LEVELS:
        positives = distances(split.tasks.positives, level)
        for kind in ("intra", "inter"):
            negatives = distances(getattr(split.tasks, kind), level)
            few = positives[: int(0.2 * len(positives))]
            ranked = np.concatenate([negatives, few])
            match = np.arange(len(ranked)) >= len(negatives)
            numbers[f"verification.{level}.{kind}.ap"] = 100 * plain_precision(ranked, match, len(few))
    return numbers


def plain_retrieval(described: np.ndarray, split: HPatchesSplit) -> dict[str, float]:
    """Query by query, level by level, pool size by pool size."""
    queries, distractors = split.tasks.queries, split.tasks.distractors
    asked = described[0, queries[:, 0] * PATCHES + queries[:, 1]]
    pool = described[0, distractors[:, 0] * PATCHES + distractors[:, 1]]
    far = cdist(asked, pool)
    found: dict[str, list[float]] = {}
    for query, (sequence, patch) in enumerate(queries):
        others = far[query][distractors[:, 0] != sequence]
        for level in LEVELS:
            views = described[file_index(np.arange(1, 6), level), sequence * PATCHES + patch]
            ranked = np.concatenate([cdist(asked[query, None], views)[0], others])
            match = np.arange(len(ranked)) < 5
            for size in hpatches.POOLS:
                precision = plain_precision(ranked[:size], match[:size], 5)
                found.setdefault(f"retrieval.{level}.{size}", []).append(precision)
    return {key: 100 * float(np.mean(precisions)) for key, precisions in found.items()}


def plain_precision(distances: np.ndarray, match: np.ndarray, positives: int) -> float:
    """Average precision by one sort."""
    true = np.cumsum(match[np.argsort(distances, kind="stable")])
    precision = np.maximum(true, 1e-10) / np.arange(1, len(true) + 1)
    return float(np.trapezoid(np.append(1, precision), np.append(0, true) / positives))


if __name__ == "__main__":
    main()
