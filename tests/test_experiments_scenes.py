"""What the artefacts on scenes ask for, and how their records are laid out and judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pandas as pd
import pytest
import torch
from paper_records import searched
from reporting_records import outcomes, verdicts

from lib.models import tfeat
from lib.study.artefacts import dsm, hynet, whole_images
from lib.study.artefacts.whole_images import UNITED
from lib.study.catalogue import ARTEFACTS
from lib.study.claims import HELD, NOT_JUDGED
from lib.study.jobs import Job, record_path
from lib.study.open import Record, Study, open_study
from lib.study.report.whole_images import by_set, photograph_values

EACH = pytest.mark.parametrize("name", ["hynet/table2", "hynet/table4", "dsm/table2"])


@EACH
def test_no_network_is_trained_for_them_alone(study: Study, name: str) -> None:
    others = (hynet.table1, dsm.table1, whole_images.dsm_figure5)
    there = {record_path(job, study) for of in others for job in of(study) if job.recipe}
    asked = {record_path(job, study) for job in ARTEFACTS[name].jobs(study) if job.recipe}
    assert asked <= there


def ahead_of(name: str, seed: int | None) -> float:
    """How good a method is made out to be: SIFT, HardNet, SOSNet, then the paper's own."""
    order = ("rootsift", "sift", "hardnet_aug", "sosnet_aug", "dsm_aug", "hynet_aug", *UNITED)
    return 10.0 * order.index(name.removeprefix("colmap_")) + 0.1 * (seed or 0)


def ahead(job: Job) -> float:
    return ahead_of(job.name, job.seed)


def laid_out(study: Study, name: str, of: Callable[[float], Mapping[str, float]]) -> pd.DataFrame:
    """The numbers on the study's own set, of a record a job."""
    kind = ARTEFACTS[name].images
    measure, own = whole_images.MEASURES[kind], f"mini-{kind}"
    found = [
        Record(job, Path("record.json"), {"metrics": {own: {measure: dict(of(ahead(job)))}}})
        for job in ARTEFACTS[name].jobs(study)
    ]
    return by_set(found, study, kind, measure)[own]


def models(level: float) -> dict[str, float]:
    numbers = {}
    for place in ("place1", "place2", ""):
        end = f".{place}" if place else ""
        numbers |= {f"keypoints{end}": 900.0, f"images{end}": level / 5, f"sparse_points{end}": level}
        numbers |= {f"rotation_error{end}": 1.0, f"track_length{end}": 3.5}
        numbers |= {f"reprojection_error{end}": 0.5}
    return numbers


def lost(level: float) -> dict[str, float]:
    """As `models`, but of the first place no model of SOSNet's second seed had points."""
    numbers = models(level)
    if level == pytest.approx(ahead_of("sosnet_aug", 1)):
        for statistic in ("track_length", "reprojection_error", "rotation_error"):
            del numbers[statistic], numbers[f"{statistic}.place1"]
    return numbers


def test_on_released_scenes_only_what_was_trained_elsewhere_is_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "eth").mkdir()
    checkpoint = tmp_path / "tfeat.params"
    torch.save(tfeat.build().state_dict(), checkpoint)
    searched(monkeypatch)
    jobs = whole_images.hynet_table2(open_study(real=str(tmp_path)), [checkpoint])
    there = [job.label for job in jobs if ("sfm", "real-eth") in job.measures]
    assert there == ["SIFT", "SIFT (COLMAP)", "tfeat (published)"]
    assert all(("sfm", "mini-eth") in job.measures for job in jobs)
    alone = [job for job in jobs if job.label in ("SIFT (COLMAP)", "tfeat (published)")]
    assert {name for job in alone for name, _ in job.measures} == {"sfm"}
    in_table4 = whole_images.hynet_table4(open_study(), checkpoints=[checkpoint])
    assert [job.label for job in in_table4 if not job.recipe] == ["SIFT", "tfeat (published)"]


def test_networks_of_ubcs_patches_are_measured_on_released_scenes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("liberty", "notredame", "yosemite", "eth"):
        (tmp_path / name).mkdir()
    searched(monkeypatch)
    for job in whole_images.hynet_table2(open_study(data=str(tmp_path))):
        assert ("sfm", "ubc-eth") in job.measures


def test_what_one_run_has_no_model_for_has_no_mean_and_no_verdict(study: Study) -> None:
    found = laid_out(study, "hynet/table2", lost)
    judged = verdicts("hynet", "Table 2", lambda claim: photograph_values(claim, found))
    without = {f"t2-{name}" for name in ("track", "reprojection", "rotation")}
    for name, of in judged.items():
        assert of.outcome == (NOT_JUDGED if name in without else HELD)
        assert (of.why == "SOSNet+ lacks this number in a scene") == (name in without)
    assert judged.keys() == {"t2-images", "t2-points", *without}


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
def test_claims_are_judged_by_what_they_name(study: Study, name: str, numbers: Callable) -> None:
    values = partial(photograph_values, runs=laid_out(study, name, numbers))
    judged = outcomes("hynet", f"Table {name[-1]}", values)
    assert set(judged.values()) == {HELD}
    assert len(judged) >= 2
