"""Files that are written whole or not at all, and names from outside."""

from __future__ import annotations

import io
from pathlib import Path

import pandas as pd
import pytest

from lib.files import check_name, replacing, write_bytes


class Stopped(Exception):
    """Stand-in for whatever ends a write half-way."""


def stop_half_way(file: Path) -> None:
    with replacing(file) as half:
        half.write_bytes(b"ne")
        raise Stopped


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    write_bytes(file, b"old")
    with pytest.raises(Stopped):
        stop_half_way(file)
    assert file.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [file]


def test_a_file_appears_when_it_is_whole(tmp_path: Path) -> None:
    file = tmp_path / "folder" / "run.json"
    with replacing(file) as half:
        half.write_bytes(b"new")
        assert not file.exists()
    assert file.read_bytes() == b"new"


@pytest.mark.parametrize("name", ["NA", "null", "None", "NaN"])
def test_a_name_that_tables_read_as_missing_is_refused(name: str) -> None:
    read = pd.read_csv(io.StringIO(f"place\n{name}\n"))
    assert read["place"].isna().all()
    with pytest.raises(ValueError, match=f"rename {name!r}.* missing value"):
        check_name(name, "the file of roles")
