"""The three sets come into their folders whole and verified, or not at all; nothing is fetched twice."""

from __future__ import annotations

import errno
import signal
import stat
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from phototour_mirror import COUNTS, Mirror, Scenes, names_in, packed, running, tiny_scenes

from lib.commands.fetch import main
from lib.data import fetching
from lib.data.fetching import download, fetch, unpack
from lib.data.phototour import read_phototour

CONTENT = bytes(range(250)) * 4000


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Scenes:
    return tiny_scenes(tmp_path_factory.mktemp("scenes"))


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mirror]:
    monkeypatch.setattr("lib.data.phototour.KNOWN_PAIRS", 3)
    with running(monkeypatch) as server:
        server.files = {"/a": CONTENT}
        yield server


@pytest.fixture
def serving(mirror: Mirror, scenes: Scenes) -> Mirror:
    mirror.files = {f"/{name}.zip": content for name, content in scenes.archives.items()}
    return mirror


@pytest.fixture
def get(tmp_path: Path, mirror: Mirror) -> Callable[[], bytes]:
    """Download the mirror's file and return the bytes that are then in its place."""

    def get_bytes() -> bytes:
        download(f"{mirror.url}a", tmp_path / "a")
        assert names_in(tmp_path) == ["a"]
        return (tmp_path / "a").read_bytes()

    return get_bytes


def ranges(mirror: Mirror) -> list[str | None]:
    return [header for _, header in mirror.asked]


def run(folder: Path, mirror: Mirror, *options: str) -> int:
    return main([str(folder), "--mirror", mirror.url, *options], COUNTS)


def liberty(folder: Path, mirror: Mirror) -> None:
    fetch(folder / "liberty", COUNTS["liberty"], mirror.url)


# Downloading


def test_the_next_call_after_a_cut_connection_fetches_the_rest_only(
    get: Callable, mirror: Mirror
) -> None:
    mirror.cuts = [400_000, 300_000]
    for missing in ("600,000", "300,001"):
        with pytest.raises(
            OSError, match=f"cut off, {missing} bytes are missing.*run again to continue"
        ):
            get()
    assert get() == CONTENT
    assert ranges(mirror) == ["bytes=0-", "bytes=399999-", "bytes=699998-"]


def test_a_complete_part_becomes_the_archive(get: Callable, mirror: Mirror, tmp_path: Path) -> None:
    (tmp_path / "a.part").write_bytes(CONTENT)
    assert get() == CONTENT
    assert ranges(mirror) == [f"bytes={len(CONTENT) - 1}-"]


def test_a_server_without_ranges_sends_the_whole_file_again(
    get: Callable, mirror: Mirror, tmp_path: Path
) -> None:
    mirror.ranges = False
    (tmp_path / "a.part").write_bytes(CONTENT[:400_000])
    assert get() == CONTENT
    assert ranges(mirror) == ["bytes=399999-"]


def test_a_server_that_refuses_is_given_up(tmp_path: Path, mirror: Mirror) -> None:
    with pytest.raises(OSError, match=r"404.*run again to continue"):
        download(f"{mirror.url}b", tmp_path / "b")


def test_a_silent_connection_is_given_up(
    get: Callable, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "SILENCE", 0.2)
    mirror.halfway = lambda: mirror.released.wait(5)
    with pytest.raises(OSError, match="timed out"):
        get()
    mirror.released.set()


# Sets in their places


