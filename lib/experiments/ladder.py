"""From HardNet+* to AdaSample+* one choice at a time, and the runs that change generation alone."""

from collections.abc import Mapping
from dataclasses import replace

from lib.experiments.rows import at_profile, training_job
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


def ladder(study: Study) -> list[Job]:
    """The rungs on the first train set, each at its own learning rate, with as many seeds as a test
    needs."""
    train_set = study.place.source.sets[0]
    every = {**RECIPES, **RUNGS}
    return [
        training_job(study, name, train_set, seed, at_profile(study, name, every[name]))
        for name in LADDER
        for seed in study.test_seeds
    ]


# HardNet* differs from HardNet in momentum too; this one in its generated positives alone.
GENERATION_ALONE: Mapping[str, Recipe] = {
    "hardnet_generated": replace(HARDNET, label="HardNet, generation alone", generate=GENERATED)
}
# By name, the recipe and the name whose rate it takes: λ = ∞ varies AdaSample's λ.
_FEW_PATCHES: Mapping[str, tuple[Recipe, str]] = {
    "hardnet": (RECIPES["hardnet"], "hardnet"),
    "hardnet_generated": (GENERATION_ALONE["hardnet_generated"], "hardnet_generated"),
    "hardnet_gen": (RECIPES["hardnet_gen"], "hardnet_gen"),
    "adasample": (RECIPES["adasample"], "adasample"),
    "adasample_gen": (RECIPES["adasample_gen"], "adasample_gen"),
    "hardpos": (replace(adasample(float("inf"), generate=False), label="Hardpos"), "adasample"),
    "hardpos_gen": (replace(adasample(float("inf")), label="Hardpos*"), "adasample_gen"),
}
FEW_SEEDS = 3


def generation(study: Study) -> list[Job]:
    """What generated positives do for HardNet, AdaSample and Hardpos, on the first train set."""
    train_set = study.place.source.sets[0]
    return [
        training_job(study, name, train_set, seed, at_profile(study, rate_of, recipe))
        for name, (recipe, rate_of) in _FEW_PATCHES.items()
        for seed in study.test_seeds[:FEW_SEEDS]
    ]
