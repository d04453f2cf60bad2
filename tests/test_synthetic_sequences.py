"""Homography sequences of photographs: exact homographies, six lights, splits, files that read back."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from itertools import product
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.data.cameras import Camera
from lib.data.hpatches.homographies import read_homography_sequence
from lib.data.hpatches.release import read_sequences, read_splits
from lib.data.hpatches.tasks import HPatchesSplit, open_split
from lib.data.synthetic import SequencesSize
from lib.data.synthetic.imaging import (
    Photometry,
    orbiting_camera,
    photograph_through,
    poster_homography,
)
from lib.data.synthetic.photographs import Photograph, packaged_photographs
from lib.data.synthetic.sequences import (
    illumination_sequence,
    lamp_shading,
    make_splits,
    textures,
    viewpoint_sequence,
    write_hpatches,
)
from lib.features.keypoints import transfer

SMALL = SequencesSize(
    longest_side=160, patches_per_sequence=20, pairs=50, queries=10, distractors=30, seed=3
)
angles = st.floats(-0.6, 0.6)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All files of three photographs, two of which show one thing."""
    folder = tmp_path_factory.mktemp("sequences")
    write_hpatches(folder, packaged_photographs()[:3], SMALL)
    return folder


def camera(yaw: float, pitch: float, roll: float, distance: float = 500.0) -> Camera:
    return orbiting_camera(400.0, (201, 161), distance, yaw, pitch, roll, np.array([0.0, 0, 500]))


def project(eye: Camera, point: np.ndarray) -> tuple[np.ndarray, float]:
    """Return a world point's pixel and depth, literally."""
    x = eye.intrinsics @ (eye.rotation @ point + eye.translation)
    return x[:2] / x[2], float(x[2])


@given(yaw=angles, pitch=angles, roll=angles)
def test_a_camera_looks_at_its_target_from_its_distance(yaw: float, pitch: float, roll: float) -> None:
    eye = camera(yaw, pitch, roll, distance=650)
    pixel, depth = project(eye, np.array([0, 0, 500.0]))
    np.testing.assert_allclose(pixel, [100, 80], atol=1e-8)
    assert depth == pytest.approx(650)
    assert np.linalg.norm(eye.centre - [0, 0, 500]) == pytest.approx(650)
    np.testing.assert_allclose(eye.rotation @ eye.rotation.T, np.eye(3), atol=1e-12)


@given(yaw=angles, pitch=angles, roll=angles)
def test_a_posters_texels_are_carried_to_where_their_points_project(
    yaw: float, pitch: float, roll: float
) -> None:
    eye = camera(yaw, pitch, roll)
    texels = np.array([[0.0, 0], [100, 0], [37, 80]])
    # One texel per world unit, the middle of 101 by 81 texels on the axis, 500 units away.
    points = np.column_stack([texels - [50, 40], np.full(3, 500.0)])
    pixels = transfer(poster_homography(101, 81, 500.0, eye), texels)
    for point, pixel in zip(points, pixels, strict=True):
        np.testing.assert_allclose(pixel, project(eye, point)[0], atol=1e-8)


def test_noise_has_its_standard_deviation_and_its_seed() -> None:
    light = np.full((200, 200), 0.5, np.float32)
    plain = Photometry(gain=1, gamma=1, blur=0, noise=5.0, noise_seed=0, jpeg_quality=100)
    images = [photograph_through(replace(plain, noise_seed=seed), light) for seed in (1, 1, 2)]
    assert images[0].std() == pytest.approx(5, rel=0.05)
    np.testing.assert_array_equal(images[0], images[1])
    assert (images[0] != images[2]).any()


def test_each_packaged_photograph_is_there_once_and_has_a_licence() -> None:
    photographs = packaged_photographs()
    assert len({photograph.sha256 for photograph in photographs}) == len(photographs) == 6
    assert all(photograph.licence for photograph in photographs)


