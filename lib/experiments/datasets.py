"""Which records the notebooks on data need: how hard embedded and real data are for descriptors."""

from __future__ import annotations

import hashlib
from pathlib import Path

from lib.experiments.rows import HANDCRAFTED, handcrafted_job, on_hpatches, training_job
from lib.recipes import part
from lib.study.jobs import Job
from lib.study.open import Study


def embedded(study: Study) -> list[Job]:
    """The notebook that shows the data: how hard it is for descriptors that nobody trained."""
    return [handcrafted_job(study, name) for name in HANDCRAFTED]


def hpatches(study: Study) -> list[Job]:
    """The notebook that shows HPatches patches: how hard each level is for SIFT."""
    tested = study.place.source.homographies.test_set("full")
    return [on_hpatches(handcrafted_job(study, "sift"), tested)]


def ranking(study: Study, checkpoint: str | None = None) -> list[Job]:
    """Descriptors on all embedded sequences and on real ones, where the study has them.

    Args:
        study: real sequences are what `open_study` was given as `real`.
        checkpoint: TFeat as its authors published it, or None.

    Raises:
        FileNotFoundError: the checkpoint is missing.
    """
    sets = [sets.test_set("full") for sets in study.place.source.hpatches]
    jobs = [handcrafted_job(study, name) for name in HANDCRAFTED]
    if checkpoint is not None:
        if not Path(checkpoint).is_file():
            raise FileNotFoundError(f"{checkpoint} is missing: put TFeat's published checkpoint there")
        contents = hashlib.sha256(Path(checkpoint).read_bytes()).hexdigest()
        descriptor = part("tfeat", weights=checkpoint, sha256=contents)
        jobs.append(Job("tfeat", "TFeat (published)", descriptor=descriptor))
    jobs += [
        training_job(study, recipe, study.place.source.sets[0], seed)
        for recipe in ("hardnet_aug_gen", "adasample_aug_gen")
        for seed in study.test_seeds
    ]
    return [on_hpatches(job, *sets) for job in jobs]
