"""Structure from motion: ETH's layout, embedded scenes, and what is measured of a model."""

from __future__ import annotations

import shutil
from copy import deepcopy
from dataclasses import replace
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np
import pycolmap
import pytest
from known_cameras import cameras, points, project
from test_matching_keypoints import texture

from lib.benchmarks import sfm
from lib.benchmarks.image_subject import ImageSubject
from lib.benchmarks.sparse_models import features, sparse_model
from lib.benchmarks.subject import Subject, describe
from lib.data import eth
from lib.data.colmap import posed_model
from lib.data.images import read_grey
from lib.data.synthetic.geometry import axis_rotation
from lib.data.synthetic.scenes import render_view
from lib.data.synthetic.walls import plan_wall
from lib.data.views import View
from lib.features.detectors import detect
from lib.models import colmap_sift, sift

TAKEN = cameras(4)
WORLD = points(60)
GREY = np.full((360, 480), 90, np.uint8)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    eth.write_scene(tmp_path / "scene", [GREY] * len(TAKEN), TAKEN)
    return tmp_path


def test_a_scene_is_read_as_it_was_written(folder: Path) -> None:
    (scene,) = eth.read("set", folder).scenes
    assert scene.name == "scene"
    assert list(scene.images) == [f"{number:04}.png" for number in range(1, 5)]
    for camera, name in zip(TAKEN, scene.images, strict=True):
        pose, lens = scene.poses[name], scene.cameras[name]
        np.testing.assert_allclose(pose.rotation, camera.rotation, atol=1e-12)
        np.testing.assert_allclose(pose.translation, camera.translation, atol=1e-12)
        np.testing.assert_allclose(pose.intrinsics, camera.intrinsics, atol=1e-9)
        np.testing.assert_allclose(pose.centre, camera.centre, atol=1e-12)
        assert (lens.width, lens.height, lens.has_prior_focal_length) == (480, 360, True)
        # Half a pixel farther, where COLMAP's first pixel ends.
        np.testing.assert_allclose(lens.params, [576, 576, 240, 180])


def test_a_scene_that_lacks_something_is_refused_by_name(folder: Path) -> None:
    (folder / "scene" / "images" / "0003.png").unlink()
    with pytest.raises(FileNotFoundError, match=r"database\.db names 0003\.png, which is not in"):
        eth.read("set", folder)
    (folder / "scene" / "database.db").unlink()
    with pytest.raises(FileNotFoundError, match=r"holds no scene: images with database\.db or"):
        eth.read("set", folder)


CAMERA_FILE = """576 0 240
0 576 180
0 0 1
0 0 0
{rotation}
{centre}
480 360
"""


def write_camera_files(scene: Path) -> None:
    """Poses of `TAKEN` as Strecha's files have them: rotations from camera to world, and centres."""
    (scene / "cameras").mkdir()
    for number, camera in enumerate(TAKEN, 1):
        rotation = "\n".join(" ".join(map(repr, row)) for row in camera.rotation.T.tolist())
        centre = " ".join(map(repr, camera.centre.tolist()))
        path = scene / "cameras" / f"{number:04}.png.camera"
        path.write_text(CAMERA_FILE.format(rotation=rotation, centre=centre))


@pytest.mark.parametrize("with_database", [True, False])
def test_camera_files_say_what_a_database_and_a_model_do(folder: Path, with_database: bool) -> None:
    (expected,) = eth.read("set", folder).scenes
    shutil.rmtree(folder / "scene" / "sparse")
    write_camera_files(folder / "scene")
    if not with_database:
        (folder / "scene" / "database.db").unlink()
    (scene,) = eth.read("set", folder).scenes
    assert scene.images == expected.images
    for name, lens in scene.cameras.items():
        known = expected.cameras[name]
        assert (lens.camera_id, lens.model, lens.width, lens.height) == (1, known.model, 480, 360)
        np.testing.assert_allclose(lens.params, known.params)
        pose = scene.poses[name]
        np.testing.assert_allclose(pose.intrinsics, expected.poses[name].intrinsics, atol=1e-9)
        np.testing.assert_allclose(pose.rotation, expected.poses[name].rotation, atol=1e-12)
        np.testing.assert_allclose(pose.translation, expected.poses[name].translation, atol=1e-12)


def test_camera_files_that_fit_no_image_or_not_all_are_refused(folder: Path) -> None:
    write_camera_files(folder / "scene")
    (folder / "scene" / "cameras" / "0002.png.camera").unlink()
    with pytest.raises(ValueError, match=r"scene has no pose of 0002\.png"):
        eth.read("set", folder)
    (folder / "scene" / "database.db").unlink()
    (folder / "scene" / "images" / "0003.png").unlink()
    with pytest.raises(FileNotFoundError, match=r"0003\.png"):
        eth.read("set", folder)


def test_poses_of_all_images_or_of_none(folder: Path) -> None:
    listed = folder / "scene" / "sparse" / "images.txt"
    lines = listed.read_text().splitlines(keepends=True)
    last = next(place for place, line in enumerate(lines) if "0004.png" in line)
    listed.write_text("".join(lines[:last]))
    with pytest.raises(ValueError, match=r"scene has no pose of 0004\.png"):
        eth.read("set", folder)


