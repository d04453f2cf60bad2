"""A record by older code is stamped where both codes' numbers are equal, and only there."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path

import pytest
from small_study import open_small

from lib.commands.stamp import numbers, short, stamp
from lib.recipes import part
from lib.study import records
from lib.study.artefacts.rows import training_job
from lib.study.jobs import Job, digests, look
from lib.study.open import Study
from lib.study.runs import carry_out

OLDER = "0123456789abcdef"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, Job, dict]:
    """A study in a folder of its own, a run in it, and its record."""
    opened = open_small(tmp_path_factory.mktemp("results"))
    job = training_job(opened, "hardnet", "mini-a", 0)
    return opened, job, records.read(carry_out(job, opened.place))


@pytest.fixture
def then(made: tuple[Study, Job, dict]) -> dict:
    """Digests and numbers as other code would have them."""
    record = made[2]
    other = copy.deepcopy(record["digests"])
    other["training"]["code"] = other["evaluation"]["fpr95"]["code"] = OLDER
    return {"digests": other, "numbers": {"curve": {"loss": [1.0, 0.5]}, "metrics": {}}}


def older(made: tuple[Study, Job, dict], then: dict) -> Path:
    opened, job, record = made
    path = look(job, opened.place).path
    records.write(path, {**record, "digests": then["digests"]})
    assert look(job, opened.place).state == "older code"
    return path


def today(made: tuple[Study, Job, dict], then: dict) -> dict:
    opened, job, _ = made
    return {"digests": digests(job, opened.place), "numbers": copy.deepcopy(then["numbers"])}


def test_a_record_whose_numbers_are_repeated_is_today_s_and_says_so(made, then: dict) -> None:
    path = older(made, then)
    assert stamp(path, then, today(made, then)) is None
    assert look(made[1], made[0].place).state == "complete"
    stamped = records.read(path)
    assert stamped.pop("stamped") == [{"steps": 20, "instead_of": then["digests"]}]
    assert stamped == made[2]


@pytest.mark.parametrize("other", [0.5 + 1e-6, None])
def test_a_record_of_other_numbers_stays_as_it_is(made, then: dict, other: float | None) -> None:
    path = older(made, then)
    before, now = records.read(path), today(made, then)
    if other is None:
        # A short run that failed.
        then["numbers"] = now["numbers"] = None
    else:
        now["numbers"]["curve"]["loss"][1] = other
    assert stamp(path, then, now) == "comes out otherwise today"
    assert records.read(path) == before


@pytest.mark.parametrize("part", ["code", "data", "nothing"])
def test_a_record_that_the_checkout_did_not_make_stays_as_it_is(made, then: dict, part: str) -> None:
    path = older(made, then)
    before, known = records.read(path), copy.deepcopy(then)
    if part == "code":
        known["digests"]["training"]["code"] = "fedcba9876543210"
    else:
        known["digests"]["training"]["data"] = {"mini-a": "fedcba9876543210"}
    found = stamp(path, None if part == "nothing" else known, today(made, then))
    assert found == "is not by the code of that checkout"
    assert records.read(path) == before


def test_what_is_compared_is_a_run_of_twenty_steps_evaluated_as_the_whole_one(
    made, tmp_path: Path
) -> None:
    opened, job, _ = made
    few = short(job, opened)
    assert (few.measures, few.probes) == (job.measures, job.probes)

    def outcome(folder: str, job: Job) -> dict:
        return numbers(open_small(tmp_path / folder), {"one": job})["one"]

    first = outcome("first", job)
    assert first["curve"]["step"][-1] == 20
    assert outcome("second", job) == first
    narrow = replace(job, recipe=replace(job.recipe, loss=part("hinge", margin=0.1)))
    other = outcome("third", narrow)
    assert all(other[name] != first[name] for name in ("curve", "epoch_fpr95", "metrics", "weights"))


def test_seeds_and_train_sets_share_one_short_run(made, tmp_path: Path) -> None:
    opened, job, _ = made
    other = training_job(opened, "hardnet", "mini-b", 1)
    gor = training_job(opened, "hardnet_gor", "mini-a", 0)
    found = numbers(open_small(tmp_path), {"first": job, "other": other, "gor": gor})
    assert found["first"] == found["other"]
    assert found["gor"]["weights"] != found["first"]["weights"]
    assert len(list(tmp_path.glob("quick/records/*/*.json"))) == 2
