"""A record names today's code where both codes' numbers are equal, and only there."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path

import pytest
from small_study import open_small

from lib.commands.stamp import kind_of, repeated, short_runs, stamp
from lib.recipes import part
from lib.study import records
from lib.study.artefacts.rows import training_job
from lib.study.jobs import Job, digests, record_status
from lib.study.open import Study
from lib.study.runs import carry_out

OLDER = "0123456789abcdef"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, Job, dict]:
    """A study in a folder of its own, a run in it, and its record."""
    opened = open_small(tmp_path_factory.mktemp("results"))
    job = training_job(opened, "hardnet", "mini-a", 0)
    return opened, job, records.read(carry_out(job, opened.setting))


@pytest.fixture
def then(made: tuple[Study, Job, dict]) -> dict:
    """Digests as other code would have them."""
    other = copy.deepcopy(made[2]["digests"])
    other["training"]["code"] = other["evaluation"]["fpr95"]["code"] = OLDER
    return other


@pytest.fixture
def path(made: tuple[Study, Job, dict], then: dict) -> Path:
    """A record by that other code."""
    opened, job, record = made
    path = record_status(job, opened.setting).path
    records.write(path, {**record, "digests": then})
    assert record_status(job, opened.setting).state == "older code"
    return path


EVALUATED = {"fpr95", "distance_histogram"}


def test_a_record_whose_numbers_are_repeated_is_today_s_and_says_so(
    made: tuple[Study, Job, dict], then: dict, path: Path
) -> None:
    opened, job, record = made
    assert stamp(path, then, digests(job, opened.setting), True, EVALUATED) is None
    assert record_status(job, opened.setting).state == "complete"
    stamped = records.read(path)
    assert stamped.pop("stamped") == [{"steps": 20, "instead_of": then}]
    assert stamped == record


def test_what_comes_out_otherwise_keeps_its_code(
    made: tuple[Study, Job, dict], then: dict, path: Path
) -> None:
    opened, job, _ = made
    today = digests(job, opened.setting)
    assert "training, following" in stamp(path, then, today, False, EVALUATED)
    assert records.read(path)["digests"]["training"]["code"] == OLDER
    assert record_status(job, opened.setting).stale == (), "its measures are today's"
    assert "fpr95" in stamp(path, then, today, True, EVALUATED - {"fpr95"})
    records.write(path, {**records.read(path), "digests": then})
    stamp(path, then, today, True, EVALUATED - {"fpr95"})
    assert {module for module, _ in record_status(job, opened.setting).stale} == {"fpr95"}


def test_what_the_checkout_did_not_make_stays_as_it_is(
    made: tuple[Study, Job, dict], then: dict, path: Path
) -> None:
    opened, job, _ = made
    unknown = copy.deepcopy(then)
    unknown["training"] = {"code": "fedcba9876543210", "data": {"mini-a": "fedcba9876543210"}}
    stamp(path, unknown, digests(job, opened.setting), True, EVALUATED)
    assert records.read(path)["digests"]["training"] == then["training"]


def test_what_is_compared_is_a_run_of_twenty_steps_evaluated_as_the_whole_one(
    made: tuple[Study, Job, dict], tmp_path: Path
) -> None:
    setting, job, _ = made[0].setting, *made[1:]
    other_seed = training_job(made[0], "hardnet", "mini-b", 1)
    runs = short_runs([job, other_seed], setting)
    ((kind, few),) = runs.items()
    assert kind == kind_of(other_seed, setting)
    assert (few.measures, few.probes) == (job.measures, job.probes)
    first, second = (replace(setting, folder=tmp_path / name) for name in ("first", "second"))
    assert records.read(carry_out(few, first))["curve"]["step"][-1] == 20
    assert repeated(runs, first, second) == (set(), set()), "it failed there"
    path = carry_out(few, second)
    assert repeated(runs, first, second) == ({kind}, EVALUATED)
    record = records.read(path)
    moved = copy.deepcopy(record)
    moved["curve"]["loss"][1] += 1e-6
    moved["probes"]["distance_histogram.mini-b"] = "0"
    records.write(path, moved)
    assert repeated(runs, first, second) == (set(), {"fpr95"})
    narrow = replace(few, recipe=replace(job.recipe, loss=part("hinge", margin=0.1)))
    other = records.read(carry_out(narrow, second))
    assert all(record[name] != other[name] for name in ("curve", "epoch_fpr95", "weights", "metrics"))
