"""Mikolajczyk's overlap error and the pairs that it makes right, against pixels and brute force."""

from __future__ import annotations

import numpy as np

from lib.benchmarks.oxford_affine import (
    LARGEST_COMMON_ERROR,
    LARGEST_ERROR,
    NORMALISED,
    correspondences,
    one_to_one,
    overlap_error,
)
from lib.features.detectors import Regions, regions
from lib.features.keypoints import Keypoints

SHAPES = ((300, 400), (300, 400))


def discs(position: np.ndarray, scale: np.ndarray) -> Regions:
    return regions(
        Keypoints(np.asarray(position, float), np.asarray(scale, float), np.zeros(len(scale)))
    )


def by_pixels(first: np.ndarray, second: np.ndarray, factor: float) -> float:
    """The released code's way: points of a grid that lie in one ellipse, or in both."""
    x, y = np.meshgrid(np.linspace(-80, 180, 1301), np.linspace(-80, 180, 1301))
    inside = []
    for of in (first, second):
        shape = np.linalg.inv(factor**2 * of[:, :2] @ of[:, :2].T)
        dx, dy = x - of[0, 2], y - of[1, 2]
        inside.append(shape[0, 0] * dx**2 + 2 * shape[0, 1] * dx * dy + shape[1, 1] * dy**2 < 1)
    return 1 - (inside[0] & inside[1]).sum() / (inside[0] | inside[1]).sum()


def test_the_error_is_that_of_counted_pixels() -> None:
    rng = np.random.default_rng(0)
    first, second = (np.zeros((12, 2, 3)) for _ in range(2))
    for of in (first, second):
        of[:, :, :2] = 5 * np.eye(2) + rng.normal(0, 1.5, (12, 2, 2))
        of[:, :, 2] = 50 + rng.normal(0, 4, (12, 2))
    found = overlap_error(first, second, np.full(12, 3.0))
    expected = [by_pixels(*pair, 3.0) for pair in zip(first, second, strict=True)]
    np.testing.assert_allclose(found, expected, atol=0.01)


def test_the_closest_are_taken_first_and_each_once() -> None:
    rng = np.random.default_rng(1)
    for n, m in ((1, 1), (7, 4), (30, 45)):
        # Few different values, so that many are equal.
        distances = rng.integers(0, 12, (n, m)).astype(float)
        distances[distances > 10] = np.inf
        left, expected = distances.copy(), set()
        while np.isfinite(left).any():
            row, column = np.unravel_index(left.argmin(), left.shape)
            expected.add((row, column))
            left[row], left[:, column] = np.inf, np.inf
        assert set(zip(*one_to_one(distances), strict=True)) == expected


def test_nothing_pairs_with_nothing() -> None:
    for shape in ((0, 3), (3, 0), (2, 2)):
        assert [len(of) for of in one_to_one(np.full(shape, np.inf))] == [0, 0]


def test_right_pairs_are_those_whose_ellipses_overlap_enough() -> None:
    rng = np.random.default_rng(2)
    first = discs(rng.uniform(40, 260, (60, 2)), rng.uniform(2, 6, 60))
    homography = np.array([[0.9, 0.1, 12], [-0.08, 1.1, 5], [1e-4, -5e-5, 1]])
    scatter = first.position + rng.normal(0, 2, (60, 2))
    carried = np.column_stack([scatter, np.ones(60)]) @ homography.T
    second = discs(carried[:, :2] / carried[:, 2:], first.scale * rng.uniform(0.8, 1.3, 60))
    found = correspondences(first, second, homography, SHAPES)

    # Each pair on its own, the second's ellipse carried back by differences.
    back = np.linalg.inv(homography)

    def to_first(points: np.ndarray) -> np.ndarray:
        moved = np.column_stack([points, np.ones(len(points))]) @ back.T
        return moved[:, :2] / moved[:, 2:]

    centre = to_first(second.position)
    step = 1e-4
    columns = [(to_first(second.position + step * of) - centre) / step for of in np.eye(2)]
    maps = np.stack([*columns, centre], axis=2)
    maps[:, :, :2] = maps[:, :, :2] @ second.maps[:, :, :2]
    for row in range(60):
        same = np.repeat(first.maps[row : row + 1], 60, axis=0)
        near = np.linalg.norm(centre - first.position[row], axis=1) < 4 * first.scale[row]
        error = overlap_error(same, maps, np.full(60, 3.0))
        clear = np.abs(error - LARGEST_ERROR) > 1e-3
        expected = (error < LARGEST_ERROR) & near
        assert (found.described[row] == expected)[clear].all()
        error = overlap_error(same, maps, np.full(60, NORMALISED / first.scale[row]))
        assert (error[found.common[row]] < LARGEST_COMMON_ERROR + 1e-3).all()
    assert found.described.sum() > 20
    assert 20 < found.common.sum() <= 60
    assert (found.common.sum(axis=0) <= 1).all()
    assert (found.common.sum(axis=1) <= 1).all()


def test_only_regions_wholly_inside_both_images_are_common() -> None:
    first = discs([[50, 50], [2, 50], [399, 150], [200, 150]], [3.0, 3.0, 3.0, 3.0])
    # The second image shows what lies 100 px farther to the right.
    homography = np.array([[1, 0, -100.0], [0, 1, 0], [0, 0, 1]])
    second = discs([[100, 150], [398, 20]], [3.0, 3.0])
    found = correspondences(first, second, homography, SHAPES)
    assert found.inside[0].tolist() == [False, False, False, True]
    assert found.inside[1].tolist() == [True, False]
    assert found.described[3].tolist() == [True, False]
    assert np.argwhere(found.common).tolist() == [[3, 0]]
