"""Which records the notebooks on training itself need: learning rates, precision."""

from pathlib import Path

from lib.experiments.rows import training_job
from lib.recipes import find
from lib.study import records
from lib.study.jobs import Job
from lib.study.open import ROOT, Study


def tuning_path(profile: str, optimizer: str) -> Path:
    """Where the search for a profile's learning rate is on record (`lib.commands.tuning`)."""
    return ROOT / "results" / "reference" / profile / "tuning" / f"{optimizer}.json"


def learning_rates(profile: str, optimizer: str) -> list[dict[str, object]]:
    """That search's runs: "recipe" (its label), "learning rate" and "FPR95 (%)" on the other scene."""
    return [
        {
            "recipe": find(run["recipe"]).label,
            "learning rate": run["rate"],
            "FPR95 (%)": run["fpr95"],
        }
        for run in records.read(tuning_path(profile, optimizer))["runs"]
    ]


PRECISIONS = ({"precision": "float32"}, {"precision": "bfloat16"})


def precision(study: Study) -> list[Job]:
    """Whether training in bfloat16, standard's default, leaves FPR95 as it is."""
    return [
        training_job(study, "hardnet_aug_gen", study.place.source.sets[0], seed, **changed)
        for changed in PRECISIONS
        for seed in study.test_seeds
    ]
