"""The study as a visitor meets it: records made cold, shared, set aside; options that are refused."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch

from lib import recipes, training
from lib.commands import study
from lib.experiments.artefacts import ARTEFACTS, Artefact
from lib.experiments.rows import training_job
from lib.reporting.page import rendering
from lib.study import jobs, pool, records, runs
from lib.study.jobs import Job
from lib.study.open import ROOT, Study, open_study
from lib.study.runs import carry_out, load_weights, weights_path


@pytest.fixture(scope="session")
def cold(tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, Job, Path]:
    """One recipe trained cold into a temporary folder, at the quick size, as run_all.sh does it."""
    opened = open_study(results=str(tmp_path_factory.mktemp("results")))
    job = training_job(opened, "hardnet", "mini-a", 0)
    return opened, job, carry_out(job, opened.place)


def test_a_recipe_trained_cold_leaves_a_whole_record(cold: tuple[Study, Job, Path]) -> None:
    opened, job, path = cold
    record = records.read(path)
    assert record["config"] == jobs.configuration(job, opened.place)
    assert record["digests"] == jobs.digests(job, opened.place)
    assert set(record["metrics"]) == {"mini-b", "mini-c"}
    assert all(0 < record["metrics"][name]["fpr95"]["expected"] < 50 for name in record["metrics"])
    assert all(len(by_epoch) == 5 for by_epoch in record["epoch_fpr95"].values())
    last = {name: by_epoch[-1] for name, by_epoch in record["epoch_fpr95"].items()}
    assert last == {name: record["metrics"][name]["fpr95"]["expected"] for name in last}
    assert weights_path(path).exists()
    assert jobs.state(job, opened.place) == "complete"


def test_the_reference_is_what_the_code_makes(cold: tuple[Study, Job, Path]) -> None:
    opened, job, path = cold
    ours = records.read(path)
    theirs = records.read(jobs.record_path(job, opened.place, ROOT / "results/reference/quick"))
    assert ours["digests"]["training"] == theirs["digests"]["training"]
    for part in ("evaluation", "data"):
        # The reference is measured on more.
        assert ours["digests"][part].items() <= theirs["digests"][part].items()
    for name in ours["metrics"]:
        one, other = (r["metrics"][name]["fpr95"]["expected"] for r in (ours, theirs))
        # Bits differ between processors; then a short training may end a few points away.
        assert one == pytest.approx(other, abs=6.0)


def test_a_complete_record_is_not_made_again(cold: tuple[Study, Job, Path]) -> None:
    opened, job, path = cold
    before = path.stat().st_mtime_ns
    carry_out(job, opened.place)
    assert path.stat().st_mtime_ns == before


def test_a_new_metric_is_computed_from_the_weights_without_training(
    cold: tuple[Study, Job, Path],
) -> None:
    opened, job, path = cold
    record = records.read(path)
    records.write(path, {**record, "metrics": {}})
    assert jobs.state(job, opened.place) == "incomplete"
    steps: list[int] = []
    carry_out(job, opened.place, lambda step, total: steps.append(step))
    assert steps == []
    assert records.read(path)["metrics"] == record["metrics"]


def test_a_damaged_record_is_set_aside_and_made_anew(cold: tuple[Study, Job, Path]) -> None:
    opened, job, path = cold
    whole = records.read(path)
    path.write_text(path.read_text()[:100])
    assert jobs.state(job, opened.place) == "damaged"
    carry_out(job, opened.place)
    assert path.with_name(path.name + ".damaged").exists()
    again = records.read(path)
    assert again["metrics"] == whole["metrics"], "the same seed on the same machine gives the same bits"
    assert again["curve"] == whole["curve"]


def test_a_training_cut_off_before_its_evaluation_is_not_done_again(
    cold: tuple[Study, Job, Path],
) -> None:
    opened, job, path = cold
    record = records.read(path)
    records.write(path, {**record, "metrics": {}, "digests": {**record["digests"], "evaluation": {}}})
    steps: list[int] = []
    carry_out(job, opened.place, lambda step, total: steps.append(step))
    assert steps == []
    assert records.read(path) == record


def test_damaged_weights_are_set_aside_and_made_anew(cold: tuple[Study, Job, Path]) -> None:
    opened, job, path = cold
    record, weights = records.read(path), weights_path(path)
    whole = {name: value.clone() for name, value in load_weights(path).items()}
    weights.write_bytes(weights.read_bytes()[:50])
    records.write(path, {**record, "metrics": {}})
    carry_out(job, opened.place)
    assert same(load_weights(path), whole), "the same seed on the same machine gives the same bits"
    assert weights.with_name(weights.name + ".damaged").exists()
    assert records.read(path)["metrics"] == record["metrics"]


def test_a_damaged_probe_is_made_anew(cold: tuple[Study, Job, Path]) -> None:
    opened, job, path = cold
    probe = jobs.probe_path(path, "distance_histogram", "mini-b")
    whole = probe.read_bytes()
    probe.write_bytes(whole[:100])
    assert jobs.state(job, opened.place) == "incomplete"
    assert not jobs.readable(job, opened.place, opened.place.folder)
    carry_out(job, opened.place)
    assert probe.read_bytes() == whole


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def killed_at_step_30(job: Job, place: jobs.Place) -> None:
    def kill(step: int, total: int) -> None:
        if step == 30:
            os.kill(os.getpid(), signal.SIGKILL)

    training.train = partial(training.train, checkpoint_seconds=0)
    runs.train = training.train
    carry_out(job, place, kill)


def test_a_killed_job_goes_on_from_its_checkpoint(cold: tuple[Study, Job, Path], tmp_path: Path) -> None:
    opened, job, path = cold
    place = replace(opened.place, folder=tmp_path)
    worker = multiprocessing.get_context("spawn").Process(target=killed_at_step_30, args=(job, place))
    worker.start()
    worker.join(120)
    assert worker.exitcode == -signal.SIGKILL
    (checkpoint,) = (tmp_path / "checkpoints").glob("*.pt")
    steps: list[int] = []
    made = carry_out(job, place, lambda step, total: steps.append(step))
    assert steps[0] == 30, "the 29 steps before are not done again"
    assert same(load_weights(made), load_weights(path))
    assert not checkpoint.exists()


def test_a_checkpoint_cut_short_is_set_aside_and_the_run_starts_anew(
    cold: tuple[Study, Job, Path], tmp_path: Path
) -> None:
    opened, job, path = cold
    place = replace(opened.place, folder=tmp_path)
    worker = multiprocessing.get_context("spawn").Process(target=killed_at_step_30, args=(job, place))
    worker.start()
    worker.join(120)
    (checkpoint,) = (tmp_path / "checkpoints").glob("*.pt")
    checkpoint.write_bytes(checkpoint.read_bytes()[:-1000])
    steps: list[int] = []
    made = carry_out(job, place, lambda step, total: steps.append(step))
    assert steps[0] == 1
    assert checkpoint.with_name(checkpoint.name + ".damaged").exists()
    assert same(load_weights(made), load_weights(path))


def test_a_failed_job_is_reported_and_the_others_are_done(
    cold: tuple[Study, Job, Path], tmp_path: Path
) -> None:
    opened, job, _ = cold
    place = replace(opened.place, folder=tmp_path)
    impossible = replace(job, overrides={"budget": recipes.Budget(1, 1, 1)})
    seen: list[pool.Standing] = []
    (failure,) = pool.complete([impossible, job], place, 2, seen.append)
    assert failure.job == impossible
    assert "2 pairs or more" in failure.reason
    assert jobs.state(job, place) == "complete"
    assert seen[-1].left == 0
    assert seen[-1].share == pytest.approx(1)


def test_ctrl_c_ends_the_workers_and_leaves_nothing_half_written(
    cold: tuple[Study, Job, Path], tmp_path: Path
) -> None:
    opened, job, _ = cold
    place = replace(opened.place, folder=tmp_path)
    many = [replace(job, seed=seed) for seed in range(6)]

    def interrupt(standing: pool.Standing) -> None:
        if standing.share > 0.1:
            raise KeyboardInterrupt

    before = set(multiprocessing.active_children())
    with pytest.raises(KeyboardInterrupt):
        pool.complete(many, place, 2, interrupt)
    assert set(multiprocessing.active_children()) <= before
    left = [file for file in tmp_path.rglob("*") if ".half" in file.name]
    assert left == []
    assert len(list((tmp_path / "records").rglob("*.json"))) < 6


FAILING = {
    "cells": [
        {"cell_type": "markdown", "id": "a", "metadata": {}, "source": "# Fails"},
        {
            "cell_type": "code",
            "execution_count": None,
            "id": "b",
            "metadata": {"tags": ["parameters"]},
            "outputs": [],
            "source": "profile = data = results = None",
        },
        {
            "cell_type": "code",
            "execution_count": None,
            "id": "c",
            "metadata": {},
            "outputs": [],
            "source": "raise RuntimeError('as it should')",
        },
    ],
    "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}},
    "nbformat": 4,
    "nbformat_minor": 5,
}


def test_a_notebook_that_fails_is_named_with_its_cell(
    cold: tuple[Study, Job, Path], tmp_path: Path
) -> None:
    opened, _, _ = cold
    place = replace(opened.place, folder=tmp_path)
    notebook = tmp_path / "failing.ipynb"
    notebook.write_text(json.dumps(FAILING))
    selected = {"a/b": Artefact(str(notebook), lambda study: [])}
    # An absolute path stands for itself below the repository's root.
    _, (failure,) = rendering.execute(replace(opened, place=place), selected, str(tmp_path))
    assert failure.notebook == str(notebook)
    assert failure.cell == 3, "counted in the notebook as it is committed"
    assert failure.error == "RuntimeError: as it should"


def test_a_notebook_whose_runs_failed_is_not_executed(cold: tuple[Study, Job, Path]) -> None:
    opened, job, _ = cold
    selected = {"a/b": Artefact("notebooks/none.ipynb", lambda study: [replace(job, seed=99)])}
    copies, (failure,) = rendering.execute(opened, selected, "results")
    assert copies == []
    assert failure.error == "not executed: 1 of its runs failed, e.g. HardNet on mini-a, seed 99"


def test_the_reference_renders_without_training_where_it_is_told_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = ["--cached", "--only", "study/learning_rate", "--results", str(tmp_path)]
    assert study.main(told) == 0
    assert f"The report: {tmp_path / 'quick' / 'report.html'}" in capsys.readouterr().out
    assert (tmp_path / "quick" / "report.html").is_file()


def test_a_record_by_other_code_is_older_code(cold: tuple[Study, Job, Path]) -> None:
    opened, job, path = cold
    record = records.read(path)
    for part in ({"training": "0" * 16}, {"data": {**record["digests"]["data"], "mini-a": "0" * 16}}):
        records.write(path, {**record, "digests": {**record["digests"], **part}})
        assert jobs.state(job, opened.place) == "older code"
    records.write(path, record)


def test_two_processes_do_one_job_once(cold: tuple[Study, Job, Path], tmp_path: Path) -> None:
    opened, job, path = cold
    place = replace(opened.place, folder=tmp_path)
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=carry_out, args=(job, place)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(300)
    assert [worker.exitcode for worker in workers] == [0, 0]
    made = records.read(jobs.record_path(job, place))
    assert made["metrics"] == records.read(path)["metrics"]
    assert len(list((tmp_path / "records" / "hardnet").glob("*.json"))) == 1


def test_a_folder_that_cannot_be_written_is_named(cold: tuple[Study, Job, Path], tmp_path: Path) -> None:
    opened, job, _ = cold
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    with pytest.raises(OSError, match=r"results cannot be written .*file.quick"):
        carry_out(job, replace(opened.place, folder=blocked / "quick"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--profile", "huge"], "unknown profile 'huge'; there are: quick, standard, paper"),
        (["--device", "cuda:x"], "unknown device 'cuda:x'; there are: cpu, cuda, cuda:N"),
        (["--device", "abacus"], "unknown device 'abacus'; there are: cpu, cuda, cuda:N"),
        (["--data", "nowhere/at/all"], "nowhere/at/all"),
        (["--photos", "nowhere/at/all"], "nowhere/at/all"),
    ],
)
def test_a_value_that_cannot_be_taken_is_named(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert study.main([*arguments, "--plan"]) == 1
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--jobs", "0"], "--jobs must be 1 or more, got 0"),
        (["--only", "adasample/options"], "fits extras alone; add --extras"),
        (["--only", "nothing/*"], "fits no artefact; there are: data/embedded, adasample/table1"),
        (["--cached", "--photos", "x"], "--cached renders the committed reference"),
        (["--update-reference", "--only", "adasample/*"], "leave out --only"),
        (["--data", "x", "--photos", "y"], "not allowed with"),
    ],
)
def test_options_that_contradict_are_refused(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        study.parse(arguments)
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("seeds", [[], [1, 1], [-1]])
def test_seeds_that_make_no_sense_are_refused(seeds: list[int]) -> None:
    with pytest.raises(ValueError, match="seeds must be different and 0 or more"):
        open_study(seeds=seeds)


def test_the_plan_makes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert study.main(["--plan", "--results", str(tmp_path / "new")]) == 0
    printed = capsys.readouterr().out
    assert "adasample/table1" in printed
    assert "hours" in printed
    assert "GB of disk" in printed
    assert not (tmp_path / "new").exists()


def test_the_reference_holds_every_record_of_today_s_code() -> None:
    opened = open_study()
    standing = {
        job.title: jobs.state(job, opened.place, opened.reading[0])
        for artefact in ARTEFACTS.values()
        for job in artefact.jobs(opened)
        if not artefact.extras
    }
    wrong = {title: found for title, found in standing.items() if found != "complete"}
    assert not wrong, "run ./run_all.sh --update-reference"


def test_the_reference_is_small_enough_to_commit() -> None:
    files = [file for file in (ROOT / "results/reference").rglob("*") if file.is_file()]
    assert sum(file.stat().st_size for file in files) < 30_000_000
    assert not [file for file in files if file.suffix not in (".json", ".npz", ".csv", ".png")]


def test_reading_records_imports_no_torch(tmp_path: Path) -> None:
    code = (
        "import sys; from lib.experiments import adasample as a; from lib.study import open as o;"
        "s = o.open_study(); assert o.obtain(s, a.table1(s)); assert 'torch' not in sys.modules"
    )
    import subprocess
    import sys

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, env=dict(os.environ)
    )
    assert (done.returncode, done.stderr) == (0, "")
