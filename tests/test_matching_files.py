"""From a folder of images to the files that hloc and COLMAP read, and to a sparse model."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import cv2
import h5py
import numpy as np
import pycolmap
import pytest
from PIL import Image
from skimage import data
from test_matching_keypoints import texture

from lib.commands import describe as command
from lib.data.images import read_grey
from lib.data.synthetic.scenes import plan_site, render_view
from lib.data.synthetic.sizes import SyntheticSize
from lib.features.description import Features
from lib.features.detectors import Detector, Regions
from lib.features.matches import match
from lib.matching import colmap, hloc
from lib.matching.describe import describe
from lib.matching.folder import describe_and_match, describe_folder, match_pairs
from lib.matching.networks import find

FEW = Detector(most=150)


def quiet(line: str) -> None:
    """In place of print."""


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two overlapping cuts of a texture, one in a folder below, and a file that is no image."""
    folder = tmp_path_factory.mktemp("images")
    (folder / "below").mkdir()
    whole = texture(size=240)
    Image.fromarray(whole[:, :200]).save(folder / "one.png")
    Image.fromarray(whole[10:, 20:]).save(folder / "below" / "two.png")
    (folder / "notes.txt").write_text("two images")
    return folder


@pytest.fixture(scope="module")
def out(images: Path) -> Path:
    """The files that the command makes of them."""
    folder = images.parent / f"{images.name}_out"
    options = ["--descriptor", "sift", "--most", "150", "--ratio", "0.9"]
    assert command.main(["folder", str(images), str(folder), *options]) == 0
    return folder


def test_features_lie_as_hloc_reads_them(images: Path, out: Path) -> None:
    with h5py.File(out / "features.h5") as file:
        assert sorted(file) == ["below", "one.png"]
        for name in ("one.png", "below/two.png"):
            expected = describe(read_grey(images / name), FEW, find("sift"))
            group = file[name]
            np.testing.assert_allclose(group["keypoints"], expected.position, rtol=1e-6)
            np.testing.assert_allclose(group["descriptors"], expected.descriptors.T, atol=1e-6)
            np.testing.assert_array_equal(group["scores"], expected.regions.scores)
            assert tuple(group["image_size"]) == expected.size


def test_matches_lie_as_hloc_reads_them(out: Path) -> None:
    with h5py.File(out / "features.h5") as features, h5py.File(out / "matches.h5") as matches:
        names = ("below/two.png", "one.png")
        described = [hloc.read_descriptors(features, name) for name in names]
        expected = match(*described, ratio=0.9)
        group = matches["below-two.png/one.png"]
        partner, scores = group["matches0"][()], group["matching_scores0"][()]
        assert partner.shape == scores.shape == (len(described[0]),)
        assert np.flatnonzero(partner >= 0).tolist() == expected.first.tolist()
        assert partner[partner >= 0].tolist() == expected.second.tolist()
        assert set(partner[partner < 0]) == {-1}
        cosine = (described[0][expected.first] * described[1][expected.second]).sum(axis=1)
        np.testing.assert_allclose(scores[expected.first], (1 + cosine) / 2, atol=1e-6)
        both = hloc.read_matches(matches, names)
        np.testing.assert_array_equal(hloc.read_matches(matches, names[::-1]), both[:, ::-1])
    assert (out / "pairs.txt").read_text() == "below/two.png one.png\n"


def test_the_database_holds_cameras_keypoints_and_matches(out: Path) -> None:
    names = ("below/two.png", "one.png")
    with (
        pycolmap.Database.open(out / "database.db") as database,
        h5py.File(out / "features.h5") as features,
        h5py.File(out / "matches.h5") as matches,
    ):
        images = [database.read_image_with_name(name) for name in names]
        for image in images:
            # COLMAP's first pixel's centre is at 0.5.
            expected = hloc.read(features, image.name, "keypoints") + 0.5
            np.testing.assert_allclose(database.read_keypoints(image.image_id)[:, :2], expected)
        stored = database.read_matches(*(image.image_id for image in images))
        np.testing.assert_array_equal(stored, hloc.read_matches(matches, names))
        assert database.num_verified_image_pairs() == 0
        cameras = [database.read_camera(image.camera_id) for image in images]
        assert [(of.width, of.height) for of in cameras] == [(220, 230), (200, 240)]


