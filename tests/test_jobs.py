"""Jobs: which settings give another record, and how requests for one record are merged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from small_study import training_job

from lib import recipes
from lib.recipes import part
from lib.study import jobs
from lib.study.artefacts.rows import Runs
from lib.study.open import Study, open_study
from lib.study.runs import carry_out


@pytest.fixture(scope="module")
def study() -> Study:
    return open_study()


def test_each_setting_that_affects_numbers_affects_the_path(study: Study) -> None:
    job = training_job(study, "adasample_gen", "mini-a", 0)
    variants = [
        replace(job, seed=1),
        replace(job, train_set="mini-b"),
        replace(job, recipe=recipes.adasample(5.0)),
        replace(job, recipe=replace(job.recipe, loss=part("hinge", margin=0.5))),
        replace(job, overrides={"precision": "bfloat16"}),
        replace(job, overrides={"stages": (0.0, 1.0)}),
        replace(job, overrides={"followed_pairs": 10}),
    ]
    paths = [jobs.record_path(variant, study) for variant in (job, *variants)]
    assert len(set(paths)) == len(paths)


def test_requests_for_one_record_are_merged_into_one_job(study: Study) -> None:
    first = training_job(study, "hardnet", "mini-a", 0)
    second = replace(first, measures=(("fpr95", "mini-b"), ("hpatches", "mini-hp-a")), probes=())
    (job,) = jobs.merged([first, second, first], study)
    assert job.measures == (("fpr95", "mini-b"), ("fpr95", "mini-c"), ("hpatches", "mini-hp-a"))
    assert job.probes == first.probes
    assert job.sets_of("fpr95") == ("mini-b", "mini-c")


def test_the_forecast_grows_with_the_candidates(study: Study) -> None:
    blind, sampling = (
        jobs.cost(training_job(study, name, "mini-a", 0), study)
        for name in ("hardnet_gen", "adasample_gen")
    )
    # A pair costs 6 forward passes, plus 15 candidates per class. Evaluation costs the same.
    assert sampling == pytest.approx((blind[0] * 21 / 6, blind[1]))


def test_a_computation_is_complete_once_its_numbers_and_arrays_exist(tmp_path: Path) -> None:
    opened = open_study(results=str(tmp_path))
    (job,) = Runs(computations={"output_gradient": "Eq. 24"})(opened)
    assert jobs.record_status(job, opened).state == "missing"
    path = carry_out(job, opened)
    assert jobs.record_status(job, opened).state == "complete"
    (probe,) = job.probes
    jobs.probe_path(path, *probe).unlink()
    assert jobs.record_status(job, opened).state == "incomplete"
    carry_out(job, opened)
    assert jobs.record_status(job, opened).state == "complete"
