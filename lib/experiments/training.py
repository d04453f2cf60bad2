"""Which records the notebooks on training itself need: precision."""

from lib.experiments.rows import training_job
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
