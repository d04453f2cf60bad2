"""Homography sequences whose images contradict their homographies, and hard ones that do not."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import cv2
import numpy as np
import pytest
from small_files import write_oxford_sequence
from test_matching_keypoints import texture

from lib.data.hpatches.agreement import check_agreement
from lib.data.hpatches.building import build_hpatches
from lib.data.hpatches.homographies import HomographySequence, read_homography_sequence
from lib.data.sources import WholeImages
from lib.data.synthetic import ImagesSize, SequencesSize

SIDE = 300
# Five views of a plane, ever further from the first.
VIEWS = np.stack(
    [
        [[1 + 0.03 * k, 0.05 * k, -5 * k], [-0.06 * k, 1, 8 * k], [1e-4 * k, -5e-5 * k, 1]]
        for k in range(1, 6)
    ]
)


def warped(image: np.ndarray, homography: np.ndarray) -> np.ndarray:
    return cv2.warpPerspective(image, homography, image.shape[::-1], flags=cv2.INTER_CUBIC)


def written(folder: Path, images: list[np.ndarray], homographies: np.ndarray) -> HomographySequence:
    write_oxford_sequence(folder, images, homographies)
    return read_homography_sequence(folder)


@pytest.fixture(scope="module")
def images() -> list[np.ndarray]:
    first = texture(4, SIDE)
    return [first, *(warped(first, view) for view in VIEWS)]


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory, images: list[np.ndarray]) -> HomographySequence:
    return written(tmp_path_factory.mktemp("plane") / "viewpoint_plane", images, VIEWS)


def test_images_that_agree_with_their_homographies_pass(plane: HomographySequence) -> None:
    check_agreement(plane)


def resized(images: list[np.ndarray], factors: list[float]) -> list[np.ndarray]:
    return [
        cv2.resize(image, None, fx=factor, fy=factor, interpolation=cv2.INTER_AREA)
        for image, factor in zip(images, factors, strict=True)
    ]


@pytest.mark.parametrize(
    ("factors", "reason"),
    [
        ([0.5] * 6, r"All images were resized to about 0\.50 times"),
        ([0.7, 1, 1, 1, 1, 1], r"The first image was resized to about 0\.70 times"),
        (
            [1, 0.6, 0.6, 0.6, 0.6, 0.6],
            r"Not the first image, but this was resized to about 0\.60 times",
        ),
        (
            [1, 1, 1, 0.8, 1, 1],
            r"img4\.png contradicts .* Not the first image, but this was resized to about 0\.80 times",
        ),
    ],
)
def test_images_of_another_size_are_refused_with_it(
    tmp_path: Path, images: list[np.ndarray], factors: list[float], reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        check_agreement(written(tmp_path / "plane", resized(images, factors), VIEWS))


def cropped(image: np.ndarray, pixels: int) -> np.ndarray:
    return image[pixels:, pixels:]


def narrowed(image: np.ndarray) -> np.ndarray:
    return cv2.resize(image, None, fx=0.89, fy=1, interpolation=cv2.INTER_AREA)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (partial(cropped, pixels=20), "cropped by about 20 px on the left and 20 px at the top"),
        (partial(cropped, pixels=8), "cropped by about 8 px on the left and 8 px at the top"),
        (narrowed, r"about 0\.89 times the width and 1\.00 times the height"),
        (lambda image: narrowed(cropped(image, 20)), r"about 0\.89 times the width .* and cropped by"),
    ],
)
def test_images_that_were_cropped_or_narrowed_are_refused_although_matches_stay_near(
    tmp_path: Path, images: list[np.ndarray], change: Callable[[np.ndarray], np.ndarray], reason: str
) -> None:
    sequence = written(tmp_path / "plane", [change(image) for image in images], VIEWS)
    with pytest.raises(ValueError, match=f"All images were .*{reason}"):
        check_agreement(sequence)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda views: views.transpose(0, 2, 1), "Transposes agree"),
        (lambda views: views[:, [1, 0, 2]][:, :, [1, 0, 2]], "x and y swapped"),
        (np.linalg.inv, "the homographies lead to the first image"),
        (lambda views: views[[4, 1, 2, 3, 0]], "Those of other images agree: put the files in order"),
        (lambda views: views @ np.diag([-1, 1, 1]), "No resize, crop or order explains it"),
    ],
)
def test_homographies_of_other_images_are_refused_with_the_reason(
    plane: HomographySequence, change: Callable[[np.ndarray], np.ndarray], reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        check_agreement(replace(plane, homographies=change(VIEWS)))


def test_the_message_counts_the_matches_for_and_against(plane: HomographySequence) -> None:
    message = (
        r"viewpoint_plane: img2\.png contradicts its homography\. "
        r"Of its (\d+) matches with img1\.png, (\d+) agree with it and (\d+) with another one"
    )
    with pytest.raises(ValueError, match=message) as refused:
        check_agreement(replace(plane, homographies=np.linalg.inv(VIEWS)))
    matches, given, fitted = map(int, re.search(message, str(refused.value)).groups())
    assert matches >= fitted > 20
    assert given < fitted / 3


def test_a_homography_that_is_a_few_pixels_off_passes(plane: HomographySequence) -> None:
    """Homographies of real sequences err by so much: boat's to its last image, by up to 8 px."""
    check_agreement(replace(plane, homographies=np.array([[1, 0, 3], [0, 1, -2], [0, 0, 1]]) @ VIEWS))


