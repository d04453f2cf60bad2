"""HPatches' three tasks (Balntas et al., CVPR 2017): verification, matching and retrieval of patches.

The numbers are those of the benchmark's Python code, also where its text reads otherwise:

- Verification ranks all negatives and then all positives (AUC), or the first int(0.2 n) positives of
  the file (AP), by distance; of equally distant pairs the negatives come first.
- Matching asks for each patch's nearest neighbour in another image, the first of several, and ranks
  these; what a wrong neighbour hides counts as never retrieved.
- Retrieval ranks a patch's five views before equally distant distractors. A pool of size m is those
  five and the *first* m − 5 distractors of other sequences, in the file's order. It is no cut-off by
  rank, and a pool larger than the whole is the whole.

Distances are Euclidean, in float64 (`neighbours`). Those of binary descriptors order pairs as Hamming's
do, whose square roots they are.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lib.benchmarks.neighbours import Table, columns_closer, nearest
from lib.benchmarks.ranking import average_precision, average_precision_by_negatives, roc_auc
from lib.benchmarks.subject import BATCH, Subject
from lib.data.hpatches.descriptors import Descriptors, check, lay_out
from lib.data.hpatches.release import FILES, IMAGES, LEVELS, as_64, file_index
from lib.data.hpatches.tasks import HPatchesSplit, PatchPairs

POOLS = (100, 500, 1000, 5000, 10000, 15000, 20000)
VIEWS = IMAGES - 1
KINDS = ("viewpoint", "illumination")
# Positives to a negative where they are the fewer.
IMBALANCE = 0.2


def measure(subject: Subject, split: HPatchesSplit) -> dict[str, float]:
    """The three tasks' numbers for a descriptor: `describe`, then `score` on the subject's device."""
    return score(describe(subject, split), split, subject.device)


def describe(subject: Subject, split: HPatchesSplit) -> Descriptors:
    """Descriptors of all 16 images of a split's sequences, the patches of one in memory at a time.

    Args:
        subject: what describes; it is given patches at 64×64.
        split: the sequences.

    Returns:
        float32, or, of bits packed into uint8, a uint8 of 0 or 1 each.

    """
    parts = []
    for sequence in split.sequences:
        for file in FILES:
            patches = sequence.patches(file)
            for start in range(0, len(patches), BATCH):
                values = np.asarray(subject.describe(as_64(patches[start : start + BATCH])))
                packed = values.dtype == np.uint8
                parts.append(np.unpackbits(values, axis=1) if packed else values.astype(np.float32))
    return lay_out(split.sequences, np.concatenate(parts))


def score(descriptors: Descriptors, split: HPatchesSplit, device: str = "cpu") -> dict[str, float]:
    """All three tasks.

    Args:
        descriptors: of the split's sequences at least.
        split: sequences and tasks.
        device: where to measure; the descriptors are copied there.

    Returns:
        The numbers of `verification`, `matching` and `retrieval`.

    Raises:
        ValueError: a descriptor is not finite or of zero length (sequence, image and patch are named),
            or as the tasks raise.
    """
    check(descriptors)
    tasks = (verification, matching, retrieval)
    return {key: number for task in tasks for key, number in task(descriptors, split, device).items()}


def verification(
    descriptors: Descriptors, split: HPatchesSplit, device: str = "cpu"
) -> dict[str, float]:
    """Whether two patches show the same spot, by their distance.

    Args:
        descriptors: of the split's sequences at least.
        split: sequences and tasks.
        device: where to measure.

    Returns:
        In percent, for the three levels of jitter and negatives of the same (intra) or of another
        sequence (inter): "verification.{level}.{intra|inter}.auc", all positives among all negatives,
        and "….ap", a fifth of them; "verification", the mean of the six AP, and "verification.auc",
        of the six AUC. With fewer than 5 positives the fifth is none, and AP 0.

    Raises:
        ValueError: a sequence has no descriptors.
    """
    table, rows = _open(descriptors, split, device)
    kinds = {kind: getattr(split.tasks, kind) for kind in ("positives", "intra", "inter")}
    numbers = {}
    for level in LEVELS:
        distances = {
            kind: table.squares(*rows.pairs(pairs, level)).sqrt() for kind, pairs in kinds.items()
        }
        positives = distances["positives"]
        few = int(len(positives) * IMBALANCE)
        for kind in ("intra", "inter"):
            ranked = torch.cat([distances[kind], positives])
            match = torch.arange(len(ranked), device=ranked.device) >= len(distances[kind])
            part = len(distances[kind]) + few
            key = f"verification.{level}.{kind}"
            numbers[f"{key}.ap"] = 100 * average_precision(ranked[:part], match[:part]).item()
            numbers[f"{key}.auc"] = 100 * roc_auc(ranked, match).item()
    means = {
        name: _mean(number for key, number in numbers.items() if key.endswith(ending))
        for name, ending in (("verification", ".ap"), ("verification.auc", ".auc"))
    }
    return numbers | means


def matching(descriptors: Descriptors, split: HPatchesSplit, device: str = "cpu") -> dict[str, float]:
    """Each patch of the reference image matched with its nearest neighbour in each other image.

    Args:
        descriptors: of the split's sequences at least.
        split: the sequences.
        device: where to measure.

    Returns:
        In percent: "matching.{level}.{sequence name}", the mean AP of five pairs of images;
        "matching.{level}.{viewpoint|illumination}", the mean over sequences of that kind, where there
        are any; "matching.success.{level}.{kind}", the mean share of right neighbours; "matching",
        the mean over kinds of the mean over levels.

    Raises:
        ValueError: a sequence has no descriptors, or its name tells no kind.
    """
    table, rows = _open(descriptors, split, device)
    numbers, success = {}, {}
    for index, sequence in enumerate(split.sequences):
        patches = np.arange(sequence.count)
        sides = [table.side(rows(index, file, patches)) for file in range(len(FILES))]
        results = [nearest(table, sides[0], side) for side in sides[1:]]
        distances, neighbours = map(torch.stack, zip(*results, strict=True))
        right = neighbours == torch.arange(sequence.count, device=neighbours.device)
        precision = average_precision(distances, right, sequence.count)
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
    for kind in KINDS:
        names = [sequence.name for sequence in split.sequences if sequence.kind == kind]
        if names:
            for level in LEVELS:
                key = f"{level}.{kind}"
                numbers[f"matching.{key}"] = _mean(numbers[f"matching.{level}.{n}"] for n in names)
                numbers[f"matching.success.{key}"] = _mean(success[level, n] for n in names)
            means.append(_mean(numbers[f"matching.{level}.{kind}"] for level in LEVELS))
    return numbers | {"matching": _mean(means)}


def retrieval(descriptors: Descriptors, split: HPatchesSplit, device: str = "cpu") -> dict[str, float]:
    """A patch's five other views ranked among patches of other sequences.

    Args:
        descriptors: of the split's sequences at least.
        split: sequences and tasks.
        device: where to measure.

    Returns:
        Means over queries of AP in percent: "retrieval.{level}.{m}" for the pool sizes m of `POOLS`,
        "retrieval.{level}.pools", the mean of these seven (the benchmark's own tables);
        "retrieval.{level}.all", over the whole pool, and "retrieval.{level}.{sequence name}", that of
        a sequence's queries; "retrieval", the mean over levels of "all", and "retrieval.pools".

    Raises:
        ValueError: a sequence has no descriptors.
    """
    table, rows = _open(descriptors, split, device)
    queries, distractors = split.tasks.queries, split.tasks.distractors
    query = rows(queries[:, 0], 0, queries[:, 1])
    files = range(1, len(FILES))
    views = torch.stack([rows(queries[:, 0], file, queries[:, 1]) for file in files], 1)
    pool = table.side(rows(distractors[:, 0], 0, distractors[:, 1]))
    owner = torch.tensor(distractors[:, 0], device=device)
    # The queries of a sequence have one pool, so one place in the file where each pool size ends.
    precision = torch.empty(len(queries), len(POOLS) + 1, len(LEVELS), dtype=torch.float64)
    sizes = torch.tensor(POOLS, device=device) - VIEWS
    for own in np.unique(queries[:, 0]):
        group = np.flatnonzero(queries[:, 0] == own)
        others = owner != int(own)
        segments = torch.searchsorted(sizes, others.cumsum(0))
        closer = columns_closer(
            table, table.side(query[group]), views[group], pool.only(others), segments, len(POOLS) + 1
        )
        by_level = closer.view(*closer.shape[:2], len(LEVELS), VIEWS)
        precision[group] = average_precision_by_negatives(by_level.sort(-1).values).cpu()

    numbers = {}
    percent = 100 * precision.numpy()
    for index, level in enumerate(LEVELS):
        pools, whole = percent[:, :-1, index].mean(0), percent[:, -1, index]
        numbers |= {
            f"retrieval.{level}.{size}": float(ap) for size, ap in zip(POOLS, pools, strict=True)
        }
        numbers[f"retrieval.{level}.pools"] = float(pools.mean())
        numbers[f"retrieval.{level}.all"] = float(whole.mean())
        for own in np.unique(queries[:, 0]):
            name = split.sequences[own].name
            numbers[f"retrieval.{level}.{name}"] = float(whole[queries[:, 0] == own].mean())
    return numbers | {
        "retrieval": _mean(numbers[f"retrieval.{level}.all"] for level in LEVELS),
        "retrieval.pools": _mean(numbers[f"retrieval.{level}.pools"] for level in LEVELS),
    }


@dataclass(frozen=True)
class _Rows:
    """Finds descriptors by a split's own numbers of sequences."""

    descriptors: Descriptors
    places: np.ndarray
    device: str

    def __call__(self, sequence: np.ndarray | int, file: np.ndarray | int, patch: np.ndarray) -> Tensor:
        rows = self.descriptors.rows(self.places[sequence], file, patch)
        return torch.from_numpy(rows).to(self.device)

    def pairs(self, pairs: PatchPairs, level: str) -> tuple[Tensor, Tensor]:
        sides = (pairs.first, pairs.second)
        return tuple(self(side[:, 0], file_index(side[:, 1], level), side[:, 2]) for side in sides)


def _open(descriptors: Descriptors, split: HPatchesSplit, device: str) -> tuple[Table, _Rows]:
    known = dict(zip(descriptors.sequences, descriptors.counts.tolist(), strict=True))
    for sequence in split.sequences:
        if known.get(sequence.name) != sequence.count:
            counts = f"{sequence.count} patches an image, of which {known.get(sequence.name, 0)} are"
            raise ValueError(f"sequence {sequence.name} of split {split.name} has {counts} described")
    places = np.array([descriptors.sequences.index(sequence.name) for sequence in split.sequences])
    return Table.on(device, descriptors.values), _Rows(descriptors, places, device)


def _mean(numbers: Iterator[float]) -> float:
    return float(np.mean(list(numbers)))
