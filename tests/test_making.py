"""Runs made, killed, damaged and made again."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from small_study import make_one, open_small, requests_of

from lib.study import Study, making
from lib.study.making import load_network, load_stages
from lib.study.requests import Request, configuration, identity

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, Request, str]:
    """A small study, a request, and its run."""
    study = open_small(tmp_path_factory.mktemp("results"))
    [request] = requests_of(study, ["hardnet"], seeds=[0], probes={"triplets_in_batch": ["small-b"]})
    return study, request, make_one(study, request)


@pytest.fixture
def empty(made: tuple[Study, Request, str], tmp_path: Path) -> tuple[Study, Request, str]:
    """The same study with an empty folder of runs."""
    study, request, name = made
    return replace(study, results=tmp_path), request, name


@pytest.fixture
def copy(made: tuple[Study, Request, str], tmp_path: Path) -> tuple[Study, Request, str]:
    """The same study with its own copy of the run, which a test may damage."""
    study, request, name = made
    shutil.copytree(study.store.folder, tmp_path / study.store.folder.name)
    return replace(study, results=tmp_path), request, name


def same_weights(one: Study, other: Study, name: str) -> bool:
    ours, theirs = (study.store.weights_path(name).read_bytes() for study in (one, other))
    return ours == theirs


def killed(folder: Path, step: int) -> int:
    command = [sys.executable, str(ROOT / "tests" / "killed_run.py"), str(folder), str(step)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, env=environment, timeout=300).returncode


def test_a_killed_run_goes_on_from_its_checkpoint_to_the_same_bits(
    made: tuple[Study, Request, str], tmp_path: Path
) -> None:
    study, _, name = made
    (tmp_path / "data").symlink_to(study.results / "data")
    assert killed(tmp_path, 5) == -signal.SIGKILL
    resumed = open_small(tmp_path)
    half = resumed.store.folder / f"{name}.1.half.safetensors"
    half.touch()
    assert killed(tmp_path, 0) == 0
    steps = (tmp_path / "steps").read_text().split()
    assert steps == ["1", "2", "3", "4", "5", "5", "6", "7", "8"], (
        "the 4 steps before are not done again"
    )
    assert same_weights(study, resumed, name)
    assert not half.exists(), "nor is there what was being written by a process that was killed"
    assert not list(resumed.store.folder.glob("*.checkpoint"))


def test_the_same_seed_gives_the_same_bits(
    made: tuple[Study, Request, str], empty: tuple[Study, Request, str]
) -> None:
    study, request, name = made
    again, _, _ = empty
    make_one(again, request)
    assert same_weights(study, again, name)
    ours, theirs = (part.store.find(name) for part in (study, again))
    assert ours.followed == theirs.followed
    assert {key: own["values"] for key, own in ours.metrics.items()} == {
        key: own["values"] for key, own in theirs.metrics.items()
    }


def test_a_runs_network_describes_patches(made: tuple[Study, Request, str]) -> None:
    study, _, name = made
    network = load_network(study.store, name)
    described = network(torch.zeros(3, 1, network.input_size, network.input_size))
    assert described.shape == (3, 128)
    assert [float(stage) for stage in load_stages(study.store, name)][-1] == 1.0


def flip_a_bit(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def cut_short(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-99])


def emptied(file: Path) -> None:
    file.write_bytes(b"")


def without_an_entry(file: Path) -> None:
    content = json.loads(file.read_text())
    del content["metrics"]
    file.write_text(json.dumps(content))


def folder_in_its_place(file: Path) -> None:
    file.unlink()
    (file / "inside").mkdir(parents=True)


# Git guards the reference, and a changed digit in one's own JSON file is one's own doing.
DAMAGES = [(damage, ".json") for damage in (cut_short, emptied, folder_in_its_place)]
DAMAGES += [(without_an_entry, ".json")]
DAMAGES += [(flip_a_bit, ".npz"), (flip_a_bit, ".safetensors")]
DAMAGES += [(damage, ".npz") for damage in (cut_short, emptied, folder_in_its_place)]
DAMAGES += [(damage, ".safetensors") for damage in (cut_short, emptied, folder_in_its_place)]


@pytest.mark.parametrize(("damage", "suffix"), DAMAGES)
def test_what_cannot_be_read_is_set_aside_and_made_again(
    copy: tuple[Study, Request, str],
    damage: Callable[[Path], None],
    suffix: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    study, request, name = copy
    before = study.store.find(name)
    weights = study.store.weights_path(name).read_bytes()
    file = study.store.folder / f"{name}{suffix}"
    damage(file)
    if suffix == ".safetensors":
        # Weights are looked at when something is measured on them.
        [request] = requests_of(study, ["hardnet"], seeds=[0], measures=["descriptor_spread"])
    make_one(study, request)
    assert f"{name}{suffix}.damaged" in {path.name for path in study.store.folder.iterdir()}
    assert "set aside as" in capfd.readouterr().err
    after = study.store.find(name)
    assert after.metrics["fpr95", "small-b"]["values"] == before.metrics["fpr95", "small-b"]["values"]
    assert study.store.weights_path(name).read_bytes() == weights


class Interrupted(Exception):
    """Stand-in for a signal in the middle of training."""


def interrupted(study: Study, request: Request, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Begin a run, interrupt it at its fifth step, and return its checkpoint."""

    def stop(step: int, total: int) -> None:
        if step == 5:
            raise Interrupted

    with monkeypatch.context() as patch:
        patch.setattr(making, "train", partial(making.train, checkpoint_seconds=0, on_step=stop))
        with pytest.raises(Interrupted):
            make_one(study, request)
    [checkpoint] = study.store.folder.glob("*.checkpoint")
    return checkpoint


