"""Matching images of the Oxford Affine set: Mikolajczyk's matching score, and right matches of 500.

Both of the reference and each other image of a sequence, on the Harris detector's regions with affine
shape, an image's 1000 strongest, and patches of magnification 6 (DSM, Sec. 5.4, which states no number).
Regions are matched one to one, the closest descriptors first, and a match is right where its ellipses
overlap (`region_overlap`):

- Mikolajczyk's score is the share of right matches in the smaller number of regions of the two images.
  DSM states no overlap; here it is that of the protocol for descriptors, which it cites, an error below
  50% over all regions. Beside it stands that for detectors: below 40%, of the regions that both see.
- TCDesc (Sec. IV-C) takes the 500 strongest regions of each image and divides the right matches by 500,
  also where an image has fewer, or shows fewer of the other's. It states neither overlap nor
  magnification; here they are the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import numpy as np

from lib.benchmarks.region_overlap import (
    LARGEST_ERROR,
    Correspondences,
    correspondences,
    one_to_one,
)
from lib.benchmarks.subject import Subject
from lib.data.hpatches.homographies import read_homography_sequence
from lib.data.hpatches.release import IMAGES
from lib.data.oxford_affine import AffineSequence, AffineSequences
from lib.features.detectors import Detector, Regions, detect
from lib.features.matches import all_distances
from lib.features.patches import MAGNIFICATION, extract

DETECTOR = Detector("harris", affine=True, most=1000)
# Of an image, the strongest, and what right matches are divided by.
STRONGEST = 500
SCORES = ("score", "common", "right500")


def measure(
    subject: Subject,
    test_set: AffineSequences,
    magnification: float = MAGNIFICATION,
    largest_error: float = LARGEST_ERROR,
) -> dict[str, float]:
    """The scores of a descriptor, real-valued or of bits, in percent.

    Args:
        subject: what describes.
        test_set: the sequences.
        magnification: of patches.
        largest_error: of a right match's ellipses, of "score" and "right500".

    Returns:
        For each of `SCORES` ("score" is Mikolajczyk's by the protocol for descriptors, "common" his by
        that for detectors, "right500" TCDesc's): "SCORE.SEQUENCE.N" for images N from 2 to 6, their mean
        "SCORE.SEQUENCE", "SCORE.NUISANCE", the mean over its sequences, and "SCORE", that over all.

    Raises:
        ValueError: an image has no regions, or as the subject raises; the message names the file.
    """
    numbers: dict[str, float] = {}
    for sequence in test_set.sequences:
        for image, scores in enumerate(_scores(subject, sequence, magnification, largest_error), 2):
            stem = f"{sequence.name}.{image}"
            numbers |= {f"{score}.{stem}": 100 * float(scores[score]) for score in SCORES}
    nuisances: dict[str, list[str]] = {}
    for sequence in test_set.sequences:
        nuisances.setdefault(sequence.nuisance, []).append(sequence.name)
    for score in SCORES:
        means = {}
        for sequence in test_set.sequences:
            stem = f"{score}.{sequence.name}"
            means[sequence.name] = np.mean([numbers[f"{stem}.{n}"] for n in range(2, IMAGES + 1)])
        numbers |= {f"{score}.{name}": float(mean) for name, mean in means.items()}
        for nuisance, names in nuisances.items():
            numbers[f"{score}.{nuisance}"] = float(np.mean([means[name] for name in names]))
        numbers[score] = float(np.mean(list(means.values())))
    return numbers


def _scores(
    subject: Subject, sequence: AffineSequence, magnification: float, largest_error: float
) -> Iterator[Mapping[str, float]]:
    """Of images 2 to 6."""
    described = []
    for file in sequence.images.images:
        patches = _patches(file, magnification)
        if not len(patches):
            raise ValueError(f"{file} has no regions to match: leave it out")
        described.append(subject.describe(patches))
    for number in range(1, IMAGES):
        right = _correspondences(sequence.images.folder, number, largest_error)
        yield score_pair(described[0], described[number], right)


def score_pair(first: np.ndarray, second: np.ndarray, right: Correspondences) -> dict[str, float]:
    """The shares of right matches between two images.

    Args:
        first, second: (n, k) and (m, k) float32, or packed bits, the strongest regions first.
        right: of the regions.
    """
    distances = all_distances(first, second)
    inside = np.ix_(*right.inside)
    common = distances[inside]
    return {
        "score": right.described[one_to_one(distances)].sum() / min(distances.shape),
        "common": right.common[inside][one_to_one(common)].sum() / max(1, min(common.shape)),
        "right500": right.described[one_to_one(distances[:STRONGEST, :STRONGEST])].sum() / STRONGEST,
    }


# What no descriptor changes is found once a process.
@cache
def _regions(file: Path) -> Regions:
    sequence = read_homography_sequence(file.parent)
    return detect(sequence.grey(sequence.images.index(file)), DETECTOR)


@cache
def _patches(file: Path, magnification: float) -> np.ndarray:
    """(N, 64, 64) uint8 at an image's regions."""
    sequence = read_homography_sequence(file.parent)
    return extract(sequence.grey(sequence.images.index(file)), _regions(file), magnification)


@cache
def _correspondences(folder: Path, number: int, largest_error: float) -> Correspondences:
    sequence = read_homography_sequence(folder)
    regions = [_regions(sequence.images[n]) for n in (0, number)]
    shapes = tuple(sequence.grey(n).shape for n in (0, number))
    return correspondences(*regions, sequence.homographies[number - 1], shapes, largest_error)
