"""A record names today's code if, and only if, both codes' numbers are equal."""

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
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, Job, dict]:
    """A study in its own folder, a run in it, and the run's record."""
    study = open_small(tmp_path_factory.mktemp("results"))
    job = training_job(study, "hardnet", "mini-a", 0)
    return study, job, records.read(carry_out(job, study))


@pytest.fixture
def older_digests(run: tuple[Study, Job, dict]) -> dict:
    """Digests that other code would give."""
    changed = copy.deepcopy(run[2]["digests"])
    changed["training"]["code"], changed["evaluation"]["fpr95"]["code"] = OLDER, OLDER_FPR95
    return changed


@pytest.fixture
def path(run: tuple[Study, Job, dict], older_digests: dict) -> Path:
    """The path of a record by that code."""
    study, job, record = run
    path = record_status(job, study).path
    records.write(path, {**record, "digests": older_digests})
    assert record_status(job, study).state == "older code"
    return path


def codes(digests: dict) -> list[str]:
    return [digests["training"]["code"], digests["evaluation"]["fpr95"]["code"]]


def test_a_record_with_repeated_numbers_is_stamped_as_todays(
    run: tuple[Study, Job, dict], older_digests: dict, path: Path
) -> None:
    study, job, record = run
    today = digests(job, study)
    assert stamp(path, dict(zip(codes(older_digests), codes(today), strict=True))) == today
    assert record_status(job, study).state == "complete"
    stamped = records.read(path)
    assert stamped.pop("stamped") == [{"steps": 20, "instead_of": older_digests}]
    assert stamped == record


def test_a_part_with_other_numbers_keeps_its_code(
    run: tuple[Study, Job, dict], older_digests: dict, path: Path
) -> None:
    study, job, _ = run
    training, fpr95 = zip(codes(older_digests), codes(digests(job, study)), strict=True)
    stamp(path, dict([fpr95]))
    assert record_status(job, study).stale == (), "its measures are today's"
    assert record_status(job, study).state == "older code"
    records.write(path, {**records.read(path), "digests": older_digests})
    stamp(path, dict([training]))
    assert {module for module, _ in record_status(job, study).stale} == {"fpr95"}
    assert record_status(job, study).state == "incomplete"


def test_data_read_by_other_code_keeps_its_content(run: tuple[Study, Job, dict], path: Path) -> None:
    digest = run[2]["digests"]["training"]["data"]["mini-a"]
    stamped = stamp(path, {digest[8:]: "0" * 8})
    assert stamped["training"]["data"]["mini-a"] == digest[:8] + "0" * 8


def test_codes_are_compared_by_a_run_of_twenty_steps(
    run: tuple[Study, Job, dict], tmp_path: Path
) -> None:
    setting, job, _ = run
    (short,) = runs = short_runs([job, training_job(run[0], "hardnet", "mini-b", 1)], setting)
    assert (short.measures, short.probes) == (job.measures[-1:], job.probes[-1:])
    first, second = (replace(setting, folder=tmp_path / name) for name in ("first", "second"))
    record = records.read(carry_out(short, first))
    assert record["curve"]["step"][-1] == 20
    assert repeated(runs, first, second) == {}, "it failed there"
    older, path = copy.deepcopy(record["digests"]), carry_out(short, second)
    older["training"]["code"], older["evaluation"]["fpr95"]["code"] = OLDER, OLDER_FPR95
    training, fpr95 = codes(record["digests"])

    def today(**changed: object) -> dict[str, str]:
        records.write(record_path(short, first), {**record, "digests": older, **changed})
        renamed = repeated(runs, first, second)
        return {code: renamed[code] for code in (OLDER, OLDER_FPR95) if code in renamed}

    assert today() == {OLDER: training, OLDER_FPR95: fpr95}
    assert today(probes={"distance_histogram.mini-c": "0"}) == {OLDER: training}
    for name in ("curve", "weights"):
        assert today(**{name: None}) == {OLDER_FPR95: fpr95}
    assert records.read(path)["metrics"] == record["metrics"]
    narrow = replace(short, recipe=replace(job.recipe, loss=part("hinge", margin=0.1)))
    narrow_record = records.read(carry_out(narrow, second))
    assert all(
        record[name] != narrow_record[name] for name in ("curve", "epoch_fpr95", "weights", "metrics")
    )
