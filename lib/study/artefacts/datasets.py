"""Which records the notebooks on data need: how hard embedded and real data are for descriptors."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from lib.data.scenes.sets import IMAGES_OF, SHOWN, WIDE
from lib.recipes import replace_options
from lib.study.artefacts import rows
from lib.study.artefacts.rows import HANDCRAFTED, Runs, handcrafted_job, on, published_jobs
from lib.study.jobs import Job
from lib.study.open import Study

# Px of a patch of 64, which is 14 standard deviations of its keypoint's Gaussian wide.
KEYPOINT_SMOOTHING = 4.6


def embedded(study: Study) -> list[Job]:
    """The notebook that shows the data: how hard it is for descriptors that nobody trained.

    SIFT and RootSIFT, each on the cut as it is and at the keypoint's own smoothing.
    """
    as_cut = [handcrafted_job(study, name) for name in HANDCRAFTED]
    smoothed = [
        replace(
            job,
            name=f"{job.name}_smooth",
            label=f"{job.label}, smoothed",
            descriptor=replace_options(job.descriptor, smoothing=KEYPOINT_SMOOTHING),
        )
        for job in as_cut
    ]
    return [rows.probed(job, "filled_bins", study.setting.source.sets) for job in (*as_cut, *smoothed)]


# How hard each level of HPatches' patches is for SIFT.
hpatches = Runs(handcrafted=("sift",), hpatches="full")


def ranking(study: Study, checkpoints: Sequence[str | Path] = ()) -> list[Job]:
    """Descriptors on all embedded sequences and on real ones, where the study has them.

    Args:
        study: real sequences are what `open_study` was given as `real`.
        checkpoints: published ones, as `published_jobs` takes them.

    Raises:
        FileNotFoundError, ValueError: as `published_jobs`.
    """
    sets = [sets.test_set("full") for sets in study.setting.source.hpatches]
    jobs = [handcrafted_job(study, name) for name in HANDCRAFTED]
    jobs += published_jobs(study, checkpoints)
    ours = ("hardnet_aug_gen", "adasample_aug_gen")
    jobs += Runs(ours, "test")(study)
    return [replace(job, measures=(*job.measures, *on(("hpatches",), sets))) for job in jobs]


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
        return [rows.computation_job("label_errors", "labels of a synthetic scene")]
    shown = (*sets.places.train_and_test, *sets.places.test)
    jobs = [handcrafted_job(study, name) for name in (*HANDCRAFTED, *rows.ORB)]
    jobs += published_jobs(study, checkpoints)
    jobs = [replace(_on_places(job, shown), probes=()) for job in jobs]
    facts = on(("carrying_error",), [f"{place}{IMAGES_OF}" for place in shown])
    jobs[0] = replace(jobs[0], measures=(*jobs[0].measures, *facts))
    trained = Runs(("hardnet_aug",), (0,))(study)
    return [
        *jobs,
        *(_on_places(job, [name for name in shown if name != job.train_set]) for job in trained),
    ]


def _on_places(job: Job, places: Sequence[str]) -> Job:
    patches = [f"{name}{kind}-{px:g}px" for name in places for px in SHOWN for kind in ("", WIDE)]
    own = () if job.recipe is None else job.measures
    counts = on(("set_statistics",), patches if job.recipe is None else ())
    images = on(("image_pairs",), [f"{place}{IMAGES_OF}" for place in places])
    return replace(job, measures=(*own, *on(("fpr95",), patches), *counts, *images))
