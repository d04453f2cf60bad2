"""Jobs of the artefacts on whole images: runs of other artefacts, measured on more sets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from paper_records import changed, rate_of, searched
from small_files import write_oxford_sequence

from lib.recipes import RECIPES
from lib.study.artefacts import dsm, tcdesc
from lib.study.artefacts import whole_images as experiments
from lib.study.catalogue import ARTEFACTS
from lib.study.jobs import digests, merged, record_path
from lib.study.open import Study, open_study

NAMES = ("dsm/figure5", "tcdesc/figure5", "tcdesc/table6")
EACH_NAME = pytest.mark.parametrize("name", NAMES)


@EACH_NAME
def test_only_dsms_figure_5_trains_networks_of_its_own(study: Study, name: str) -> None:
    others = (dsm.figure4, tcdesc.table2, tcdesc.figure4)
    existing = {record_path(job, study) for artefact in others for job in artefact(study)}
    added = [job for job in ARTEFACTS[name].jobs(study) if record_path(job, study) not in existing]
    assert {job.name for job in added} == ({*experiments.UNITED} if name == "dsm/figure5" else set())


def test_networks_of_two_collections_share_the_method_of_those_of_one(study: Study) -> None:
    jobs = experiments.united_jobs(study)
    assert {(job.name, job.seed) for job in jobs} == {
        (key, seed) for key in experiments.UNITED for seed in study.table_seeds
    }
    for job in jobs:
        name, label = experiments.UNITED[job.name]
        assert changed(job.recipe, RECIPES[name]) <= {"optimizer", "schedule", "budget"}
        assert rate_of(job) == name
        assert job.label == label
        assert job.train_set == study.source.united == "mini-a+mini-hp-a-train"
        assert not job.measures


@EACH_NAME
def test_no_tested_photograph_is_trained_on(study: Study, name: str) -> None:
    source, [sets] = study.source, study.source.whole_images
    tested = {photograph.name for photograph in sets.shown(ARTEFACTS[name].images)}
    assert tested
    assert not tested & {trained.name for trained in source.patches.photographs[source.sets[0]]}


@pytest.mark.parametrize(
    ("name", "kind", "measure"),
    [
        ("dsm/figure5", "oxford_affine", "oxford_affine"),
        ("tcdesc/figure5", "w1bs", "w1bs"),
        ("tcdesc/table6", "oxford_affine", "oxford_affine"),
        ("hynet/table2", "eth", "sfm"),
        ("hynet/table4", "imc", "imc"),
        ("dsm/table2", "landmarks", "retrieval"),
    ],
)
def test_every_job_is_measured_on_the_studys_own_set(
    study: Study, name: str, kind: str, measure: str
) -> None:
    jobs = ARTEFACTS[name].jobs(study)
    assert jobs
    for job in jobs:
        assert (measure, f"mini-{kind}") in job.measures
        assert f"mini-{kind}" in digests(job, study)["evaluation"][measure]["data"]
    assert ARTEFACTS[name].images == kind


def test_real_sets_are_measured_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    images = [np.zeros((9, 9), np.uint8)] * 6
    write_oxford_sequence(tmp_path / "oxford_affine" / "graf", images, np.stack([np.eye(3)] * 5))
    searched(monkeypatch)
    study = open_study(real=str(tmp_path))
    assert experiments.image_sets(study, "oxford_affine") == ["mini-oxford_affine", "real-oxford_affine"]
    assert experiments.image_sets(study, "w1bs") == ["mini-w1bs"]
    (job,) = merged(experiments.tcdesc_table6(study)[:1], study)
    assert ("oxford_affine", "real-oxford_affine") in job.measures
