"""A study small enough to train in a test: eight steps on sets of a few dozen points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.ndimage import gaussian_filter

from lib import profiles
from lib.data.patchset import LabelledPairs
from lib.data.phototour import write_pairs, write_patches
from lib.data.sources import PatchSets, Source
from lib.profiles import Profile
from lib.recipes import Budget
from lib.study import Study, open_study
from lib.study.making import carry_out
from lib.study.requests import Request, configuration, identity
from lib.study.store import Reference

SMALL = replace(profiles.find("quick"), budget=Budget(batch_pairs=16, epoch_pairs=64, epochs=2))
SETS, RESERVE = ("small-a", "small-b", "small-c"), ("reserve-a", "reserve-b")
# Points of a set, and patches of a point.
POINTS, VIEWS = 100, 3


def write_small(folder: Path, seed: int) -> None:
    """Write a set in PhotoTour's layout: smooth random textures, each shifted and with other noise."""
    rng = np.random.default_rng(seed)
    wide = gaussian_filter(rng.normal(size=(POINTS, 72, 72)), (0, 3, 3))
    shifts = rng.integers(0, 8, (POINTS, VIEWS, 2))
    views = [
        [texture[y : y + 64, x : x + 64] for y, x in corners]
        for texture, corners in zip(wide, shifts, strict=True)
    ]
    clean = np.array(views).reshape(-1, 64, 64)
    noisy = 128 + 40 * (clean / clean.std() + 0.3 * rng.normal(size=clean.shape))
    patches = np.clip(noisy, 0, 255).astype(np.uint8)
    points = np.repeat(np.arange(POINTS), VIEWS)
    images = np.tile(np.arange(VIEWS), POINTS)
    # A released set's digest covers its text files, so that the frames differ between sets.
    write_patches(folder, [(patches, points, images, rng.random((len(points), 4)))])
    # Each point's first patch with its second, and with the next point's.
    first = np.repeat(np.arange(0, len(points) - VIEWS, VIEWS), 2)
    second = first + np.tile([1, VIEWS], len(first) // 2)
    write_pairs(folder, LabelledPairs(first, second, points[first] == points[second]), points)


def small_source(folder: Path) -> Source:
    """Return three small sets and two reserves, written if missing."""
    root = folder / "sets"
    for seed, name in enumerate((*SETS, *RESERVE)):
        if not (root / name).is_dir():
            write_small(root / name, seed)
    return Source("small", folder, PatchSets(root, folder, (*SETS, *RESERVE)), SETS, RESERVE)


def open_small(folder: Path, profile: Profile = SMALL) -> Study:
    """Return the study with its data, results and reference in a folder.

    Learning rates come from the searches of the committed reference.
    """
    study = open_study("some/notebook", results=str(folder))
    source = small_source(folder / "data")
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
