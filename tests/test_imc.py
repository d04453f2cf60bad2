"""The image matching challenge: its layout, poses of pairs and of subsets, and the mAA."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import cv2
import h5py
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from known_cameras import INTRINSICS, cameras, points, project
from kornia.feature.keynet import KeyNet

from lib.benchmarks import imc, sfm
from lib.benchmarks.subject import Subject, describe
from lib.data import whole_images as layout
from lib.data.cameras import Camera
from lib.data.synthetic.imaging import axis_rotation
from lib.features.detectors import Detector, Regions, detect
from lib.models import handcrafted

VIEWS = cameras(4)
GREY = np.full((360, 480), 90, np.uint8)
PAIRS = ((1, 0), (2, 0), (2, 1), (3, 1), (3, 2))
BAGS = {"3bag_000": (0, 1, 2), "3bag_001": (1, 2, 3), "4bag_000": (0, 1, 2, 3)}
NAMES = [f"{number:08}_51145" for number in range(4)]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The folder of a scene's files, in the challenge's layout."""
    folder = tmp_path / "scene" / "set_100"
    for part in ("images", "calibration", "new-vis-pairs", "sub_set"):
        (folder / part).mkdir(parents=True)
    for name, camera in zip(NAMES, VIEWS, strict=True):
        cv2.imwrite(str(folder / "images" / f"{name}.jpg"), GREY)
        with h5py.File(folder / "calibration" / f"calibration_{name}.h5", "w") as file:
            file["K"], file["R"], file["T"] = camera.intrinsics, camera.rotation, camera.translation
    keys = [f"{NAMES[first]}-{NAMES[second]}" for first, second in PAIRS]
    np.save(folder / "new-vis-pairs" / "keys-th-0.1.npy", keys)
    for file, bag in BAGS.items():
        lines = "".join(f"images/{NAMES[view]}.jpg\n" for view in bag)
        (folder / "sub_set" / f"{file}.txt").write_text(lines)
    return folder


def read(data: Path) -> layout.ChallengeScene:
    return layout.read_imc(data.parents[1])[0]


def test_the_challenges_files_are_read(data: Path) -> None:
    scene = read(data)
    assert (scene.name, list(scene.images), list(scene.cameras)) == ("scene", NAMES, NAMES)
    for camera, read_camera in zip(VIEWS, scene.cameras.values(), strict=True):
        for name, value in vars(camera).items():
            np.testing.assert_array_equal(getattr(read_camera, name), value)
    assert scene.bags == tuple(tuple(NAMES[view] for view in bag) for bag in BAGS.values())
    assert scene.pairs == tuple((NAMES[first], NAMES[second]) for first, second in PAIRS)


def write_intrinsics(data: Path, name: str, matrix: np.ndarray) -> None:
    with h5py.File(data / "calibration" / f"calibration_{name}.h5", "r+") as file:
        file["K"][...] = matrix


def test_a_camera_of_a_photograph_of_another_size_is_refused_by_name(data: Path) -> None:
    write_intrinsics(data, NAMES[1], np.diag([2, 2, 1]) @ INTRINSICS)
    with pytest.raises(ValueError, match=rf"{NAMES[1]}\.h5 is of .* 959 by 719 px, not \(480, 360\)"):
        read(data)


def test_a_camera_with_skew_is_refused_by_name(data: Path) -> None:
    skewed = INTRINSICS.copy()
    skewed[0, 1] = 100
    write_intrinsics(data, NAMES[1], skewed)
    with pytest.raises(ValueError, match=rf"{NAMES[1]}\.h5 states a skew of 100"):
        read(data)


@pytest.mark.parametrize(
    ("added", "message"),
    [
        ((1, 0), f"names {NAMES[0]}-{NAMES[1]} 2 times"),
        ((0, 1), f"names {NAMES[0]}-{NAMES[1]} 2 times"),
        ((2, 2), f"pairs {NAMES[2]} with itself"),
    ],
)
def test_a_pair_that_repeats_or_is_of_one_photograph_is_refused_by_name(
    data: Path, added: tuple[int, int], message: str
) -> None:
    keys = [f"{NAMES[first]}-{NAMES[second]}" for first, second in (*PAIRS, added)]
    np.save(data / "new-vis-pairs" / "keys-th-0.1.npy", keys)
    with pytest.raises(ValueError, match=rf"keys-th-0\.1\.npy {message}"):
        read(data)


