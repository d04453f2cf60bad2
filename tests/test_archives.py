"""What an archive of a stranger may do: nothing but put expected files into one folder."""

from __future__ import annotations

import contextlib
import io
import re
import shutil
import stat
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from phototour_mirror import Scenes, packed, tiny_scenes, visible

from lib.commands.fetch import bounds_of
from lib.data.archives import Bounds, unpack
from lib.data.phototour import KNOWN_COUNTS


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Scenes:
    return tiny_scenes(tmp_path_factory.mktemp("scenes"))


@pytest.fixture
def unpacking(tmp_path: Path) -> Callable[[bytes], list[str]]:
    """Unpacks an archive as one of notredame into tmp_path/out."""

    def unpack_it(archive: bytes) -> list[str]:
        (tmp_path / "notredame.zip").write_bytes(archive)
        folder = tmp_path / "out"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        try:
            return unpack(tmp_path / "notredame.zip", folder, bounds_of("notredame", 20))
        finally:
            assert visible(tmp_path) == ["notredame.zip", "out"]
            assert not (tmp_path.parent / "outside.txt").exists()

    return unpack_it


def test_files_may_lie_in_a_folder_of_the_sets_name(
    unpacking: Callable[[bytes], list[str]], scenes: Scenes, tmp_path: Path
) -> None:
    unpacking(packed({f"notredame/{k}": v for k, v in scenes.files["notredame"].items()}))
    assert set(visible(tmp_path / "out")) == set(scenes.files["notredame"])


def test_harmless_files_are_left_out_and_listed(
    unpacking: Callable[[bytes], list[str]], scenes: Scenes, tmp_path: Path
) -> None:
    more = {
        "README": b"",
        "sim.txt": b"1 2 3",
        ".DS_Store": b"",
        "__MACOSX/._patches0000.bmp": b"x",
        "__MACOSX/notredame/._info.txt": b"x",
        "LICENSE.md": b"",
    }
    skipped = unpacking(packed(scenes.files["notredame"] | more))
    assert set(visible(tmp_path / "out")) == set(scenes.files["notredame"])
    assert skipped == [repr(name) for name in more]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("../outside.txt", "points outside the folder"),
        ("notredame/../../outside.txt", "points outside the folder"),
        ("../../info.txt", "points outside the folder"),
        ("/info.txt", "has an absolute path"),
        ("C:/info.txt", "has an absolute path"),
        ("..\\outside.txt", "has a name that no such archive needs"),
        ("liberty/info.txt", "is no file of notredame"),
        ("notredame/notredame/info.txt", "is no file of notredame"),
        ("run.sh", "is no file of notredame"),
        ("patches0001.bmp", "is no file of notredame"),
        ("patches.bmp", "is no file of notredame"),
        ("patches0000.bmp.exe", "is no file of notredame"),
        ("notredame/info.txt", "is there twice"),
    ],
)
def test_a_member_that_does_not_belong_there_is_refused_by_name(
    unpacking: Callable[[bytes], list[str]], scenes: Scenes, tmp_path: Path, name: str, reason: str
) -> None:
    told = re.escape(f"notredame.zip is refused: member {name!r} {reason}. Delete the archive")
    with pytest.raises(ValueError, match=told):
        unpacking(packed(scenes.files["notredame"] | {name: b"0 0\n"}))
    assert visible(tmp_path / "out") == [], "all members are judged before the first is written"


@pytest.mark.parametrize(
    ("mode", "reason"),
    [(stat.S_IFLNK | 0o777, "is a link"), (stat.S_IFIFO | 0o644, "is no plain file")],
)
@pytest.mark.parametrize("name", ["info.txt", "readme", "folder/"])
def test_links_and_devices_are_refused_by_name(
    unpacking: Callable[[bytes], list[str]], name: str, mode: int, reason: str
) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        info = zipfile.ZipInfo(name)
        info.create_system, info.external_attr = 3, mode << 16
        archive.writestr(info, "../../outside.txt")
    with pytest.raises(ValueError, match=f"member '{name}' {reason}"):
        unpacking(buffer.getvalue())


def test_encrypted_and_oddly_packed_members_are_refused_by_name(
    unpacking: Callable[[bytes], list[str]],
) -> None:
    content = bytearray(packed({"info.txt": b"0 0\n"}))
    central = content.index(b"PK\x01\x02")
    content[central + 8] |= 1
    with pytest.raises(ValueError, match=r"member 'info\.txt' is encrypted"):
        unpacking(bytes(content))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("info.txt", "0 0\n")
    with pytest.raises(ValueError, match=r"member 'info\.txt' is packed by method 14"):
        unpacking(buffer.getvalue())


def test_a_file_larger_than_its_kind_can_be_is_refused_by_name(
    unpacking: Callable[[bytes], list[str]],
) -> None:
    with pytest.raises(ValueError, match=r"'patches0000.bmp' has 1,100,000 bytes, 1,052,672 at most"):
        unpacking(packed({"patches0000.bmp": bytes(1_100_000)}))
    with pytest.raises(ValueError, match=r"'info.txt' has 1,281 bytes, 1,280 at most"):
        unpacking(packed({"info.txt": bytes(1281)}))


def test_files_too_large_together_are_refused(tmp_path: Path) -> None:
    bounds = Bounds("set", {"a": 60, "b": 60}.get, 100, 2)
    (tmp_path / "set.zip").write_bytes(packed({"a": bytes(60), "b": bytes(60)}))
    with pytest.raises(ValueError, match="2 files of 120 bytes together; set has at most 2 of 100"):
        unpack(tmp_path / "set.zip", tmp_path, bounds)