def test_all_three_sets_are_fetched_and_read(
    tmp_path: Path, serving: Mirror, scenes: Scenes, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "new" / "ubc"
    assert run(folder, serving) == 0
    assert names_in(folder) == ["liberty", "notredame", "yosemite"]
    for name, count in COUNTS.items():
        patch_set = read_phototour(folder / name, tmp_path / "cache")
        np.testing.assert_array_equal(patch_set.patches, scenes.patches[name])
        assert patch_set.point_ids.tolist() == [i // 2 for i in range(count)]
        assert patch_set.pairs.match.tolist() == [True, False, True]
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o755
    assert f"{folder / 'liberty'}: whole, 300 patches" in capsys.readouterr().out


def test_an_existing_set_is_verified_and_left_alone(
    tmp_path: Path, serving: Mirror, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, serving) == 0
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.*")}
    serving.asked.clear()
    assert run(tmp_path, serving) == 0
    assert serving.asked == []
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.*")} == before
    sheet = tmp_path / "liberty" / "patches0001.bmp"
    sheet.write_bytes(sheet.read_bytes()[:5000])
    assert run(tmp_path, serving) == 1
    assert "patches0001.bmp is cut" in capsys.readouterr().err
    assert sheet.stat().st_size == 5000


def test_chosen_sets_only_and_archives_kept_on_request(
    tmp_path: Path, serving: Mirror, scenes: Scenes
) -> None:
    assert run(tmp_path, serving, "--sets", "notredame", "notredame", "--keep-archives") == 0
    assert names_in(tmp_path) == ["notredame", "notredame.zip"]
    assert (tmp_path / "notredame.zip").read_bytes() == scenes.archives["notredame"]
    assert [path for path, _ in serving.asked] == ["/notredame.zip"]


def test_an_archive_in_the_folder_is_used_instead_of_the_mirrors(
    tmp_path: Path, mirror: Mirror, scenes: Scenes
) -> None:
    members = {f"liberty/{name}": content for name, content in scenes.files["liberty"].items()}
    extras = {"README": b"", "__MACOSX/liberty/._info.txt": b"x", "../outside.sh": b"x"}
    (tmp_path / "liberty.zip").write_bytes(packed(members | extras))
    liberty(tmp_path, mirror)
    assert mirror.asked == []
    assert names_in(tmp_path) == ["liberty"]
    assert set(names_in(tmp_path / "liberty")) == set(scenes.files["liberty"])


def test_ctrl_c_keeps_the_part_and_says_how_to_continue(
    tmp_path: Path,
    serving: Mirror,
    scenes: Scenes,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # A process started in the background of a shell ignores interrupts; this test needs them.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    part = tmp_path / "liberty.zip.part"

    def press() -> None:
        deadline = time.monotonic() + 5
        while not (part.exists() and part.stat().st_size) and time.monotonic() < deadline:
            time.sleep(0.005)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        serving.released.wait(5)

    serving.halfway = press
    status = run(tmp_path, serving)
    serving.released.set()
    assert status == 130
    content = part.read_bytes()
    assert 0 < len(content) < len(scenes.archives["liberty"])
    assert scenes.archives["liberty"].startswith(content)
    assert "the same command continues" in capsys.readouterr().out
    assert names_in(tmp_path) == [part.name]
    assert run(tmp_path, serving, "--sets", "liberty") == 0
    assert serving.asked[-1] == ("/liberty.zip", f"bytes={len(content) - 1}-")


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()])
def test_an_interrupted_unpacking_leaves_the_archive_and_nothing_else(
    tmp_path: Path,
    mirror: Mirror,
    scenes: Scenes,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
) -> None:
    def fail(*_: object) -> None:
        raise error

    (tmp_path / "liberty.zip").write_bytes(scenes.archives["liberty"])
    with monkeypatch.context() as patched:
        patched.setattr(fetching.shutil, "copyfileobj", fail)
        with pytest.raises(type(error)) as caught:
            liberty(tmp_path, mirror)
    if isinstance(error, OSError):
        assert "the disk is full: make room and run again" in str(caught.value)
    assert names_in(tmp_path) == ["liberty.zip"]
    liberty(tmp_path, mirror)
    assert names_in(tmp_path) == ["liberty"]


# Foreign archives


def flipped(whole: bytes) -> bytes:
    damaged = bytearray(whole)
    damaged[whole.index(b"patches0000.bmp") + 5000] ^= 0xFF
    return bytes(damaged)


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: b"<html>Please log in</html>",
        lambda w: w[:-3000],
        flipped,
    ],
    ids=["page", "cut", "flipped"],
)
def test_a_damaged_archive_is_refused(
    tmp_path: Path, mirror: Mirror, scenes: Scenes, damage: Callable[[bytes], bytes]
) -> None:
    (tmp_path / "notredame.zip").write_bytes(damage(scenes.archives["notredame"]))
    with pytest.raises(ValueError, match=r"notredame\.zip does not hold the whole set") as caught:
        fetch(tmp_path / "notredame", COUNTS["notredame"], mirror.url)
    assert str(caught.value).isprintable()
    assert names_in(tmp_path) == ["notredame.zip"]


NAMES = st.lists(
    st.sampled_from(["..", ".", "", "notredame", "info.txt", "patches0000.bmp", "readme", "~", "C:"]),
    min_size=1,
    max_size=4,
).flatmap(lambda parts: st.sampled_from("/\\").map(lambda slash: slash.join(parts)))


@settings(max_examples=60, deadline=None)
@given(names=st.lists(NAMES.filter(bool), max_size=3, unique=True), link=st.booleans())
def test_only_known_member_names_are_written_and_only_into_the_folder(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], link: bool
) -> None:
    root = tmp_path_factory.mktemp("named")
    folder = root / "a" / "b"
    folder.mkdir(parents=True)
    with zipfile.ZipFile(root / "a.zip", "w") as archive:
        for name in names:
            info = zipfile.ZipInfo(name)
            info.create_system, info.external_attr = 3, (stat.S_IFLNK if link else 0) << 16
            archive.writestr(info, "../../outside.txt")
    unpack(root / "a.zip", folder)
    written = {path for path in root.rglob("*") if path.is_file() or path.is_symlink()}
    assert written - {root / "a.zip"} <= {folder / "info.txt", folder / "patches0000.bmp"}
    assert not any(path.is_symlink() for path in written)