def test_a_subset_that_names_a_photograph_twice_is_refused_by_name(data: Path) -> None:
    with (data / "sub_set" / "3bag_001.txt").open("a") as file:
        file.write(f"images/{NAMES[1]}.jpg\n")
    with pytest.raises(ValueError, match=rf"3bag_001\.txt names {NAMES[1]} 2 times"):
        read(data)


def about_z(degrees: float) -> np.ndarray:
    cosine, sine = np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees))
    return np.array([[cosine, -sine, 0], [sine, cosine, 0], [0, 0, 1]])


def tilted_from_z(degrees: float) -> np.ndarray:
    return np.array([np.sin(np.deg2rad(degrees)), 0, np.cos(np.deg2rad(degrees))])


def test_the_maa_of_known_poses_is_the_one_computed_by_hand() -> None:
    # The first camera is turned by 30 degrees and the second by 50, so by 20 relative to the first. That
    # carries the first's translation (1, 0, 0) to `about_z(20)[:, 0]`: the relative one is (0, 0, 1).
    first = Camera(INTRINSICS, about_z(30), np.array([1.0, 0, 0]), 480, 360)
    second = Camera(INTRINSICS, about_z(50), about_z(20)[:, 0] + [0, 0, 1], 480, 360)
    # Poses with known errors in rotation and translation, whose length and sign are undetermined.
    poses = [
        (about_z(20.5), 3 * tilted_from_z(0.2)),
        (about_z(21), -tilted_from_z(3.2)),
        (about_z(10.5), 0.1 * tilted_from_z(-2)),
        (about_z(20 + 40), tilted_from_z(1)),
    ]
    errors = [imc.pose_error(imc.relative_pose(first, second), pose) for pose in poses]
    np.testing.assert_allclose(errors, [0.5, 3.2, 9.5, 40], atol=1e-5)
    # The larger errors are 0.5, 3.2, 9.5 and 40: (3 · 1/4 + 6 · 2/4 + 3/4) / 10.
    assert imc.mean_average_accuracy(errors) == pytest.approx(0.45)


@given(st.floats(0.01, 175), st.floats(0.01, 89), st.floats(0.1, 10))
def test_pose_errors_are_the_known_angles(turned: float, shifted: float, scale: float) -> None:
    axis, direction = np.array([1.0, -2, 0.5]), np.array([0, 0, 1.0])
    rotation = axis_rotation(np.array([0, 1, 0]), 0.7)
    pose = rotation, direction
    rotated = axis_rotation(axis, np.deg2rad(turned)) @ rotation
    tilted = axis_rotation(np.array([1, 0, 0]), np.deg2rad(shifted)) @ direction
    for sign in (1, -1):
        errors = imc.pose_error(pose, (rotated, sign * scale * tilted))
        assert errors == pytest.approx(max(turned, shifted), rel=1e-6)


def test_two_errors_of_a_pair_are_refused() -> None:
    with pytest.raises(ValueError, match=r"one error a pair, the larger of two, got shape \(2, 2\)"):
        imc.mean_average_accuracy([[2.0, 7.5], [6.0, 30.0]])


def test_a_translation_without_a_direction_is_no_estimate_of_one() -> None:
    pose = np.eye(3), np.array([1.0, 0, 0])
    assert imc.pose_error(pose, (np.eye(3), np.zeros(3))) == 90
    assert imc.pose_error((np.eye(3), np.zeros(3)), pose) == 90
    assert np.isnan(imc.pose_error(pose, (np.eye(3), np.full(3, np.nan))))


def test_a_relative_pose_carries_one_cameras_points_to_the_other() -> None:
    rotation, translation = imc.relative_pose(VIEWS[0], VIEWS[3])
    first, second = (points(5) @ VIEWS[view].rotation.T + VIEWS[view].translation for view in (0, 3))
    np.testing.assert_allclose(first @ rotation.T + translation, second)


def matched(outliers: int) -> tuple[np.ndarray, np.ndarray]:
    world, rng = points(100), np.random.default_rng(1)
    inliers = [project(VIEWS[view], world) for view in (0, 2)]
    noise = [rng.uniform(0, 1, (outliers, 2)) * (480, 360) for _ in inliers]
    return tuple(np.concatenate(sides) for sides in zip(inliers, noise, strict=True))


