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
from lib.benchmarks.oxford_affine import Correspondences, one_to_one
from lib.benchmarks.signs import of_signs
from lib.benchmarks.subject import Subject, describe
from lib.data import whole_images as layout
from lib.data.synthetic import posters
from lib.data.synthetic.allotment import packaged_photographs
from lib.features.homographies import transfer
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
    steps = posters.STEPS[nuisance]
    images, homographies = posters.sequence(grey, steps, np.random.default_rng(0))
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


def test_the_embedded_sets_photographs_train_nothing() -> None:
    allotment = packaged_photographs()
    assert [of.name for of in posters.photographs(allotment)] == ["page", "text", "rocket"]
