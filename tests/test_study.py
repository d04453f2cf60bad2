"""The study from a visitor's side: records made cold, shared and set aside, and refused options."""

from __future__ import annotations

import argparse
import copy
import errno
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import psutil
import pytest
import torch
from forked import FORKING, forked_workers
from small_study import SMALL, made_cold, training_job

import lib.study.open
from lib import recipes, training
from lib.commands import study
from lib.data.sources import Source, open_source
from lib.data.states import write_manifest
from lib.files import sha256
from lib.study import jobs, pool, records, runs
from lib.study.artefacts.rows import Runs, handcrafted_job
from lib.study.catalogue import ARTEFACTS, Artefact
from lib.study.jobs import Job
from lib.study.open import (
    REFERENCE,
    ROOT,
    Record,
    Study,
    find,
    open_study,
    records_of,
    to_do,
)
from lib.study.report import execution, reference
from lib.study.runs import carry_out, load_weights, weights_path


@pytest.fixture(scope="session")
def cold(tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, Job, Path]:
    """A small run made cold in a temporary folder, as run_all.sh does it."""
    return made_cold(tmp_path_factory.mktemp("results"))


def test_a_recipe_trained_cold_leaves_a_whole_record(cold: tuple[Study, Job, Path]) -> None:
    opened, job, path = cold
    record = records.read(path)
    assert record["config"] == jobs.configuration(job, opened)
    assert record["digests"] == jobs.digests(job, opened)
    assert set(record["metrics"]) == set(record["epoch_fpr95"]) == {"mini-b", "mini-c"}
    assert all(len(by_epoch) == 2 for by_epoch in record["epoch_fpr95"].values())
    assert record["weights"] == sha256(weights_path(path))
    assert record["probes"] == {
        f"{probe}.{name}": sha256(jobs.probe_path(path, probe, name))
        for probe in ("distance_histogram",)
        for name in ("mini-b", "mini-c")
    }
    assert set(record["evaluation_seconds"]) == {
        ".".join(measure) for measure in (*job.measures, *job.probes)
    }
    assert jobs.record_status(job, opened).state == "complete"


def test_the_code_reproduces_the_reference(tmp_path: Path) -> None:
    # The data is the study's own, which notebooks show as well.
    opened = replace(open_study(), folder=tmp_path)
    whole = training_job(opened, "hardnet", "mini-a", 0)
    job = replace(whole, measures=(("fpr95", "mini-b"),), probes=())
    ours = records.read(carry_out(job, opened))
    theirs = records.read(jobs.record_path(job, opened, REFERENCE / "quick/mini"))
    assert ours["digests"]["training"] == theirs["digests"]["training"]
    # The reference is measured on more sets.
    for local, stored in (
        (ours["digests"]["following"], theirs["digests"]["following"]),
        (ours["digests"]["evaluation"]["fpr95"], theirs["digests"]["evaluation"]["fpr95"]),
    ):
        assert local["code"] == stored["code"]
        assert local["data"].items() <= stored["data"].items()
    fpr95, reference_fpr95 = (
        record["metrics"]["mini-b"]["fpr95"]["expected"] for record in (ours, theirs)
    )
    assert 0 < fpr95 < 50
    # Bits differ between processors, so a short training may end a few points away.
    assert fpr95 == pytest.approx(reference_fpr95, abs=6.0)


