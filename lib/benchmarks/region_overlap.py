"""Which regions of two images of a plane show one spot: Mikolajczyk's overlap error.

As in the code that was released with his evaluations (``repeatability.m``, ``c_eoverlap.cxx``), where
ellipses are compared in the first image, into which the second's are carried by the local affine map,
and pairs whose centres lie over four scales apart are not looked at. Two protocols stand there:

- of descriptors (Mikolajczyk and Schmid, PAMI 2005): ellipses of three scales, error below 50%, all
  regions of either image;
- of detectors (Mikolajczyk et al., IJCV 2005): ellipses enlarged so that the first is as large as a disc
  of 30 px, error below 40%, regions wholly inside both images, each region in one pair at most, the
  pairs of least error first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from lib.data.hpatches.jitter import overlaps
from lib.features.detectors import Regions
from lib.features.homographies import local_affine, transfer

# In scales of the first region.
REACH = 4.0
DESCRIBED = 3.0
# px.
NORMALISED = 30.0
LARGEST_ERROR, LARGEST_COMMON_ERROR = 0.5, 0.4
_AT_ONCE = 4096


@dataclass(frozen=True)
class Correspondences:
    """What two images' n and m regions have in common.

    Attributes:
        described: (n, m) bool, whether a pair is right in the protocol of descriptors.
        common: (n, m) bool, likewise in the protocol of detectors, one pair a region at most.
        inside: (n,) and (m,) bool, which regions lie wholly inside both images.
    """

    described: np.ndarray
    common: np.ndarray
    inside: tuple[np.ndarray, np.ndarray]


def correspondences(
    first: Regions,
    second: Regions,
    homography: np.ndarray,
    shapes: tuple[tuple[int, int], ...],
    largest_error: float = LARGEST_ERROR,
) -> Correspondences:
    """The right pairs of n and m regions.

    Args:
        first, second: regions of two images.
        homography: (3, 3), from the first to the second.
        shapes: height and width of either image, px.
        largest_error: in the protocol of descriptors.
    """
    back = np.linalg.inv(homography)
    carried = _carried(second, back)
    inside = (
        _within(first.maps, shapes[0]) & _within(_carried(first, homography), shapes[1]),
        _within(second.maps, shapes[1]) & _within(carried, shapes[0]),
    )
    rows, columns = _near(first, carried)
    pairs = first.maps[rows].astype(float), carried[columns]
    described = np.zeros((len(first), len(second)), bool)
    right = overlap_error(*pairs, np.full(len(rows), DESCRIBED)) < largest_error
    described[rows[right], columns[right]] = True
    error = overlap_error(*pairs, NORMALISED / first.scale[rows])
    among = inside[0][rows] & inside[1][columns] & (error < LARGEST_COMMON_ERROR)
    distances = np.full(described.shape, np.inf)
    distances[rows[among], columns[among]] = error[among]
    common = np.zeros_like(described)
    common[one_to_one(distances)] = True
    return Correspondences(described, common, inside)


def overlap_error(first: np.ndarray, second: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """1 − intersection over union of pairs of ellipses, both enlarged about their centres.

    Args:
        first, second: (N, 2, 3) local affine frames in one image.
        factor: (N,) by which the ellipses of a pair are enlarged.

    Returns:
        (N,) float64.
    """
    errors = [np.empty(0)]
    for start in range(0, len(first), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        # Where the first ellipse is the unit disc.
        to_disc = np.linalg.inv(factor[part, None, None] * first[part, :, :2])
        linear = to_disc @ (factor[part, None, None] * second[part, :, :2])
        shift = to_disc @ (second[part, :, 2:] - first[part, :, 2:])
        errors.append(1 - overlaps(np.concatenate([linear, shift], axis=2)))
    return np.concatenate(errors)


def one_to_one(distances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of rows and columns, the closest first and each of either once, until none is left.

    A pair that is the nearest both ways is among them whatever is taken before, so that they are found
    in a few rounds; of equally close ones the first row's and then the first column's are taken.

    Args:
        distances: (n, m); infinite where there is no pair.

    Returns:
        (k,) rows and (k,) columns.
    """
    rows, columns = np.arange(distances.shape[0]), np.arange(distances.shape[1])
    taken = [(np.empty(0, int), np.empty(0, int))]
    while len(rows) and len(columns):
        left = distances[np.ix_(rows, columns)]
        nearest = left.argmin(axis=1)
        here = np.arange(len(rows))
        mutual = (left.argmin(axis=0)[nearest] == here) & np.isfinite(left[here, nearest])
        if not mutual.any():
            break
        taken.append((rows[mutual], columns[nearest[mutual]]))
        rows, columns = rows[~mutual], np.delete(columns, nearest[mutual])
    return tuple(np.concatenate(side) for side in zip(*taken, strict=True))


def _carried(regions: Regions, homography: np.ndarray) -> np.ndarray:
    """(N, 2, 3) frames in the other image."""
    centre = regions.position.astype(float)
    linear = local_affine(homography, centre) @ regions.maps[:, :, :2]
    return np.concatenate([linear, transfer(homography, centre)[:, :, None]], axis=2)


def _within(maps: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Which ellipses of one scale lie inside an image, (N,) bool."""
    half = np.linalg.norm(maps[:, :, :2], axis=2)
    far = np.array(shape[::-1]) - 1
    return ((maps[:, :, 2] - half >= 0) & (maps[:, :, 2] + half <= far)).all(axis=1)


def _near(first: Regions, carried: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of pairs within `REACH`."""
    tree = cKDTree(np.where(np.isfinite(carried[:, :, 2]), carried[:, :, 2], 1e12))
    near = tree.query_ball_point(first.position, REACH * first.scale, return_sorted=True)
    rows = np.repeat(np.arange(len(first)), [len(columns) for columns in near])
    return rows, np.concatenate([*near, np.empty(0)]).astype(int)
