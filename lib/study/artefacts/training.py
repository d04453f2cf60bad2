"""Which records the notebooks on training itself need: precision, the papers' stated settings."""

from dataclasses import replace

from lib.recipes import Budget, find, part
from lib.study.artefacts.rows import at_profile, jobs_of, measured
from lib.study.jobs import Job
from lib.study.open import Study


def precision(study: Study) -> list[Job]:
    """Whether training in bfloat16, standard's default, leaves FPR95 as it is."""
    recipes = {"hardnet_aug_gen": at_profile(study, "hardnet_aug_gen")}
    return [
        *jobs_of(study, recipes, study.test_seeds, precision="float32"),
        *jobs_of(study, recipes, study.test_seeds, precision="bfloat16"),
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
    names = ("hardnet_aug_gen", "adasample_aug_gen")
    recipes = {name: replace(find(name), schedule=part("constant")) for name in names}
    jobs = jobs_of(study, recipes, study.table_seeds[:1], **STATED)
    return [measured(job, "descriptor_spread", study.place.source.sets[1:2]) for job in jobs]
