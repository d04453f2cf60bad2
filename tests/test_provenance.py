"""The versions of libraries that a run records, where several copies are installed."""

from __future__ import annotations

from importlib import import_module, metadata
from pathlib import Path

import pytest

from lib.study import making


def install(folder: Path, name: str, version: str, recorded: str | None) -> None:
    """Write a library and, unless `recorded` is None, an installer's record of a version."""
    (folder / name).mkdir(parents=True)
    (folder / name / "__init__.py").write_text(f"__version__ = {version!r}\n")
    if recorded:
        write_record(folder, name, recorded)


def write_record(folder: Path, name: str, version: str) -> None:
    record = folder / f"{name}-{version}.dist-info"
    record.mkdir()
    (record / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


@pytest.mark.parametrize("case", ["path", "checkout", "leftover"])
def test_the_recorded_version_is_that_of_the_imported_copy(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"copied_{case}"
    monkeypatch.setattr(making, "LIBRARIES", {name: name})
    install(tmp_path / "other", name, "2.0", "2.0")
    if case != "path":
        monkeypatch.syspath_prepend(tmp_path / "other")
    # A checkout on the path has no installer's record.
    install(tmp_path / "own", name, "1.0", None if case == "checkout" else "1.0")
    if case == "leftover":
        write_record(tmp_path / "own", name, "3.0")
    monkeypatch.syspath_prepend(tmp_path / "own")
    assert import_module(name).__version__ == "1.0"
    if case == "path":
        monkeypatch.syspath_prepend(tmp_path / "other")
        assert metadata.version(name) == "2.0"
    assert making.libraries() == f"{name} 1.0"
    assert making.state()[name] == "1.0"


def test_what_is_not_installed_is_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(making, "LIBRARIES", {"not_installed": "not_installed"})
    assert making.libraries() == ""


def test_a_clusters_check_compares_the_versions_that_runs_record() -> None:
    recorded = dict(library.split(" ") for library in making.libraries().split("; "))
    assert "torch" in recorded
    compared = making.state()
    # A label names a build of the same version.
    assert {name: version.partition("+")[0] for name, version in recorded.items()}.items() <= (
        compared.items()
    )
