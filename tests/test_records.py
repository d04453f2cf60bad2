"""Records and probes: whole or not at all, and what is wrong with one is said."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import numpy as np
import pytest

from lib import files as atomic
from lib.study import records

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


def test_a_number_that_is_not_finite_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        records.write(tmp_path / "a.json", {**RECORD, "seconds": float("nan")})
    assert not (tmp_path / "a.json").exists()


@pytest.mark.parametrize("content", ["", '{"kind": "run"', "[]", '{"kind": "run"}', "\0\0"])
def test_a_damaged_record_is_named(content: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(content)
    with pytest.raises(records.DamagedRecord, match=r"a\.json is damaged"):
        records.read(path)
    aside = atomic.set_aside(path)
    assert aside.read_text() == content, "a damaged record is kept for whoever wants to look"
    assert not path.exists()


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


def test_a_probe_reads_as_it_was_written(tmp_path: Path) -> None:
    arrays = {"edges": np.linspace(0, 2, 5, dtype=np.float32), "counts": np.arange(4, dtype=np.int32)}
    records.write_probe(tmp_path / "a.npz", arrays)
    read = records.read_probe(tmp_path / "a.npz")
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


def test_a_damaged_probe_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    path.write_bytes(b"PK\x03\x04 and then nothing")
    with pytest.raises(records.DamagedRecord, match=r"a\.npz is damaged"):
        records.read_probe(path)


def test_a_probe_of_pickled_objects_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, x=np.array([{}], dtype=object))
    with pytest.raises(records.DamagedRecord, match=r"a\.npz is damaged"):
        records.read_probe(path)


def test_records_are_readable_text(tmp_path: Path) -> None:
    records.write(tmp_path / "a.json", RECORD)
    text = (tmp_path / "a.json").read_text(encoding="utf-8")
    assert "λ" in text
    assert text.endswith("}\n")
    assert list(json.loads(text)) == list(RECORD), "keys stay in the order given"
