"""Which records each table and figure needs. A notebook's one import besides `lib.reporting`: it gets
its study and its records through here, from `lib.study.open`."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lib.recipes import (
    ACROSS,
    ADASAMPLE_SGD,
    GENERATED,
    LAMBDAS,
    RECIPES,
    TRIPLET_LOSSES,
    WITHIN,
    Recipe,
    find,
    lambda_recipe,
    part,
    replace_options,
)
from lib.study import records
from lib.study.jobs import Job
from lib.study.open import ROOT, Found, Study
from lib.study.open import obtain as obtain
from lib.study.open import open_study as open_study
from lib.study.open import provenance as provenance

HANDCRAFTED = {
    "sift": ("SIFT", part("sift", root=False)),
    "rootsift": ("RootSIFT", part("sift", root=True)),
}


@dataclass(frozen=True)
class Artefact:
    """A notebook and the jobs it asks for.

    Attributes:
        notebook: below the repository's root.
        jobs: from a study to what it needs.
        extras: left out unless asked for.
        hpatches: it needs HPatches patches, which a folder of real data may lack.
    """

    notebook: str
    jobs: Callable[[Study], list[Job]]
    extras: bool = False
    hpatches: bool = False


def tuning_path(profile: str, optimizer: str) -> Path:
    """Where the search for a profile's learning rate is on record (`lib.commands.tuning`)."""
    return ROOT / "results" / "reference" / profile / "tuning" / f"{optimizer}.json"


def learning_rates(profile: str, optimizer: str) -> dict[str, dict[float, list[float]]]:
    """That search's FPR95 in percent: by recipe's label, by rate, a value for each pair of scenes."""
    found: dict[str, dict[float, list[float]]] = {}
    for run in records.read(tuning_path(profile, optimizer))["runs"]:
        by_rate = found.setdefault(find(run["recipe"]).label, {})
        by_rate.setdefault(run["rate"], []).append(run["fpr95"])
    return found


def training_job(study: Study, recipe: str, train_set: str, seed: int, **overrides: object) -> Job:
    """A run of a recipe, evaluated on the source's other sets.

    Args:
        study: whose data and profile it takes.
        recipe: a key of `lib.recipes.RECIPES`.
        train_set, seed: what it is trained on and from.
        overrides: fields of `Profile` that this run takes other values for.

    Raises:
        ValueError: an unknown recipe.
    """
    others = [name for name in study.place.source.sets if name != train_set]
    chosen = find(recipe)
    return Job(
        recipe,
        chosen.label,
        recipe=chosen,
        train_set=train_set,
        seed=seed,
        measures=_on(("fpr95",), others),
        probes=_on(("distance_histogram",), others),
        overrides=overrides,
    )


def _on(modules: Sequence[str], sets: Sequence[str]) -> tuple[tuple[str, str], ...]:
    return tuple(itertools.product(modules, sets))


def handcrafted_job(study: Study, name: str) -> Job:
    """SIFT or RootSIFT, evaluated on all sets of the source."""
    label, descriptor = HANDCRAFTED[name]
    sets = study.place.source.sets
    return Job(
        name,
        label,
        descriptor=descriptor,
        measures=_on(("fpr95", "set_statistics"), sets),
        probes=_on(("distance_histogram",), sets),
    )


def _probed(job: Job, probe: str) -> Job:
    """The job with a probe on its own train set."""
    return replace(job, probes=(*job.probes, (probe, job.train_set)))


def computation_job(name: str, label: str, **options: object) -> Job:
    """A computation of `lib.theory`, which needs neither data nor training."""
    return Job(name, label, computation=part(name, **options))


# In the order of the paper's rows.
TABLE1_RECIPES = (
    "hardnet",
    "hardnet_gor",
    "hardnet_gen",
    "adasample_gen",
    "hardnet_aug",
    "hardnet_gor_aug",
    "hardnet_aug_gen",
    "adasample_aug_gen",
)


def adasample_table1(study: Study, also: Sequence[str] = ()) -> list[Job]:
    """AdaSample's Table 1: its computed rows and recipes of one's own, each train set."""
    return [
        *(handcrafted_job(study, name) for name in HANDCRAFTED),
        *(
            training_job(study, recipe, train_set, seed)
            for recipe in (*TABLE1_RECIPES, *also)
            for train_set in study.place.source.sets
            for seed in study.table_seeds
        ),
    ]


def adasample_table3(study: Study) -> list[Job]:
    """AdaSample's Table 3: both methods on each train set, as many seeds as a test needs."""
    return [
        training_job(study, recipe, train_set, seed)
        for recipe in ("hardnet_aug_gen", "adasample_aug_gen")
        for train_set in study.place.source.sets
        for seed in study.test_seeds
    ]


