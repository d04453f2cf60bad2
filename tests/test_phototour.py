"""PhotoTour's on-disk format: sets survive a round trip, and errors name file and line."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from small_files import replace_line, write_set

from lib.data import phototour
from lib.data.phototour import read_phototour, write_patches


@pytest.fixture
def scene(tmp_path: Path) -> Path:
    folder = tmp_path / "scene"
    write_set(folder)
    return folder


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    patches, points = write_set(tmp_path / "scene")
    read = read_phototour(tmp_path / "scene", tmp_path / "cache")
    assert read.name == "scene"
    np.testing.assert_array_equal(read.patches, patches)
    np.testing.assert_array_equal(read.point_ids, points)
    np.testing.assert_array_equal(read.image_ids, np.arange(300) % 7)
    np.testing.assert_array_equal(read.pairs.first, [0, 2, 4])
    np.testing.assert_array_equal(read.pairs.second, [1, 9, 5])
    np.testing.assert_array_equal(read.pairs.match, [True, False, True])


def test_patches_lie_row_by_row_in_sheets_of_sixteen_by_sixteen(scene: Path) -> None:
    patches = read_phototour(scene, scene / "cache").patches
    for index in (0, 15, 16, 255, 256, 299):
        with Image.open(scene / f"patches{index // 256:04d}.bmp") as image:
            sheet = np.asarray(image)
        assert sheet.shape == (1024, 1024)
        row, column = divmod(index % 256, 16)
        expected = sheet[row * 64 : row * 64 + 64, column * 64 : column * 64 + 64]
        np.testing.assert_array_equal(patches[index], expected)


@settings(max_examples=8)
@given(cuts=st.lists(st.integers(0, 520), max_size=4), count=st.sampled_from([20, 256, 258, 520]))
def test_writing_in_parts_gives_the_files_of_writing_at_once(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int], count: int
) -> None:
    root = tmp_path_factory.mktemp("parts")
    write_set(root / "once", count)
    expected = read_phototour(root / "once", root / "cache")
    rng = np.random.default_rng(0)
    patches = rng.integers(0, 256, (count, 64, 64), dtype=np.uint8)
    columns = (patches, np.arange(count) // 2, np.arange(count) % 7, rng.random((count, 4)))
    edges = [0, *sorted(min(cut, count) for cut in cuts), count]
    parts = [tuple(column[a:b] for column in columns) for a, b in pairwise(edges)]
    point_ids = write_patches(root / "parts", parts)
    assert np.array_equal(point_ids, expected.point_ids)
    for path in (root / "once").iterdir():
        if path.name != phototour.MATCHES:
            assert (root / "parts" / path.name).read_bytes() == path.read_bytes()


def test_the_cache_is_mapped_read_only_and_read_the_second_time(
    scene: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = read_phototour(scene, scene / "cache")
    assert isinstance(first.patches, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        first.patches[0, 0, 0] = 1
    monkeypatch.setattr(phototour, "read_sheet", None)
    second = read_phototour(scene, scene / "cache")
    np.testing.assert_array_equal(first.patches, second.patches)


def test_the_cache_is_renewed_when_a_sheet_changes(scene: Path) -> None:
    read_phototour(scene, scene / "cache")
    patches, _ = write_set(scene, seed=1)
    os.utime(scene / "patches0000.bmp", ns=(1, 1))
    np.testing.assert_array_equal(read_phototour(scene, scene / "cache").patches, patches)
    assert len(list((scene / "cache").iterdir())) == 1


def test_the_cache_is_renewed_when_a_sheet_is_replaced_by_one_with_its_time(scene: Path) -> None:
    read_phototour(scene, scene / "cache")
    sheets = sorted(scene.glob("patches*.bmp"))
    times = [sheet.stat().st_mtime_ns for sheet in sheets]
    patches, _ = write_set(scene, seed=1)
    for sheet, time in zip(sheets, times, strict=True):
        os.utime(sheet, ns=(time, time))
    np.testing.assert_array_equal(read_phototour(scene, scene / "cache").patches, patches)


def renamed_sheets(folder: Path, names: list[str]) -> Path:
    """Rename a set's sheets, in order of their numbers."""
    for sheet, name in zip(sorted(folder.glob("patches*.bmp")), names, strict=True):
        sheet.rename(sheet.with_name(name))
    return folder


