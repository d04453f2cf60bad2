"""Build HPatches' patch format from homography sequences, by the release's own recipe.

The recipe is ``docs/extraction.md`` of hpatches-benchmark: regions are detected in the reference
(`lib.data.hpatches.detection`), jittered there, and carried to each other image by its homography,
exactly and point by point. Each of a sequence's 15 patch files other than ``ref`` has its own jitter;
``ref`` has none. A patch is the square around the region's disc: the centres of its outermost pixels lie
5 scales from the middle.

Patches whose standard deviation is below 5 of 255 grey values are left out, as the release's authors
say they did (hpatches-benchmark, issue 13). All files must have the same length, so a spot loses all its
patches if one of its six unjittered patches is that faint, e.g. washed out or lost in the dark.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path

import cv2
import numpy as np

from lib.data.hpatches import RELEASE, TASKS
from lib.data.hpatches.agreement import check_agreement
from lib.data.hpatches.detection import (
    DETECTORS,
    MAGNIFICATION,
    MEDIAN_OVERLAP,
    ORIENTATION_WINDOW,
    detect,
    draw_jitter,
    inside,
    overlaps,
    thin,
)
from lib.data.hpatches.homographies import HomographySequence, read_homography_sequences
from lib.data.hpatches.release import (
    FILES,
    IMAGE_OF_FILE,
    LEVELS,
    PATCH,
    Split,
    open_sequences,
    write_sequence,
    write_splits,
)
from lib.data.hpatches.tasks import generate_tasks, write_tasks
from lib.data.synthetic import SequencesSize
from lib.features import patches
from lib.features.detectors import oriented
from lib.features.keypoints import Keypoints
from lib.files import write_bytes

SMALLEST_CONTRAST = 5.0
# Grey values by which two files of one picture may differ if one holds colours and the other grey.
_ROUNDING = 1
# Cut (N, 65, 65) uint8 patches, given an image, a homography and regions (N, 2, 3) of the reference.
# Beyond the image's border, its outermost pixels are repeated. The release is bilinear: its patches of
# Oxford's graf correlate by 0.9999 with bilinear ones and by 0.9985 with bicubic ones (medians).
sample = partial(patches.sample, side=PATCH, border=cv2.BORDER_REPLICATE, interpolation=cv2.INTER_LINEAR)


@dataclass(frozen=True)
class Plan:
    """A plan of where to cut a sequence's patches.

    Attributes:
        frames: N detections in the reference, in the order of the patches.
        jitter: (N, 2, 2) maps of the unit disc, for each of the 15 files other than ``ref``.
        report: the fate of all detections, as written to ``build.json``. "detected": regions wholly
            inside the reference, by detector. Those left out, step by step: "thinned", which belong to
            a cluster of another; "outside", whose unjittered region leaves another image; "faint",
            which lack contrast in one of the images; "beyond_limit". "patches": those kept, by detector.
            "median_overlap": of jittered and unjittered regions, by level.
    """

    frames: Keypoints
    jitter: Mapping[str, np.ndarray]
    report: Mapping[str, object]

    def regions(self, file: str) -> np.ndarray:
        """Return (N, 2, 3) maps of the unit disc to pixels of the reference, with a file's jitter.

        Args:
            file: one of `FILES`; ``ref`` is not jittered.
        """
        regions = self.frames.discs(MAGNIFICATION)
        if file in self.jitter:
            regions[:, :, :2] = regions[:, :, :2] @ self.jitter[file]
        return regions


def build_hpatches(folder: Path, homographies: Sequence[Path], size: SequencesSize) -> None:
    """Cut the patches of homography sequences, and draw the tasks of a split "full" of all of them.

    Args:
        folder: gets ``hpatches-release``, ``tasks`` and ``build.json``.
        homographies: folders of sequences, or folders that contain such folders.
        size: largest number of patches per sequence, and numbers of pairs, queries and distractors.

    Raises:
        ValueError: fewer than two sequences, a limit below two patches, or a size below 1, all raised
            before any work; two sequences show one scene; images contradict their homographies; files
            are damaged, or a sequence yields no patches or only one.
        FileNotFoundError: an image or a homography is missing.
    """
    sequences = read_homography_sequences(*homographies)
    if len(sequences) < 2:
        why = "retrieval and inter negatives need two or more"
        raise ValueError(f"{sequences[0].folder} is the only sequence, but {why}: give another")
    limit = size.patches_per_sequence
    if limit is not None and limit < 2:
        raise ValueError(f"a limit of {limit} patches a sequence: intra negatives need 2 or more")
    if min(size.pairs, size.queries, size.distractors) < 1:
        raise ValueError(f"pairs, queries and distractors must be 1 or more each, got {size}")
    _check_scenes(sequences)
    for sequence in sequences:
        check_agreement(sequence)
    full = Split("full", tuple(sequence.name for sequence in sequences))
    pack(folder, sequences, {full.name: full}, size, lambda _: size.seed)


def _check_scenes(sequences: Sequence[HomographySequence]) -> None:
    """Refuse two sequences with one reference image: in retrieval and as negatives, the patches of each
    would count as unlike those of the other. HPatches has Oxford's graf as v_graffiti.

    Raises:
        ValueError: two sequences have one reference image, or an image cannot be read.
    """
    references = [(sequence.folder, sequence.grey(0)) for sequence in sequences]
    for (folder, reference), (other, compared) in combinations(references, 2):
        if reference.shape == compared.shape and cv2.absdiff(reference, compared).max() <= _ROUNDING:
            raise ValueError(f"{folder} and {other} have one reference image: give one of them")


def pack(
    folder: Path,
    sequences: Sequence[HomographySequence],
    splits: Mapping[str, Split],
    size: SequencesSize,
    seed_of: Callable[[str], int | np.random.SeedSequence],
) -> None:
    """Cut the patches of sequences, then draw and write the tasks of their splits.

    Args:
        folder: gets ``hpatches-release``, ``tasks``, and ``build.json``, which holds the limit, the
            seed, the intended median overlap by level, and each sequence's report.
        sequences: sequences with different names.
        splits: the splits, by name.
        size: largest number of patches per sequence, and numbers of pairs, queries and distractors.
        seed_of: maps a split's name to the seed of its tasks.

    Raises:
        ValueError: an image cannot be read, or a sequence yields no patches or only one.
        OSError: the folder cannot be written.
    """
    limit, reports = size.patches_per_sequence, []
    for sequence in sequences:
        plan = plan_patches(sequence, limit, size.seed)
        write_sequence(folder / RELEASE / sequence.name, cut_patches(sequence, plan))
        reports.append(plan.report)
    content = {"limit": limit, "seed": size.seed, "intended_overlap": MEDIAN_OVERLAP}
    content["sequences"] = reports
    write_bytes(folder / "build.json", (json.dumps(content, indent=1) + "\n").encode())
    for name, split in splits.items():
        tested = open_sequences(folder / RELEASE, split.test)
        write_tasks(folder / TASKS, name, tested, generate_tasks(tested, size, seed_of(name)))
    write_splits(folder / TASKS, splits)


def plan_patches(sequence: HomographySequence, limit: int | None = None, seed: int = 0) -> Plan:
    """Decide which patches a sequence gives and how each is jittered.

    All draws depend on the seed and on the sequence's name, not on other sequences.

    Args:
        sequence: the sequence, whose six images are read.
        limit: largest number of patches, a random sample of those found, so that each detector keeps
            its share; None keeps all.
        seed: seed of all draws.

    Raises:
        ValueError: an image cannot be read, or no detection is left.
    """
    rng = np.random.default_rng([seed, *sequence.name.encode()])
    homographies = (np.eye(3), *sequence.homographies)
    views = [(sequence.grey(index), homography) for index, homography in enumerate(homographies)]
    reference = views[0][0]
    detected = detect(reference)
    distinct = detected[thin(detected)]
    seen = [inside(distinct, homography, image.shape) for image, homography in views]
    common = oriented(reference, distinct[np.all(seen, axis=0)], ORIENTATION_WINDOW)
    discs = common.discs(MAGNIFICATION)
    contrasts = [sample(*view, discs).std(axis=(1, 2)) for view in views]
    clear = common[np.min(contrasts, axis=0) >= SMALLEST_CONTRAST]
    kept = clear[rng.permutation(len(clear))[:limit]]
    left_out = {
        "thinned": len(detected) - len(distinct),
        "outside": len(distinct) - len(common),
        "faint": len(common) - len(clear),
        "beyond_limit": len(clear) - len(kept),
    }
    if not len(kept):
        raise ValueError(f"{sequence.folder}: none of {len(detected)} detections is left ({left_out})")
    jitter, overlap = {}, {}
    for level in LEVELS:
        drawn = {f"{level[0]}{image}": draw_jitter(len(kept), level, rng) for image in range(1, 6)}
        jitter |= drawn
        centred = np.pad(np.concatenate([*drawn.values()]), ((0, 0), (0, 0), (0, 1)))
        overlap[level] = float(np.median(overlaps(centred)))
    detected, kept_by = (
        dict(zip(DETECTORS, np.bincount(some.detector, minlength=3).tolist(), strict=True))
        for some in (detected, kept)
    )
    report = {"name": sequence.name, "detected": detected, **left_out, "patches": kept_by}
    return Plan(kept, jitter, {**report, "median_overlap": overlap})


def cut_patches(sequence: HomographySequence, plan: Plan) -> dict[str, np.ndarray]:
    """Cut a sequence's patches as planned.

    Returns:
        (N, 65, 65) uint8 for each of `FILES`.

    Raises:
        ValueError: an image cannot be read.
    """
    homographies = [np.eye(3), *sequence.homographies]
    return {
        file: sample(sequence.grey(image), homographies[image], plan.regions(file))
        for file, image in zip(FILES, IMAGE_OF_FILE, strict=True)
    }
