"""A record by older code is stamped where today's code trains the same, and only there."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from small_study import SMALL, open_small

from lib.commands.stamp import stamp_runs
from lib.experiments.rows import training_job
from lib.recipes import Budget
from lib.study import records
from lib.study.jobs import Job, Place, look
from lib.study.open import Study
from lib.study.runs import carry_out, weights_path
from lib.study.stamping import stamp

# 24 steps, four more than are made again.
LONGER = replace(SMALL, budget=Budget(batch_pairs=8, epoch_pairs=96, epochs=2))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, Job, dict]:
    """A study in a folder of its own, a run in it, and its record."""
    opened = open_small(tmp_path_factory.mktemp("results"), LONGER)
    job = training_job(opened, "hardnet", "mini-a", 0)
    return opened, job, records.read(carry_out(job, opened.place))


@pytest.fixture
def older(made: tuple[Study, Job, dict]) -> dict:
    """The record as other code would have left it."""
    record = copy.deepcopy(made[2])
    for part in ("training", "following"):
        record["digests"][part]["code"] = "0123456789abcdef"
    return record


def put(made: tuple[Study, Job, dict], record: dict) -> tuple[Job, Place, Path]:
    opened, job, _ = made
    path = look(job, opened.place).path
    records.write(path, record)
    return job, opened.place, path


def test_a_record_whose_training_is_repeated_is_today_s_and_says_so(made, older: dict) -> None:
    job, place, path = put(made, older)
    assert look(job, place).state == "older code"
    assert stamp(job, place)
    assert look(job, place).state == "complete"
    stamped = records.read(path)
    instead_of = dict.fromkeys(("training", "following"), "0123456789abcdef")
    assert stamped.pop("stamped") == [{"steps": 20, "instead_of": instead_of}]
    assert stamped == made[2]


def curve(record: dict) -> None:
    record["curve"]["loss"][19] += 1e-6


def later_curve(record: dict) -> None:
    record["curve"]["loss"][20] += 1e-6


def followed(record: dict) -> None:
    record["epoch_fpr95"]["mini-b"][-1] += 1e-6


def data(record: dict) -> None:
    record["digests"]["training"]["data"]["mini-a"] = "0123456789abcdef"


@pytest.mark.parametrize("spoil", [curve, followed, data])
def test_a_record_of_other_numbers_or_other_data_stays_as_it_is(
    made, older: dict, spoil: Callable[[dict], None]
) -> None:
    spoil(older)
    job, place, path = put(made, older)
    assert not stamp(job, place)
    assert records.read(path) == older


def test_what_is_made_again_is_the_first_twenty_steps(made, older: dict) -> None:
    later_curve(older)
    job, place, _ = put(made, older)
    assert stamp(job, place)


def test_a_record_without_its_weights_is_named_and_left(made, older: dict, capsys) -> None:
    job, _, path = put(made, older)
    weights = weights_path(path)
    kept = weights.rename(weights.with_suffix(".away"))
    try:
        assert stamp_runs(made[0], [job]) == 0
    finally:
        kept.rename(weights)
    assert "No such file" in capsys.readouterr().out
    assert records.read(path) == older


def test_a_record_by_today_s_code_is_not_stamped(made) -> None:
    job, place, path = put(made, made[2])
    assert not stamp(job, place)
    assert records.read(path) == made[2]
