"""Sources of sets: names, digests, generation that is complete or absent, real folders."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from small_files import write_set

from lib.data import sources
from lib.data.phototour import MATCHES
from lib.data.sources import HPatchesSets, open_source
from lib.data.synthetic import SequencesSize
from lib.data.synthetic import sequences as writing
from lib.data.synthetic.photographs import packaged_photographs

TINY = SequencesSize(
    longest_side=100, patches_per_sequence=6, pairs=20, queries=4, distractors=8, seed=1
)
NAME = "tiny-full"


@pytest.fixture
def real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The three real sets, of twenty patches each."""
    for name in sources.REAL_SETS:
        write_set(tmp_path / "real" / name, 20)
    counts = dict.fromkeys(sources.REAL_SETS, 20)
    monkeypatch.setattr("lib.data.phototour.KNOWN_COUNTS", counts)
    monkeypatch.setattr("lib.data.phototour.KNOWN_PAIRS", 3)
    return tmp_path / "real"


def generated(folder: Path) -> HPatchesSets:
    """Sets that are generated from one photograph."""
    return HPatchesSets("tiny", folder, TINY, packaged_photographs()[:1])


def first_patches(sets: HPatchesSets) -> np.ndarray:
    return sets.load(NAME).sequences[0].patches("e2").copy()


def test_importing_sources_imports_nothing_heavy() -> None:
    code = (
        "import sys, lib.data.sources as s\n"
        "source = s.open_source('free', 'nowhere')\n"
        "for name in ('banana', 'free-hp-a', 'free-w1bs', 'free-eth'): source.digest(name)\n"
        "print([m for m in ('torch', 'cv2', 'skimage', 'sklearn', 'PIL', 'scipy') "
        "if m in sys.modules])"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "[]"
    assert process.stderr == ""


def test_digests_distinguish_sets_and_sizes_and_write_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    source = open_source("free", folder)
    names = ["banana", "banana-wide", "conch", "free-hp-a", "free-w1bs", source.united]
    digests = [source.digest(name) for name in names]
    assert len(set(digests)) == len(names)
    assert all(len(digest) == 8 for digest in digests)
    assert open_source("free", tmp_path / "other").digest("free-hp-a") == source.digest("free-hp-a")
    reseeded = open_source("free", folder, SequencesSize(seed=1))
    for name in ("free-hp-a", source.united):
        assert reseeded.digest(name) != source.digest(name)
    assert not folder.exists()


def test_a_generation_cut_short_leaves_nothing_and_can_be_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sets = generated(tmp_path)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(writing, "pack", killed)
        with pytest.raises(KeyboardInterrupt):
            sets.load(NAME)
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]
    (tmp_path / ".tiny.part").mkdir()
    assert len(first_patches(sets)) == 6
    assert [path.name for path in tmp_path.iterdir()] == [sets.root.name]


