"""`./run_all.sh --cached` where files of the committed reference are missing or damaged."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from lib.study import open_study, planning
from lib.study.reference import deleted_files
from lib.study.requests import configuration, identity
from lib.study.store import Reference

ROOT = Path(__file__).resolve().parents[1]
# A notebook without training that needs one computation, and one of trained runs.
COMPUTED, TRAINED = "hynet/figure3", "hynet/epochs"
QUICK = "results/reference/quick"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository of the study with two notebooks and the reference that they show."""
    root = tmp_path / "checkout"
    shutil.copytree(ROOT / "lib", root / "lib", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / QUICK, root / QUICK)
    # The report's index begins with README's question and answer.
    shutil.copy(ROOT / "README.md", root)
    (root / "data").symlink_to(ROOT / "data")
    for name in (COMPUTED, TRAINED):
        copy = root / "notebooks" / f"{name}.ipynb"
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(planning.path_of(name), copy)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for arguments in (["init", "-q"], ["add", "notebooks", "results"], ["commit", "-qm", "all"]):
        subprocess.run([*git, *arguments], cwd=root, check=True)
    return root


def cached(root: Path, only: str) -> subprocess.CompletedProcess[str]:
    """Render notebooks of a checkout from its reference."""
    command = [sys.executable, "-m", "lib.commands", "study", "--cached", "--jobs", "1"]
    return subprocess.run(
        [*command, "--only", only, "--results", str(root / "results" / "new")],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        timeout=300,
    )


def first_run(name: str) -> str:
    """Return the identity of the first run that a notebook asks for."""
    [(study, requests), *_] = planning.plan(name, open_study(name)).asked
    return identity(configuration(requests[0], study.source))


def failed(ended: subprocess.CompletedProcess[str], root: Path) -> list[str]:
    """Return the lines that name a failure, of a command that ended with the report's index."""
    assert ended.returncode == 1
    assert (root / "results" / "new" / "report" / "index.html").exists()
    return [line for line in ended.stderr.splitlines() if line.startswith("FAILED")]


def test_all_committed_files_that_are_missing_are_named(checkout: Path) -> None:
    """Also those that no notebook reads, and a notebook itself."""
    missing = [
        f"notebooks/{TRAINED}.ipynb",
        f"{QUICK}/searches.csv",
        f"{QUICK}/tables/{TRAINED}_ratios.csv",
    ]
    for path in missing:
        (checkout / path).unlink()
    (checkout / "notebooks" / f"{COMPUTED}.ipynb").write_text("{")
    lines = failed(cached(checkout, "*"), checkout)
    assert [line.split()[1].rstrip(":") for line in lines] == [*missing, COMPUTED]


def test_a_notebook_whose_runs_have_lost_their_curves_fails_by_their_file(checkout: Path) -> None:
    arrays = checkout / QUICK / "arrays" / f"{first_run(TRAINED)}.npz"
    arrays.unlink()
    [line] = failed(cached(checkout, TRAINED), checkout)
    assert f"FAILED {TRAINED}: {arrays} is missing" in line


def test_a_notebook_whose_numbers_are_damaged_fails_by_their_file(checkout: Path) -> None:
    damaged = checkout / QUICK / "metrics.csv"
    damaged.write_bytes(damaged.read_bytes()[:40000] + b"a,b,c,d,e,f,g,h,i,j,k,l,m,n,o")
    [line] = failed(cached(checkout, TRAINED), checkout)
    assert f"FAILED {TRAINED}: " in line
    assert f"{damaged} is damaged" in line


def test_a_whole_reference_is_rendered(checkout: Path) -> None:
    ended = cached(checkout, COMPUTED)
    assert ended.returncode == 0, ended.stderr
    assert (checkout / "results/new/report/evidence" / f"{COMPUTED}.html").exists()


def test_of_missing_files_a_pattern_keeps_its_notebooks_and_what_they_saved(checkout: Path) -> None:
    saved = f"{QUICK}/tables/{TRAINED}_ratios.csv"
    for path in (f"notebooks/{TRAINED}.ipynb", saved, f"{QUICK}/searches.csv"):
        (checkout / path).unlink()
    assert deleted_files(checkout, TRAINED) == [f"notebooks/{TRAINED}.ipynb", saved]
    assert deleted_files(checkout, COMPUTED) == []


@pytest.mark.parametrize("table", ["metrics", "runs", "sets", "searches"])
@pytest.mark.parametrize("content", [b"", b"\xe8\x00", b'run,method\na,b,c\n"', b"run,label\na,b\n"])
def test_a_table_of_the_reference_that_is_damaged_is_named(
    tmp_path: Path, table: str, content: bytes
) -> None:
    path = tmp_path / f"{table}.csv"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"{path} is damaged: ") as refused:
        getattr(Reference(tmp_path), table)
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize("table", ["metrics", "runs", "sets"])
def test_a_table_that_the_others_need_is_named_where_it_is_missing(tmp_path: Path, table: str) -> None:
    for name in {"metrics", "runs", "sets"} - {table}:
        shutil.copyfile(ROOT / QUICK / f"{name}.csv", tmp_path / f"{name}.csv")
    # A source is opened by the sets, and a run is found by the other two.
    reference, run = Reference(tmp_path), first_run(TRAINED)
    by_run = partial(reference.find, run, "free")
    read = partial(reference.recorded, "free") if table == "sets" else by_run
    with pytest.raises(FileNotFoundError, match=f"{tmp_path / table}.csv is missing"):
        read()


@pytest.mark.parametrize("name", [COMPUTED, TRAINED])
@pytest.mark.parametrize("damage", ["missing", "damaged"])
def test_arrays_of_the_reference_that_are_missing_or_damaged_are_named(
    checkout: Path, name: str, damage: str
) -> None:
    reference, run = Reference(checkout / QUICK), first_run(name)
    arrays = reference.folder / "arrays" / f"{run}.npz"
    if damage == "missing":
        arrays.unlink()
    else:
        arrays.write_bytes(arrays.read_bytes()[:-100])
    for read in (lambda: reference.find(run, "free"), lambda: reference.arrays_of(run)):
        with pytest.raises((FileNotFoundError, ValueError), match=f"{arrays} is {damage}"):
            read()
