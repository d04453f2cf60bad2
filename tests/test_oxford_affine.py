"""The Oxford Affine set: its layout, the embedded like of it, and the two scores."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import cv2
import numpy as np
import pytest
from scipy.spatial.distance import cdist
from skimage import data
from small_files import write_oxford_sequence
from test_matching_keypoints import texture

from lib.benchmarks import oxford_affine
from lib.benchmarks.oxford_affine import (
    LARGEST_COMMON_ERROR,
    LARGEST_ERROR,
    NORMALISED,
    Correspondences,
    correspondences,
    one_to_one,
    overlap_error,
)
from lib.benchmarks.subject import Subject, describe, of_signs
from lib.data import whole_images as layout
from lib.data.synthetic import sequences as generator
from lib.features.detectors import Regions, regions
from lib.features.keypoints import Keypoints, transfer
from lib.models import orb, sift

SIFT = Subject(partial(describe, sift.build()))
SHIFT = np.array([[1, 0, -12.0], [0, 1, -7], [0, 0, 1]])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sequences of shifted cuts of a texture, the second noisier with every image."""
    made = tmp_path_factory.mktemp("oxford")
    homographies = np.stack([SHIFT @ np.diag([1, 1, 1.0])] * 5)
    rng = np.random.default_rng(0)
    for name, noise in (("graf", 0.0), ("blur_other", 12.0)):
        whole = texture(3, 240)
        images = [whole[:200, :210], *[whole[7:207, 12:222]] * 5]
        noisy = [
            np.clip(image + noise * step * rng.standard_normal(image.shape), 0, 255).astype(np.uint8)
            for step, image in enumerate(images)
        ]
        write_oxford_sequence(made / name, noisy, homographies)
    return made


@pytest.fixture(scope="module")
def measured(folder: Path) -> dict[str, float]:
    return oxford_affine.measure(SIFT, layout.read_oxford_affine(folder))


def test_the_released_layout_is_read_with_its_nuisances(folder: Path) -> None:
    sequences = layout.read_oxford_affine(folder)
    assert [(one.folder.name, layout.nuisance(one)) for one in sequences] == [
        ("blur_other", "blur"),
        ("graf", "viewpoint"),
    ]
    np.testing.assert_array_equal(sequences[1].homographies[2], SHIFT)
    assert set(layout.RELEASED.values()) == set(layout.NUISANCES)


def test_what_is_seen_alike_is_matched(measured: dict[str, float]) -> None:
    assert measured["score.graf.2"] > 70
    assert measured["common.graf.2"] > measured["score.graf.2"]
    assert measured["score.blur_other.6"] < 0.5 * measured["score.blur_other.2"]


def test_means_are_over_images_sequences_and_all(measured: dict[str, float]) -> None:
    for of in oxford_affine.SCORES:
        for name in ("graf", "blur_other"):
            of_images = [measured[f"{of}.{name}.{image}"] for image in range(2, 7)]
            assert measured[f"{of}.{name}"] == pytest.approx(np.mean(of_images))
        assert measured[f"{of}.viewpoint"] == measured[f"{of}.graf"]
        both = (measured[f"{of}.graf"] + measured[f"{of}.blur_other"]) / 2
        assert measured[of] == pytest.approx(both)


def literal_score(first: np.ndarray, second: np.ndarray, right: np.ndarray) -> float:
    """Mikolajczyk's score of two images' descriptors: pairs by ascending distance, each region once."""
    apart, hits = cdist(first, second), 0
    for _ in range(min(apart.shape)):
        row, column = np.unravel_index(apart.argmin(), apart.shape)
        hits += right[row, column]
        apart[row], apart[:, column] = np.inf, np.inf
    return hits / min(first.shape[0], second.shape[0])


@pytest.mark.parametrize("counts", [(40, 55), (560, 530), (40, 530)])
def test_scores_are_those_of_their_definition(counts: tuple[int, int]) -> None:
    rng = np.random.default_rng(4)
    first, second = (rng.standard_normal((n, 8)).astype(np.float32) for n in counts)
    described = rng.random(counts) < 0.2
    common = np.zeros_like(described)
    common[one_to_one(rng.random(counts))] = True
    inside = tuple(rng.random(n) < share for n, share in zip(counts, (0.7, 0.6), strict=True))
    scores = oxford_affine.score_pair(first, second, Correspondences(described, common, inside))
    assert scores["score"] == literal_score(first, second, described)
    among = np.ix_(*map(np.flatnonzero, inside))
    expected = literal_score(first[inside[0]], second[inside[1]], common[among])
    assert scores["common"] == expected
    few = first[:500], second[:500], described[:500, :500]
    assert scores["right500"] == pytest.approx(literal_score(*few) * min(*counts, 500) / 500)


def test_bits_are_matched_by_hamming_distance() -> None:
    rng = np.random.default_rng(5)
    first, second = (rng.integers(0, 256, (30, 4)).astype(np.uint8) for _ in range(2))
    right = Correspondences(
        rng.random((30, 30)) < 0.3, np.zeros((30, 30), bool), (np.ones(30, bool),) * 2
    )
    as_numbers = [np.unpackbits(of, axis=1).astype(float) for of in (first, second)]
    apart = (as_numbers[0][:, None] != as_numbers[1]).sum(axis=2).astype(float)
    hits = right.described[one_to_one(apart)].sum()
    assert oxford_affine.score_pair(first, second, right)["score"] == hits / 30


def test_binary_descriptors_and_signs_are_measured(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "graf").symlink_to(folder / "graf")
    one = layout.read_oxford_affine(tmp_path)
    assert oxford_affine.measure(Subject(partial(describe, orb.build())), one)["score"] > 30
    shifted = Subject(lambda patches: describe(sift.build(), patches) - 0.05)
    signs = oxford_affine.measure(of_signs(shifted), one)
    assert 20 < signs["score"] <= 100


@pytest.fixture(scope="module")
def grey() -> np.ndarray:
    return cv2.resize(data.camera(), (240, 200), interpolation=cv2.INTER_AREA)


@pytest.mark.parametrize("nuisance", layout.NUISANCES)
def test_embedded_homographies_carry_the_poster(grey: np.ndarray, nuisance: str) -> None:
    steps = generator.NUISANCES[nuisance]
    images, homographies = generator.nuisance_sequence(grey, steps, np.random.default_rng(0))
    assert {image.shape for image in images} == {grey.shape}
    assert len(homographies) == 5
    alike = []
    for image, homography in zip(images[1:], homographies, strict=True):
        back = cv2.warpPerspective(image, np.linalg.inv(homography), grey.shape[::-1])
        corners = np.array([[0, 0], [239, 0], [0, 199], [239, 199]], float)
        there = transfer(homography, corners)
        seen = np.ones(grey.shape, np.uint8)
        seen = cv2.warpPerspective(
            cv2.warpPerspective(seen, homography, grey.shape[::-1]),
            np.linalg.inv(homography),
            grey.shape[::-1],
        )
        inside = seen.astype(bool)
        assert inside.mean() > 0.15
        assert np.isfinite(there).all()
        smooth = [cv2.GaussianBlur(of, (0, 0), 5)[inside] for of in (images[0], back)]
        alike.append(np.corrcoef(*smooth)[0, 1])
    assert min(alike) > 0.85


# Mikolajczyk's overlap error and the pairs that it makes right, against pixels and brute force.

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
