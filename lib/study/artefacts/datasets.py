"""Which records the notebooks on data need: how hard embedded and real data are for descriptors."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from lib.data.scenes.sets import IMAGES_OF, SHOWN, WIDE
from lib.study.artefacts.rows import HANDCRAFTED, Runs, computation_job, measured
from lib.study.jobs import Job
from lib.study.open import Study

# How hard each level of HPatches' patches is for SIFT.
hpatches = Runs(handcrafted=("sift",), hpatches="full")
_ranked = Runs(("hardnet_aug_gen", "adasample_aug_gen"), "test", handcrafted=HANDCRAFTED)
_on_scenes = Runs(("hardnet_aug",), (0,), handcrafted=(*HANDCRAFTED, "orb"))
# How hard the data is for descriptors that nobody trained: SIFT and RootSIFT, each on the cut as it is
# and at the keypoint's own smoothing.
embedded = Runs(handcrafted=(*HANDCRAFTED, "sift_smooth", "rootsift_smooth"))


def ranking(study: Study, checkpoints: Sequence[str | Path] = ()) -> list[Job]:
    """Descriptors on all embedded sequences and on real ones, where the study has them.

    Args:
        study: real sequences are what `open_study` was given as `real`.
        checkpoints: published ones, as `published_jobs` takes them.

    Raises:
        FileNotFoundError, ValueError: as `published_jobs`.
    """
    sets = [sets.test_set("full") for sets in study.setting.source.hpatches]
    return [measured(job, "hpatches", sets) for job in _ranked(study, checkpoints)]


def scenes(study: Study, checkpoints: Sequence[str | Path] = ()) -> list[Job]:
    """The notebook on real scenes: descriptors on every place but the reserve, at each tolerance shown,
    and a network trained on the first place; without scenes, what labels cost on a synthetic one.

    Args:
        study: with scenes or without.
        checkpoints: as `published_jobs` takes them; networks that none of the places trained.

    Raises:
        FileNotFoundError, ValueError: as `published_jobs`.
    """
    sets = study.setting.source.scenes
    if sets is None:
        return [computation_job("label_errors", "labels of a synthetic scene")]
    shown, jobs = (*sets.places.train_and_test, *sets.places.test), []
    for job in _on_scenes(study, checkpoints):
        places = [place for place in shown if place != job.train_set]
        patches = [f"{place}{kind}-{px:g}px" for place in places for px in SHOWN for kind in ("", WIDE)]
        images = [f"{place}{IMAGES_OF}" for place in places]
        if job.recipe is None:
            job = replace(job, measures=(), probes=())
        job = measured(job, "fpr95", patches)
        if job.recipe is None:
            job = measured(job, "set_statistics", patches)
        job = measured(job, "image_pairs", images)
        jobs.append(measured(job, "carrying_error", images) if job.name == "sift" else job)
    return jobs
