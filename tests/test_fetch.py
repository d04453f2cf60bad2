"""The three sets come into their places whole and verified, or not at all."""

from __future__ import annotations

import errno
import io
import os
import re
import signal
import stat
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock
from phototour_mirror import (
    COUNTS,
    PATIENT,
    Mirror,
    Scenes,
    packed,
    running,
    tiny_scenes,
    visible,
    with_free,
)

from lib.commands.fetch import bounds_of, fetch_set, main, verify_set
from lib.data.download import part_path
from lib.data.phototour import read_phototour


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Scenes:
    return tiny_scenes(tmp_path_factory.mktemp("scenes"))


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mirror]:
    with running(monkeypatch) as kept:
        yield kept


@pytest.fixture
def serving(mirror: Mirror, scenes: Scenes) -> Mirror:
    mirror.files = {f"/{name}.zip": content for name, content in scenes.archives.items()}
    return mirror


def liberty(folder: Path, mirror: Mirror, **options: object) -> str:
    return fetch_set(folder, "liberty", mirror.url, COUNTS, patience=PATIENT, **options)


def run(folder: Path, mirror: Mirror, *more: str) -> int:
    return main([str(folder), "--mirror", mirror.url, *more], COUNTS, PATIENT)


@pytest.fixture
def unpacking(tmp_path: Path, mirror: Mirror) -> Callable[[bytes], str]:
    """Takes an archive of notredame as if it had been fetched; nothing but it may lie there after."""

    def unpack_it(archive: bytes) -> str:
        (tmp_path / "notredame.zip").write_bytes(archive)
        try:
            return fetch_set(tmp_path, "notredame", mirror.url, COUNTS)
        except ValueError:
            assert visible(tmp_path) == ["notredame.zip"]
            raise

    return unpack_it