def test_more_files_than_expected_are_refused(tmp_path: Path) -> None:
    bounds = Bounds("set", {"a": 60, "b": 60}.get, 1000, 1)
    (tmp_path / "set.zip").write_bytes(packed({"a": bytes(60), "b": bytes(60)}))
    with pytest.raises(ValueError, match="2 files of 120 bytes together; set has at most 1 of 1,000"):
        unpack(tmp_path / "set.zip", tmp_path, bounds)


def test_an_archive_bomb_is_refused_by_its_ratio(unpacking: Callable[[bytes], list[str]]) -> None:
    with pytest.raises(ValueError, match=r"claim to hold 1,048,576: an archive bomb"):
        unpacking(packed({"patches0000.bmp": bytes(1 << 20)}))


def test_too_many_members_are_refused(unpacking: Callable[[bytes], list[str]]) -> None:
    with pytest.raises(ValueError, match="200 members, 15 are expected"):
        unpacking(packed({f"note{number}.txt": b"" for number in range(200)}))


def test_a_list_of_members_too_long_to_read_is_refused_unread(
    unpacking: Callable[[bytes], list[str]],
) -> None:
    many = packed({f"{number}{'x' * 20_000}.txt": b"" for number in range(60)})
    with pytest.raises(ValueError, match=r"its list of members claims 1,2\d\d,\d\d\d bytes"):
        unpacking(many)


def test_a_member_that_holds_more_than_its_header_says_stops_at_what_it_says(tmp_path: Path) -> None:
    size = 20_000_000
    honest = packed({"info.txt": bytes(size)})
    assert honest.count(struct.pack("<L", size)) == 2, "local header and list of members"
    (tmp_path / "notredame.zip").write_bytes(
        honest.replace(struct.pack("<L", size), struct.pack("<L", 1000))
    )
    folder = tmp_path / "out"
    folder.mkdir()
    with pytest.raises(ValueError, match=r"member 'info\.txt': damaged"):
        unpack(tmp_path / "notredame.zip", folder, bounds_of("notredame", 20))
    assert (folder / "info.txt").stat().st_size <= 1000


@pytest.mark.parametrize(("stream", "told"), [(5000, "more than the 4"), (2, "2 of the 4")])
def test_bytes_are_counted_whatever_the_zip_reader_hands_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stream: int, told: str
) -> None:
    (tmp_path / "a.zip").write_bytes(packed({"info.txt": b"0 0\n"}))
    folder = tmp_path / "out"
    folder.mkdir()
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda *_: io.BytesIO(bytes(stream)))
    with pytest.raises(ValueError, match=f"holds {told} bytes it claims"):
        unpack(tmp_path / "a.zip", folder, bounds_of("notredame", 20))
    assert (folder / "info.txt").stat().st_size <= 4


@pytest.mark.parametrize("damage", ["page", "cut", "flipped"])
def test_a_damaged_archive_is_refused(
    unpacking: Callable[[bytes], list[str]], scenes: Scenes, damage: str
) -> None:
    whole = scenes.archives["notredame"]
    flipped = bytearray(whole)
    flipped[whole.index(b"patches0000.bmp") + 5000] ^= 0xFF
    damaged = {"page": b"<html>Please log in</html>", "cut": whole[:-3000], "flipped": bytes(flipped)}
    with pytest.raises(ValueError, match=r"damaged or no ZIP archive .*Delete the archive"):
        unpacking(damaged[damage])


NAMES = st.lists(
    st.sampled_from(["..", ".", "", "notredame", "info.txt", "patches0000.bmp", "readme", "~", "C:"]),
    min_size=1,
    max_size=4,
).flatmap(lambda parts: st.sampled_from("/\\").map(lambda slash: slash.join(parts)))


@settings(max_examples=60, deadline=None)
@given(names=st.lists(NAMES.filter(bool), max_size=3, unique=True))
def test_whatever_members_are_called_only_known_names_in_the_folder_are_written(
    tmp_path_factory: pytest.TempPathFactory, names: list[str]
) -> None:
    root = tmp_path_factory.mktemp("named")
    folder = root / "a" / "b"
    folder.mkdir(parents=True)
    (root / "a.zip").write_bytes(packed({name: b"0 0\n" for name in names}))
    with contextlib.suppress(ValueError):
        unpack(root / "a.zip", folder, bounds_of("notredame", 20))
    written = {path for path in root.rglob("*") if path.is_file()} - {root / "a.zip"}
    assert written <= {folder / "info.txt", folder / "patches0000.bmp"}


def test_the_bounds_hold_the_original_sets() -> None:
    """Sizes of Liberty as its owners' listings show them; the sheets by their number."""
    bounds = bounds_of("liberty", KNOWN_COUNTS["liberty"])
    sizes = {
        "info.txt": 4_192_420,
        "interest.txt": 19_972_834,
        "m50_100000_100000_0.txt": 3_211_612,
        "m50_1000_1000_0.txt": 32_060,
        "m50_500000_500000_0.txt": 16_062_406,
        "patches0000.bmp": 1_049_654,
        "patches1758.bmp": 1_049_654,
    }
    for name, size in sizes.items():
        assert size <= bounds.largest(name) <= 8 * size, name
    assert bounds.largest("patches1759.bmp") is None
    assert 1759 * 1_049_654 < bounds.most_bytes < 1.2 * 1759 * 1_049_654
