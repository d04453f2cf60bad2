"""The jobs of the artefacts on scenes, and how their records are laid out and judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pandas as pd
import pytest
import torch
from lib.study.artefacts import dsm, hynet, whole_images
from lib.study.artefacts.whole_images import UNITED
from lib.study.catalogue import ARTEFACTS
from lib.study.jobs import Job, record_path
from lib.study.open import Record, Study, open_study
from lib.study.report.whole_images import by_set, photograph_values
from paper_records import searched
from reporting_records import outcomes, verdicts

from lib.models import tfeat
from lib.study.claims import HELD, NOT_JUDGED

EACH = pytest.mark.parametrize("name", ["hynet/table2", "hynet/table4", "dsm/table2"])


@EACH
def test_no_network_is_trained_for_scenes_alone(study: Study, name: str) -> None:
    artefacts = (hynet.table1, dsm.table1, whole_images.dsm_figure5)
    trained = {record_path(job, study) for jobs in artefacts for job in jobs(study) if job.recipe}
    paths = {record_path(job, study) for job in ARTEFACTS[name].jobs(study) if job.recipe}
    assert paths <= trained


def ahead_of(name: str, seed: int | None) -> float:
    """The made-up level of a method, in ascending order: SIFT, HardNet, SOSNet, the paper's own."""
    order = ("rootsift", "sift", "hardnet_aug", "sosnet_aug", "dsm_aug", "hynet_aug", *UNITED)
    return 10.0 * order.index(name.removeprefix("colmap_")) + 0.1 * (seed or 0)


def ahead(job: Job) -> float:
    return ahead_of(job.name, job.seed)


def laid_out(study: Study, name: str, numbers: Callable[[float], Mapping[str, float]]) -> pd.DataFrame:
    """The numbers on the study's own set, with one record per job."""
    kind = ARTEFACTS[name].images
    measure, test_set = whole_images.MEASURES[kind], f"mini-{kind}"
    records = [
        Record(job, Path("record.json"), {"metrics": {test_set: {measure: dict(numbers(ahead(job)))}}})
        for job in ARTEFACTS[name].jobs(study)
    ]
    return by_set(records, study, kind, measure)[test_set]


def models(level: float) -> dict[str, float]:
    numbers = {}
    for place in ("place1", "place2", ""):
        end = f".{place}" if place else ""
        numbers |= {f"keypoints{end}": 900.0, f"images{end}": level / 5, f"sparse_points{end}": level}
        numbers |= {f"rotation_error{end}": 1.0, f"track_length{end}": 3.5}
        numbers |= {f"reprojection_error{end}": 0.5}
    return numbers


def lost(level: float) -> dict[str, float]:
    """As `models`, but no model of the first place from SOSNet's second seed has points."""
    numbers = models(level)
    if level == pytest.approx(ahead_of("sosnet_aug", 1)):
        for statistic in ("track_length", "reprojection_error", "rotation_error"):
            del numbers[statistic], numbers[f"{statistic}.place1"]
    return numbers


def test_only_methods_trained_elsewhere_are_measured_on_released_scenes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "eth").mkdir()
    checkpoint = tmp_path / "tfeat.params"
    torch.save(tfeat.TFeat().state_dict(), checkpoint)
    searched(monkeypatch)
    jobs = whole_images.hynet_table2(open_study(real=str(tmp_path)), [checkpoint])
    labels = [job.label for job in jobs if ("sfm", "real-eth") in job.measures]
    assert labels == ["SIFT", "SIFT (COLMAP)", "tfeat (published)"]
    assert all(("sfm", "mini-eth") in job.measures for job in jobs)
    baselines = [job for job in jobs if job.label in ("SIFT (COLMAP)", "tfeat (published)")]
    assert {name for job in baselines for name, _ in job.measures} == {"sfm"}
    table4_jobs = whole_images.hynet_table4(open_study(), checkpoints=[checkpoint])
    assert [job.label for job in table4_jobs if not job.recipe] == ["SIFT", "tfeat (published)"]


def test_networks_of_ubcs_patches_are_measured_on_released_scenes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("liberty", "notredame", "yosemite", "eth"):
        (tmp_path / name).mkdir()
    searched(monkeypatch)
    jobs = whole_images.hynet_table2(open_study(data=str(tmp_path)))
    assert jobs
    assert all(("sfm", "ubc-eth") in job.measures for job in jobs)


def test_a_number_that_one_run_lacks_has_no_mean_and_no_verdict(study: Study) -> None:
    table = laid_out(study, "hynet/table2", lost)
    judged = verdicts("hynet", "Table 2", lambda claim: photograph_values(claim, table))
    lacking = {f"t2-{name}" for name in ("track", "reprojection", "rotation")}
    for name, row in judged.items():
        assert row.outcome == (NOT_JUDGED if name in lacking else HELD)
        assert (row.why == "SOSNet+ lacks this number in a scene") == (name in lacking)
    assert judged.keys() == {"t2-images", "t2-points", *lacking}


def accuracies(level: float) -> dict[str, float]:
    numbers = {"stereo": level, "multiview": level + 20, "average": level + 10}
    return numbers | {
        "matches": 90.0,
        "inliers": 40.0,
        "registered": 75.0,
        "degensac": 1.0,
        "keynet": 0.0,
    }


@pytest.mark.parametrize(("name", "numbers"), [("hynet/table2", models), ("hynet/table4", accuracies)])
def test_claims_are_judged_by_the_numbers_they_name(study: Study, name: str, numbers: Callable) -> None:
    values = partial(photograph_values, runs=laid_out(study, name, numbers))
    judged = outcomes("hynet", f"Table {name[-1]}", values)
    assert set(judged.values()) == {HELD}
    assert len(judged) >= 2
