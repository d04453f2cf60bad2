"""Matching on the Oxford Affine set: Mikolajczyk's matching score, and right matches of 500.

Both are measured between the reference and each other image of a sequence, on an image's 1000 strongest
Harris regions with affine shape and patches of magnification 6 (DSM, Sec. 5.4, which states no number).
Regions are matched one to one, the closest descriptors first, and a match is right if its ellipses
overlap. The overlap is computed as in the code released with Mikolajczyk's evaluations
(``repeatability.m``, ``c_eoverlap.cxx``): the local affine map carries the second image's ellipses into
the first, where they are compared; pairs with centres more than four scales apart are skipped. That code
has two protocols:

- for descriptors (Mikolajczyk and Schmid, PAMI 2005): ellipses of three scales, error below 50%, all
  regions of either image;
- for detectors (Mikolajczyk et al., IJCV 2005): ellipses enlarged so that the first is as large as a
  disc of 30 px, error below 40%, regions wholly inside both images, each region in one pair at most, the
  pairs of least error first.

Mikolajczyk's score is the number of right matches over the smaller number of regions of the two images.
DSM states no overlap; the score is given in the protocol for descriptors, which DSM cites, and also in
that for detectors. TCDesc (Sec. IV-C) takes the 500 strongest regions of each image and divides the
right matches by 500, even if an image has fewer, or shows fewer of the other's. It states neither
overlap nor magnification; here they are those of the score for descriptors.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.spatial.distance import cdist

from lib.benchmarks.subject import Subject
from lib.data.hpatches.detection import overlaps
from lib.data.hpatches.homographies import HomographySequence, read_homography_sequence
from lib.data.hpatches.release import IMAGES
from lib.data.whole_images import nuisance
from lib.features.detectors import Detector, Regions, detect
from lib.features.keypoints import local_affine, transfer
from lib.features.patches import extract
from lib.files import state

DETECTOR = Detector("harris", affine=True, most=1000)
# Strongest regions of an image, and the number that right matches are divided by.
STRONGEST = 500
SCORES = ("score", "common", "right500")
# Largest distance between centres, in scales of the first region.
REACH = 4.0
DESCRIBED = 3.0
# Scale to which the first ellipse is enlarged, px.
NORMALISED = 30.0
LARGEST_ERROR, LARGEST_COMMON_ERROR = 0.5, 0.4
_AT_ONCE = 4096


def measure(subject: Subject, test_set: list[HomographySequence]) -> dict[str, float]:
    """Compute the scores of a descriptor, real-valued or of bits, in percent.

    Args:
        subject: the descriptor.
        test_set: the sequences.

    Returns:
        For each of `SCORES` ("score" is Mikolajczyk's in the protocol for descriptors, "common" his in
        that for detectors, "right500" TCDesc's): "SCORE.SEQUENCE.N" for images N from 2 to 6, their mean
        "SCORE.SEQUENCE", "SCORE.NUISANCE", the mean over its sequences, and "SCORE", that over all.

    Raises:
        ValueError: an image has no regions, or as the subject raises; the message names the file.
    """
    numbers, means = {}, {}
    for sequence in test_set:
        name = sequence.folder.name
        states = tuple(map(state, sorted(sequence.folder.iterdir())))
        patches, right = _patches_and_correspondences(sequence.folder, states)
        first, *others = map(subject.describe, patches)
        scores = 100 * pd.DataFrame(map(partial(score_pair, first), others, right))
        scores.index += 2
        numbers |= {f"{s}.{name}.{n}": v for (n, s), v in scores.stack().items()}
        means[name] = scores.mean()
    by_sequence = pd.DataFrame(means).T
    by_nuisance = by_sequence.groupby(list(map(nuisance, test_set))).mean()
    for table in (by_sequence, by_nuisance):
        numbers |= {f"{score}.{name}": v for (name, score), v in table.stack().items()}
    return numbers | by_sequence.mean().to_dict()


@cache
def _patches_and_correspondences(
    folder: Path, _states: tuple
) -> tuple[list[np.ndarray], list[Correspondences]]:
    """Return (N, 64, 64) uint8 patches of each image's regions, and correspondences of images 2 to 6
    with the first.

    Regions do not depend on the descriptor: a process finds them once, and again if a file has changed.
    """
    sequence = read_homography_sequence(folder)
    greys = [sequence.grey(number) for number in range(IMAGES)]
    regions = [detect(grey, DETECTOR) for grey in greys]
    for file, detected in zip(sequence.images, regions, strict=True):
        if not len(detected):
            raise ValueError(f"{file} has no regions to match: leave it out")
    right = [
        correspondences(regions[0], regions[n], homography, (greys[0].shape, greys[n].shape))
        for n, homography in enumerate(sequence.homographies, 1)
    ]
    return list(map(extract, greys, regions)), right


def score_pair(first: np.ndarray, second: np.ndarray, right: Correspondences) -> dict[str, float]:
    """Compute the shares of right matches between two images.

    Args:
        first, second: (n, k) and (m, k) float32, or packed bits, the strongest regions first.
        right: correspondences of the regions.
    """
    if first.dtype == np.uint8:
        # On bits, the Euclidean distance ranks pairs as Hamming's does.
        first, second = (np.unpackbits(side, axis=1) for side in (first, second))
    distances = cdist(first, second)
    inside = np.ix_(*right.inside)
    common = distances[inside]
    return {
        "score": right.described[one_to_one(distances)].sum() / min(distances.shape),
        "common": right.common[inside][one_to_one(common)].sum() / max(1, min(common.shape)),
        "right500": right.described[one_to_one(distances[:STRONGEST, :STRONGEST])].sum() / STRONGEST,
    }


@dataclass(frozen=True)
class Correspondences:
    """Correspondences between two images' n and m regions.

    Attributes:
        described: (n, m) bool, whether a pair is right in the protocol for descriptors.
        common: (n, m) bool, likewise in the protocol for detectors, at most one pair per region.
        inside: (n,) and (m,) bool, which regions lie wholly inside both images.
    """

    described: np.ndarray
    common: np.ndarray
    inside: tuple[np.ndarray, np.ndarray]


def correspondences(
    first: Regions, second: Regions, homography: np.ndarray, shapes: tuple[tuple[int, int], ...]
) -> Correspondences:
    """Find the right pairs of n and m regions.

    Args:
        first, second: regions of two images.
        homography: (3, 3), from the first image to the second.
        shapes: height and width of each image, px.
    """
    carried = _carried(second, np.linalg.inv(homography))
    inside = (
        _within(first.maps, shapes[0]) & _within(_carried(first, homography), shapes[1]),
        _within(second.maps, shapes[1]) & _within(carried, shapes[0]),
    )
    near = cdist(first.position, carried[:, :, 2]) <= REACH * first.scale[:, None]
    rows, columns = np.nonzero(near)
    pairs = first.maps[rows].astype(float), carried[columns]
    described = np.zeros_like(near)
    described[rows, columns] = overlap_error(*pairs, np.full(len(rows), DESCRIBED)) < LARGEST_ERROR
    error = overlap_error(*pairs, NORMALISED / first.scale[rows])
    among = inside[0][rows] & inside[1][columns] & (error < LARGEST_COMMON_ERROR)
    errors = np.full(near.shape, np.inf)
    errors[rows, columns] = np.where(among, error, np.inf)
    common = np.zeros_like(described)
    common[one_to_one(errors)] = True
    return Correspondences(described, common, inside)


def overlap_error(first: np.ndarray, second: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """Compute 1 − intersection over union of pairs of ellipses, both enlarged about their centres.

    Args:
        first, second: (N, 2, 3) local affine frames in one image.
        factor: (N,) factors by which the ellipses of a pair are enlarged.

    Returns:
        (N,) float64.
    """
    # In coordinates where the first ellipse is the unit disc.
    scale = factor[:, None, None]
    to_disc = np.linalg.inv(scale * first[:, :, :2])
    linear = to_disc @ (scale * second[:, :, :2])
    maps = np.concatenate([linear, to_disc @ (second[:, :, 2:] - first[:, :, 2:])], axis=2)
    parts = np.array_split(maps, 1 + len(maps) // _AT_ONCE)
    return 1 - np.concatenate(list(map(overlaps, parts)))


def one_to_one(distances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pair rows with columns, the closest first, each row and column once, until none is left.

    Mutual nearest pairs belong to the result whatever is taken before, so a few rounds find all pairs.
    Among equally close pairs the first row's, then the first column's are taken.

    Args:
        distances: (n, m); infinite where there is no pair.

    Returns:
        (k,) rows and (k,) columns.
    """
    left, every = distances.astype(float), np.arange(len(distances))
    taken = np.empty((2, 0), int)
    while np.isfinite(left).any():
        nearest = left.argmin(axis=1)
        mutual = (left.argmin(axis=0)[nearest] == every) & np.isfinite(left[every, nearest])
        taken = np.column_stack([taken, [every[mutual], nearest[mutual]]])
        left[taken[0]] = left[:, taken[1]] = np.inf
    return taken[0], taken[1]


def _carried(regions: Regions, homography: np.ndarray) -> np.ndarray:
    """Carry regions into the other image: their (N, 2, 3) frames there."""
    centre = regions.position.astype(float)
    linear = local_affine(homography, centre) @ regions.maps[:, :, :2]
    return np.concatenate([linear, transfer(homography, centre)[:, :, None]], axis=2)


def _within(maps: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Return (N,) bool: which ellipses of one scale lie inside an image."""
    half, centre = np.linalg.norm(maps[:, :, :2], axis=2), maps[:, :, 2]
    inside = (centre - half >= 0) & (centre + half <= np.subtract(shape[::-1], 1))
    return inside.all(axis=1)