def test_bits_in_a_file_are_matched_as_bits(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    first = draw.integers(0, 256, (200, 32), dtype=np.uint8)
    flipped = np.packbits(draw.random((200, 256)) < 0.25, axis=1)
    maps = np.tile(np.eye(2, 3, dtype=np.float32), (200, 1, 1))
    regions = Regions(maps, np.ones(200, np.float32))
    with h5py.File(tmp_path / "features.h5", "w") as file:
        for name, bits in (("one", first), ("two", first ^ flipped)):
            hloc.write_features(file, name, Features(regions, bits, (9, 9)))
    match_pairs(
        tmp_path / "features.h5", tmp_path / "matches.h5", [("one", "two")], ratio=0.7, log=quiet
    )
    with h5py.File(tmp_path / "matches.h5") as file:
        kept = hloc.read_matches(file, ("one", "two"))
    expected = match(first, first ^ flipped, ratio=0.7)
    assert len(expected) > 100
    np.testing.assert_array_equal(kept, np.column_stack([expected.first, expected.second]))


def test_places_are_those_of_the_image_before_it_was_reduced(images: Path, tmp_path: Path) -> None:
    large = cv2.resize(texture(size=240), None, fx=3, fy=3, interpolation=cv2.INTER_CUBIC)
    Image.fromarray(large).save(tmp_path / "large.png")
    path = tmp_path / "features.h5"
    describe_folder(tmp_path, path, FEW, find("sift"), longest_side=240, log=quiet)
    with h5py.File(path) as file:
        places = hloc.read(file, "large.png", "keypoints")
        assert tuple(file["large.png"]["image_size"]) == (720, 720)
    at_once = describe(texture(size=240), FEW, find("sift")).position
    apart = np.linalg.norm(places[:, None] - (3 * at_once + 1), axis=2).min(axis=1)
    assert np.median(apart) < 1


def test_pictures_can_be_written_beside_colmap() -> None:
    write = "import io, numpy; Image.fromarray(numpy.ones((9, 9), 'u1')).save(io.BytesIO(), 'png')"
    code = f"import lib.matching.colmap\nfrom PIL import Image\n{write}\nprint('written')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "written\n", done.stderr


def test_the_readmes_example_finds_matches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    readme = (Path(__file__).resolve().parents[1] / "README.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n([^`]*read_grey[^`]*)```", readme)
    whole = texture(size=240)
    Image.fromarray(whole[:, :200]).save(tmp_path / "1.png")
    Image.fromarray(whole[10:, 20:]).save(tmp_path / "2.png")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(example, names)
    assert len(names["matches"]) > 40


def test_nothing_is_overwritten(images: Path, out: Path) -> None:
    before = (out / "database.db").read_bytes()
    assert command.main(["folder", str(images), str(out), "--descriptor", "sift"]) == 1
    files = [out / name for name in ("database.db", "features.h5", "matches.h5", "pairs.txt")]
    with pytest.raises(FileExistsError, match=r"features\.h5"):
        describe_folder(images, out / "features.h5", FEW, find("sift"))
    with pytest.raises(FileExistsError, match=r"database\.db"):
        colmap.write_database(files[0], images, *files[1:])
    assert (out / "database.db").read_bytes() == before


def test_a_try_without_a_model_leaves_nothing_in_the_next_ones_way(images: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    describe_and_match(images, out, FEW, find("sift"), log=quiet)
    before = sorted(path.name for path in out.iterdir())
    for _ in range(2):
        # Cuts of one plane have no parallax, so that no two of them begin a model.
        assert colmap.reconstruct(out / "database.db", images, out / "pairs.txt", out / "models") is None
        assert sorted(path.name for path in out.iterdir()) == before


def test_an_image_without_keypoints_is_named_and_nothing_left(tmp_path: Path, capsys) -> None:
    folder, out = tmp_path / "images", tmp_path / "out"
    folder.mkdir()
    Image.fromarray(texture()).save(folder / "a.png")
    Image.fromarray(np.full((90, 90), 7, np.uint8)).save(folder / "plain.png")
    assert command.main(["folder", str(folder), str(out), "--descriptor", "sift"]) == 1
    assert f"{folder / 'plain.png'} has no keypoints" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [folder]


PAIRS = {
    "one.png three.png": (FileNotFoundError, r"three\.png"),
    "below/two.png one.png\none.png": (ValueError, "line 2"),
    "": (ValueError, r"pairs\.txt"),
}


@pytest.mark.parametrize("written", PAIRS)
def test_a_file_of_pairs_is_read_before_anything_is_described(
    images: Path, tmp_path: Path, capsys, written: str
) -> None:
    pairs, (error, at_fault) = tmp_path / "pairs.txt", PAIRS[written]
    pairs.write_text(written)
    with pytest.raises(error, match=at_fault):
        hloc.read_pairs(pairs, images)
    options = ["--descriptor", "sift", "--pairs", str(pairs)]
    assert command.main(["folder", str(images), str(tmp_path / "out"), *options]) == 1
    assert capsys.readouterr().out == ""
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("options", [["--ratio", "1.5"], ["--one-camera"]])
def test_what_is_wrong_from_the_start_is_refused_before_anything_is_described(
    images: Path, tmp_path: Path, capsys, options: list[str]
) -> None:
    whole = ["folder", str(images), str(tmp_path / "out"), "--descriptor", "sift", *options]
    assert command.main(whole) == 1
    assert capsys.readouterr().out == ""
    assert not (tmp_path / "out").exists()


def test_a_folder_within_the_images_stands_in_no_later_ones_way(images: Path, tmp_path: Path) -> None:
    folder = tmp_path / "images"
    shutil.copytree(images, folder)
    for name in ("out", "again"):
        describe_and_match(folder, folder / name, FEW, find("sift"), log=quiet)
        with h5py.File(folder / name / "features.h5") as file:
            assert sorted(file) == ["below", "one.png"]


def test_features_of_an_image_that_colmap_sees_otherwise_are_refused(
    images: Path, out: Path, tmp_path: Path
) -> None:
    folder, features = tmp_path / "images", tmp_path / "features.h5"
    folder.mkdir()
    exif = Image.Exif()
    exif[274] = 6
    for name in ("one.jpg", "two.jpg"):
        Image.fromarray(texture(size=240)[:, :200]).save(folder / name, exif=exif)
    describe_folder(folder, features, FEW, find("sift"), orientation="turned", log=quiet)
    match_pairs(features, tmp_path / "matches.h5", [("one.jpg", "two.jpg")], log=quiet)
    hloc.write_pairs(tmp_path / "pairs.txt", [("one.jpg", "two.jpg")])
    files = [features, tmp_path / "matches.h5", tmp_path / "pairs.txt"]
    with pytest.raises(ValueError, match=r"one\.jpg is \(200, 240\) px for COLMAP and \(240, 200\) px"):
        colmap.write_database(tmp_path / "database.db", folder, *files)
    assert not (tmp_path / "database.db").exists()


def test_views_of_a_scene_become_a_sparse_model(tmp_path: Path, capsys) -> None:
    greys = [cv2.cvtColor(of, cv2.COLOR_RGB2GRAY) for of in (data.astronaut(), data.coffee())]
    greys = [cv2.resize(of, (240, 180), interpolation=cv2.INTER_AREA) for of in greys]
    size = SyntheticSize(views=5)
    site = plan_site([of.shape for of in greys], size, np.random.default_rng(0))
    images, out = tmp_path / "images", tmp_path / "out"
    images.mkdir()
    for number in range(len(site.cameras)):
        Image.fromarray(render_view(site, greys, number)).save(images / f"{number}.png")
    options = ["--descriptor", "rootsift", "--contrast", "0.02", "--ratio", "0.8", "--one-camera"]
    assert command.main(["folder", str(images), str(out), *options]) == 0
    assert command.main(["model", str(images), str(out)]) == 0
    assert "num_points3D" in capsys.readouterr().out
    model = pycolmap.Reconstruction(out / "models" / "0")
    assert model.num_reg_images() >= 4
    assert model.compute_mean_reprojection_error() < 1.5
    assert command.main(["model", str(images), str(out)]) == 1
