"""The Oxford Affine set: its layout, its substitute, and the two scores."""

from __future__ import annotations

import shutil
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
from lib.models import handcrafted

SIFT = Subject(partial(describe, handcrafted.Sift()))
SHIFT = np.array([[1, 0, -12.0], [0, 1, -7], [0, 0, 1]])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sequences of shifted crops of a texture, the second noisier with every image."""
    root = tmp_path_factory.mktemp("oxford")
    homographies = np.stack([SHIFT] * 5)
    rng = np.random.default_rng(0)
    for name, noise in (("graf", 0.0), ("blur_other", 12.0)):
        full = texture(3, 240)
        images = [full[:200, :210], *[full[7:207, 12:222]] * 5]
        noisy = [
            np.clip(image + noise * step * rng.standard_normal(image.shape), 0, 255).astype(np.uint8)
            for step, image in enumerate(images)
        ]
        write_oxford_sequence(root / name, noisy, homographies)
    return root


@pytest.fixture(scope="module")
def measured(folder: Path) -> dict[str, float]:
    return oxford_affine.measure(SIFT, layout.read_oxford_affine(folder))


def test_the_released_layout_is_read_with_its_nuisances(folder: Path) -> None:
    sequences = layout.read_oxford_affine(folder)
    assert [(sequence.folder.name, layout.nuisance(sequence)) for sequence in sequences] == [
        ("blur_other", "blur"),
        ("graf", "viewpoint"),
    ]
    np.testing.assert_array_equal(sequences[1].homographies[2], SHIFT)
    assert set(layout.RELEASED.values()) == set(layout.NUISANCES)


def test_clean_images_match_better_than_noisy_ones(measured: dict[str, float]) -> None:
    assert measured["score.graf.2"] > 70
    assert measured["common.graf.2"] > measured["score.graf.2"]
    assert measured["score.blur_other.6"] < 0.5 * measured["score.blur_other.2"]


def test_a_sequence_that_is_replaced_under_its_name_is_measured_anew(
    folder: Path, measured: dict[str, float], tmp_path: Path
) -> None:
    here = tmp_path / "graf"
    shutil.copytree(folder / "graf", here)
    first = oxford_affine.measure(SIFT, layout.read_oxford_affine(tmp_path))
    assert first["score.graf"] == measured["score.graf"]
    shutil.rmtree(here)
    shutil.copytree(folder / "blur_other", here)
    again = oxford_affine.measure(SIFT, layout.read_oxford_affine(tmp_path))
    assert again["score.graf"] == measured["score.blur_other"] != measured["score.graf"]


def test_means_are_over_images_sequences_and_all(measured: dict[str, float]) -> None:
    for score in oxford_affine.SCORES:
        for name in ("graf", "blur_other"):
            by_image = [measured[f"{score}.{name}.{image}"] for image in range(2, 7)]
            assert measured[f"{score}.{name}"] == pytest.approx(np.mean(by_image))
        assert measured[f"{score}.viewpoint"] == measured[f"{score}.graf"]
        mean = (measured[f"{score}.graf"] + measured[f"{score}.blur_other"]) / 2
        assert measured[score] == pytest.approx(mean)


def literal_score(first: np.ndarray, second: np.ndarray, correct: np.ndarray) -> float:
    """Mikolajczyk's score of two images' descriptors: pairs by ascending distance, each region once."""
    distances, hits = cdist(first, second), 0
    for _ in range(min(distances.shape)):
        row, column = np.unravel_index(distances.argmin(), distances.shape)
        hits += correct[row, column]
        distances[row], distances[:, column] = np.inf, np.inf
    return hits / min(first.shape[0], second.shape[0])


@pytest.mark.parametrize("counts", [(40, 55), (560, 530), (40, 530)])
def test_scores_follow_their_definition(counts: tuple[int, int]) -> None:
    rng = np.random.default_rng(4)
    first, second = (rng.standard_normal((n, 8)).astype(np.float32) for n in counts)
    described = rng.random(counts) < 0.2
    common = np.zeros_like(described)
    common[one_to_one(rng.random(counts))] = True
    inside = tuple(rng.random(n) < share for n, share in zip(counts, (0.7, 0.6), strict=True))
    scores = oxford_affine.score_pair(first, second, Correspondences(described, common, inside))
    assert scores["score"] == literal_score(first, second, described)
    both_inside = np.ix_(*map(np.flatnonzero, inside))
    expected = literal_score(first[inside[0]], second[inside[1]], common[both_inside])
    assert scores["common"] == expected
    subset = first[:500], second[:500], described[:500, :500]
    assert scores["right500"] == pytest.approx(literal_score(*subset) * min(*counts, 500) / 500)


def test_bits_are_matched_by_hamming_distance() -> None:
    rng = np.random.default_rng(5)
    first, second = (rng.integers(0, 256, (30, 4)).astype(np.uint8) for _ in range(2))
    truth = Correspondences(
        rng.random((30, 30)) < 0.3, np.zeros((30, 30), bool), (np.ones(30, bool),) * 2
    )
    unpacked = [np.unpackbits(bits, axis=1).astype(float) for bits in (first, second)]
    distances = (unpacked[0][:, None] != unpacked[1]).sum(axis=2).astype(float)
    hits = truth.described[one_to_one(distances)].sum()
    assert oxford_affine.score_pair(first, second, truth)["score"] == hits / 30


def test_binary_descriptors_and_signs_are_measured(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "graf").symlink_to(folder / "graf")
    sequences = layout.read_oxford_affine(tmp_path)
    assert oxford_affine.measure(Subject(partial(describe, handcrafted.Orb())), sequences)["score"] > 30
    shifted = Subject(lambda patches: describe(handcrafted.Sift(), patches) - 0.05)
    signs = oxford_affine.measure(of_signs(shifted), sequences)
    assert 20 < signs["score"] <= 100


@pytest.fixture(scope="module")
def grey() -> np.ndarray:
    return cv2.resize(data.camera(), (240, 200), interpolation=cv2.INTER_AREA)


@pytest.mark.parametrize("nuisance", layout.NUISANCES)
def test_a_nuisances_homographies_carry_the_poster(grey: np.ndarray, nuisance: str) -> None:
    steps = generator.NUISANCES[nuisance]
    images, homographies = generator.nuisance_sequence(grey, steps, np.random.default_rng(0))
    assert {image.shape for image in images} == {grey.shape}
    assert len(homographies) == 5
    correlations = []
    for image, homography in zip(images[1:], homographies, strict=True):
        back = cv2.warpPerspective(image, np.linalg.inv(homography), grey.shape[::-1])
        corners = np.array([[0, 0], [239, 0], [0, 199], [239, 199]], float)
        mapped = transfer(homography, corners)
        visible = np.ones(grey.shape, np.uint8)
        visible = cv2.warpPerspective(
            cv2.warpPerspective(visible, homography, grey.shape[::-1]),
            np.linalg.inv(homography),
            grey.shape[::-1],
        )
        inside = visible.astype(bool)
        assert inside.mean() > 0.15
        assert np.isfinite(mapped).all()
        smooth = [cv2.GaussianBlur(picture, (0, 0), 5)[inside] for picture in (images[0], back)]
        correlations.append(np.corrcoef(*smooth)[0, 1])
    assert min(correlations) > 0.85


# Mikolajczyk's overlap error and the correct pairs by it, against pixels and brute force.

SHAPES = ((300, 400), (300, 400))


def discs(position: np.ndarray, scale: np.ndarray) -> Regions:
    return regions(
        Keypoints(np.asarray(position, float), np.asarray(scale, float), np.zeros(len(scale)))
    )


def by_pixels(first: np.ndarray, second: np.ndarray, factor: float) -> float:
    """Overlap error as in the released code: counts grid points in either ellipse and in both."""
    x, y = np.meshgrid(np.linspace(-80, 180, 1301), np.linspace(-80, 180, 1301))
    inside = []
    for ellipse in (first, second):
        shape = np.linalg.inv(factor**2 * ellipse[:, :2] @ ellipse[:, :2].T)
        dx, dy = x - ellipse[0, 2], y - ellipse[1, 2]
        inside.append(shape[0, 0] * dx**2 + 2 * shape[0, 1] * dx * dy + shape[1, 1] * dy**2 < 1)
    return 1 - (inside[0] & inside[1]).sum() / (inside[0] | inside[1]).sum()


def test_the_error_equals_that_of_counted_pixels() -> None:
    rng = np.random.default_rng(0)
    first, second = (np.zeros((12, 2, 3)) for _ in range(2))
    for ellipses in (first, second):
        ellipses[:, :, :2] = 5 * np.eye(2) + rng.normal(0, 1.5, (12, 2, 2))
        ellipses[:, :, 2] = 50 + rng.normal(0, 4, (12, 2))
    errors = overlap_error(first, second, np.full(12, 3.0))
    expected = [by_pixels(*pair, 3.0) for pair in zip(first, second, strict=True)]
    np.testing.assert_allclose(errors, expected, atol=0.01)


def test_the_closest_pairs_come_first_and_each_index_once() -> None:
    rng = np.random.default_rng(1)
    for n, m in ((1, 1), (7, 4), (30, 45)):
        # Few different values, so that many are equal.
        distances = rng.integers(0, 12, (n, m)).astype(float)
        distances[distances > 10] = np.inf
        remaining, expected = distances.copy(), set()
        while np.isfinite(remaining).any():
            row, column = np.unravel_index(remaining.argmin(), remaining.shape)
            expected.add((row, column))
            remaining[row], remaining[:, column] = np.inf, np.inf
        assert set(zip(*one_to_one(distances), strict=True)) == expected


def test_infinite_distances_give_no_pairs() -> None:
    for shape in ((0, 3), (3, 0), (2, 2)):
        assert [len(indices) for indices in one_to_one(np.full(shape, np.inf))] == [0, 0]


def test_ellipses_of_correct_pairs_overlap_enough() -> None:
    rng = np.random.default_rng(2)
    first = discs(rng.uniform(40, 260, (60, 2)), rng.uniform(2, 6, 60))
    homography = np.array([[0.9, 0.1, 12], [-0.08, 1.1, 5], [1e-4, -5e-5, 1]])
    scatter = first.position + rng.normal(0, 2, (60, 2))
    mapped = np.column_stack([scatter, np.ones(60)]) @ homography.T
    second = discs(mapped[:, :2] / mapped[:, 2:], first.scale * rng.uniform(0.8, 1.3, 60))
    actual = correspondences(first, second, homography, SHAPES)

    # Each pair alone: finite differences map the second's ellipse back.
    back = np.linalg.inv(homography)

    def to_first(points: np.ndarray) -> np.ndarray:
        moved = np.column_stack([points, np.ones(len(points))]) @ back.T
        return moved[:, :2] / moved[:, 2:]

    centre = to_first(second.position)
    step = 1e-4
    columns = [(to_first(second.position + step * direction) - centre) / step for direction in np.eye(2)]
    maps = np.stack([*columns, centre], axis=2)
    maps[:, :, :2] = maps[:, :, :2] @ second.maps[:, :, :2]
    for row in range(60):
        same = np.repeat(first.maps[row : row + 1], 60, axis=0)
        near = np.linalg.norm(centre - first.position[row], axis=1) < 4 * first.scale[row]
        error = overlap_error(same, maps, np.full(60, 3.0))
        clear = np.abs(error - LARGEST_ERROR) > 1e-3
        expected = (error < LARGEST_ERROR) & near
        assert (actual.described[row] == expected)[clear].all()
        error = overlap_error(same, maps, np.full(60, NORMALISED / first.scale[row]))
        assert (error[actual.common[row]] < LARGEST_COMMON_ERROR + 1e-3).all()
    assert actual.described.sum() > 20
    assert 20 < actual.common.sum() <= 60
    assert (actual.common.sum(axis=0) <= 1).all()
    assert (actual.common.sum(axis=1) <= 1).all()


def test_only_regions_wholly_inside_both_images_are_common() -> None:
    first = discs([[50, 50], [2, 50], [399, 150], [200, 150]], [3.0, 3.0, 3.0, 3.0])
    # The second image shows the scene 100 px farther to the right.
    homography = np.array([[1, 0, -100.0], [0, 1, 0], [0, 0, 1]])
    second = discs([[100, 150], [398, 20]], [3.0, 3.0])
    actual = correspondences(first, second, homography, SHAPES)
    assert actual.inside[0].tolist() == [False, False, False, True]
    assert actual.inside[1].tolist() == [True, False]
    assert actual.described[3].tolist() == [True, False]
    assert np.argwhere(actual.common).tolist() == [[3, 0]]
