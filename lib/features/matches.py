"""Matching of two images' descriptors by faiss, which compares them block by block."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import faiss
import numpy as np
from numpy.typing import ArrayLike

from lib.arrays import as_array

# Nearest over second-nearest; Lowe's is 0.8 for SIFT.
RATIO = 0.9
# Bytes that are no packed descriptor's: SIFT's numbers as COLMAP and OpenCV store them. The longest
# packed ones in use, BRISK's and FREAK's, have 64.
_BYTES_OF_NUMBERS = 128
# Share by which the lengths of unit vectors of 16 bits may differ from 1.
_ROUNDED = 0.01
# Usual lengths of descriptors, k. Where both images have k descriptors and all are longer than the
# longest of these, rows and columns are likely exchanged.
_LENGTHS = (64, 128, 256)


@dataclass(frozen=True, repr=False)
class Matches:
    """M matches between two images.

    Attributes:
        first, second: (M,) int64, indices of each image's keypoints; those of the first ascend.
        distance: (M,) float32, Euclidean, or the number of differing bits.
    """

    first: np.ndarray
    second: np.ndarray
    distance: np.ndarray

    def __len__(self) -> int:
        return len(self.first)

    def __repr__(self) -> str:
        return f"Matches({len(self)} pairs)"


def match(
    first: ArrayLike,
    second: ArrayLike,
    mutual: bool = True,
    ratio: float | None = RATIO,
    *,
    packed: bool = False,
) -> Matches:
    """Match each descriptor of the first image with its nearest one of the second.

    Arrays that look transposed, as hloc stores descriptors, (k, n), give a warning.

    Args:
        first, second: (n, k) and (m, k) float32, or (n, k / 8) and (m, k / 8) uint8 of packed bits.
            Tensors on the CPU and lists are taken as NumPy takes them: numbers in a list are no bits.
        mutual: keep only pairs that are each other's nearest.
        ratio: keep only pairs nearer than this share of the second-nearest's distance (Lowe, IJCV
            2004); None keeps all. If the second image has only one keypoint, there is no second-nearest
            and no pair passes.
        packed: says that uint8 of 128 bytes or more are packed bits too; they are refused otherwise,
            because such are SIFT's numbers.

    Returns:
        Matches; none if an image has no descriptors.

    Raises:
        ValueError: a descriptor is not finite, the images' descriptors differ in length or type, they
            are no rows of numbers, columns are unit vectors and rows are not, uint8 of 128 bytes or more
            are not said to be packed, or the ratio is outside (0, 1].
    """
    if ratio is not None and not 0 < ratio <= 1:
        raise ValueError(f"ratio must be above 0, 1 at most, or None, got {ratio}")
    first, second = as_array(first), as_array(second)
    if bool in (first.dtype, second.dtype):
        raise ValueError("descriptors of bool cannot be matched: pack them with np.packbits(…, axis=1)")
    for array in (first, second):
        if array.dtype.kind not in "iuf":
            raise ValueError(f"descriptors are real numbers or packed bits, not of type {array.dtype}")
        # A list of no descriptors does not say how long they are.
        if array.ndim != 2 and array.shape != (0,):
            raise ValueError(
                f"descriptors are (n, k), one a row, not of shape {array.shape}: take each image of a "
                "batch by itself"
            )
    if not len(first) or not len(second):
        return Matches(np.empty(0, int), np.empty(0, int), np.empty(0, np.float32))
    one, other = ((array.shape[1:], array.dtype == np.uint8) for array in (first, second))
    if one != other:
        kinds = [f"{a.shape[-1]} of {a.dtype}" for a in (first, second)]
        why = f"descriptors of different kinds cannot be matched: {' and '.join(kinds)}"
        if len(first) == len(second) and first.shape != second.shape:
            why += "; transpose hloc's, which are (k, n)"
        raise ValueError(why)
    n, length = first.shape
    if first.dtype == np.uint8 and length >= _BYTES_OF_NUMBERS and not packed:
        raise ValueError(
            f"descriptors of {length} uint8 are numbers, such as SIFT's, rather than packed bits: give "
            "them as float32, or say packed=True"
        )
    if first.dtype != np.uint8 and _has_unit_columns(first) and _has_unit_columns(second):
        raise ValueError(
            "the columns of both arrays are unit vectors and the rows are not: transpose hloc's "
            "descriptors, which are (k, n)"
        )
    if n == len(second) and n in _LENGTHS and length > max(_LENGTHS):
        warnings.warn(
            f"two images of {n} descriptors of length {length} look like {length} of length {n}: "
            "transpose hloc's descriptors, which are (k, n)",
            stacklevel=2,
        )
    distances, neighbours = nearest(first, second, 1 if ratio is None else 2)
    rows = np.arange(len(first))
    if ratio is not None:
        rows = rows[distances[:, 0] < ratio * distances[:, 1]]
    if mutual and len(rows):
        back = nearest(second[neighbours[rows, 0]], first, 1)[1][:, 0]
        rows = rows[back == rows]
    return Matches(rows, neighbours[rows, 0], distances[rows, 0])


def _has_unit_columns(descriptors: np.ndarray) -> bool:
    """Whether the columns of (n, k) numbers have length 1 and the rows have not. A single row does not
    tell them apart."""
    if len(descriptors) < 2:
        return False
    squares = np.square(descriptors, dtype=np.float64)
    columns, rows = (np.allclose(squares.sum(axis), 1, rtol=0, atol=2 * _ROUNDED) for axis in (0, 1))
    return columns and not rows


def similarity(first: ArrayLike, second: ArrayLike, matches: Matches) -> np.ndarray:
    """Return a score from 0 to 1 for each keypoint of the first image, (n,) float32.

    A match scores (1 + cosine) / 2, and a keypoint without one 0. For bits the score is the share that
    agree, which equals (1 + cosine) / 2 of vectors of -1 and 1. Descriptors are as `match` takes them.
    """
    first, second = as_array(first), as_array(second)
    one, other = first[matches.first], second[matches.second]
    if first.dtype == np.uint8:
        agree = 1 - matches.distance / (8 * first.shape[1])
    else:
        one, other = _widened(one, other)
        lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
        agree = (1 + (one * other).sum(axis=1) / np.maximum(lengths, np.finfo(np.float32).tiny)) / 2
    scores = np.zeros(len(first), np.float32)
    scores[matches.first] = agree
    return scores


def _widened(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers as float32 at least: products and squares of shorter ones would overflow."""
    wide = np.result_type(first, second, np.float32)
    return first.astype(wide, copy=False), second.astype(wide, copy=False)