# What the papers leave open and is most likely to matter: recipe, what is changed, the change.
_ADASAMPLE, _HARDNET = RECIPES["adasample_aug_gen"], RECIPES["hardnet_aug_gen"]
OPTIONS: tuple[tuple[str, str, Recipe], ...] = (
    ("adasample_aug_gen", "default", _ADASAMPLE),
    ("adasample_aug_gen", "negatives across", replace(_ADASAMPLE, negatives=ACROSS)),
    (
        "adasample_aug_gen",
        "negatives of all four blocks",
        replace(_ADASAMPLE, negatives=replace_options(WITHIN, scope="all")),
    ),
    ("adasample_aug_gen", "w_i = 1", replace(_ADASAMPLE, pair_weight=None)),
    (
        "adasample_aug_gen",
        "w_i = 1/d, raw",
        replace(_ADASAMPLE, pair_weight=part("inverse_distance", scale="raw")),
    ),
    (
        "adasample_aug_gen",
        "w_i = Z/d, by class",
        replace(_ADASAMPLE, pair_weight=part("inverse_distance", scale="class")),
    ),
    (
        "adasample_aug_gen",
        "candidates reused in the loss",
        replace(_ADASAMPLE, sampler=part("adasample", lam=10.0, reuse=True)),
    ),
    (
        "adasample_aug_gen",
        "generated by any rotation",
        replace(_ADASAMPLE, generate=replace_options(GENERATED, max_degrees=180.0)),
    ),
    (
        "adasample_aug_gen",
        "no dampening",
        replace(_ADASAMPLE, optimizer=replace_options(ADASAMPLE_SGD, dampening=0.0)),
    ),
    ("hardnet_aug_gen", "default", _HARDNET),
    ("hardnet_aug_gen", "negatives within", replace(_HARDNET, negatives=WITHIN)),
    (
        "hardnet_aug_gen",
        "negatives of all four blocks",
        replace(_HARDNET, negatives=replace_options(WITHIN, scope="all")),
    ),
    (
        "hardnet_aug_gen",
        "no dampening",
        replace(_HARDNET, optimizer=replace_options(ADASAMPLE_SGD, dampening=0.0)),
    ),
)


def adasample_options(study: Study) -> list[Job]:
    """What the papers leave open, one choice changed at a time, on the first train set."""
    train_set = study.place.source.sets[0]
    return [
        replace(training_job(study, name, train_set, seed), recipe=changed)
        for name, _, changed in OPTIONS
        for seed in study.test_seeds
    ]


def fpr95_by_option(found: Sequence[Found], study: Study) -> dict[tuple[str, str], list[float]]:
    """By (recipe's label, option) FPR95 in percent of each seed, the mean over the test sets."""
    values = {}
    for (name, option, _), start in zip(
        OPTIONS, range(0, len(found), len(study.test_seeds)), strict=True
    ):
        runs = found[start : start + len(study.test_seeds)]
        values[find(name).label, option] = [sum(f.fpr95s().values()) / len(f.fpr95s()) for f in runs]
    return values


def adasample_figure3(study: Study) -> list[Job]:
    """AdaSample's Figure 3: gradient norms, AHT on each train set and HT on the first."""
    first, seeds = study.place.source.sets[:1], study.table_seeds
    recipes = (("adasample_aug_gen", study.place.source.sets), ("adasample_aug_gen_ht", first))
    return [
        _probed(training_job(study, recipe, train_set, seed), "gradient_norms")
        for recipe, train_sets in recipes
        for train_set in train_sets
        for seed in seeds
    ]


def adasample_figure1(study: Study) -> list[Job]:
    """AdaSample's Figure 1 from data, and a run without ``*``, whose classes often leave no choice."""
    train_set, seed = study.place.source.sets[0], study.table_seeds[0]
    shown = training_job(study, "adasample_aug_gen", train_set, seed)
    return [
        _probed(shown, "drawn_pairs"),
        training_job(study, "hardnet", train_set, seed),
    ]


THEORY = {
    "progress": "Theorem 1",
    "variance": "Theorem 2",
    "unbiasedness": "Eq. 10",
    "output_gradient": "Eq. 24",
    "hinge_against_distance": "Eq. 12",
}


