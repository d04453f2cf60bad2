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
    """Descriptors of all 16 images of a split's sequences, one image in memory at a time.

    Args:
        subject: what describes; it is given patches at 64×64.
        split: the sequences.

    Returns:
        float32, or, of bits packed into uint8, a uint8 of 0 or 1 each.

    Raises:
        ValueError: the descriptors of two images differ in length.
    """
    values: np.ndarray | None = None
    row = 0
    for sequence in split.sequences:
        for file in FILES:
            patches = sequence.patches(file)
            for start in range(0, len(patches), BATCH):
                some = np.asarray(subject.describe(as_64(patches[start : start + BATCH])))
                if some.dtype == np.uint8:
                    some = np.unpackbits(some, axis=1)
                if values is None:
                    total = len(FILES) * sum(each.count for each in split.sequences)
                    kind = np.uint8 if some.dtype == np.uint8 else np.float32
                    values = np.empty((total, some.shape[1]), kind)
                if some.shape[1] != values.shape[1]:
                    raise ValueError(
                        f"{sequence.name}/{file}: descriptors of {some.shape[1]} numbers, but of "
                        f"{values.shape[1]} before; one length for all is needed"
                    )
                values[row : row + len(some)] = some
                row += len(some)
    return lay_out(split.sequences, values)


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
        ValueError: a sequence has no descriptors, or the split has no pairs of a kind.
    """
    table, rows = _open(descriptors, split, device)
    pairs = {kind: getattr(split.tasks, kind) for kind in ("positives", "intra", "inter")}
    for kind, of_kind in pairs.items():
        if len(of_kind.first) == 0:
            raise ValueError(f"split {split.name} has no {kind} for verification: give its task files")
    numbers = {}
    for level in LEVELS:
        far = {kind: table.squares(*rows.of_pairs(pairs[kind], level)).sqrt() for kind in pairs}
        positives = far["positives"]
        few = int(len(positives) * IMBALANCE)
        for kind in ("intra", "inter"):
            ranked = torch.cat([far[kind], positives])
            match = torch.arange(len(ranked), device=ranked.device) >= len(far[kind])
            part = len(far[kind]) + few
            key = f"verification.{level}.{kind}"
            numbers[f"{key}.ap"] = 100 * average_precision(ranked[:part], match[:part]).item()
            numbers[f"{key}.auc"] = 100 * roc_auc(ranked, match).item()
    means = {
        name: _mean(number for key, number in numbers.items() if key.endswith(f".{measure}"))
        for name, measure in (("verification", "ap"), ("verification.auc", "auc"))
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
    precision, success = {}, {}
    for place, sequence in enumerate(split.sequences):
        every = np.arange(sequence.count)
        reference = table.side(rows(place, 0, every))
        files = range(1, len(FILES))
        found = [nearest(table, reference, table.side(rows(place, f, every))) for f in files]
        distances, neighbours = (torch.stack(each) for each in zip(*found, strict=True))
        right = neighbours == torch.arange(sequence.count, device=neighbours.device)
        # Files are sorted by level.
        ap = average_precision(distances, right, sequence.count).view(len(LEVELS), VIEWS).mean(1)
        share = right.double().mean(1).view(len(LEVELS), VIEWS).mean(1)
        for index, level in enumerate(LEVELS):
            precision[level, sequence] = 100 * ap[index].item()
            success[level, sequence] = 100 * share[index].item()

    numbers = {f"matching.{level}.{sequence.name}": ap for (level, sequence), ap in precision.items()}
    means = []
    for kind in KINDS:
        of_kind = [sequence for sequence in split.sequences if sequence.kind == kind]
        if of_kind:
            for level in LEVELS:
                numbers[f"matching.{level}.{kind}"] = _mean(precision[level, one] for one in of_kind)
                numbers[f"matching.success.{level}.{kind}"] = _mean(
                    success[level, one] for one in of_kind
                )
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
        ValueError: a sequence has no descriptors, or the split has no queries.
    """
    table, rows = _open(descriptors, split, device)
    queries, distractors = split.tasks.queries, split.tasks.distractors
    if len(queries) == 0:
        raise ValueError(f"split {split.name} has no queries for retrieval: give its task files")
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
        of_pools = percent[:, :-1, index].mean(0)
        numbers |= {
            f"retrieval.{level}.{size}": float(ap) for size, ap in zip(POOLS, of_pools, strict=True)
        }
        numbers[f"retrieval.{level}.pools"] = float(of_pools.mean())
        numbers[f"retrieval.{level}.all"] = float(percent[:, -1, index].mean())
        for own in np.unique(queries[:, 0]):
            name = split.sequences[own].name
            mine = queries[:, 0] == own
            numbers[f"retrieval.{level}.{name}"] = float(percent[mine, -1, index].mean())
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
        found = self.descriptors.rows(self.places[sequence], file, patch)
        return torch.from_numpy(found).to(self.device)

    def of_pairs(self, pairs: PatchPairs, level: str) -> tuple[Tensor, Tensor]:
        sides = (pairs.first, pairs.second)
        return tuple(self(side[:, 0], file_index(side[:, 1], level), side[:, 2]) for side in sides)


def _open(descriptors: Descriptors, split: HPatchesSplit, device: str) -> tuple[Table, _Rows]:
    known = {name: place for place, name in enumerate(descriptors.sequences)}
    for sequence in split.sequences:
        if sequence.name not in known:
            raise ValueError(
                f"sequence {sequence.name} of split {split.name} has no descriptors: describe all of "
                "the split's sequences"
            )
        described = int(descriptors.counts[known[sequence.name]])
        if described != sequence.count:
            raise ValueError(
                f"sequence {sequence.name} has {sequence.count} patches an image, but {described} are "
                "described: describe this release"
            )
    places = np.array([known[sequence.name] for sequence in split.sequences])
    return Table.on(device, descriptors.values), _Rows(descriptors, places, device)


def _mean(numbers: Iterator[float]) -> float:
    return float(np.mean(list(numbers)))