@pytest.mark.parametrize("degensac", [True, False])
def test_stereo_finds_the_pose_among_wrong_matches(
    monkeypatch: pytest.MonkeyPatch, degensac: bool
) -> None:
    if degensac:
        pytest.importorskip("pydegensac")
    monkeypatch.setattr(imc, "DEGENSAC", degensac)
    error, inliers = imc.stereo(VIEWS[0], VIEWS[2], *matched(60))
    assert error < 0.2
    assert 95 <= inliers <= 115
    repeated = imc.stereo(VIEWS[0], VIEWS[2], *matched(60))
    assert repeated == (error, inliers)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("depth", [20.0, 2000.0])
def test_points_too_far_away_to_tell_four_poses_apart_are_told(depth: float) -> None:
    draw = np.random.default_rng(0)
    first = VIEWS[0]
    second = replace(first, translation=first.translation + np.array([1.0, 0, 0]))
    directions = np.column_stack([draw.uniform(-0.3, 0.3, (100, 2)), np.ones(100)])
    seen = directions * draw.uniform(depth, 2 * depth, (100, 1))
    world = (seen - first.translation) @ first.rotation
    ends = project(first, world), project(second, world)
    if depth < 50:
        assert imc.stereo(first, second, *ends)[0] < 5
    else:
        with pytest.raises(UserWarning, match="one of four by chance"):
            imc.stereo(first, second, *ends)


def test_a_subset_without_a_model_counts_as_zero(data: Path) -> None:
    numbers = imc.measure(
        Subject(partial(describe, handcrafted.Sift())), layout.read_imc(data.parents[1])
    )
    assert numbers["stereo"] == numbers["multiview"] == numbers["registered"] == 0
    assert numbers["stereo.scene"] == numbers["average"] == numbers["matches"] == 0


def textured(data: Path) -> list[layout.ChallengeScene]:
    """Write textured photographs, of a third of the size, and return the scenes."""
    rng = np.random.default_rng(0)
    for path in (data / "images").glob("*.jpg"):
        noise = cv2.GaussianBlur(rng.uniform(0, 255, (120, 160)), None, 2.0)
        cv2.imwrite(str(path), cv2.normalize(noise, None, 0, 255, cv2.NORM_MINMAX))
        write_intrinsics(data, path.stem, np.diag([1 / 3, 1 / 3, 1]) @ INTRINSICS)
    return layout.read_imc(data.parents[1])


def test_keynet_detects_keypoints_where_its_checkpoint_is_beside_the_scenes(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    detectors = []

    def recording_detect(image: np.ndarray, setting: Detector) -> Regions:
        detectors.append(setting)
        return detect(image, setting)

    monkeypatch.setattr(sfm, "detect", recording_detect)
    subject = Subject(partial(describe, handcrafted.Sift()))
    assert imc.measure(subject, textured(data))["keynet"] == 0
    torch.save(KeyNet(pretrained=False).state_dict(), data.parents[1] / "keynet.pth")
    scenes = layout.read_imc(data.parents[1])
    assert len(scenes) == 1
    assert imc.measure(subject, scenes)["keynet"] == 1
    assert [detector.kind for detector in detectors] == ["dog"] * 4 + ["keynet"] * 4
    assert {detector.most for detector in detectors} == {2048}


def test_numbers_are_means_of_pairs_and_subsets(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    errors, scores = rng.uniform(0, 12, len(PAIRS)), rng.random(3)
    stereo_errors, accuracies = iter(errors), iter(scores)
    monkeypatch.setattr(imc, "stereo", lambda *_: (next(stereo_errors), 9))
    monkeypatch.setattr(imc, "multiview", lambda *_: (next(accuracies), 0.5))
    numbers = imc.measure(
        Subject(partial(describe, handcrafted.Sift())), layout.read_imc(data.parents[1])
    )
    below = [[error <= degrees for degrees in range(1, 11)] for error in errors]
    assert numbers["stereo"] == pytest.approx(100 * np.mean(below))
    assert (numbers["inliers"], numbers["registered"]) == (9, 50)
    # Two subsets have three photographs, one has four.
    assert numbers["multiview"] == pytest.approx(50 * (np.mean(scores[:2]) + scores[2]))


def test_a_subsets_poses_are_recovered_without_intrinsics(data: Path) -> None:
    scene, world = read(data), points(200)
    keypoints = {name: project(camera, world) for name, camera in zip(scene.images, VIEWS, strict=True)}
    indices = np.repeat(np.arange(200)[:, None], 2, axis=1)
    matches = {(a, b): indices for a in keypoints for b in keypoints if a < b}
    accuracy, registered = imc.multiview(scene, scene.bags[2], keypoints, matches)
    assert accuracy > 0.9
    assert registered == 1
