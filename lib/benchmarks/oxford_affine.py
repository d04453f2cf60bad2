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

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from lib.benchmarks.region_overlap import (
    LARGEST_ERROR,
    Correspondences,
    correspondences,
    one_to_one,
)
from lib.benchmarks.subject import Subject
from lib.data.hpatches.homographies import read_homography_sequence
from lib.data.hpatches.release import IMAGES
from lib.data.oxford_affine import AffineSequences
from lib.features.detectors import Detector, detect
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
    numbers, means = {}, {}
    for sequence in test_set.sequences:
        patches, right = _known(sequence.images.folder, magnification, largest_error)
        first, *others = map(subject.describe, patches)
        pairs = zip(others, right, strict=True)
        scores = pd.DataFrame([score_pair(first, other, own) for other, own in pairs]) * 100
        scores.index += 2
        numbers |= {f"{s}.{sequence.name}.{n}": v for (n, s), v in scores.stack().items()}
        means[sequence.name] = scores.mean()
    by_sequence = pd.DataFrame(means).T
    by_nuisance = by_sequence.groupby([sequence.nuisance for sequence in test_set.sequences]).mean()
    for table in (by_sequence, by_nuisance):
        numbers |= {f"{score}.{name}": v for (name, score), v in table.stack().items()}
    return numbers | by_sequence.mean().to_dict()


# What no descriptor changes is found once a process.
@cache
def _known(
    folder: Path, magnification: float, largest_error: float
) -> tuple[list[np.ndarray], list[Correspondences]]:
    """(N, 64, 64) uint8 patches of each image's regions, and what images 2 to 6 share with the first."""
    sequence = read_homography_sequence(folder)
    greys = [sequence.grey(number) for number in range(IMAGES)]
    regions = [detect(grey, DETECTOR) for grey in greys]
    for file, detected in zip(sequence.images, regions, strict=True):
        if not len(detected):
            raise ValueError(f"{file} has no regions to match: leave it out")
    shapes = [grey.shape for grey in greys]
    right = [
        correspondences(regions[0], regions[n], homography, (shapes[0], shapes[n]), largest_error)
        for n, homography in enumerate(sequence.homographies, 1)
    ]
    images = zip(greys, regions, strict=True)
    return [extract(grey, detected, magnification) for grey, detected in images], right


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
