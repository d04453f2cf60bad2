"""The jobs that tables are made of: a recipe trained, a descriptor that nobody trains, a computation."""

import itertools
from collections.abc import Sequence
from dataclasses import replace

from lib.recipes import Recipe, find, part
from lib.study.jobs import Job
from lib.study.open import Study

HANDCRAFTED = {
    "sift": ("SIFT", part("sift", root=False)),
    "rootsift": ("RootSIFT", part("sift", root=True)),
}
# The split whose patches the papers' HPatches-trained models train on; all are tested on its other part.
HPATCHES_SPLIT = "a"


def training_job(
    study: Study,
    name: str,
    train_set: str,
    seed: int,
    recipe: Recipe | None = None,
    **overrides: object,
) -> Job:
    """A run of a recipe, evaluated on the source's other sets.

    Args:
        study: whose data and profile it takes.
        name: a key of `lib.recipes.RECIPES`, or of a row of one's own.
        train_set, seed: what it is trained on and from.
        recipe: the row of one's own; None takes the named one.
        overrides: fields of `Profile` that this run takes other values for.

    Raises:
        ValueError: an unknown recipe.
    """
    others = [name for name in study.place.source.sets if name != train_set]
    chosen = recipe or find(name)
    return Job(
        name,
        chosen.label,
        recipe=chosen,
        train_set=train_set,
        seed=seed,
        measures=on(("fpr95",), others),
        probes=on(("distance_histogram",), others),
        overrides=overrides,
    )


def training_jobs(
    study: Study, names: Sequence[str], train_sets: Sequence[str], seeds: Sequence[int]
) -> list[Job]:
    """`training_job` of each recipe, each train set and each seed, in this order."""
    return [training_job(study, *row) for row in itertools.product(names, train_sets, seeds)]


def on(modules: Sequence[str], sets: Sequence[str]) -> tuple[tuple[str, str], ...]:
    return tuple(itertools.product(modules, sets))


def handcrafted_job(study: Study, name: str) -> Job:
    """SIFT or RootSIFT, evaluated on all sets of the source."""
    label, descriptor = HANDCRAFTED[name]
    sets = study.place.source.sets
    return Job(
        name,
        label,
        descriptor=descriptor,
        measures=on(("fpr95", "set_statistics"), sets),
        probes=on(("distance_histogram",), sets),
    )


def probed(job: Job, probe: str) -> Job:
    """The job with a probe on its own train set."""
    return replace(job, probes=(*job.probes, (probe, job.train_set)))


def computation_job(name: str, label: str, **options: object) -> Job:
    """A computation of `lib.theory`, which needs neither data nor training."""
    return Job(name, label, computation=part(name, **options))


def on_hpatches(job: Job, *sets: str) -> Job:
    """The job, measured on what HPatches splits test on too."""
    return replace(job, measures=(*job.measures, *on(("hpatches",), sets)))
