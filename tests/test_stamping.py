"""A record names today's code where both codes' numbers are equal, and only there."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path

import pytest
from small_study import open_small, training_job

from lib.commands.stamp import repeated, short_runs, stamp
from lib.recipes import part
from lib.study import records
from lib.study.jobs import Job, digests, record_path, record_status
from lib.study.open import Study
from lib.study.runs import carry_out

OLDER, OLDER_FPR95 = "0123456789abcdef", "fedcba9876543210"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, Job, dict]:
    """A study in a folder of its own, a run in it, and its record."""
    opened = open_small(tmp_path_factory.mktemp("results"))
    job = training_job(opened, "hardnet", "mini-a", 0)
    return opened, job, records.read(carry_out(job, opened))


@pytest.fixture
def then(made: tuple[Study, Job, dict]) -> dict:
    """Digests as other code would have them."""
    other = copy.deepcopy(made[2]["digests"])
    other["training"]["code"], other["evaluation"]["fpr95"]["code"] = OLDER, OLDER_FPR95
    return other


@pytest.fixture
def path(made: tuple[Study, Job, dict], then: dict) -> Path:
    """A record by that other code."""
    opened, job, record = made
    path = record_status(job, opened).path
    records.write(path, {**record, "digests": then})
    assert record_status(job, opened).state == "older code"
    return path


def codes(digests: dict) -> list[str]:
    return [digests["training"]["code"], digests["evaluation"]["fpr95"]["code"]]


def test_a_record_whose_numbers_are_repeated_is_today_s_and_says_so(
    made: tuple[Study, Job, dict], then: dict, path: Path
) -> None:
    opened, job, record = made
    today = digests(job, opened)
    assert stamp(path, dict(zip(codes(then), codes(today), strict=True))) == today
    assert record_status(job, opened).state == "complete"
    stamped = records.read(path)
    assert stamped.pop("stamped") == [{"steps": 20, "instead_of": then}]
    assert stamped == record


def test_what_comes_out_otherwise_keeps_its_code(
    made: tuple[Study, Job, dict], then: dict, path: Path
) -> None:
    opened, job, _ = made
    training, fpr95 = zip(codes(then), codes(digests(job, opened)), strict=True)
    stamp(path, dict([fpr95]))
    assert record_status(job, opened).stale == (), "its measures are today's"
    assert record_status(job, opened).state == "older code"
    records.write(path, {**records.read(path), "digests": then})
    stamp(path, dict([training]))
    assert {module for module, _ in record_status(job, opened).stale} == {"fpr95"}
    assert record_status(job, opened).state == "incomplete"


def test_data_read_by_other_code_keeps_its_content(made: tuple[Study, Job, dict], path: Path) -> None:
    digest = made[2]["digests"]["training"]["data"]["mini-a"]
    stamped = stamp(path, {digest[8:]: "0" * 8})
    assert stamped["training"]["data"]["mini-a"] == digest[:8] + "0" * 8


def test_what_is_compared_is_a_run_of_twenty_steps(
    made: tuple[Study, Job, dict], tmp_path: Path
) -> None:
    setting, job, _ = made[0], *made[1:]
    (few,) = runs = short_runs([job, training_job(made[0], "hardnet", "mini-b", 1)], setting)
    assert (few.measures, few.probes) == (job.measures[-1:], job.probes[-1:])
    first, second = (replace(setting, folder=tmp_path / name) for name in ("first", "second"))
    record = records.read(carry_out(few, first))
    assert record["curve"]["step"][-1] == 20
    assert repeated(runs, first, second) == {}, "it failed there"
    older, path = copy.deepcopy(record["digests"]), carry_out(few, second)
    older["training"]["code"], older["evaluation"]["fpr95"]["code"] = OLDER, OLDER_FPR95
    training, fpr95 = codes(record["digests"])

    def today(**changed: object) -> dict[str, str]:
        records.write(record_path(few, first), {**record, "digests": older, **changed})
        renamed = repeated(runs, first, second)
        return {code: renamed[code] for code in (OLDER, OLDER_FPR95) if code in renamed}

    assert today() == {OLDER: training, OLDER_FPR95: fpr95}
    assert today(probes={"distance_histogram.mini-c": "0"}) == {OLDER: training}
    for name in ("curve", "weights"):
        assert today(**{name: None}) == {OLDER_FPR95: fpr95}
    assert records.read(path)["metrics"] == record["metrics"]
    narrow = replace(few, recipe=replace(job.recipe, loss=part("hinge", margin=0.1)))
    other = records.read(carry_out(narrow, second))
    assert all(record[name] != other[name] for name in ("curve", "epoch_fpr95", "weights", "metrics"))