@pytest.mark.parametrize("seed", range(3))
def test_homographies_that_are_each_inaccurate_in_their_own_way_pass(
    plane: HomographySequence, seed: int
) -> None:
    """They are off by about as much as those of images that lost 8 px."""
    rng = np.random.default_rng(seed)
    corners = np.array([[0, 0], [SIDE, 0], [SIDE, SIDE], [0, SIDE]], np.float32)
    moved = [corners + rng.uniform(-4, 4, (4, 2)).astype(np.float32) for _ in VIEWS]
    errors = np.stack([cv2.getPerspectiveTransform(corners, other) for other in moved])
    check_agreement(replace(plane, homographies=errors @ VIEWS))


def test_images_that_share_too_little_to_tell_pass(tmp_path: Path, images: list[np.ndarray]) -> None:
    rng = np.random.default_rng(0)
    faint = np.clip(127 + images[3] / 100 + rng.normal(0, 6, images[3].shape), 0, 255)
    hard = [
        cv2.GaussianBlur(images[1], (0, 0), 9),
        texture(5, SIDE),
        faint.astype(np.uint8),
        np.full_like(images[0], 128),
        np.zeros((1, 1), np.uint8),
    ]
    check_agreement(written(tmp_path / "hard", [images[0], *hard], VIEWS[::-1]))


def test_large_images_are_compared_at_their_own_size(tmp_path: Path, images: list[np.ndarray]) -> None:
    """They are reduced before they are matched, but homographies are in px of the stored images."""
    large = [cv2.resize(image, None, fx=5, fy=4) for image in images]
    grow = np.diag([5, 4, 1])
    agreeing = grow @ VIEWS @ np.linalg.inv(grow)
    check_agreement(written(tmp_path / "large", large, agreeing))
    with pytest.raises(ValueError, match="contradicts"):
        check_agreement(written(tmp_path / "wrong", large, VIEWS))


def test_the_answer_does_not_depend_on_threads_or_on_other_draws(plane: HomographySequence) -> None:
    messages, before = set(), cv2.getNumThreads()
    try:
        for threads in (1, 3):
            cv2.setNumThreads(threads)
            cv2.setRNGSeed(threads)
            with pytest.raises(ValueError, match="contradicts") as refused:
                check_agreement(replace(plane, homographies=VIEWS[[4, 1, 2, 3, 0]]))
            messages.add(str(refused.value))
    finally:
        cv2.setNumThreads(before)
    assert len(messages) == 1


def test_given_sequences_are_checked_before_patches_are_cut_and_before_they_are_measured_on(
    tmp_path: Path, plane: HomographySequence, images: list[np.ndarray]
) -> None:
    released = tmp_path / "real" / "oxford_affine"
    released.mkdir(parents=True)
    shutil.copytree(plane.folder, released / "viewpoint_right")
    sets = WholeImages("real", tmp_path / "data", ImagesSize(), real=tmp_path / "real")
    assert [sequence.folder.name for sequence in sets.load("real-oxford_affine")] == ["viewpoint_right"]
    wrong = written(released / "viewpoint_wrong", resized(images, [0.5] * 6), VIEWS)
    with pytest.raises(ValueError, match=r"viewpoint_wrong: .* contradicts its homography"):
        sets.load("real-oxford_affine")
    (tmp_path / "built").mkdir()
    with pytest.raises(ValueError, match=r"viewpoint_wrong: .* contradicts its homography"):
        build_hpatches(tmp_path / "built", [plane.folder, wrong.folder], SequencesSize())
    assert not list((tmp_path / "built").iterdir())