def test_a_new_metric_is_computed_from_the_weights_without_training(
    cold: tuple[Study, Job, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, job, path = cold
    record = records.read(path)
    records.write(path, {**record, "metrics": {}})
    assert jobs.record_status(job, opened).state == "incomplete"
    monkeypatch.setattr(runs, "train", None)
    carry_out(job, opened)
    assert records.read(path)["metrics"] == record["metrics"]


def test_a_damaged_record_is_set_aside_and_made_anew(cold: tuple[Study, Job, Path]) -> None:
    opened, job, path = cold
    whole = records.read(path)
    path.unlink()
    (path / "a folder in its place").mkdir(parents=True)
    assert jobs.record_status(job, opened).state == "damaged"
    carry_out(job, opened)
    aside = path.with_name(path.name + ".damaged")
    assert list(aside.iterdir()), "what is damaged is kept for whoever wants to look"
    again = records.read(path)
    assert again["metrics"] == whole["metrics"], "the same seed on the same machine gives the same bits"
    assert again["curve"] == whole["curve"]


def flip_a_bit(file: Path, share: float) -> None:
    content = bytearray(file.read_bytes())
    content[int(share * len(content))] ^= 1
    file.write_bytes(content)


@pytest.mark.parametrize("share", [0.0, 0.999])
def test_weights_damaged_anywhere_are_set_aside_and_made_anew(
    cold: tuple[Study, Job, Path], share: float, capfd: pytest.CaptureFixture[str]
) -> None:
    opened, job, path = cold
    record, weights = records.read(path), weights_path(path)
    whole = load_weights(path)
    flip_a_bit(weights, share)
    with pytest.raises(records.DamagedRecord, match=r"\.safetensors is damaged"):
        load_weights(path)
    records.write(path, {**record, "metrics": {}})
    carry_out(job, opened)
    assert same(load_weights(path), whole), "the same seed on the same machine gives the same bits"
    assert weights.with_name(weights.name + ".damaged").exists()
    assert f"{weights} is damaged: set aside as" in capfd.readouterr().err
    assert records.read(path)["metrics"] == record["metrics"]


@pytest.mark.parametrize("share", [0.0, 0.999])
def test_a_probe_damaged_anywhere_is_set_aside_and_made_anew(
    cold: tuple[Study, Job, Path],
    share: float,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened, job, path = cold
    probe = jobs.probe_path(path, "distance_histogram", "mini-b")
    whole = probe.read_bytes()
    flip_a_bit(probe, share)
    status = jobs.record_status(job, opened)
    assert (status.state, status.readable, status.damaged) == ("incomplete", False, (probe,))
    with pytest.raises(records.DamagedRecord, match=r"\.npz is damaged"):
        Record(job, path, records.read(path)).probe("distance_histogram", "mini-b")
    monkeypatch.setattr(runs, "train", None)
    carry_out(job, opened)
    assert probe.read_bytes() == whole
    assert f"{probe} is damaged: set aside as" in capfd.readouterr().err


def as_reference(cold: tuple[Study, Job, Path], folder: Path) -> tuple[Study, Path]:
    """A study that reads a copy of the cold records as a reference, and the copied record."""
    opened, job, _ = cold
    shutil.copytree(opened.folder / "records", folder / "records")
    return replace(opened, reading=(folder, opened.folder)), jobs.record_path(job, opened, folder)


def cut_short(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-99])


def without_content(file: Path) -> None:
    file.write_text("{}")


@pytest.mark.parametrize(
    ("suffix", "damage"),
    [
        *((".json", damage) for damage in (partial(flip_a_bit, share=0.5), cut_short, without_content)),
        (".distance_histogram.mini-b.npz", partial(flip_a_bit, share=0.5)),
    ],
)
def test_damage_in_the_reference_is_reported_and_not_made_anew(
    cold: tuple[Study, Job, Path], tmp_path: Path, suffix: str, damage: Callable[[Path], None]
) -> None:
    reading, record = as_reference(cold, tmp_path / "reference")
    assert records_of(reading, [cold[1]])[0].path == record
    file = record.with_name(record.stem + suffix)
    damage(file)
    with pytest.raises(records.DamagedRecord, match=f"{file.name} is damaged.* git checkout"):
        records_of(reading, [cold[1]])


def stale(record: dict, *keys: str) -> dict:
    """The record with the digest at `keys` changed; for data, only the half for the code."""
    changed = copy.deepcopy(record)
    holder = changed["digests"]
    for key in keys[:-1]:
        holder = holder[key]
    holder[keys[-1]] = holder[keys[-1]][:8] + "0" * 8
    return changed


def test_a_run_trained_or_followed_by_other_code_is_older_code(cold: tuple[Study, Job, Path]) -> None:
    opened, job, path = cold
    record = records.read(path)
    others = [(part, "code") for part in ("training", "following")]
    for keys in (*others, ("training", "data", "mini-a"), ("following", "data", "mini-b")):
        records.write(path, stale(record, *keys))
        assert jobs.record_status(job, opened).state == "older code"
        assert find(opened, job).older
        assert to_do(opened, [job]) == [job]
    records.write(path, record)


def test_runs_on_real_places_need_their_photographs() -> None:
    opened = open_study("evening", "scenes", seeds=[7])
    with pytest.raises(FileNotFoundError, match="name the folder of the photographs"):
        records_of(opened, Runs(["hardnet"], searched={"hardnet": "equal_hardnet_aug"})(opened))


def test_numbers_of_other_data_are_not_shown(cold: tuple[Study, Job, Path]) -> None:
    opened, job, _ = cold
    measures = (("fpr95", "mini-a"), ("fpr95", "mini-b"))
    orb = replace(handcrafted_job(opened, "orb"), measures=measures, probes=())
    carry_out(orb, opened)
    first = find(opened, orb)
    # The second set holds other photographs under its old name.
    source = opened.source
    others = {**source.patches.photographs, "mini-b": source.patches.photographs["reserve-a"]}
    patches = replace(source.patches, photographs=others)
    elsewhere = replace(opened, source=replace(source, patches=patches))
    assert {test_set for _, test_set in jobs.record_status(orb, elsewhere).lacking} == {"mini-b"}
    assert find(elsewhere, orb) is None
    carry_out(orb, elsewhere)
    second = find(elsewhere, orb)
    assert second.fpr95("mini-b") != first.fpr95("mini-b")
    assert second.fpr95("mini-a") == first.fpr95("mini-a")
    # The run was followed on that set, so its curves are of other data, too.
    # Trained on that set, it is another run.
    assert jobs.record_status(job, elsewhere).state == "other data"
    assert find(elsewhere, job) is None
    assert to_do(elsewhere, [job]) == [job]
    trained_on_b = replace(job, train_set="mini-b")
    assert jobs.record_path(trained_on_b, elsewhere) != jobs.record_path(trained_on_b, opened)


def test_older_code_is_kept_and_marked_where_runs_are_costly(cold: tuple[Study, Job, Path]) -> None:
    opened, job, path = cold
    costly = replace(opened, profile=replace(opened.profile, name="standard"))
    moved = jobs.record_path(job, costly)
    for file in path.parent.glob(f"{path.stem}.*.npz"):
        shutil.copyfile(file, moved.with_name(file.name.replace(path.stem, moved.stem)))
    records.write(moved, stale(records.read(path), "training", "code"))
    assert to_do(costly, [job]) == []
    assert find(costly, job).older
    more = replace(job, measures=(*job.measures, ("fpr95", "mini-a")))
    assert to_do(costly, [more]) == [more], "what it lacks has to be made"


def test_a_metric_by_other_code_is_measured_anew_and_others_are_not_restamped(
    cold: tuple[Study, Job, Path],
) -> None:
    opened, job, path = cold
    record = records.read(path)
    records.write(path, stale(record, "evaluation", "fpr95", "code"))
    only_b = replace(job, measures=(("fpr95", "mini-b"),), probes=())
    assert jobs.record_status(only_b, opened).stale == (("fpr95", "mini-b"),)
    carry_out(only_b, opened)
    assert jobs.record_status(only_b, opened).state == "complete"
    assert jobs.record_status(job, opened).stale == (("fpr95", "mini-c"),), "it was not measured anew"
    carry_out(job, opened)
    assert records.read(path)["digests"] == record["digests"]


Stages = dict[str, dict[str, torch.Tensor]]


def same(one: Stages, other: Stages) -> bool:
    return one.keys() == other.keys() and all(
        torch.equal(weights[name], other[stage][name])
        for stage, weights in one.items()
        for name in weights
    )


def followed(job: Job, setting: jobs.Setting, on_step: Callable[[int, int], None]) -> Path:
    """Carry out a job with `on_step` called after each step of its training."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(runs, "train", partial(runs.train, on_step=on_step))
        return carry_out(job, setting)


def killed_at_step_5(job: Job, setting: jobs.Setting) -> None:
    def kill(step: int, total: int) -> None:
        if step == 5:
            os.kill(os.getpid(), signal.SIGKILL)

    training.train = partial(training.train, checkpoint_seconds=0)
    runs.train = training.train
    followed(job, setting, kill)


def test_a_killed_job_goes_on_from_its_checkpoint(cold: tuple[Study, Job, Path], tmp_path: Path) -> None:
    opened, job, path = cold
    setting = replace(opened, folder=tmp_path)
    worker = FORKING.Process(target=killed_at_step_5, args=(job, setting))
    worker.start()
    worker.join(120)
    assert worker.exitcode == -signal.SIGKILL
    (checkpoint,) = (tmp_path / "checkpoints").glob("*.pt")
    half = checkpoint.with_name(f"{checkpoint.stem}.1.half.pt")
    half.touch()
    steps: list[int] = []
    resumed = followed(job, setting, lambda step, total: steps.append(step))
    assert steps[0] == 5, "the 4 steps before are not done again"
    assert same(load_weights(resumed), load_weights(path))
    assert not checkpoint.exists()
    assert not half.exists(), "nor is there what was being written by a process that was killed"


def damaged_in_its_middle(checkpoint: Path) -> None:
    flip_a_bit(checkpoint, 0.5)


def foreign(checkpoint: Path) -> None:
    torch.save({"progress": None}, checkpoint)


def pickled(checkpoint: Path) -> None:
    checkpoint.write_bytes(pickle.dumps({"progress": object()}))


def folder_in_its_place(checkpoint: Path) -> None:
    checkpoint.unlink()
    checkpoint.mkdir()


@pytest.mark.parametrize("spoil", [damaged_in_its_middle, pickled, foreign, folder_in_its_place])
def test_a_foreign_or_damaged_checkpoint_is_set_aside_and_the_run_starts_anew(
    small: tuple[Study, Job], spoil: Callable[[Path], None], capfd: pytest.CaptureFixture[str]
) -> None:
    opened, job = small
    checkpoint = runs.checkpoint_path(job, opened)
    checkpoint.parent.mkdir(parents=True, exist_ok=True)
    torch.save({"progress": torch.zeros(10_000)}, checkpoint)
    spoil(checkpoint)
    steps: list[int] = []
    followed(job, opened, lambda step, total: steps.append(step))
    assert steps[0] == 1
    assert checkpoint.with_name(checkpoint.name + ".damaged").exists()
    assert f"{checkpoint} is damaged: set aside as" in capfd.readouterr().err


@pytest.fixture
def small(cold: tuple[Study, Job, Path], tmp_path: Path) -> tuple[Study, Job]:
    """The same run, in an empty folder."""
    opened, job, _ = cold
    return replace(opened, folder=tmp_path / "quick"), job


def test_the_checkpoints_path_covers_all_that_training_reads(
    small: tuple[Study, Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, job = small
    setting = opened

    def with_code(target: str) -> Path:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                jobs, "code_digest", lambda modules: "1" * 16 if target in modules else "0" * 16
            )
            return runs.checkpoint_path(job, setting)

    def with_data(target: str) -> Path:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                Source, "digest", lambda source, name: "1" * 16 if target == name else "0" * 16
            )
            return runs.checkpoint_path(job, setting)

    def with_torch(version: str) -> Path:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(torch, "__version__", version)
            return runs.checkpoint_path(job, setting)

    paths = [
        *(
            runs.checkpoint_path(replace(job, **changed), setting)
            for changed in (
                {},
                {"seed": 1},
                {"overrides": {"stages": (1.0,)}},
                {"overrides": {"followed_pairs": 10}},
                {"overrides": {"threads": 2}},
                {"measures": job.measures[:1]},
            )
        ),
        *map(with_code, ("nothing", "lib.training", "lib.benchmarks.fpr95_by_stage")),
        *map(with_data, ("nothing", "mini-a", "mini-b")),
        with_torch("2.0"),
        runs.checkpoint_path(job, replace(setting, device="cuda")),
    ]
    assert len(set(paths)) == len(paths)
    assert runs.checkpoint_path(replace(job, label="another", probes=()), setting) == paths[0]


def full_disk(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_at_the_end_of_training_costs_no_training(
    small: tuple[Study, Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, job = small
    monkeypatch.setattr(runs, "train", partial(training.train, checkpoint_seconds=0))
    with pytest.MonkeyPatch.context() as full:
        full.setattr(runs, "write_bytes", full_disk)
        with pytest.raises(OSError, match="No space left"):
            carry_out(job, opened)
    steps: list[int] = []
    followed(job, opened, lambda step, total: steps.append(step))
    assert steps == [], "the last checkpoint held the whole training"
    assert jobs.record_status(job, opened).state == "complete"
    assert not list((opened.folder / "checkpoints").iterdir())


def test_a_full_disk_at_a_checkpoint_is_reported_and_the_previous_one_kept(
    small: tuple[Study, Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, job = small
    monkeypatch.setattr(runs, "train", partial(training.train, checkpoint_seconds=0))

    def fills(step: int, total: int) -> None:
        if step == 5:
            monkeypatch.setattr(os, "replace", full_disk)

    with pytest.raises(OSError, match="the disk is full: make room and run again, what is done is kept"):
        followed(job, opened, fills)
    monkeypatch.undo()
    steps: list[int] = []
    followed(job, opened, lambda step, total: steps.append(step))
    assert steps[0] == 5, "the checkpoint after step 4 was kept"


def test_a_failed_job_is_reported_and_the_others_are_done(
    cold: tuple[Study, Job, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, job, _ = cold
    forked_workers(monkeypatch)
    setting = replace(opened, folder=tmp_path)
    impossible = replace(job, overrides={"budget": recipes.Budget(1, 1, 1)})
    reports: list[tuple] = []
    ((failed, reason),) = pool.complete(
        [impossible, job], setting, 1, lambda *progress: reports.append(progress)
    )
    assert failed == impossible
    assert "2 pairs or more" in reason
    assert jobs.record_status(job, setting).state == "complete"
    assert reports[-1][2:] == (0, pytest.approx(1))


def test_a_damaged_reference_fails_its_artefacts_and_the_rest_are_rendered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    forked_workers(monkeypatch)
    folder = tmp_path / "reference/quick/mini"
    shutil.copytree(REFERENCE / "quick/mini", folder, copy_function=os.symlink)
    monkeypatch.setattr(lib.study.open, "REFERENCE", tmp_path / "reference")
    damaged = {
        "hynet/figure3": next(folder.glob("records/architecture/*.json")),
        "adasample/figure1": folder / "searches/hardnet.json",
    }
    record, search = damaged.values()
    # Copies in place of links to the reference's files.
    contents = {file: file.read_bytes() for file in damaged.values()}
    for file, content in contents.items():
        file.unlink()
        file.write_bytes(content)
    record.unlink()
    record.mkdir()
    flip_a_bit(search, 0.5)
    names = (*damaged, "hynet/table2")
    monkeypatch.setattr(study, "ARTEFACTS", {name: ARTEFACTS[name] for name in names})
    assert study.main(["--cached", "--results", str(tmp_path)]) == 1
    output = capsys.readouterr()
    for name, file in damaged.items():
        (line,) = (line for line in output.err.splitlines() if name in line)
        assert f"{file}" in line
        assert "damaged" in line
    assert "left out" not in output.out
    assert f"The report: {tmp_path / 'quick/report/index.html'}" in output.out
    pages = (tmp_path / "quick/report").rglob("*.html")
    assert sorted(page.name for page in pages) == ["index.html", "table2.html"]


def test_a_damaged_reference_does_not_prevent_the_report(
    cold: tuple[Study, Job, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, job, _ = cold
    monkeypatch.setattr(lib.study.open, "REFERENCE", tmp_path / "reference")
    monkeypatch.setattr(execution, "execute", lambda *_: [])
    damaged = jobs.record_path(job, opened, opened.reference)
    damaged.mkdir(parents=True)
    source = opened.source
    write_manifest(opened.reference / "manifest.json", source.manifest(source.sets))
    options = {"results": str(tmp_path), "profile": "quick", "cached": False, "update_reference": False}
    selected = {"a/b": Artefact(lambda _: [job]).records(opened)}
    [(_, reason)] = study._report(opened, selected, argparse.Namespace(**options), str(tmp_path))
    assert f"{damaged} is damaged" in reason
    assert (tmp_path / "quick/report/index.html").is_file()


def test_two_processes_do_one_job_once(cold: tuple[Study, Job, Path], tmp_path: Path) -> None:
    opened, job, path = cold
    setting = replace(opened, folder=tmp_path)
    workers = [FORKING.Process(target=carry_out, args=(job, setting)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(300)
    assert [worker.exitcode for worker in workers] == [0, 0]
    record = records.read(jobs.record_path(job, setting))
    assert record["metrics"] == records.read(path)["metrics"]
    assert len(list((tmp_path / "records" / "hardnet").glob("*.json"))) == 1


def test_the_reference_is_not_overwritten_by_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    assert study.main(["--results", "results/reference/x"]) == 1
    assert "--update-reference writes" in capsys.readouterr().err


def test_a_reference_of_photographs_is_read_without_them(
    cold: tuple[Study, Job, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, _, _ = cold
    monkeypatch.setattr(lib.study.open, "REFERENCE", tmp_path / "reference")
    filled: list[str] = []
    monkeypatch.setattr(reference, "fill_in", lambda *source: filled.append(source[-1]))
    source = opened.source
    renamed = {
        name.replace("mini", "photos"): entry for name, entry in source.patches.photographs.items()
    }
    patches = replace(source.patches, photographs=renamed)
    setting = replace(
        opened,
        folder=tmp_path / "made",
        profile=replace(SMALL, name="standard"),
        source=replace(source, name="photos", patches=patches, sets=(*list(renamed)[:3],)),
    )
    made = replace(setting, reading=(setting.folder,))
    variants = {"hardnet": recipes.at_rate(recipes.HARDNET, 0.1)}
    row = Runs(variants, (0,), sets=("photos-a",), recipes=variants, searched={"hardnet": None})
    (job,) = row(made)
    artefact = Artefact(lambda _: [job])
    carry_out(job, setting)
    stored = tmp_path / "reference/standard/photos"
    for file in (
        stored / "searches/hardnet.json",
        stored / "tables/adasample/gone.csv",
        setting.folder / "tables/adasample/options.csv",
        setting.folder / "tables/other/table1.csv",
    ):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("a,b\n1,2\n")
    study.update_reference(made, {"adasample/options": artefact})

    files = {file.relative_to(stored).as_posix() for file in stored.rglob("*") if file.is_file()}
    assert {name for name in files if not name.startswith("records/")} == {
        "manifest.json",
        "tables/adasample/options.csv",
        "searches/hardnet.json",
    }
    assert len(files) == 3 + 1 + len(job.probes)
    assert filled == ["standard, photos-a"]
    assert [entry.name for entry in stored.parent.iterdir()] == ["photos"]

    shared = open_source("photos", tmp_path / "x", SMALL.mini, manifest=stored / "manifest.json")
    assert jobs.record_status(job, replace(setting, source=shared), stored).state == "complete"
    with pytest.raises(FileNotFoundError):
        shared.load("photos-a")


def test_a_long_study_is_collected_record_by_record(
    cold: tuple[Study, Job, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, job, path = cold
    monkeypatch.setattr(lib.study.open, "REFERENCE", tmp_path / "reference")
    unmade = replace(job, seed=7)
    selected = {"x": Artefact(lambda _: [job, unmade])}
    earlier = tmp_path / "reference/quick/mini/records/hardnet/kept.json"
    earlier.parent.mkdir(parents=True)
    earlier.write_text("{}")

    assert study.collect(opened, selected) == 1
    files = {file.name for file in earlier.parent.iterdir()}
    job_files = {path.name, *(jobs.probe_path(path, *probe).name for probe in job.probes)}
    assert files == {earlier.name, *job_files}
    assert study.collect(opened, selected) == 0


def _lives(process: psutil.Process) -> bool:
    """Whether a process runs. Where nothing collects orphans, an ended one stays as a zombie."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def terminated(file: Path) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
    runs._evaluating("lib.benchmarks.sfm")
    try:
        os.kill(os.getpid(), signal.SIGTERM)
    finally:
        file.write_text("unwound")


def test_a_terminated_process_unwinds_after_importing_any_measure(tmp_path: Path) -> None:
    process = FORKING.Process(target=terminated, args=(tmp_path / "said",))
    process.start()
    process.join(120)
    assert (process.exitcode, (tmp_path / "said").read_text()) == (7, "unwound")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_an_ended_study_ends_at_once_with_all_its_processes(number: int, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "lib.commands.study", "--only", "adasample/theory", "--results"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    main = subprocess.Popen(
        [*command, str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    while not main.stdout.readline().startswith("data:"):
        assert main.poll() is None
    if number == signal.SIGKILL:
        # SIGKILL cannot be caught, so it must not come before the processes have their start data. Those
        # that have begun something have it.
        while len(list(tmp_path.rglob(".*.part"))) < 2:
            assert main.poll() is None
    while len(started := psutil.Process(main.pid).children(recursive=True)) < 2:
        time.sleep(0.05)
    main.send_signal(number)
    sent = time.monotonic()
    # Returns once no process holds stdout and stderr any more, as `… | tee log` does.
    _, errors = main.communicate(timeout=30)
    while any(map(_lives, started)):
        time.sleep(0.05)
        assert time.monotonic() - sent < 20
    assert errors == ""
    assert main.returncode == {signal.SIGTERM: 143, signal.SIGINT: 130, signal.SIGKILL: -9}[number]
    assert not [file for file in tmp_path.rglob("*") if ".half" in file.name or ".part" in file.name]


def test_the_plan_makes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert study.main(["--plan", "--results", str(tmp_path / "new")]) == 0
    printed = capsys.readouterr().out
    head, *lines = [line for line in printed.splitlines() if "left out" not in line][2:]
    assert head.split() == ["artefact", "runs", "to", "make", "hours"]
    row = next(line.split() for line in lines if line.startswith("adasample/table1 "))
    # SIFT, RootSIFT, eight recipes on three sets with three seeds, and six baselines once.
    assert row[1:3] == ["80", "80"]
    assert float(row[3]) > 0
    assert "GB of disk" in printed
    assert study.main(["--plan", "--profile", "standard", "--results", str(tmp_path / "new")]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "search it with .venv/bin/python -m lib.commands.tuning --profile standard" in line
    assert not (tmp_path / "new").exists()


def test_the_forecast_is_within_a_factor_of_two_of_the_references_time() -> None:
    opened = open_study()
    selection = [a for a in ARTEFACTS.values() if not a.lacking(opened)]
    selection = jobs.merged((job for artefact in selection for job in artefact.jobs(opened)), opened)
    contents = [find(opened, job).content for job in selection]
    training, evaluation = map(sum, zip(*(jobs.cost(job, opened) for job in selection), strict=True))
    assert 0.5 < training / sum(record.get("seconds", 0) for record in contents) < 2
    seconds = sum(sum(record["evaluation_seconds"].values()) for record in contents)
    assert 0.5 < evaluation / seconds < 2


def test_the_reference_holds_every_record_of_todays_code() -> None:
    opened = open_study()
    states = {
        job.title: jobs.record_status(job, opened, opened.reading[0]).state
        for artefact in ARTEFACTS.values()
        if not artefact.extras and not artefact.lacking(opened)
        for job in artefact.jobs(opened)
    }
    wrong = {title: state for title, state in states.items() if state != "complete"}
    assert not wrong, "run ./run_all.sh --update-reference"


def test_the_reference_is_small_enough_to_commit() -> None:
    files = [file for file in (ROOT / "results/reference").rglob("*") if file.is_file()]
    assert sum(file.stat().st_size for file in files) < 45_000_000
    assert not [file for file in files if file.suffix not in (".json", ".npz", ".csv", ".png")]


def test_reading_records_imports_no_torch(tmp_path: Path) -> None:
    code = (
        "import sys; from lib.study.artefacts import adasample as a; from lib.study import open as o;"
        "s = o.open_study(); assert o.records_of(s, a.table1(s)); assert 'torch' not in sys.modules"
    )
    completed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, env=dict(os.environ)
    )
    assert (completed.returncode, completed.stderr) == (0, "")