@pytest.mark.parametrize("form", ["text", "binary"])
def test_a_quaternion_that_is_no_rotations_is_refused(folder: Path, form: str) -> None:
    sparse = folder / "scene" / "sparse"
    model = pycolmap.Reconstruction(sparse)
    pose = model.frame(2).rig_from_world
    pose.rotation = pycolmap.Rotation3d(2 * pose.rotation.quat)
    model.frame(2).rig_from_world = pose
    for file in sparse.iterdir():
        file.unlink()
    (model.write_text if form == "text" else model.write_binary)(sparse)
    with pytest.raises(ValueError, match=r"sparse, image 0002\.png, holds a singular pose"):
        eth.read("set", folder)


@pytest.fixture(scope="module")
def model() -> pycolmap.Reconstruction:
    """Of exact projections; the first image lacks the last 20 points."""
    places = {f"{n}": project(camera, WORLD) for n, camera in enumerate(TAKEN)}
    lens = posed_model({"0": TAKEN[0]}).cameras[1]
    lenses = dict.fromkeys(places, deepcopy(lens))
    matches = {
        pair: np.repeat(np.arange(40 if "0" in pair else 60)[:, None], 2, axis=1)
        for pair in combinations(places, 2)
    }
    return sparse_model(places, matches, lenses)


def test_a_models_numbers_are_those_of_its_points(model: pycolmap.Reconstruction) -> None:
    numbers = sfm.statistics(model)
    assert numbers["images"] == 4
    assert numbers["sparse_points"] == 60
    assert numbers["observations"] == 60 * 4 - 20
    assert numbers["track_length"] == pytest.approx((60 * 4 - 20) / 60)
    assert numbers["reprojection_error"] < 1e-3


def poses(*turned: int) -> dict[str, View]:
    """Those of `TAKEN`; some of them ten degrees off and a unit away."""
    off = axis_rotation(np.array([0, 1, 0]), np.deg2rad(10))
    known = {}
    for number, camera in enumerate(TAKEN):
        rotation = camera.rotation @ off if number in turned else camera.rotation
        centre = camera.centre + np.array([0, number in turned, 0])
        known[f"{number}"] = View(Path(f"{number}"), camera.intrinsics, rotation, -rotation @ centre)
    return known


def test_a_right_models_cameras_are_where_they_are_known_to_be(model: pycolmap.Reconstruction) -> None:
    errors = sfm.pose_errors(model, poses())
    assert errors["rotation_error"] < 0.01
    assert errors["position_error"] < 0.01


def test_a_camera_that_is_off_does_not_decide_how_a_model_is_laid(
    model: pycolmap.Reconstruction,
) -> None:
    errors = sfm.pose_errors(model, poses(3))
    # The median of 0, 0, 0 and 10 degrees.
    assert errors["rotation_error"] < 0.01


def test_images_without_keypoints_give_no_model(folder: Path) -> None:
    blank = Subject(partial(describe, sift.build()))
    numbers = sfm.measure(blank, eth.read("blank", folder))
    assert numbers["keypoints.scene"] == numbers["images.scene"] == numbers["sparse_points"] == 0
    assert "track_length" not in numbers


@pytest.fixture(scope="module")
def easy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four views of a wall from about ahead."""
    textures = [texture(seed, 200) for seed in range(2)]
    shapes = [of.shape for of in textures]
    rng = np.random.default_rng(1)
    site = plan_wall(shapes, np.deg2rad(100), 4, (320, 240), np.deg2rad(12), 0.0, rng)
    plain = [replace(of, blur=0.0, noise=2.0, jpeg_quality=95) for of in site.photometry]
    site = replace(site, photometry=tuple(plain))
    made = tmp_path_factory.mktemp("easy")
    images = [render_view(site, textures, number) for number in range(4)]
    eth.write_scene(made / "wall", images, site.cameras)
    return made


def test_what_is_seen_from_about_ahead_is_put_together_rightly(easy: Path) -> None:
    scenes = eth.read("easy", easy)
    numbers = sfm.measure(Subject(partial(describe, sift.build())), scenes)
    assert numbers["images.wall"] == numbers["images"] == 4
    assert numbers["sparse_points"] > 50
    assert 2 <= numbers["track_length"] <= 4
    assert 0 < numbers["reprojection_error"] < 1
    assert numbers["rotation_error"] < 1
    assert numbers["position_error"] < 10


def test_colmaps_sift_is_described_at_its_own_keypoints(easy: Path) -> None:
    (scene,) = eth.read("easy", easy).scenes
    model = colmap_sift.build()
    subject = ImageSubject(model, of_image=model.of_image)
    described = features(subject, scene.images, sfm.DETECTOR)
    for name, path in scene.images.items():
        own, at_colmaps = described[name], detect(read_grey(path), sfm.DETECTOR)
        np.testing.assert_array_equal(own.regions.maps, at_colmaps.maps)
        assert own.descriptors.shape == (len(own), 128)
        np.testing.assert_allclose(np.linalg.norm(own.descriptors, axis=1), 1, atol=0.02)
        assert own.size == (320, 240)
    numbers = sfm.measure(subject, eth.read("easy", easy))
    assert numbers["images"] == 4
    assert numbers["position_error"] < 10
    with pytest.raises(TypeError, match="measure it by sfm alone"):
        model(np.zeros((1, 64, 64), np.uint8))