def test_a_view_follows_its_homography_to_a_fraction_of_a_pixel() -> None:
    # Discs keep their centres of gravity up to perspective, which is small within a disc.
    centres = np.array([[60.0, 50], [150, 60], [90, 130], [160, 140]])
    rows, columns = np.mgrid[:200, :240]
    grey = np.full((200, 240), 20, np.uint8)
    for x, y in centres:
        grey[np.hypot(columns - x, rows - y) < 5] = 220
    images, homographies = viewpoint_sequence(grey, np.random.default_rng(0))
    for view, homography in zip(images[1:], homographies, strict=True):
        for x, y in transfer(homography, centres):
            left, top = round(x) - 9, round(y) - 9
            window = view[top : top + 19, left : left + 19].astype(float)
            bright = np.clip(window - 70, 0, None)
            down, right = np.mgrid[top : top + 19, left : left + 19]
            centroid = (bright * right).sum() / bright.sum(), (bright * down).sum() / bright.sum()
            np.testing.assert_allclose(centroid, (x, y), atol=0.25)


def test_the_reference_shows_the_photograph_and_nothing_else() -> None:
    grey = packaged_photographs()[0].grey(240)
    for make in (viewpoint_sequence, illumination_sequence):
        reference = make(grey, np.random.default_rng(0))[0][0]
        assert reference.shape == grey.shape
        assert np.abs(reference.astype(int) - grey).mean() < 5


def test_illumination_homographies_are_exactly_the_identity(written: Path) -> None:
    for folder in sorted((written / "sequences").glob("i_*")):
        sequence = read_homography_sequence(folder)
        np.testing.assert_array_equal(sequence.homographies, np.repeat(np.eye(3)[None], 5, axis=0))
        assert {sequence.grey(index).shape for index in range(6)} == {sequence.grey(0).shape}


@given(seed=st.integers(0, 10_000), height=st.integers(16, 60), width=st.integers(16, 60))
def test_a_lamp_lights_smoothly_and_more_on_its_side(seed: int, height: int, width: int) -> None:
    shading = lamp_shading((height, width), np.random.default_rng(seed))
    assert shading.shape == (height, width)
    assert np.median(shading) == pytest.approx(1, rel=1e-4)
    assert shading.min() > 0
    steps = max(np.abs(np.diff(np.log(shading), axis=axis)).max() for axis in (0, 1))
    assert steps < 4 / np.hypot(height, width)
    direction = np.random.default_rng(seed).uniform(0, 2 * np.pi)
    y, x = (np.arange(length) - (length - 1) / 2 for length in (height, width))
    towards = x * np.cos(direction) + y[:, None] * np.sin(direction)
    assert np.corrcoef(towards.ravel(), shading.ravel())[0, 1] > 0.5


