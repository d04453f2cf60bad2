"""Homography sequences: both layouts, their names, and errors for damaged ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from lib.data.hpatches.homographies import (
    read_homography_sequence,
    read_homography_sequences,
    write_homography_sequence,
)

SHAPE = (30, 40)
SHIFTS = np.array([[[1, 0, dx], [0, 1, 2], [0, 0, 1]] for dx in (0.5, 3, 6, 9, 12)])
numbers = st.floats(-1e6, 1e6, allow_subnormal=False)


def images() -> list[np.ndarray]:
    draw = np.random.default_rng(0)
    return [draw.integers(0, 256, SHAPE, np.uint8) for _ in range(6)]


def hpatches(folder: Path) -> Path:
    write_homography_sequence(folder, images(), SHIFTS)
    return folder


def oxford(folder: Path, homographies: np.ndarray = SHIFTS, ending: str = "png") -> Path:
    folder.mkdir(parents=True)
    for number, image in enumerate(images(), 1):
        Image.fromarray(image).save(folder / f"img{number}.{ending}")
    for number, homography in enumerate(homographies, 2):
        np.savetxt(folder / f"H1to{number}p", homography)
    return folder


def test_the_layout_of_hpatches_is_read_as_written(tmp_path):
    sequence = read_homography_sequence(hpatches(tmp_path / "v_wall"))
    assert sequence.name == "v_wall"
    assert [path.name for path in sequence.images] == [f"{n}.ppm" for n in range(1, 7)]
    np.testing.assert_array_equal(sequence.homographies, SHIFTS)
    for index, image in enumerate(images()):
        np.testing.assert_array_equal(sequence.grey(index), image)


@pytest.mark.parametrize("ending", ["ppm", "PNG"])
def test_the_layout_of_oxford_is_read_in_any_image_format(tmp_path, ending):
    sequence = read_homography_sequence(oxford(tmp_path / "graf", ending=ending))
    np.testing.assert_array_equal(sequence.homographies, SHIFTS)
    np.testing.assert_array_equal(sequence.grey(5), images()[5])


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.lists(numbers, min_size=8, max_size=8))
def test_homographies_survive_the_round_trip_to_the_bit(tmp_path, values):
    homography = np.array([*values, 1.0]).reshape(3, 3)
    homography[:2, :2] += 3e6 * np.eye(2)
    if not np.linalg.cond(homography) < 1e12:
        homography = np.diag([values[0] or 1.0, 1 / 3, 1.0])
    write_homography_sequence(tmp_path / "v_x", images(), np.stack([homography] * 5))
    homographies = read_homography_sequence(tmp_path / "v_x").homographies
    np.testing.assert_array_equal(homographies, np.stack([homography] * 5))


def shifted(share: float) -> np.ndarray:
    """Return homographies; one moves every corner by a share of the diagonal."""
    homographies = np.stack([np.eye(3)] * 5)
    homographies[3, 0, 2] = share * np.hypot(*SHAPE)
    return homographies


@pytest.mark.parametrize(("share", "name"), [(0.0, "i_wall"), (0.019, "i_wall"), (0.021, "v_wall")])
def test_a_bare_name_is_illumination_where_corners_move_by_two_percent_at_most(tmp_path, share, name):
    assert read_homography_sequence(oxford(tmp_path / "wall", shifted(share))).name == name


def test_a_corner_behind_the_camera_makes_a_viewpoint_sequence(tmp_path):
    homographies = np.stack([np.eye(3)] * 5)
    homographies[0, 2, 0] = -2 / SHAPE[1]
    assert read_homography_sequence(oxford(tmp_path / "wall", homographies)).name == "v_wall"


@pytest.mark.parametrize(
    "content",
    ["1 0 0 0 1 0 0 0", "", "1 0 0 0 one 0 0 0 1", "1 0 0 0 nan 0 0 0 1", "1 2 3 2 4 6 0 0 1"],
)
def test_a_damaged_homography_is_refused_by_name(tmp_path, content):
    folder = hpatches(tmp_path / "v_wall")
    (folder / "H_1_3").write_text(content)
    with pytest.raises(ValueError, match="H_1_3"):
        read_homography_sequence(folder)


def test_the_orientation_in_exif_is_ignored(tmp_path):
    folder = hpatches(tmp_path / "v_wall")
    (folder / "2.ppm").unlink()
    orientation = Image.Exif()
    orientation[0x0112] = 6
    Image.fromarray(images()[1]).save(folder / "2.jpg", exif=orientation)
    assert read_homography_sequence(folder).grey(1).shape == SHAPE


def test_sequences_and_folders_of_sequences_mix_and_other_folders_are_skipped(tmp_path):
    hpatches(tmp_path / "set" / "v_b")
    hpatches(tmp_path / "set" / "i_a")
    (tmp_path / "set" / "notes").mkdir()
    (tmp_path / "set" / "readme.txt").write_text("text")
    oxford(tmp_path / "graf")
    sequences = read_homography_sequences(tmp_path / "set", tmp_path / "graf")
    assert [sequence.name for sequence in sequences] == ["i_a", "v_b", "v_graf"]
