"""HPatches' three tasks (Balntas et al., CVPR 2017): verification, matching and retrieval of patches.

The numbers follow the benchmark's Python code, even where its text says otherwise:

- Verification ranks pairs by distance: all negatives with all n positives (AUC), or with the
  first int(0.2 n) of the file (AP). Negatives come before equally distant positives.
- Matching takes each patch's nearest neighbour in another image, the first of equally near ones, and
  ranks these. A match that a wrong neighbour hides counts as never retrieved.
- Retrieval ranks a patch's five views before equally distant distractors. A pool of size m holds those
  five and the *first* m − 5 distractors of other sequences, in the file's order; it is not a cut-off
  by rank. If m exceeds the whole pool, the whole pool is used.

Distances are Euclidean, in float64 (`neighbours`). For binary descriptors they are the square roots of
Hamming distances and rank pairs alike. Descriptors are (16, N, k) as in `lib.data.hpatches.descriptors`.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from lib.benchmarks.neighbours import columns_closer, distances, nearest
from lib.benchmarks.ranking import average_precision, average_precision_by_negatives, roc_auc
from lib.benchmarks.subject import BATCH, Subject
from lib.data.hpatches import release
from lib.data.hpatches.descriptors import check
from lib.data.hpatches.release import FILES, IMAGES, KINDS, LEVELS, as_64, file_index, first_patches
from lib.data.hpatches.tasks import HPatchesSplit

POOLS = (100, 500, 1000, 5000, 10000, 15000, 20000)
VIEWS = IMAGES - 1
# Positives per negative in the imbalanced ranking, which AP is computed on.
IMBALANCE = 0.2


def measure(subject: Subject, split: HPatchesSplit) -> dict[str, float]:
    """Return a descriptor's numbers in the three tasks: `describe`, then `score` on its device."""
    return score(describe(subject, split.sequences), split, subject.device)


def describe(subject: Subject, sequences: Sequence[release.Sequence]) -> np.ndarray:
    """Describe all 16 images of sequences, with one image's patches in memory at a time.

    Args:
        subject: the descriptor; it gets patches at 64×64.
        sequences: with N patches in all.

    Returns:
        (16, N, k) float32; for packed bits, one uint8 of 0 or 1 per bit.

    Raises:
        ValueError: a descriptor is not finite or of zero length (sequence, image and patch are named).
    """
    parts = []
    for file in FILES:
        for sequence in sequences:
            patches = sequence.patches(file)
            for start in range(0, len(patches), BATCH):
                parts.append(subject.describe(as_64(patches[start : start + BATCH])))
    descriptors = np.concatenate(parts).reshape(len(FILES), -1, parts[0].shape[1])
    if descriptors.dtype == np.uint8:
        return np.unpackbits(descriptors, axis=2)
    descriptors = descriptors.astype(np.float32, copy=False)
    check(descriptors, sequences)
    return descriptors


def score(descriptors: np.ndarray, split: HPatchesSplit, device: str = "cpu") -> dict[str, float]:
    """Score descriptors in all three tasks.

    Args:
        descriptors: (16, N, k) of the split's sequences, neither NaN nor infinite.
        split: sequences and tasks.
        device: where to measure; the descriptors are copied there.

    Returns:
        The numbers of `verification`, `matching` and `retrieval`.
    """
    table = torch.from_numpy(descriptors).to(device)
    return verification(table, split) | matching(table, split) | retrieval(table, split)


def verification(descriptors: Tensor, split: HPatchesSplit) -> dict[str, float]:
    """Verify by their distance whether two patches show the same spot.

    Args:
        descriptors: (16, N, k) of the split's sequences.
        split: sequences and tasks.

    Returns:
        In percent, for the three levels of jitter and negatives of the same (intra) or of another
        sequence (inter): "verification.{level}.{intra|inter}.auc", with all positives, and "….ap",
        with a fifth of them; "verification", the mean of the six AP, and "verification.auc", the mean
        of the six AUC. With fewer than 5 positives, a fifth is none, and AP is 0.
    """
    starts, table = first_patches(split.sequences), descriptors.flatten(0, 1)
    numbers = {}
    for level in LEVELS:
        apart = {}
        for kind in ("positives", "intra", "inter"):
            sequence, image, patch = np.moveaxis(getattr(split.tasks, kind), 2, 0)
            rows = file_index(image, level) * descriptors.shape[1] + starts[sequence] + patch
            apart[kind] = distances(table, table, torch.from_numpy(rows).to(table.device))
        few = int(len(apart["positives"]) * IMBALANCE)
        for kind in ("intra", "inter"):
            ranked = torch.cat([apart[kind], apart["positives"]])
            match = torch.arange(len(ranked), device=ranked.device) >= len(apart[kind])
            part = len(apart[kind]) + few
            key = f"verification.{level}.{kind}"
            numbers[f"{key}.ap"] = 100 * average_precision(ranked[:part], match[:part]).item()
            numbers[f"{key}.auc"] = 100 * roc_auc(ranked, match).item()
    means = {
        name: _mean(number for key, number in numbers.items() if key.endswith(ending))
        for name, ending in (("verification", ".ap"), ("verification.auc", ".auc"))
    }
    return numbers | means