def test_sheets_are_ordered_by_their_numbers_and_not_as_strings(tmp_path: Path) -> None:
    patches, _ = write_set(tmp_path / "scene", 11 * phototour.PER_SHEET)
    folder = renamed_sheets(tmp_path / "scene", [f"patches{number}.bmp" for number in range(11)])
    np.testing.assert_array_equal(read_phototour(folder, tmp_path / "cache").patches, patches)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["patches0.bmp", "patches2.bmp"], r"patches2\.bmp is there, and no sheet 1: unpack"),
        (["patches1.bmp", "patches2.bmp"], r"patches1\.bmp is there, and no sheet 0: unpack"),
        (["patches1.bmp", "patches0001.bmp"], r"patches1\.bmp and patches0001\.bmp are both sheet 1"),
        (["patches0000.bmp", "patches0001 (1).bmp"], r"patches0001 \(1\)\.bmp has no number"),
    ],
)
def test_sheets_whose_numbers_have_a_gap_or_recur_are_refused_by_name(
    scene: Path, names: list[str], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        read_phototour(renamed_sheets(scene, names), scene / "cache")


DAMAGE = {
    "cut off": lambda content: content[: len(content) // 2],
    "one bit turned": lambda content: content[:-1] + bytes([content[-1] ^ 1]),
    "another header": lambda content: b"nothing!" + content[8:],
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_cache_is_set_aside_and_made_anew(
    scene: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    expected = read_phototour(scene, scene / "cache").patches.copy()
    (array,) = (scene / "cache").rglob("*.npy")
    content = DAMAGE[damage](array.read_bytes())
    array.unlink()
    array.write_bytes(content)
    np.testing.assert_array_equal(read_phototour(scene, scene / "cache").patches, expected)
    assert f"{array} is damaged" in caplog.text
    aside = array.parent.with_name(array.parent.name + ".damaged")
    assert (aside / array.name).read_bytes() == content


def test_interest_points_and_the_match_file_may_be_missing(scene: Path) -> None:
    for file in ("interest.txt", phototour.MATCHES):
        (scene / file).unlink()
    read = read_phototour(scene, scene / "cache")
    assert read.image_ids is None
    assert read.pairs is None


def test_match_lines_of_seven_columns_are_read(scene: Path) -> None:
    (scene / phototour.MATCHES).write_text("0 0 0 1 0 0 0 \n2 1 0 9 4 0 0 \n")
    np.testing.assert_array_equal(read_phototour(scene, scene / "c").pairs.match, [True, False])


def test_a_pair_of_a_patch_with_itself_is_refused_with_its_line(scene: Path) -> None:
    replace_line(scene / phototour.MATCHES, 3, "5 2 0 5 2 0")
    with pytest.raises(ValueError, match=rf"{phototour.MATCHES}, line 3: patch 5 is paired with itself"):
        read_phototour(scene, scene / "cache")


@pytest.mark.parametrize("length", [0, 10, 1_000_000])
def test_a_truncated_sheet_is_refused_by_name(scene: Path, length: int) -> None:
    sheet = scene / "patches0001.bmp"
    sheet.write_bytes(sheet.read_bytes()[:length])
    with pytest.raises(ValueError, match=r"patches0001\.bmp"):
        read_phototour(scene, scene / "cache")
    assert list((scene / "cache").iterdir()) == []


@pytest.mark.parametrize(
    ("file", "line", "text"),
    [
        ("info.txt", 41, "seven 0"),
        (phototour.MATCHES, 2, "2 1 0 9 1 0"),
    ],
)
def test_a_wrong_line_is_refused_with_its_file(scene: Path, file: str, line: int, text: str) -> None:
    replace_line(scene / file, line, text)
    with pytest.raises(ValueError, match=file):
        read_phototour(scene, scene / "cache")
