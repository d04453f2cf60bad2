"""`./run_all.sh` from a visitor's side: the plan, refusals, and what is left when it is ended."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from lib.commands import study
from lib.study import open_study, planning

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def planned() -> list[planning.Planned]:
    """All notebooks as the quick study plans them."""
    opened = open_study()
    return [planning.plan(name, opened) for name in planning.names()]


def test_every_runs_cell_can_be_planned(planned: list[planning.Planned]) -> None:
    assert {notebook.name: notebook.failure for notebook in planned if notebook.failure} == {}


def test_a_method_has_one_name_in_all_notebooks(planned: list[planning.Planned]) -> None:
    planning.one_name_each(planning.together(planned))


@pytest.mark.parametrize("name", planning.names())
def test_a_committed_notebook_is_on_record_at_its_own_size(name: str) -> None:
    own = planning.own_parameters(name)
    notebook = planning.plan(name, open_study(name, own["profile"], own["data"]))
    assert notebook.failure == notebook.lacking == ""
    assert notebook.is_on_record(), "run ./run_all.sh --update-reference"


def test_the_reference_lies_within_its_own_repetition(
    planned: list[planning.Planned], tmp_path: Path
) -> None:
    # Own runs, which a visitor has after ./run_all.sh, lie in another folder and are not compared.
    asked = [(replace(part, results=tmp_path), own) for part, own in planning.together(planned)]
    sentence, failures = study._compared(open_study(), asked, [])
    assert not failures
    within, _, count = sentence.split()[:3]
    assert within == count != "0"


def test_help_is_given_before_there_is_an_environment_and_makes_none(tmp_path: Path) -> None:
    script = shutil.copy(ROOT / "run_all.sh", tmp_path)
    answer = subprocess.run(["bash", script, "--help"], capture_output=True, text=True, timeout=60)
    assert answer.returncode == 0
    assert answer.stdout.startswith("./run_all.sh [options]")
    assert [file.name for file in tmp_path.iterdir()] == ["run_all.sh"]


def test_a_complete_reference_is_extended_by_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert study.main(["--extend-reference", "--only", "dsm/*"]) == 0
    assert capsys.readouterr().out.endswith("added to the reference: 0 runs\n")


def test_a_run_that_fails_ends_the_extension_of_a_reference_with_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(study.Study, "make", lambda *_: [("HardNet+", "it diverged")])
    assert study.main(["--extend-reference", "--only", "dsm/table1"]) == 1
    assert "FAILED HardNet+: it diverged" in capsys.readouterr().err


def test_the_plan_makes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--plan", "--only", "adasample/table*", "--results", str(tmp_path / "new")]
    assert study.main(options) == 0
    printed = capsys.readouterr().out
    row = next(line.split() for line in printed.splitlines() if line.startswith("adasample/table3 "))
    # Two methods on three sets, and one at the rate of the other on a set, with five seeds.
    assert row[1:3] == ["35", "35"]
    assert "GB of disk" in printed
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--results", "results/reference/x"], "--update-reference writes"),
        (["--only", "nothing/*"], "leaves no notebook"),
        (["--only", "nothing/*", "--cached"], "leaves no notebook"),
        (["--only", "dsm/*", "--update-reference"], "leave out --only"),
        (["--plan", "--extend-reference"], "leave out --extend-reference"),
        (["--data", "nowhere"], "is no folder"),
        (["--places", "nowhere"], "is no folder"),
    ],
)
def test_an_option_is_refused_in_one_line(
    options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert study.main(options) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert said in line


def _lives(process: psutil.Process) -> bool:
    """Whether a process runs. Where nothing collects orphans, an ended one stays as a zombie."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_an_ended_study_ends_soon_with_all_its_processes(number: int, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "lib.commands", "study", "--only", "dsm/table1", "--results"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    main = subprocess.Popen(
        [*command, str(tmp_path)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )
    until = time.monotonic() + 200
    # The processes have begun to make data.
    while len(list(tmp_path.rglob(".*.part"))) < 2:
        assert main.poll() is None
        assert time.monotonic() < until
        time.sleep(0.1)
    started = psutil.Process(main.pid).children(recursive=True)
    main.send_signal(number)
    sent = time.monotonic()
    main.wait(60)
    while any(map(_lives, started)):
        time.sleep(0.05)
        assert time.monotonic() - sent < 20
    assert main.returncode == {signal.SIGTERM: 143, signal.SIGINT: 130, signal.SIGKILL: -9}[number]
    assert not [file for file in tmp_path.rglob("*") if ".half" in file.name]
