"""The jobs that tables are made of: a recipe trained, a descriptor that nobody trains, a computation."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from lib.experiments.searches import own_rate
from lib.recipes import Recipe, at_rate, find, part
from lib.study.jobs import NO_SET, Job
from lib.study.open import Study

HANDCRAFTED = {
    "sift": ("SIFT", part("sift", root=False)),
    "rootsift": ("RootSIFT", part("sift", root=True)),
}
HANDCRAFTED_BINARY = {"orb": ("ORB", part("orb"))}
# Of every set of patches that something is tested on.
PROBES = ("distance_histogram", "resampled_fpr95")
# How the modules of `lib.evaluation` end that measure the signs of descriptors.
SIGNS = "_of_signs"
# The split whose patches the papers' HPatches-trained models train on; all are tested on its other part.
HPATCHES_SPLIT = "a"


def at_profile(study: Study, name: str, recipe: Recipe | None = None) -> Recipe:
    """A recipe as the study's profile trains it: at its own learning rate, found on the reserve, with
    the schedule that all recipes of the profile share; under `paper` as the authors state.

    Args:
        study: whose profile it is.
        name: of the search whose rate it takes, by default that of the recipe itself: one that varies
            another in a grid inherits the other's.
        recipe: what is trained; None takes the one of that name.

    Raises:
        ValueError: an unknown recipe, or no search of that name is on record.
    """
    profile, chosen = study.place.profile, recipe or find(name)
    if profile.search is None:
        return chosen
    return at_rate(chosen, own_rate(study, name), profile.schedule)


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
        recipe: the row of one's own, trained as it stands; None takes the named one `at_profile`.
        overrides: fields of `Profile` that this run takes other values for.

    Raises:
        ValueError: as `at_profile`.
    """
    others = [name for name in study.place.source.sets if name != train_set]
    chosen = recipe or at_profile(study, name)
    return Job(
        name,
        chosen.label,
        recipe=chosen,
        train_set=train_set,
        seed=seed,
        measures=on(("fpr95",), others),
        probes=on(PROBES, others),
        overrides=overrides,
    )


def training_jobs(
    study: Study,
    names: Iterable[str],
    seeds: Sequence[int],
    sets: Sequence[str] = (),
    *,
    rows: Mapping[str, Recipe] = {},
    searched: Mapping[str, str] = {},
) -> list[Job]:
    """`training_job` of each recipe, once, each train set, by default the first, and each seed, in this
    order.

    Args:
        study: whose data and profile they take.
        names, seeds, sets: what is trained from where on what.
        rows: recipes by name that are no rows of `lib.recipes.RECIPES`; all are taken `at_profile`.
        searched: by name the search whose rate a recipe takes, where that is not its own.
    """
    return [
        training_job(study, name, train_set, seed, recipe)
        for name in dict.fromkeys(names)
        for recipe in [at_profile(study, searched.get(name, name), rows.get(name) or find(name))]
        for train_set, seed in itertools.product(sets or study.place.source.sets[:1], seeds)
    ]


def on(modules: Sequence[str], sets: Sequence[str]) -> tuple[tuple[str, str], ...]:
    return tuple(itertools.product(modules, sets))


def handcrafted_job(study: Study, name: str) -> Job:
    """SIFT, RootSIFT or ORB, evaluated on all sets of the source."""
    label, descriptor = {**HANDCRAFTED, **HANDCRAFTED_BINARY}[name]
    sets = study.place.source.sets
    return Job(
        name,
        label,
        descriptor=descriptor,
        measures=on(("fpr95", "set_statistics"), sets),
        probes=on(PROBES, sets),
    )


def probed(job: Job, probe: str, sets: Iterable[str] | None = None) -> Job:
    """The job with a probe on sets, by default on its own train set."""
    return replace(job, probes=(*job.probes, *on((probe,), [job.train_set] if sets is None else sets)))


def measured(job: Job, measure: str, sets: Iterable[str] | None = None) -> Job:
    """The job with a measure on sets, by default on every one that it is tested on."""
    sets = job.sets_of("fpr95") if sets is None else sets
    return replace(job, measures=(*job.measures, *on((measure,), sets)))


def computation_job(name: str, label: str) -> Job:
    """A computation of `lib.theory`, which needs neither data nor training."""
    own = ((name, NO_SET),)
    return Job(name, label, computation=part(name), measures=own, probes=own)


def by_sign(job: Job, measure: str) -> Job:
    """The job, with what it measures measured by the signs of its descriptors too."""
    return measured(job, measure + SIGNS, job.sets_of(measure))


def tested_on(study: Study) -> str:
    """The set of HPatches patches that AdaSample's, HyNet's and TCDesc's tables test on.

    The splits of HyNet's Table 3 and of TCDesc's tables are unstated. TCDesc's is not the protocol of
    DSM's paper, all sequences and the whole pool (`lib.experiments.dsm.tested_on`), which has 61 percent
    of retrieval for DSM where TCDesc's has 70 for TCDesc.
    """
    return study.place.source.homographies.test_set(HPATCHES_SPLIT)


def on_hpatches(study: Study, jobs: Iterable[Job], *sets: str) -> list[Job]:
    """The jobs, measured on sets of HPatches patches too, by default on `tested_on`."""
    return [measured(job, "hpatches", sets or (tested_on(study),)) for job in jobs]