def test_all_three_sets_are_fetched_and_read(
    tmp_path: Path, serving: Mirror, scenes: Scenes, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "new" / "ubc"
    assert run(folder, serving) == 0
    assert visible(folder) == ["liberty", "notredame", "yosemite"]
    for name, count in COUNTS.items():
        read = read_phototour(folder / name, tmp_path / "cache")
        np.testing.assert_array_equal(read.patches, scenes.patches[name])
        assert read.point_ids.tolist() == [i // 2 for i in range(count)]
        assert read.image_ids.tolist() == [i % 7 for i in range(count)]
        assert read.pairs.match.tolist() == [True, False]
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o755
    told = capsys.readouterr().out
    assert "liberty: 300 patches in" in told
    assert f"./run_all.sh --data {folder}" in told


def test_a_set_already_there_is_verified_and_left_alone(
    tmp_path: Path, serving: Mirror, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, serving) == 0
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.*")}
    serving.asked.clear()
    assert run(tmp_path, serving) == 0
    assert serving.asked == []
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.*")} == before
    assert "liberty: already there and whole, 300 patches; left alone" in capsys.readouterr().out


def test_a_damaged_set_already_there_is_named_and_not_overwritten(
    tmp_path: Path, serving: Mirror, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, serving, "--sets", "liberty") == 0
    sheet = tmp_path / "liberty" / "patches0001.bmp"
    sheet.write_bytes(sheet.read_bytes()[:5000])
    assert run(tmp_path, serving) == 1
    told = capsys.readouterr().err
    assert str(sheet) in told
    assert "move it away or delete it" in told
    assert sheet.stat().st_size == 5000


def test_chosen_sets_only_and_archives_kept_on_request(
    tmp_path: Path, serving: Mirror, scenes: Scenes
) -> None:
    assert run(tmp_path, serving, "--sets", "notredame", "notredame", "--keep-archives") == 0
    assert visible(tmp_path) == ["notredame", "notredame.zip"]
    assert (tmp_path / "notredame.zip").read_bytes() == scenes.archives["notredame"]
    assert [path for path, _ in serving.asked] == ["/notredame.zip"]


def test_an_archive_that_lies_there_is_taken_instead_of_the_mirrors(
    tmp_path: Path, mirror: Mirror, scenes: Scenes
) -> None:
    (tmp_path / "liberty.zip").write_bytes(scenes.archives["liberty"])
    liberty(tmp_path, mirror)
    assert mirror.asked == []
    verify_set(tmp_path / "liberty", 300)


@pytest.mark.parametrize("arguments", [[], ["--sets", "trevi"], ["--mirror", "file:///etc/"]])
def test_a_wrong_command_line_exits_with_two(
    tmp_path: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        main([str(tmp_path), *arguments] if arguments else [], COUNTS)
    assert exit_.value.code == 2
    assert "usage: python -m lib.commands.fetch" in capsys.readouterr().err


def test_a_folder_that_cannot_be_made_is_told(
    tmp_path: Path, serving: Mirror, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert run(tmp_path / "file" / "ubc", serving) == 1
    assert f"fetch: {tmp_path / 'file' / 'ubc'} cannot be made" in capsys.readouterr().err


def test_two_processes_do_not_fetch_one_set_at_once(
    tmp_path: Path, serving: Mirror, capsys: pytest.CaptureFixture[str]
) -> None:
    with FileLock(tmp_path / ".liberty.lock"):
        assert run(tmp_path, serving) == 1
    assert "another process is fetching liberty" in capsys.readouterr().err
    assert serving.asked == []


def test_a_part_left_by_an_earlier_command_is_continued(
    tmp_path: Path, serving: Mirror, scenes: Scenes, capsys: pytest.CaptureFixture[str]
) -> None:
    serving.cuts = [100_000] * PATIENT.tries
    assert run(tmp_path, serving, "--sets", "liberty") == 1
    part = tmp_path / "liberty.zip.part"
    assert part.read_bytes() == scenes.archives["liberty"][:300_000]
    told = capsys.readouterr().err
    assert f"300,000 bytes are kept in {part}: run the same command to continue" in told
    assert run(tmp_path, serving, "--sets", "liberty") == 0
    assert serving.asked[-1] == ("/liberty.zip", "bytes=300000-")
    assert visible(tmp_path) == ["liberty"]


def test_a_part_of_another_mirror_is_not_continued(tmp_path: Path, serving: Mirror) -> None:
    serving.cuts = [400_000] * PATIENT.tries
    with pytest.raises(OSError, match="cut off"):
        liberty(tmp_path, serving)
    serving.cuts.clear()
    serving.files["/other/liberty.zip"] = serving.files["/liberty.zip"]
    fetch_set(tmp_path, "liberty", serving.url + "other", COUNTS, patience=PATIENT)
    assert serving.asked[-1] == ("/other/liberty.zip", None)


def test_a_file_shorter_than_its_stated_length_is_never_taken_for_whole(
    tmp_path: Path, serving: Mirror, capsys: pytest.CaptureFixture[str]
) -> None:
    serving.length_error = 1000
    assert run(tmp_path, serving) == 1
    assert "cut off after" in capsys.readouterr().err
    assert len(serving.asked) == PATIENT.tries
    assert not (tmp_path / "liberty.zip").exists()
    assert not (tmp_path / "liberty").exists()


def test_a_stated_length_short_of_the_file_gives_an_archive_that_is_refused(
    tmp_path: Path, serving: Mirror
) -> None:
    serving.length_error = -1000
    with pytest.raises(ValueError, match="no ZIP archive"):
        liberty(tmp_path, serving)
    assert visible(tmp_path) == ["liberty.zip"]


def test_a_missing_file_is_told_at_once_with_its_address(
    tmp_path: Path, mirror: Mirror, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, mirror) == 1
    told = capsys.readouterr().err
    assert f"{mirror.url}liberty.zip: the server answers 404 Not Found" in told
    assert "name another mirror" in told
    assert len(mirror.asked) == 1


def test_ctrl_c_keeps_the_part_and_says_how_to_continue(
    tmp_path: Path,
    serving: Mirror,
    scenes: Scenes,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # A process started in the background of a shell ignores interrupts; this test wants them.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    part = part_path(tmp_path / "liberty.zip")

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
    kept = part.read_bytes()
    assert 0 < len(kept) < len(scenes.archives["liberty"])
    assert scenes.archives["liberty"].startswith(kept)
    assert f"Kept: {part} ({len(kept):,} bytes); the same command continues" in capsys.readouterr().out
    assert run(tmp_path, serving, "--sets", "liberty") == 0
    assert serving.asked[-1] == ("/liberty.zip", f"bytes={len(kept)}-")


def test_too_little_room_is_told_before_anything_is_fetched(
    tmp_path: Path,
    serving: Mirror,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    needed = sum(bounds_of(name, count).most_bytes for name, count in COUNTS.items())
    with_free(monkeypatch, needed - 1)
    assert run(tmp_path, serving) == 1
    assert serving.asked == []
    assert "make room, give another folder or fetch fewer with --sets" in capsys.readouterr().err


def test_the_archive_and_what_comes_out_of_it_must_both_fit(
    tmp_path: Path, serving: Mirror, scenes: Scenes, monkeypatch: pytest.MonkeyPatch
) -> None:
    spare = bounds_of("liberty", 300).most_bytes
    with_free(monkeypatch, spare + len(scenes.archives["liberty"]) - 1)
    with pytest.raises(OSError, match="to unpack don't fit: make room") as caught:
        liberty(tmp_path, serving)
    assert caught.value.errno == errno.ENOSPC
    assert visible(tmp_path) == []


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()])
def test_an_interrupted_unpacking_leaves_the_archive_and_nothing_else(
    tmp_path: Path,
    mirror: Mirror,
    scenes: Scenes,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
) -> None:
    def fail(_: int) -> None:
        raise error

    (tmp_path / "liberty.zip").write_bytes(scenes.archives["liberty"])
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fail)
        with pytest.raises(type(error)) as caught:
            liberty(tmp_path, mirror)
    if isinstance(error, OSError):
        assert "the disk is full: make room and run again, the archive is kept" in str(caught.value)
    assert visible(tmp_path) == ["liberty.zip"]
    liberty(tmp_path, mirror)
    assert visible(tmp_path) == ["liberty"]


def test_unpacking_is_refused_where_it_would_not_fit(
    tmp_path: Path, mirror: Mirror, scenes: Scenes, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "liberty.zip").write_bytes(scenes.archives["liberty"])
    with_free(monkeypatch, sum(map(len, scenes.files["liberty"].values())) - 1)
    with pytest.raises(OSError, match=r"unpacking needs 0\.0 GB: make room"):
        liberty(tmp_path, mirror)
    assert visible(tmp_path) == ["liberty.zip"]


def test_what_a_killed_process_left_half_unpacked_is_removed(tmp_path: Path, serving: Mirror) -> None:
    (tmp_path / ".liberty-k1lled.part").mkdir()
    (tmp_path / ".liberty-k1lled.part" / "info.txt").write_text("0 0\n")
    liberty(tmp_path, serving)
    assert visible(tmp_path) == ["liberty"]


@pytest.mark.parametrize("difference", [-2, 2])
def test_a_set_of_another_number_of_patches_is_refused(
    tmp_path: Path, serving: Mirror, difference: int, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = COUNTS | {"liberty": 300 + difference}
    assert main([str(tmp_path), "--mirror", serving.url], wrong, PATIENT) == 1
    told = capsys.readouterr().err
    original = f"info.txt has 300 lines, the original {300 + difference}"
    assert f"liberty.zip does not hold liberty: {original}" in told
    assert "Delete the archive and fetch it again, or from another mirror" in told
    assert visible(tmp_path) == ["liberty.zip"]


def altered(files: dict[str, bytes], name: str, content: bytes | None) -> bytes:
    kept = {key: value for key, value in files.items() if key != name}
    return packed(kept if content is None else kept | {name: content})


def small_bmp() -> bytes:
    from PIL import Image

    buffer = io.BytesIO()
    noise = np.random.default_rng(0).integers(0, 256, (512, 512), dtype=np.uint8)
    Image.fromarray(noise).save(buffer, "bmp")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("name", "change", "told"),
    [
        ("patches0000.bmp", lambda old: old[:-1], "patches0000.bmp is cut short"),
        ("patches0000.bmp", lambda _: small_bmp(), "patches0000.bmp is 512x512 px"),
        ("patches0000.bmp", lambda _: None, "holds no patches0000.bmp"),
        ("info.txt", lambda _: None, "info.txt is missing"),
        ("info.txt", lambda old: old + b"9 9\n", "info.txt has 21 lines"),
        ("info.txt", lambda old: b"x" + old[1:], "info.txt, line 1: whole numbers expected"),
        ("interest.txt", lambda old: old + b"0 1 1 0 1\n", "interest.txt has 21 lines for 20 patches"),
        ("m50_100000_100000_0.txt", lambda _: None, "m50_100000_100000_0.txt is missing"),
        ("m50_100000_100000_0.txt", lambda _: b"0 0 0 20 0 0\n", "patches 0 and 20"),
    ],
)
def test_content_that_could_not_be_loaded_is_refused_by_file(
    unpacking: Callable[[bytes], str],
    scenes: Scenes,
    name: str,
    change: Callable[[bytes], bytes | None],
    told: str,
) -> None:
    files = scenes.files["notredame"]
    with pytest.raises(ValueError, match=re.escape(told)):
        unpacking(altered(files, name, change(files[name])))