def numbered(name: str, folder: Path, shape: tuple[int, int] = (100, 160)) -> Photograph:
    """Return a photograph whose pixels all differ."""
    values = np.arange(shape[0] * shape[1]).reshape(shape)
    colour = np.stack([values % 256, values // 256, np.zeros_like(values)], axis=2).astype(np.uint8)
    path = folder / f"{name}.png"
    cv2.imwrite(str(path), colour)
    return Photograph(name, path, "none")


@pytest.fixture
def pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read photographs as the numbers of their pixels, so that shared pixels show."""

    def grey(self: Photograph, longest_side: int) -> np.ndarray:
        colour = cv2.imread(str(self.path)).astype(np.float32)
        assert max(colour.shape) <= longest_side
        return colour[:, :, 0] + 256 * colour[:, :, 1]

    monkeypatch.setattr(Photograph, "grey", grey)


@pytest.mark.usefixtures("pixels")
def test_the_two_sequences_of_a_photograph_share_no_pixel(tmp_path: Path) -> None:
    for shape in ((100, 160), (151, 90)):
        photographs = [numbered(name, tmp_path, shape) for name in ("one", "two")]
        for texture in textures(photographs, 200):
            seen = np.concatenate([texture.viewpoint.ravel(), texture.illumination.ravel()])
            np.testing.assert_array_equal(np.sort(seen), np.arange(shape[0] * shape[1]))


@pytest.mark.usefixtures("pixels")
def test_a_single_photograph_gives_two_things_without_a_shared_pixel(tmp_path: Path) -> None:
    halves = textures([numbered("alone", tmp_path)], 200)
    assert [half.name for half in halves] == ["alone_left", "alone_right"]
    assert halves[0].thing != halves[1].thing
    parts = [part.ravel() for half in halves for part in (half.viewpoint, half.illumination)]
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(100 * 160))


def test_names_are_made_unique_and_fit_for_files() -> None:
    photograph = packaged_photographs()[2]
    names = [
        "Straße am See",
        "strasse am see?",
        "a/b,c",
        "..",
        "x" * 300,
    ]
    made = textures([replace(photograph, name=name) for name in names], 100)
    assert len({texture.name.lower() for texture in made}) == len(names)
    for texture in made:
        assert texture.name.isascii()
        assert texture.name.replace("_", "").replace("-", "").isalnum()
        assert len(texture.name) < 70


@given(
    things=st.lists(st.integers(0, 29), min_size=2, max_size=30, unique=True),
    twins=st.booleans(),
)
def test_splits_a_to_c_train_on_nothing_they_test(things: list[int], twins: bool) -> None:
    thing_of = {f"p{thing}": f"p{thing}" for thing in things}
    if twins:
        thing_of = {"twin": f"p{things[0]}", **thing_of}
    splits = make_splits(thing_of)
    assert list(splits) == ["a", "b", "c", "illum", "view", "full"]
    everything = {f"{kind}_{name}" for kind, name in product("iv", thing_of)}
    tested: set[str] = set()
    for name in "abc":
        split = splits[name]
        assert {thing_of[s[2:]] for s in split.test}.isdisjoint(thing_of[s[2:]] for s in split.train)
        assert set(split.test) | set(split.train) == everything
        assert len(split.test) + len(split.train) == len(everything)
        assert split.train
        assert abs(len(split.test) - len(everything) / 2) <= 2 + 2 * twins
        tested |= set(split.test)
    assert tested == everything
    if len(things) > 2:
        assert len({splits[name].test for name in "abc"}) == 3


def test_split_a_tests_on_three_things_of_the_packaged_photographs() -> None:
    made = textures(packaged_photographs(), 64)
    thing_of = {texture.name: texture.thing for texture in made}
    tested = make_splits(thing_of)["a"].test
    assert len({thing_of[name[2:]] for name in tested}) == 3


@pytest.mark.parametrize("name", ["a", "illum", "full"])
def test_every_split_is_read_back_with_its_tasks(written: Path, name: str) -> None:
    split = open_split(written / "hpatches-release", written / "tasks", name)
    assert isinstance(split, HPatchesSplit)
    assert tuple(s.name for s in split.sequences) == read_splits(written / "tasks")[name].test
    assert len(split.tasks.positives) == SMALL.pairs
    assert len(split.tasks.queries) == SMALL.queries
    assert 1 <= len(split.tasks.distractors) <= SMALL.distractors


def test_a_sequence_depends_neither_on_its_neighbours_nor_on_leftover_files(
    written: Path, tmp_path: Path
) -> None:
    stale = tmp_path / "sequences" / "v_stale"
    stale.mkdir(parents=True)
    (stale / "1.ppm").write_bytes(b"")
    write_hpatches(tmp_path, packaged_photographs()[2:4], replace(SMALL, patches_per_sequence=8))
    assert "v_stale" not in read_sequences(tmp_path / "hpatches-release")
    assert digest(tmp_path / "sequences" / "v_coins") == digest(written / "sequences" / "v_coins")


def digest(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_a_seed_determines_the_bytes_and_another_seed_changes_them(tmp_path: Path) -> None:
    photographs, tiny = (
        packaged_photographs()[:1],
        replace(SMALL, longest_side=100, patches_per_sequence=6),
    )
    for name, seed in (("one", 3), ("same", 3), ("other", 4)):
        write_hpatches(tmp_path / name, photographs, replace(tiny, seed=seed))
    one, same, other = (digest(tmp_path / name) for name in ("one", "same", "other"))
    assert one == same
    assert one.keys() == other.keys()
    assert "build.json" in one
    for file in ("sequences/v_motorcycle_left_left/4.ppm", "sequences/i_motorcycle_left_left/4.ppm"):
        assert one[file] != other[file]
    assert one["tasks/verif_pos_split-a.csv"] != other["tasks/verif_pos_split-a.csv"]