def adasample_theory(study: Study) -> list[Job]:
    """AdaSample's theory on small problems, and Table 1's runs in which footnote 5 is looked up."""
    train_set, seed = study.place.source.sets[0], study.table_seeds[0]
    recipes = ("hardnet", "adasample_gen", "adasample_aug_gen")
    return [
        *(computation_job(name, label) for name, label in THEORY.items()),
        *(training_job(study, recipe, train_set, seed) for recipe in recipes),
    ]


def embedded_data(study: Study) -> list[Job]:
    """The notebook that shows the data: how hard it is for descriptors that nobody trained."""
    return [handcrafted_job(study, name) for name in HANDCRAFTED]


PRECISIONS = ({"precision": "float32"}, {"precision": "bfloat16"})


def precision(study: Study) -> list[Job]:
    """Whether training in bfloat16, standard's default, leaves FPR95 as it is."""
    return [
        training_job(study, "hardnet_aug_gen", study.place.source.sets[0], seed, **changed)
        for changed in PRECISIONS
        for seed in study.test_seeds
    ]


# The split whose patches the paper's "-HP" models train on; all are tested on its other part.
HPATCHES_SPLIT = "a"
FIGURE2_RECIPES = (
    "hardnet",
    "hardnet_aug",
    "hardnet_gen",
    "hardnet_aug_gen",
    "adasample_gen",
    "adasample_aug_gen",
)
FIGURE2_HP_RECIPES = ("hardnet_aug_gen", "adasample_aug_gen")


def _on_hpatches(job: Job, *sets: str) -> Job:
    """The job, measured on what HPatches splits test on too."""
    return replace(job, measures=(*job.measures, *_on(("hpatches",), sets)))


def adasample_figure2(study: Study) -> list[Job]:
    """AdaSample's Figure 2: trained on the first set of patches, and ("-HP") on HPatches itself."""
    source = study.place.source
    tested = source.homographies.test_set(HPATCHES_SPLIT)
    trained = [(recipe, source.sets[0]) for recipe in FIGURE2_RECIPES]
    trained += [(recipe, source.homographies.train_set(HPATCHES_SPLIT)) for recipe in FIGURE2_HP_RECIPES]
    return [
        *(_on_hpatches(handcrafted_job(study, name), tested) for name in HANDCRAFTED),
        *(
            _on_hpatches(training_job(study, recipe, train_set, seed), tested)
            for recipe, train_set in trained
            for seed in study.table_seeds
        ),
    ]


def adasample_table2(study: Study, train_set: str | None = None) -> list[Job]:
    """AdaSample's Table 2: λ by loss, trained on the first set of patches or another."""
    source = study.place.source
    tested = source.homographies.test_set(HPATCHES_SPLIT)
    return [
        _on_hpatches(
            training_job(study, lambda_recipe(lam, loss), train_set or source.sets[0], seed), tested
        )
        for lam in LAMBDAS
        for loss in TRIPLET_LOSSES
        for seed in study.table_seeds
    ]


def hpatches_data(study: Study) -> list[Job]:
    """The notebook that shows HPatches patches: how hard each level is for SIFT."""
    tested = study.place.source.homographies.test_set("full")
    return [_on_hpatches(handcrafted_job(study, "sift"), tested)]


def hpatches_ranking(study: Study, checkpoint: str | None = None) -> list[Job]:
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
    return [_on_hpatches(job, *sets) for job in jobs]


ARTEFACTS: Mapping[str, Artefact] = {
    "data/embedded": Artefact("notebooks/data/embedded.ipynb", embedded_data),
    "adasample/table1": Artefact("notebooks/adasample/table1.ipynb", adasample_table1),
    "study/learning_rate": Artefact("notebooks/study/learning_rate.ipynb", lambda study: []),
    "adasample/table3": Artefact("notebooks/adasample/table3.ipynb", adasample_table3),
    "adasample/options": Artefact("notebooks/adasample/options.ipynb", adasample_options, extras=True),
    "adasample/figure3": Artefact("notebooks/adasample/figure3.ipynb", adasample_figure3),
    "adasample/figure1": Artefact("notebooks/adasample/figure1.ipynb", adasample_figure1),
    "adasample/theory": Artefact("notebooks/adasample/theory.ipynb", adasample_theory),
    "study/precision": Artefact("notebooks/study/precision.ipynb", precision),
    "data/hpatches": Artefact("notebooks/data/hpatches.ipynb", hpatches_data, hpatches=True),
    "data/ranking": Artefact("notebooks/data/ranking.ipynb", hpatches_ranking, hpatches=True),
    "adasample/figure2": Artefact("notebooks/adasample/figure2.ipynb", adasample_figure2, hpatches=True),
    "adasample/table2": Artefact("notebooks/adasample/table2.ipynb", adasample_table2, hpatches=True),
}