def steps_made(study: Study, request: Request, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Make a run and return the numbers of the steps that it took."""
    steps: list[int] = []
    with monkeypatch.context() as patch:
        follow = partial(making.train, on_step=lambda step, total: steps.append(step))
        patch.setattr(making, "train", follow)
        make_one(study, request)
    return steps


def damaged_inside(checkpoint: Path) -> None:
    """Flip a bit of the largest entry's data: between entries are bytes that mean nothing."""
    content = checkpoint.read_bytes()
    with zipfile.ZipFile(checkpoint) as archive:
        name = max(archive.infolist(), key=lambda entry: entry.file_size).filename
        data = archive.read(name)
    place = content.index(data) + len(data) // 2
    checkpoint.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])


def foreign(checkpoint: Path) -> None:
    torch.save({"progress": None}, checkpoint)


def pickled(checkpoint: Path) -> None:
    checkpoint.write_bytes(pickle.dumps({"progress": object()}))


@pytest.mark.parametrize("spoil", [damaged_inside, foreign, pickled, folder_in_its_place])
def test_a_foreign_or_damaged_checkpoint_is_set_aside_and_the_run_starts_anew(
    empty: tuple[Study, Request, str],
    spoil: Callable[[Path], None],
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    study, request, _ = empty
    checkpoint = interrupted(study, request, monkeypatch)
    spoil(checkpoint)
    assert steps_made(study, request, monkeypatch)[0] == 1
    assert checkpoint.with_name(f"{checkpoint.name}.damaged").exists()
    assert "set aside as" in capfd.readouterr().err


@pytest.mark.parametrize("changes", [{"stages": (0.0, 1.0)}, {"followed_pairs": 7}, {"threads": 2}])
def test_a_run_does_not_go_on_with_other_stages_or_followed_pairs(
    empty: tuple[Study, Request, str], changes: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    study, request, name = empty
    interrupted(study, request, monkeypatch)
    other = replace(request, profile=replace(request.profile, **changes))
    assert steps_made(study, other, monkeypatch)[0] == 1
    # Nothing is left of the other checkpoint once the run is on record.
    assert not list(study.store.folder.glob(f"{name}.*.checkpoint"))


def test_a_run_does_not_go_on_with_another_torch(
    empty: tuple[Study, Request, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    study, request, _ = empty
    interrupted(study, request, monkeypatch)
    monkeypatch.setattr(torch, "__version__", "0.0.0")
    assert steps_made(study, request, monkeypatch)[0] == 1


def test_a_run_does_not_go_on_where_other_sets_are_followed(
    empty: tuple[Study, Request, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    study, request, _ = empty
    interrupted(study, request, monkeypatch)
    fewer = replace(request, measures=request.measures[:1])
    assert fewer.followed != request.followed
    assert steps_made(study, fewer, monkeypatch)[0] == 1


def test_a_profile_may_follow_the_first_sets_alone(empty: tuple[Study, Request, str]) -> None:
    study, request, name = empty
    fewer = replace(request, profile=replace(request.profile, followed_sets=1))
    assert make_one(study, fewer) == name
    run = study.store.find(name)
    assert [*run.followed] == [request.followed[0]]
    assert not run.lacks(request, study.source)


def test_a_run_does_not_go_on_with_another_kind_of_device(made: tuple[Study, Request, str]) -> None:
    # Through the checkpoint's name, because a machine without a GPU cannot begin a run on one.
    study, request, name = made
    cpu, first, second = (
        making._checkpoint_path(name, study.store, request.profile, {}, device)
        for device in ("cpu", "cuda:0", "cuda:1")
    )
    assert cpu != first
    assert first == second


def test_a_run_goes_on_where_nothing_has_changed(
    empty: tuple[Study, Request, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    study, request, _ = empty
    interrupted(study, request, monkeypatch)
    assert steps_made(study, request, monkeypatch)[0] == 5


def full_disk(*_: object) -> None:
    raise OSError(28, "No space left on device")


def test_a_full_disk_at_the_end_of_training_costs_no_training(
    empty: tuple[Study, Request, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    study, request, name = empty
    keeping = partial(making.train, checkpoint_seconds=0)
    with pytest.MonkeyPatch.context() as full:
        full.setattr(making, "train", keeping)
        full.setattr(making, "write_bytes", full_disk)
        with pytest.raises(OSError, match="No space left"):
            make_one(study, request)
    # The last checkpoint held the whole training.
    assert steps_made(study, request, monkeypatch) == []
    assert study.store.find(name) is not None


def test_two_processes_make_one_run_once(made: tuple[Study, Request, str], tmp_path: Path) -> None:
    study, _, name = made
    (tmp_path / "data").symlink_to(study.results / "data")
    command = [sys.executable, str(ROOT / "tests" / "killed_run.py"), str(tmp_path), "0"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    both = [subprocess.Popen(command, env=environment) for _ in range(2)]
    assert [process.wait(300) for process in both] == [0, 0]
    assert (tmp_path / "steps").read_text().split() == [str(step) for step in range(1, 9)]
    assert same_weights(study, open_small(tmp_path), name)


def test_a_seed_that_lacks_the_fewest_runs_is_completed_first(
    empty: tuple[Study, Request, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    study = empty[0]
    first = requests_of(study, ["hardnet", "hardnet_gen"], seeds=[0])
    second = requests_of(study, ["hardnet"], seeds=[1])
    planned = []
    monkeypatch.setattr(making, "prepare", lambda *_: None)
    monkeypatch.setattr(making, "sweep", lambda tasks, *_: planned.extend(tasks))
    study.make([*first, *second])
    assert [task.title for task in sorted(planned, key=lambda task: task.group)] == [
        request.title for request in [*second, *first]
    ]


def test_a_run_that_fails_is_named_and_the_others_are_made(
    empty: tuple[Study, Request, str],
) -> None:
    study, request, name = empty
    # A batch cannot hold more classes than the set has.
    budget = replace(request.profile.budget, batch_pairs=100_000, epoch_pairs=100_000)
    impossible = replace(request, label="too large", profile=replace(request.profile, budget=budget))
    [(title, why)] = replace(study, jobs=2).make([impossible, request])
    assert title.startswith("too large")
    assert "ValueError" in why
    assert study.store.find(name) is not None


def test_a_number_that_is_not_finite_is_not_recorded(empty: tuple[Study, Request, str]) -> None:
    study, _, name = empty
    with pytest.raises(ValueError, match="not JSON compliant"):
        study.store.write(name, {"metrics": {"small-a": {"fpr95": float("nan")}}})
    assert study.store.find(name) is None


def test_a_run_is_named_by_its_seed_and_the_content_of_its_train_set(
    made: tuple[Study, Request, str],
) -> None:
    study, request, name = made
    config = configuration(request, study.source)
    assert identity(config) == name
    assert identity(configuration(replace(request, seed=1), study.source)) != name
    other = replace(request, train="small-b")
    assert configuration(other, study.source)["train"] != config["train"]
