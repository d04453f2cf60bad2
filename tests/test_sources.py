"""Sources of patch sets: names, digests, generation that is complete or absent, real folders."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
from small_files import photo_folder, write_set

from lib.data import sources
from lib.data.sources import open_source
from lib.data.synthetic import SyntheticSize
from lib.data.synthetic import scenes as writing

SMALL = SyntheticSize(points_per_photo=30, pairs=40, views=5, longest_side=256)


@pytest.fixture
def real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The three real sets, of twenty patches each."""
    for name in sources.REAL_SETS:
        write_set(tmp_path / "real" / name, 20)
    counts = dict.fromkeys(sources.REAL_SETS, 20)
    monkeypatch.setattr("lib.data.phototour.KNOWN_COUNTS", counts)
    return tmp_path / "real"


def test_importing_sources_imports_nothing_heavy() -> None:
    code = (
        "import sys, lib.data.sources as s\n"
        "source = s.open_source('mini', 'nowhere', s.SyntheticSize())\n"
        "source.digest('mini-a')\n"
        "print([m for m in ('torch', 'cv2', 'skimage', 'sklearn', 'PIL', 'scipy') "
        "if m in sys.modules])"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "[]"
    assert process.stderr == ""


def test_mini_stands_in_for_the_three_real_sets(tmp_path: Path) -> None:
    source = open_source("mini", tmp_path, SMALL)
    assert (source.name, source.embedded) == ("mini", True)
    assert source.sets == ("mini-a", "mini-b", "mini-c")
    scene = source.load("mini-b")
    assert scene.name == "mini-b"
    assert len(scene.patches) == len(scene.point_ids) == len(scene.image_ids) > 100
    assert source.scene_folder("mini-b").is_dir()


def test_digests_distinguish_sets_and_sizes_and_write_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    source = open_source("mini", folder, SMALL)
    digests = [source.digest(name) for name in (*source.sets, *source.reserve)]
    assert len(set(digests)) == 5
    assert all(len(digest) == 8 for digest in digests)
    assert open_source("mini", tmp_path / "other", SMALL).digest("mini-a") == digests[0]
    reseeded = open_source("mini", folder, replace(SMALL, seed=1))
    assert reseeded.digest("mini-a") != digests[0]
    assert not folder.exists()


def test_a_digest_changes_with_the_files_and_the_size_of_a_set(real: Path, tmp_path: Path) -> None:
    names = ["mini-a", "mini-hp-a", "mini-w1bs", "mini-a+mini-hp-a-train"]
    first, second = (open_source("mini", tmp_path, replace(SMALL, seed=seed)) for seed in (0, 1))
    before = [first.digest(name) for name in names]
    assert len(set(before)) == len(names)
    for name in ("mini-a", "mini-a+mini-hp-a-train"):
        assert second.digest(name) != first.digest(name)
    liberty = open_source(str(real), tmp_path, SMALL).digest("liberty")
    (real / "liberty" / "info.txt").write_text("another\n")
    assert open_source(str(real), tmp_path, SMALL).digest("liberty") != liberty


def test_a_generation_cut_short_leaves_nothing_and_can_be_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = open_source("mini", tmp_path, SMALL)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(writing, "draw_pairs", killed)
        with pytest.raises(KeyboardInterrupt):
            source.load("mini-a")
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]
    (tmp_path / ".mini-a.part").mkdir()
    assert len(source.load("mini-a").patches) > 100
    assert [path.name for path in tmp_path.iterdir()] == [source.scene_folder("mini-a").name]


ROOT = Path(__file__).resolve().parents[1]
PREPARING = """
import signal, sys
from pathlib import Path
from lib.data.sources import open_source
from lib.data.synthetic import SyntheticSize
from lib.study.making import prepare

if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    source = open_source("mini", Path(sys.argv[1]), SyntheticSize(points_per_photo=20_000))
    if sys.argv[2] == "1":
        source.load(source.sets[0])
    else:
        prepare(source, source.sets, 2)
"""


