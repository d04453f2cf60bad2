"""Which records the notebooks on training itself need: precision, the papers' stated settings."""

from dataclasses import replace

from lib.experiments.rows import measured, training_job
from lib.recipes import Budget, find, part
from lib.study.jobs import Job
from lib.study.open import Study

PRECISIONS = ({"precision": "float32"}, {"precision": "bfloat16"})


def precision(study: Study) -> list[Job]:
    """Whether training in bfloat16, standard's default, leaves FPR95 as it is."""
    return [
        training_job(study, "hardnet_aug_gen", study.place.source.sets[0], seed, **changed)
        for changed in PRECISIONS
        for seed in study.test_seeds
    ]


# AdaSample's batch and width (Sec. 5.1), for as many steps as two cores can make.
STATED = {
    "width": 1.0,
    "budget": Budget(batch_pairs=1024, epoch_pairs=1024 * 30, epochs=5),
    "stages": (0.0, 0.2, 0.4, 0.6, 0.8, 1.0),
}


def stated_settings(study: Study) -> list[Job]:
    """The first 150 steps of HardNet+* and AdaSample+* as AdaSample states them: learning rate 10,
    momentum 0.5, no decay of the rate so early, full width, 1,024 pairs. None at the quick size, which
    they would take an hour of."""
    if study.place.profile.name == "quick":
        return []
    train_set, seed = study.place.source.sets[0], study.table_seeds[0]
    constant = {"schedule": part("constant")}
    jobs = [
        training_job(study, name, train_set, seed, replace(find(name), **constant), **STATED)
        for name in ("hardnet_aug_gen", "adasample_aug_gen")
    ]
    return [measured(job, "descriptor_spread", study.place.source.sets[1:2]) for job in jobs]
