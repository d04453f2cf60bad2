"""Structure from motion: ETH's layout, known walls, and a model's measurements."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from copy import deepcopy
from dataclasses import replace
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np
import pycolmap
import pytest
from known_cameras import cameras, points, project
from known_walls import Arrangement, plan_wall, render_views, write_posed
from PIL import Image
from test_matching_keypoints import texture

from lib.benchmarks import sfm
from lib.benchmarks.sfm import ImageSubject, features, sparse_model
from lib.benchmarks.subject import Subject, describe
from lib.data.colmap import posed_model, write_database
from lib.data.images import read_grey
from lib.data.synthetic.imaging import axis_rotation
from lib.data.whole_images import read_eth
from lib.features.detectors import detect
from lib.models import handcrafted

TAKEN = cameras(4)
WORLD = points(60)
GREY = np.full((360, 480), 90, np.uint8)
# Tables as in COLMAP 3.3.
_MATCHED = "(pair_id INTEGER PRIMARY KEY, rows INTEGER, cols INTEGER, data BLOB"
OF_2017 = f"""
CREATE TABLE cameras (camera_id INTEGER PRIMARY KEY, model INTEGER, width INTEGER, height INTEGER,
    params BLOB, prior_focal_length INTEGER);
CREATE TABLE images (image_id INTEGER PRIMARY KEY, name TEXT, camera_id INTEGER, prior_qw REAL,
    prior_qx REAL, prior_qy REAL, prior_qz REAL, prior_tx REAL, prior_ty REAL, prior_tz REAL);
CREATE TABLE keypoints (image_id INTEGER PRIMARY KEY, rows INTEGER, cols INTEGER, data BLOB);
CREATE TABLE descriptors (image_id INTEGER PRIMARY KEY, rows INTEGER, cols INTEGER, data BLOB);
CREATE TABLE matches {_MATCHED});
CREATE TABLE inlier_matches {_MATCHED}, config INTEGER);
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_posed(tmp_path / "scene", [GREY] * len(TAKEN), TAKEN)
    return tmp_path


def test_a_scene_is_read_by_its_camera_files(folder: Path) -> None:
    (scene,) = read_eth(folder)
    assert scene.name == "scene"
    assert list(scene.images) == [f"{number:04}.png" for number in range(1, 5)]
    for number, (camera, name) in enumerate(zip(TAKEN, scene.images, strict=True), 1):
        pose, lens = scene.known.image(number).cam_from_world(), scene.cameras[name]
        np.testing.assert_allclose(pose.rotation.matrix(), camera.rotation, atol=1e-12)
        np.testing.assert_allclose(pose.translation, camera.translation, atol=1e-12)
        assert (lens.camera_id, lens.has_prior_focal_length) == (1, True)
        assert (lens.width, lens.height) == (480, 360)
        # Half a pixel farther, where COLMAP's first pixel ends.
        np.testing.assert_allclose(lens.params, [576, 576, 240, 180])
    (folder / "scene" / "images" / "0003.png").unlink()
    with pytest.raises(FileNotFoundError, match=r"0003\.png"):
        read_eth(folder)


def test_a_database_of_the_benchmarks_time_gives_the_cameras(folder: Path) -> None:
    database = folder / "scene" / "database.db"
    with contextlib.closing(sqlite3.connect(database)) as opened, opened:
        opened.executescript(OF_2017)
        params = np.array([576.0, 240, 180, 0.01])
        opened.execute("INSERT INTO cameras VALUES (7, 2, 480, 360, ?, 0)", [params.tobytes()])
        for number in (2, 1):
            row = number, f"{number:04}.png"
            opened.execute("INSERT INTO images (image_id, name, camera_id) VALUES (?, ?, 7)", row)
    content = database.read_bytes()
    (scene,) = read_eth(folder)
    assert database.read_bytes() == content
    assert list(scene.images) == ["0001.png", "0002.png"]
    assert sorted(image.name for image in scene.known.images.values()) == [*scene.images]
    lens = scene.cameras["0002.png"]
    assert (lens.camera_id, lens.model.name) == (7, "SIMPLE_RADIAL")
    assert lens.params.tolist() == params.tolist()
    assert not lens.has_prior_focal_length
    shutil.rmtree(folder / "scene" / "cameras")
    (scene,) = read_eth(folder)
    assert (len(scene.cameras), scene.known) == (2, None)


def test_a_database_of_images_of_another_size_is_refused_by_the_images_name(folder: Path) -> None:
    camera = pycolmap.Camera(
        camera_id=1, model="PINHOLE", width=960, height=720, params=[1152, 1152, 480, 360]
    )
    write_database(folder / "scene" / "database.db", {"0001.png": camera})
    with pytest.raises(ValueError, match=r"0001\.png is \(480, 360\) px and fits no camera of \(960"):
        read_eth(folder)


@pytest.fixture(scope="module")
def model() -> pycolmap.Reconstruction:
    """A model of exact projections; the first image lacks the last 20 points."""
    keypoints = {f"{n}": project(camera, WORLD) for n, camera in enumerate(TAKEN)}
    lens = posed_model({"0": TAKEN[0]}).cameras[1]
    lenses = dict.fromkeys(keypoints, deepcopy(lens))
    matches = {
        pair: np.repeat(np.arange(40 if "0" in pair else 60)[:, None], 2, axis=1)
        for pair in combinations(keypoints, 2)
    }
    return sparse_model(keypoints, matches, lenses)