def matching(descriptors: Tensor, split: HPatchesSplit) -> dict[str, float]:
    """Match each patch of the reference image with its nearest neighbour in each other image.

    Args:
        descriptors: (16, N, k) of the split's sequences.
        split: the sequences.

    Returns:
        In percent: "matching.{level}.{sequence name}", the mean AP of five pairs of images;
        "matching.{level}.{viewpoint|illumination}", the mean over sequences of that kind, where there
        are any; "matching.success.{level}.{kind}", the mean share of right neighbours; "matching",
        the mean over kinds of the mean over levels.
    """
    numbers, success = {}, {}
    counts = [sequence.count for sequence in split.sequences]
    for sequence, files in zip(split.sequences, descriptors.split(counts, 1), strict=True):
        results = [nearest(files[0], other) for other in files[1:]]
        apart, neighbours = map(torch.stack, zip(*results, strict=True))
        right = neighbours == torch.arange(sequence.count, device=neighbours.device)
        precision = average_precision(apart, right, sequence.count)
        # Files are sorted by level.
        for level, ap, share in zip(
            LEVELS,
            precision.view(len(LEVELS), VIEWS).mean(1),
            right.double().mean(1).view(len(LEVELS), VIEWS).mean(1),
            strict=True,
        ):
            numbers[f"matching.{level}.{sequence.name}"] = 100 * ap.item()
            success[level, sequence.name] = 100 * share.item()

    means = []
    for kind in KINDS.values():
        names = [sequence.name for sequence in split.sequences if sequence.kind == kind]
        if names:
            for level in LEVELS:
                key = f"{level}.{kind}"
                numbers[f"matching.{key}"] = _mean(numbers[f"matching.{level}.{n}"] for n in names)
                numbers[f"matching.success.{key}"] = _mean(success[level, n] for n in names)
            means.append(_mean(numbers[f"matching.{level}.{kind}"] for level in LEVELS))
    return numbers | {"matching": _mean(means)}


def retrieval(descriptors: Tensor, split: HPatchesSplit, views_first: bool = True) -> dict[str, float]:
    """Rank a patch's five other views among patches of other sequences.

    Args:
        descriptors: (16, N, k) of the split's sequences.
        split: sequences and tasks.
        views_first: whether views come before equally distant distractors, as in the benchmark.

    Returns:
        Mean AP over queries, in percent: "retrieval.{level}.{m}" for the pool sizes m of `POOLS`;
        "retrieval.{level}.pools", the mean of these seven (the benchmark's own tables);
        "retrieval.{level}.all", over the whole pool, and "retrieval.{level}.{sequence name}", the same
        for a sequence's queries; "retrieval" and "retrieval.pools", means of "all" and "pools" over
        levels.
    """
    (asked, queries), (owner, distractors) = (
        (rows[:, 0], first_patches(split.sequences)[rows[:, 0]] + rows[:, 1])
        for rows in (split.tasks.queries, split.tasks.distractors)
    )
    pool = descriptors[0, distractors].double()
    squares = torch.linalg.vecdot(pool, pool)
    percent = np.empty((len(asked), len(POOLS) + 1, len(LEVELS)))
    for own in np.unique(asked):
        files, others = descriptors[:, queries[asked == own]], owner != own
        # Lengths of the file's prefixes that hold each pool's distractors of other sequences.
        ends = np.searchsorted(others.cumsum(), np.array(POOLS) - VIEWS, side="right").tolist()
        kept = squares.where(torch.from_numpy(others).to(pool.device), torch.inf)
        closer = columns_closer(files[0], files[1:].transpose(0, 1), pool, kept, ends, views_first)
        by_level = closer.unflatten(2, (len(LEVELS), VIEWS)).sort(-1).values
        percent[asked == own] = 100 * average_precision_by_negatives(by_level).cpu().numpy()

    numbers = {}
    for index, level in enumerate(LEVELS):
        pools, whole = percent[:, :-1, index].mean(0), percent[:, -1, index]
        numbers |= {f"retrieval.{level}.{m}": float(ap) for m, ap in zip(POOLS, pools, strict=True)}
        numbers[f"retrieval.{level}.pools"] = float(pools.mean())
        numbers[f"retrieval.{level}.all"] = float(whole.mean())
        for own in np.unique(asked):
            name = split.sequences[own].name
            numbers[f"retrieval.{level}.{name}"] = float(whole[asked == own].mean())
    for name, key in (("retrieval", "all"), ("retrieval.pools", "pools")):
        numbers[name] = _mean(numbers[f"retrieval.{level}.{key}"] for level in LEVELS)
    return numbers


def whole_pools(split: HPatchesSplit) -> np.ndarray:
    """Return the size of each query's whole pool, (n,): its five views, and all distractors of other
    sequences."""
    asked, owner = split.tasks.queries[:, 0], split.tasks.distractors[:, 0]
    own = np.bincount(owner, minlength=len(split.sequences))[asked]
    return VIEWS + len(owner) - own


def without_pools(numbers: Mapping[str, float], distractors: int) -> dict[str, float]:
    """Leave out pools for which there are too few distractors, and take means over the others alone.

    A pool of the benchmark's own size stays, though it lacks the distractors of a query's own sequence.

    Args:
        numbers: as `score` returns them.
        distractors: how many the task has. Too few for the smallest pool leave no mean over pools.
    """
    sizes, kept = [m for m in POOLS if m - VIEWS <= distractors], dict(numbers)
    means = {level: f"retrieval.{level}.pools" for level in LEVELS}
    for level, mean in means.items():
        for m in POOLS[len(sizes) :]:
            del kept[f"retrieval.{level}.{m}"]
        if sizes:
            kept[mean] = _mean(kept[f"retrieval.{level}.{m}"] for m in sizes)
    if sizes:
        return kept | {"retrieval.pools": _mean(kept[mean] for mean in means.values())}
    return {key: number for key, number in kept.items() if not key.endswith(".pools")}


def _mean(numbers: Iterable[float]) -> float:
    return float(np.mean(list(numbers)))
