"""Speed of HPatches' three tasks against plain loops over scipy's distances, and that they agree.

``python tests/speed_hpatches.py [--device cuda] [--threads N]``. This is no test: both sides are
measured in turns within one process, since machines are shared.
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

# Sequences, patches per image, numbers per descriptor, pairs of each of three kinds, queries,
# distractors, and the part of pairs and queries that the plain loops are measured on.
SEQUENCES, PATCHES, LENGTH, VERIFIED, QUERIES, DISTRACTORS = 8, 1300, 128, 66_667, 1000, 20_000
PART = 0.05


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=joblib.cpu_count())
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    hpatches_tasks(args.device)


def hpatches_data() -> tuple[np.ndarray, HPatchesSplit]:
    """Return random tasks and unit descriptors, a spot's differing more at tougher levels."""
    rng = np.random.default_rng(0)
    sequences = tuple(
        Sequence(f"{'vi'[index % 2]}_{index}", Path(), PATCHES) for index in range(SEQUENCES)
    )
    spots = rng.standard_normal((SEQUENCES * PATCHES, LENGTH), dtype=np.float32)
    noise = np.repeat([0, 1, 1.5, 2], [1, 5, 5, 5])[:, None, None].astype(np.float32)
    shape = (len(FILES), SEQUENCES * PATCHES, LENGTH)
    values = spots + noise * rng.standard_normal(shape, dtype=np.float32)
    values /= np.linalg.norm(values, axis=-1, keepdims=True)

    def draw(columns: dict[str, int], count: int) -> np.ndarray:
        return np.stack([rng.integers(end, size=count) for end in columns.values()], axis=1)

    patch = {"sequence": SEQUENCES, "patch": PATCHES}
    first, second = (
        draw({"sequence": SEQUENCES, "image": 6, "patch": PATCHES}, VERIFIED) for _ in range(2)
    )
    tasks = Tasks(
        positives=np.stack([first, np.stack([first[:, 0], second[:, 1], first[:, 2]], 1)], 1),
        intra=np.stack([first, np.stack([first[:, 0], second[:, 1], second[:, 2]], 1)], 1),
        inter=np.stack([first, second], 1),
        queries=draw(patch, QUERIES),
        distractors=draw(patch, DISTRACTORS),
    )
    return values, HPatchesSplit("x", sequences, tasks)


def hpatches_part(split: HPatchesSplit) -> HPatchesSplit:
    """Return the same split with only the first pairs and queries."""
    kinds = ("positives", "intra", "inter")
    pairs = {kind: getattr(split.tasks, kind)[: int(PART * VERIFIED)] for kind in kinds}
    queries = split.tasks.queries[: int(PART * QUERIES)]
    return replace(split, tasks=replace(split.tasks, queries=queries, **pairs))


def hpatches_tasks(device: str) -> None:
    """Compare the three tasks with plain loops; two of the loops do a part of the work only."""
    descriptors, full = hpatches_data()
    table = torch.from_numpy(descriptors).to(device)
    part = hpatches_part(full)
    matching = f"matching, {SEQUENCES} sequences of {PATCHES:,} patches, {LENGTH} floats"
    verification = f"verification, {3 * VERIFIED:,} pairs at three levels"
    retrieval = f"retrieval, {QUERIES:,} queries × {DISTRACTORS:,} distractors"
    for title, task, plain, split, share, target in (
        (matching, hpatches.matching, plain_matching, full, 1, "10 or more"),
        (verification, hpatches.verification, plain_verification, part, PART, "10 or more"),
        (retrieval, hpatches.retrieval, plain_retrieval, part, PART, ""),
    ):
        agree(task(table, split), plain(descriptors, split))
        ways = {
            "batched": lambda task=task: timed(lambda: task(table, full)),
            "plain, scipy": lambda plain=plain, split=split, share=share: (
                timed(lambda: plain(descriptors, split)) / share
            ),
        }
        note = "" if share == 1 else f", of which the plain way does {100 * share:.0f}%, scaled"
        show(f"HPatches: {title}{note}", ways, lambda fast, slow: slow / fast, target)


def timed(work: Callable[[], object]) -> float:
    """Return the seconds that `work` takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def agree(ours: dict[str, float], plain: dict[str, float]) -> None:
    """Raise RuntimeError where the plain loop's numbers are not ours."""
    for key, number in plain.items():
        if not abs(ours[key] - number) < 1e-6:
            raise RuntimeError(f"{key} is {ours[key]}, but {number} by the plain loop")


def plain_matching(descriptors: np.ndarray, split: HPatchesSplit) -> dict[str, float]:
    """Match one pair of images after the other."""
    patches = np.arange(PATCHES)
    numbers = {}
    for index, sequence in enumerate(split.sequences):
        reference = descriptors[0, index * PATCHES + patches]
        for level in LEVELS:
            precisions = []
            for image in range(1, 6):
                target = descriptors[file_index(image, level), index * PATCHES + patches]
                distances = cdist(reference, target)
                nearest = distances.argmin(axis=1)
                match = nearest == patches
                precisions.append(plain_precision(distances[patches, nearest], match, PATCHES))
            numbers[f"matching.{level}.{sequence.name}"] = 100 * float(np.mean(precisions))
    return numbers


def plain_verification(descriptors: np.ndarray, split: HPatchesSplit) -> dict[str, float]:
    """Verify pair by pair; all rows are looked up at once, so that the loop only measures."""
    values = descriptors.reshape(-1, LENGTH).astype(np.float64)

    def rows(side: np.ndarray, level: str) -> list[int]:
        file, spot = file_index(side[:, 1], level), side[:, 0] * PATCHES + side[:, 2]
        return (file * descriptors.shape[1] + spot).tolist()

    def distances(pairs: np.ndarray, level: str) -> np.ndarray:
        row_pairs = zip(rows(pairs[:, 0], level), rows(pairs[:, 1], level), strict=True)
        return np.array([euclidean(values[one], values[other]) for one, other in row_pairs])

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


def plain_retrieval(descriptors: np.ndarray, split: HPatchesSplit) -> dict[str, float]:
    """Rank query by query, level by level, pool size by pool size."""
    queries, distractors = split.tasks.queries, split.tasks.distractors
    query_descriptors = descriptors[0, queries[:, 0] * PATCHES + queries[:, 1]]
    pool = descriptors[0, distractors[:, 0] * PATCHES + distractors[:, 1]]
    distances = cdist(query_descriptors, pool)
    by_key: dict[str, list[float]] = {}
    for query, (sequence, patch) in enumerate(queries):
        others = distances[query][distractors[:, 0] != sequence]
        for level in LEVELS:
            views = descriptors[file_index(np.arange(1, 6), level), sequence * PATCHES + patch]
            ranked = np.concatenate([cdist(query_descriptors[query, None], views)[0], others])
            match = np.arange(len(ranked)) < 5
            for size in hpatches.POOLS:
                precision = plain_precision(ranked[:size], match[:size], 5)
                by_key.setdefault(f"retrieval.{level}.{size}", []).append(precision)
    return {key: 100 * float(np.mean(precisions)) for key, precisions in by_key.items()}


def plain_precision(distances: np.ndarray, match: np.ndarray, positives: int) -> float:
    """Return the average precision by one sort."""
    true = np.cumsum(match[np.argsort(distances, kind="stable")])
    precision = np.maximum(true, 1e-10) / np.arange(1, len(true) + 1)
    return float(np.trapezoid(np.append(1, precision), np.append(0, true) / positives))


if __name__ == "__main__":
    main()