def test_a_models_statistics_are_those_of_its_points(model: pycolmap.Reconstruction) -> None:
    numbers = sfm.statistics(model)
    assert numbers["images"] == 4
    assert numbers["sparse_points"] == 60
    assert numbers["observations"] == 60 * 4 - 20
    assert numbers["track_length"] == pytest.approx((60 * 4 - 20) / 60)
    assert numbers["reprojection_error"] < 1e-3


def poses(*turned: int) -> pycolmap.Reconstruction:
    """Poses of `TAKEN`, some of them ten degrees off and a unit away."""
    off = axis_rotation(np.array([0, 1, 0]), np.deg2rad(10))
    known = {}
    for number, camera in enumerate(TAKEN):
        rotation = camera.rotation @ off if number in turned else camera.rotation
        centre = camera.centre + np.array([0, number in turned, 0])
        known[f"{number}"] = replace(camera, rotation=rotation, translation=-rotation @ centre)
    return posed_model(known)


def test_the_cameras_of_an_exact_model_are_at_their_known_poses(model: pycolmap.Reconstruction) -> None:
    errors = sfm.pose_errors(deepcopy(model), poses())
    assert errors["rotation_error"] < 0.01
    assert errors["position_error"] < 0.01


def test_one_wrong_camera_does_not_decide_how_a_model_is_aligned(
    model: pycolmap.Reconstruction,
) -> None:
    errors = sfm.pose_errors(deepcopy(model), poses(3))
    # The median of 0, 0, 0 and 10 degrees.
    assert errors["rotation_error"] < 0.01


def test_cameras_in_line_with_true_rotations_have_no_rotation_error() -> None:
    """How a model is turned about the line is nothing that its centres could tell."""
    draw = np.random.default_rng(0)
    line = np.column_stack([np.linspace(0, 10, 10), *draw.normal(0, 0.01, (2, 10))])
    turns = [axis_rotation(np.array([0, 1, 0]), angle) for angle in draw.normal(0, 0.1, 10)]

    def laid(centres: np.ndarray) -> pycolmap.Reconstruction:
        both = zip(turns, centres, strict=True)
        return posed_model(
            {
                f"{number}": replace(TAKEN[0], rotation=turn, translation=-turn @ centre)
                for number, (turn, centre) in enumerate(both)
            }
        )

    errors = sfm.pose_errors(laid(line + draw.normal(0, 0.01, line.shape)), laid(line))
    assert errors["rotation_error"] < 1e-3
    assert 0 < errors["position_error"] < 1


def test_images_without_keypoints_give_no_model(folder: Path) -> None:
    blank = Subject(partial(describe, handcrafted.Sift()))
    numbers = sfm.measure(blank, read_eth(folder))
    assert numbers["keypoints.scene"] == numbers["images.scene"] == numbers["sparse_points"] == 0
    assert "track_length" not in numbers


@pytest.fixture(scope="module")
def easy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four nearly frontal views of a wall."""
    textures = [texture(seed, 200) for seed in range(2)]
    frontal = Arrangement(np.deg2rad(100), 4, (320, 240), np.deg2rad(12), 0.0)
    site = plan_wall(textures, frontal, np.random.default_rng(1))
    plain = [replace(conditions, blur=0.0, noise=2.0, jpeg_quality=95) for conditions in site.photometry]
    site = replace(site, photometry=tuple(plain))
    root = tmp_path_factory.mktemp("easy")
    write_posed(root / "wall", render_views(site, textures), site.cameras)
    return root


def test_an_image_that_is_replaced_has_its_own_keypoints(tmp_path: Path) -> None:
    path = tmp_path / "0.png"
    for seed in (1, 2):
        Image.fromarray(texture(seed)).save(path)
        expected = detect(texture(seed), sfm.DETECTOR)
        np.testing.assert_array_equal(sfm.regions(path, sfm.DETECTOR).maps, expected.maps)


def test_nearly_frontal_views_are_reconstructed_correctly(easy: Path) -> None:
    scenes = read_eth(easy)
    numbers = sfm.measure(Subject(partial(describe, handcrafted.Sift())), scenes)
    assert numbers["images.wall"] == numbers["images"] == 4
    assert numbers["sparse_points"] > 50
    assert 2 <= numbers["track_length"] <= 4
    assert 0 < numbers["reprojection_error"] < 1
    assert numbers["rotation_error"] < 1
    assert numbers["position_error"] < 10


def test_colmaps_sift_is_described_at_its_own_keypoints(easy: Path) -> None:
    (scene,) = read_eth(easy)
    model = handcrafted.ColmapSift()
    subject = ImageSubject(model, of_image=model.of_image)
    for path in scene.images.values():
        ours, detected = features(subject, path, sfm.DETECTOR), detect(read_grey(path), sfm.DETECTOR)
        np.testing.assert_array_equal(ours.maps, detected.maps)
        assert ours.descriptors.shape == (len(ours), 128)
        np.testing.assert_allclose(np.linalg.norm(ours.descriptors, axis=1), 1, atol=0.02)
        assert ours.size == (320, 240)
    numbers = sfm.measure(subject, read_eth(easy))
    assert numbers["images"] == 4
    assert numbers["position_error"] < 10
    with pytest.raises(TypeError, match="measure it by sfm alone"):
        model(np.zeros((1, 64, 64), np.uint8))
