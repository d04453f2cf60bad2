"""From HardNet+* to AdaSample+* one choice at a time, and the runs that change generation alone."""

from collections.abc import Mapping
from dataclasses import replace

from lib.experiments.rows import training_jobs
from lib.recipes import GENERATED, HARDNET, RECIPES, WITHIN, Recipe, adasample, part
from lib.study.jobs import Job
from lib.study.open import Study

_SQUARED = replace(
    RECIPES["hardnet_aug_gen"], label="… squared distance", distance=part("euclidean", power=2)
)
_ANGLE = replace(_SQUARED, label="… squared angle", distance=part("angular", power=2))
# Each rung has the one choice more that its label names; the last is AdaSample+* with λ = 0.
RUNGS: Mapping[str, Recipe] = {
    "rung_squared": _SQUARED,
    "rung_angle": _ANGLE,
    "rung_within": replace(_ANGLE, label="… negatives within", negatives=WITHIN),
    "rung_weights": replace(adasample(0.0, augment=True), label="… w_i = 1/d, λ = 0"),
}
LADDER = ("hardnet_aug_gen", *RUNGS, "adasample_aug_gen")
# Beside the ladder, so that w_i and λ cross, each with and without the other: w_i is there to undo what
# drawing by distance does to the gradient's expectation (Eq. 10).
SAMPLING: Mapping[str, Recipe] = {
    "rung_sampling": replace(RECIPES["adasample_aug_gen"], label="… λ = 10, w_i = 1", pair_weight=None)
}


def ladder(study: Study) -> list[Job]:
    """The rungs and `SAMPLING` on the first train set, each at its own learning rate, with as many
    seeds as a test needs."""
    names, recipes = (*LADDER, *SAMPLING), {**RUNGS, **SAMPLING}
    return training_jobs(study, names, study.test_seeds, rows=recipes)


# HardNet* differs from HardNet in momentum too; `hardnet_generated` in its generated positives alone.
# Hardpos is AdaSample with λ = ∞.
RIVALS: Mapping[str, Recipe] = {
    "hardnet_generated": replace(HARDNET, label="HardNet, generation alone", generate=GENERATED),
    "hardpos": replace(adasample(float("inf"), generate=False), label="Hardpos"),
    "hardpos_gen": replace(adasample(float("inf")), label="Hardpos*"),
}
_FEW_PATCHES = (
    *("hardnet", "hardnet_generated", "hardnet_gen", "adasample", "adasample_gen"),
    *("hardpos", "hardpos_gen"),
)
FEW_SEEDS = 3


def generation(study: Study) -> list[Job]:
    """What generated positives do for HardNet, AdaSample and Hardpos, on the first train set, each
    at its own learning rate."""
    return training_jobs(study, _FEW_PATCHES, study.test_seeds[:FEW_SEEDS], rows=RIVALS)
