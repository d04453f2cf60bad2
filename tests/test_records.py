"""Records and probes: written whole or not at all, and damage is reported."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import numpy as np
import pytest

from lib import files as atomic
from lib.study import records
from lib.study.open import REFERENCE

RECORD = {
    "kind": "run",
    "name": "hardnet",
    "config": {"λ": 10},
    "digests": {"training": "0", "evaluation": {}, "data": {}},
    "metrics": {},
}


def test_a_record_reads_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b.json"
    records.write(path, RECORD)
    assert records.read(path) == RECORD
    assert list(path.parent.iterdir()) == [path], "nothing else is left in the folder"


@pytest.mark.parametrize("content", ["", "null", '{"kind": "run"}', "[" * 100_000, "9" * 5000])
def test_a_damaged_record_is_named(content: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(content)
    with pytest.raises(records.DamagedRecord, match=r"a\.json is damaged"):
        records.read(path)


@pytest.mark.parametrize("name", ["curve", "digests", "metrics", "probes", "seed", "seal"])
def test_a_record_with_any_changed_entry_is_damaged(name: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    reference = next((REFERENCE / "quick" / "mini" / "records" / "hardnet").glob("*-seed0-*.json"))
    record = json.loads(reference.read_bytes())
    changed = next(iter(record[name].values())) if isinstance(record[name], dict) else 1
    for content in ({**record, name: changed}, {key: record[key] for key in record if key != name}):
        path.write_text(json.dumps(content))
        with pytest.raises(records.DamagedRecord, match=r"a\.json is damaged"):
            records.read(path)


def test_formatting_is_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    records.write(path, {**RECORD, "by rate": {9: 1.0, 10: 2.0}})
    content = json.loads(path.read_text())
    path.write_text("\r\n".join(json.dumps(content, indent=7, sort_keys=True).splitlines()))
    assert records.read(path)["by rate"] == {"9": 1.0, "10": 2.0}


def test_a_write_that_fails_leaves_the_old_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.json"
    records.write(path, RECORD)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(atomic.os, "fsync", full)
    with pytest.raises(OSError, match="the disk is full") as caught:
        records.write(path, {**RECORD, "name": "other"})
    assert caught.value.errno == errno.ENOSPC
    assert records.read(path) == RECORD
    assert list(tmp_path.iterdir()) == [path]


def replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    "damage",
    [
        lambda cache: (cache / atomic.CHECKSUMS).write_text("{}") and (cache / "a").write_text("other"),
        lambda cache: (cache / "unlisted").touch(),
        lambda cache: (cache / "a").unlink(),
        lambda cache: replace_by_folder(cache / "a"),
        lambda cache: replace_by_folder(cache / atomic.CHECKSUMS),
        lambda cache: (atomic.shutil.rmtree(cache), cache.touch()),
        lambda cache: (cache.with_name("made.damaged").touch(), (cache / "a").write_text("other")),
    ],
)
def test_a_cache_with_any_damage_is_made_anew(damage, tmp_path: Path) -> None:
    cache = tmp_path / "made"
    for spoil in (damage, lambda _: None):
        atomic.make_checked(cache, "made", lambda new: (new / "a").write_text("whole"))
        assert (cache / "a").read_text() == "whole"
        assert sorted(path.name for path in cache.iterdir()) == ["a", atomic.CHECKSUMS]
        spoil(cache)


def test_a_probe_reads_as_it_was_written(tmp_path: Path) -> None:
    arrays = {"edges": np.linspace(0, 2, 5, dtype=np.float32), "counts": np.arange(4, dtype=np.int32)}
    expected = records.write_probe(tmp_path / "a.npz", arrays)
    assert records.is_whole(tmp_path / "a.npz", expected)
    read = records.read_probe(tmp_path / "a.npz", expected)
    assert all(np.array_equal(read[name], value) for name, value in arrays.items())


def test_a_probe_has_the_same_bytes_each_time(tmp_path: Path) -> None:
    for name in "ab":
        records.write_probe(tmp_path / f"{name}.npz", {"x": np.arange(100)})
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_a_probe_above_200_kB_is_refused(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 255, 300_000, dtype=np.uint8)
    with pytest.raises(ValueError, match="bin it to 200,000"):
        records.write_probe(tmp_path / "a.npz", {"x": noise})
    assert not (tmp_path / "a.npz").exists()