ROOT = Path(__file__).resolve().parents[1]
PREPARING = """
import signal, sys
from pathlib import Path
from lib.data.sources import open_source
from lib.study.making import prepare

if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    source = open_source("free", Path(sys.argv[1]))
    if sys.argv[2] == "1":
        source.load("free-w1bs")
    else:
        prepare(source, ["free-w1bs", "free-oxford_affine"], 2)
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
    source = open_source("free", folder)
    for name in ("free-w1bs", "free-oxford_affine")[:jobs]:
        source.load(name)
    assert not list(folder.glob(".*.part"))


@pytest.mark.parametrize("file", ["build.json", "checksums.json", "tasks/splits.json"])
def test_a_damaged_set_is_set_aside_and_made_anew(
    tmp_path: Path, file: str, caplog: pytest.LogCaptureFixture
) -> None:
    whole = first_patches(generated(tmp_path))
    path = generated(tmp_path).root / file
    content = path.read_bytes()[: path.stat().st_size // 2]
    path.write_bytes(content)
    np.testing.assert_array_equal(first_patches(generated(tmp_path)), whole)
    root = generated(tmp_path).root
    assert f"{path} is damaged" in caplog.text
    assert (root.with_name(f"{root.name}.damaged") / file).read_bytes() == content


def test_two_threads_make_a_set_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    original = writing.write_hpatches

    def counted(*arguments: object) -> None:
        calls.append(arguments)
        original(*arguments)

    monkeypatch.setattr(writing, "write_hpatches", counted)
    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(first_patches, [generated(tmp_path)] * 2)
    assert len(calls) == 1
    np.testing.assert_array_equal(first, second)


def test_recorded_photographs_have_their_digests_and_no_pixels(tmp_path: Path) -> None:
    digests = {"photos-a": "964b6b6e", "photos-b": "b72f79c9", "photos-hp-full": "d1b81c5b"}
    source = open_source("photos", tmp_path / "data", recorded=digests)
    assert source.sets == ("photos-a", "photos-b", "photos-c")
    assert source.reserve == ("reserve-a", "reserve-b")
    assert source.united == "photos-a+photos-hp-a-train"
    assert {name: source.digest(name) for name in digests} == digests
    assert source.digest("photos-c") == "unlisted"
    with pytest.raises(FileNotFoundError, match=r'photos-a are not on this machine.*"places:DIR"'):
        source.load("photos-a")
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("data", ["", "photos", "photos:pictures"])
def test_what_names_no_data_is_refused(tmp_path: Path, data: str) -> None:
    with pytest.raises(ValueError, match="names no data"):
        open_source(data, tmp_path)


def scenes_of(folder: Path, *places: str) -> Path:
    """Write places whose three photographs have different bytes and are no pictures."""
    for place in places:
        images = folder / place / "images"
        images.mkdir(parents=True)
        for number in range(3):
            (images / f"{number}.jpg").write_bytes(bytes([number]))
    return folder


def test_networks_trained_on_places_are_tested_on_what_the_repository_has(tmp_path: Path) -> None:
    scenes = scenes_of(tmp_path / "scenes", "church", "square")
    source = open_source(f"places:{scenes}", tmp_path / "data")
    free = open_source("free", tmp_path / "data")
    for name in ("free-hp-full", "free-oxford_affine", "free-landmarks"):
        assert source.digest(name) == free.digest(name)
    # None of these images shows the folder's own places, so that all are joined.
    assert source.united == "church+square+free-hp-a-train"


def test_a_folder_with_a_place_of_the_repository_is_not_tested_on_its_images(tmp_path: Path) -> None:
    source = open_source(f"places:{scenes_of(tmp_path / 'scenes', 'banana', 'x')}", tmp_path / "data")
    assert source.own_hpatches is None
    assert source.own_images is None


def test_recorded_scenes_have_their_places_and_digests_and_no_photographs(tmp_path: Path) -> None:
    scenes = scenes_of(tmp_path / "scenes", "church", "square")
    source = open_source(f"places:{scenes}", tmp_path / "data")
    digests = {name: source.digest(name) for name in source.scenes.names}
    known = {"recorded": digests, "places": source.scenes.places}
    recorded = open_source("places", tmp_path / "elsewhere", **known)
    assert (recorded.name, recorded.sets, recorded.reserve) == (source.name, source.sets, source.reserve)
    assert {name: recorded.digest(name) for name in digests} == digests
    with pytest.raises(FileNotFoundError, match=r"church are not on this machine"):
        recorded.load("church")


def test_the_released_sets_are_read_where_they_lie(real: Path, tmp_path: Path) -> None:
    source = open_source(str(real), tmp_path / "data")
    assert (source.name, source.sets, source.tested) == ("ubc", sources.REAL_SETS, sources.REAL_SETS)
    assert source.scene_folder("liberty") == real / "liberty"
    assert len(source.load("liberty").patches) == 20
    # Searches take two places of the repository, since all three are tested on.
    assert source.reserve == ("boruszyn", "caliterra")
    assert source.digest("caliterra") == open_source("free", tmp_path).digest("caliterra")


def test_a_real_set_with_another_count_is_refused(
    real: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lib.data.phototour.KNOWN_COUNTS", {"liberty": 450_092})
    with pytest.raises(ValueError, match="liberty has 20 patches, the original has 450092"):
        open_source(str(real), tmp_path / "data").load("liberty")


def test_a_real_set_whose_match_file_is_cut_short_is_refused(real: Path, tmp_path: Path) -> None:
    matches = real / "liberty" / MATCHES
    matches.write_text("".join(matches.read_text().splitlines(keepends=True)[:2]))
    with pytest.raises(ValueError, match=f"{MATCHES} has 2 pairs, the original has 3"):
        open_source(str(real), tmp_path / "data").load("liberty")


@pytest.mark.parametrize("file", ["info.txt", "m50_100000_100000_0.txt", "patches0000.bmp"])
def test_a_real_sets_digest_changes_with_its_files(real: Path, tmp_path: Path, file: str) -> None:
    before = open_source(str(real), tmp_path).digest("liberty")
    assert open_source(str(real), tmp_path).digest("liberty") == before
    with (real / "liberty" / file).open("a") as opened:
        opened.write("\n")
    assert open_source(str(real), tmp_path).digest("liberty") != before
