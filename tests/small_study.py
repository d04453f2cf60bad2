"""A study small enough to train in a test: eight steps on scenes of a few dozen points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from lib import profiles
from lib.data.sources import open_source
from lib.data.synthetic import SyntheticSize
from lib.profiles import Profile
from lib.recipes import Budget
from lib.study import Study, open_study
from lib.study.making import carry_out
from lib.study.requests import Request, configuration, identity
from lib.study.store import Reference

SMALL = replace(
    profiles.find("quick"),
    budget=Budget(batch_pairs=16, epoch_pairs=64, epochs=2),
    mini=SyntheticSize(points_per_photo=40, pairs=200, views=4, longest_side=320),
)


def open_small(folder: Path, profile: Profile = SMALL) -> Study:
    """Return the study with its data, results and reference in a folder.

    Learning rates come from the searches of the committed reference.
    """
    study = open_study("some/notebook", results=str(folder))
    source = open_source("mini", folder / "data", profile.mini)
    reference = Reference(folder / "reference")
    reference.__dict__["searches"] = study.reference.searches
    # One process: what a test replaces is replaced where runs are made.
    return replace(study, profile=profile, source=source, results=folder, reference=reference, jobs=1)


def requests_of(study: Study, *arguments: object, **options: object) -> list[Request]:
    """Return what a call of `Study.runs` asks for."""
    asked: list[tuple[Study, Sequence[Request]]] = []
    replace(study, plan=asked).runs(*arguments, **options)
    return [request for _, requests in asked for request in requests]


def name_of(study: Study, request: Request) -> str:
    """Return the identity of a run."""
    return identity(configuration(request, study.source))


def make_one(study: Study, request: Request) -> str:
    """Make a run in this process, and return its identity."""
    name = name_of(study, request)
    carry_out(name, request, study.source, study.store, study.profile.name)
    return name
