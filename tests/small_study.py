"""A study small enough to train in a test: eight steps on scenes of a few dozen points."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from lib import profiles
from lib.data.sources import open_source
from lib.data.synthetic import SyntheticSize
from lib.profiles import Profile
from lib.recipes import Budget
from lib.study.artefacts.rows import Runs
from lib.study.jobs import Job
from lib.study.open import Study, open_study
from lib.study.runs import carry_out

SMALL = replace(
    profiles.find("quick"),
    budget=Budget(batch_pairs=16, epoch_pairs=64, epochs=2),
    mini=SyntheticSize(points_per_photo=40, pairs=200, views=4, longest_side=320),
)


def open_small(folder: Path, profile: Profile = SMALL) -> Study:
    """Return the study with its data and results in `folder`."""
    study = open_study(results=str(folder))
    source = open_source("mini", folder / "data", profile.mini)
    return replace(study, profile=profile, source=source)


def training_job(study: Study, name: str, train_set: str, seed: int) -> Job:
    """Return the job of one run of a recipe at its own rate."""
    (job,) = Runs([name], (seed,), sets=(train_set,))(study)
    return job


def made_cold(folder: Path) -> tuple[Study, Job, Path]:
    """Make a small run in `folder` and return the study, the job and the path of its record."""
    study = open_small(folder)
    job = training_job(study, "hardnet", "mini-a", 0)
    return study, job, carry_out(job, study)