def nearest(queries: np.ndarray, columns: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Find the nearest columns of each query, the nearest first.

    Args:
        queries, columns: (n, k) and (m, k) float32, or uint8, which are packed bits always; m ≥ 1.
        count: number of neighbours, c.

    Returns:
        (n, c) float32 distances and (n, c) int64 indices of columns; if there are fewer than c columns,
        NaN and -1 for the missing neighbours.

    Raises:
        ValueError: as `match`.
    """
    if not (np.isfinite(queries).all() and np.isfinite(columns).all()):
        raise ValueError("a descriptor is not finite")
    k = queries.shape[1]
    if queries.dtype == np.uint8:
        index = faiss.IndexBinaryFlat(8 * k)
        index.add(np.ascontiguousarray(columns))
        distances, neighbours = index.search(np.ascontiguousarray(queries), count)
    else:
        queries, columns = _widened(queries, columns)
        # faiss takes squared distances as differences of products. An offset that all vectors share
        # would drown them, and small ones lose precision.
        offset = columns.mean(axis=0)
        index = faiss.IndexFlatL2(k)
        index.add(np.ascontiguousarray(columns - offset))
        _, neighbours = index.search(np.ascontiguousarray(queries - offset), count)
        distances = np.linalg.norm(queries[:, None] - columns[neighbours], axis=2)
    return np.where(neighbours < 0, np.nan, distances).astype(np.float32), neighbours