@pytest.mark.parametrize(("sent", "jobs"), [(signal.SIGINT, 1), (signal.SIGTERM, 2)])
def test_an_ended_preparation_leaves_nothing_that_the_next_one_stumbles_over(
    tmp_path: Path, sent: signal.Signals, jobs: int
) -> None:
    script, folder = tmp_path / "preparing.py", tmp_path / "data"
    script.write_text(PREPARING)
    process = subprocess.Popen(
        [sys.executable, str(script), str(folder), str(jobs)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 120
    while len(list(folder.glob(".*.part"))) < jobs and time.monotonic() < deadline:
        time.sleep(0.02)
    assert process.poll() is None, "it was still preparing"
    process.send_signal(sent)
    process.wait(30)
    time.sleep(2)
    # What joblib ends without unwinding is removed by the next process that makes the set.
    source = open_source("mini", folder, SMALL)
    for name in source.sets[:jobs]:
        source.load(name)
    assert not list(folder.glob(".*.part"))


@pytest.mark.parametrize("file", ["patches0000.bmp", "info.txt", "scene.json", "checksums.json"])
def test_a_damaged_scene_is_set_aside_and_made_anew(
    tmp_path: Path, file: str, caplog: pytest.LogCaptureFixture
) -> None:
    source = open_source("mini", tmp_path, SMALL)
    whole = source.load("reserve-b").patches.copy()
    path = source.scene_folder("reserve-b") / file
    content = path.read_bytes()[: path.stat().st_size // 2]
    path.write_bytes(content)
    np.testing.assert_array_equal(source.load("reserve-b").patches, whole)
    assert f"{path} is damaged" in caplog.text
    assert (path.parent.with_name(path.parent.name + ".damaged") / file).read_bytes() == content


def test_two_threads_make_a_scene_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    original = writing.write_scene

    def counted(*arguments: object) -> None:
        calls.append(arguments)
        original(*arguments)

    monkeypatch.setattr(writing, "write_scene", counted)
    source = open_source("mini", tmp_path, SMALL)
    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(source.load, ["mini-a", "mini-a"])
    assert len(calls) == 1
    np.testing.assert_array_equal(first.patches, second.patches)


def test_any_folder_of_photographs_makes_three_sets(tmp_path: Path) -> None:
    photo_folder(tmp_path / "photos")
    (tmp_path / "photos" / "broken.jpg").write_text("no image")
    source = open_source(f"photos:{tmp_path / 'photos'}", tmp_path / "data", SMALL)
    assert (source.name, source.embedded) == ("photos", True)
    assert source.skipped == {"broken.jpg": "is cut short or no image"}
    assert source.sets == ("photos-a", "photos-b", "photos-c")
    assert source.reserve == ("reserve-a",)
    assert len(source.load("photos-c").patches) > 20
    before = source.digest("photos-a")
    first = source.patches.photographs["photos-a"][0].path
    cv2.imwrite(str(first), np.zeros((200, 240), np.uint8))
    reopened = open_source(f"photos:{tmp_path / 'photos'}", tmp_path / "data", SMALL)
    assert reopened.digest("photos-a") != before


def test_recorded_photographs_have_their_digests_and_no_pixels(tmp_path: Path) -> None:
    source = open_source(f"photos:{photo_folder(tmp_path / 'photos')}", tmp_path / "data", SMALL)
    names = (*source.sets, *source.reserve, *source.homographies.names)
    digests = {name: source.digest(name) for name in names}
    recorded = open_source("photos", tmp_path / "elsewhere", SMALL, recorded=digests)
    assert (recorded.name, recorded.sets) == (source.name, source.sets)
    assert recorded.homographies.names == source.homographies.names
    assert {name: recorded.digest(name) for name in names} == digests
    with pytest.raises(FileNotFoundError, match=r'photos-a are not on this machine.*"photos:DIR"'):
        recorded.load("photos-a")
    assert not (tmp_path / "elsewhere").exists()


def test_recorded_scenes_have_their_places_and_digests_and_no_photographs(tmp_path: Path) -> None:
    for place in ("church", "square"):
        folder = tmp_path / "scenes" / place / "images"
        folder.mkdir(parents=True)
        for number in range(3):
            (folder / f"{number}.jpg").write_bytes(bytes([number]))
    source = open_source(f"scenes:{tmp_path / 'scenes'}", tmp_path / "data", SMALL)
    digests = {name: source.digest(name) for name in source.scenes.names}
    known = {"recorded": digests, "places": source.scenes.places}
    recorded = open_source("scenes", tmp_path / "elsewhere", SMALL, **known)
    assert (recorded.name, recorded.sets, recorded.reserve) == (source.name, source.sets, source.reserve)
    assert {name: recorded.digest(name) for name in digests} == digests
    with pytest.raises(FileNotFoundError, match=r"church are not on this machine"):
        recorded.load("church")


def test_a_real_set_with_another_count_is_refused(
    real: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lib.data.phototour.KNOWN_COUNTS", {"liberty": 450_092})
    with pytest.raises(ValueError, match="liberty has 20 patches, the original has 450092"):
        open_source(str(real), tmp_path / "data", SMALL).load("liberty")


@pytest.mark.parametrize("file", ["info.txt", "m50_100000_100000_0.txt", "patches0000.bmp"])
def test_a_real_sets_digest_changes_with_its_files(real: Path, tmp_path: Path, file: str) -> None:
    before = open_source(str(real), tmp_path, SMALL).digest("liberty")
    assert open_source(str(real), tmp_path, SMALL).digest("liberty") == before
    with (real / "liberty" / file).open("a") as opened:
        opened.write("\n")
    assert open_source(str(real), tmp_path, SMALL).digest("liberty") != before
