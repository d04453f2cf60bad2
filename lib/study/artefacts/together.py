"""The records that notebooks about no single paper need: the four papers' methods on equal footing, and
how hard embedded and real data are for descriptors."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

from lib.data.scenes.sets import IMAGES_OF, SHOWN, WIDE
from lib.recipes import DSM, HYNET, RECIPES, TCDESC_BUDGET, Recipe, replace_options
from lib.study.artefacts.rows import HANDCRAFTED, OPTION_SEEDS, Runs, measured
from lib.study.artefacts.searches import searched_fpr95
from lib.study.jobs import Job
from lib.study.open import ROOT, Study

# The papers' methods and those that they start from, by the key of their runs. DSM+ in this setting is
# the base of TCDesc-DSM+, so both share the runs of TCDesc's tables.
METHODS = {
    "equal_hardnet_aug": "hardnet_aug",
    "equal_hardnet_aug_gen": "hardnet_aug_gen",
    "equal_adasample_aug_gen": "adasample_aug_gen",
    "dsm_long": "dsm_aug",
    "equal_sosnet_aug": "sosnet_aug",
    "equal_hynet_aug": "hynet_aug",
    "equal_tcdesc_hn_aug": "tcdesc_hn_aug",
    "tcdesc_dsm_aug": "tcdesc_dsm_aug",
}


def on_equal_footing(recipe: Recipe) -> Recipe:
    """Return a method in DSM's setting, which TCDesc adopts: points are used up before they repeat, and
    flips and turns, dropout, schedule and budget are the same for all. The method keeps what its paper
    proposes, including a network and generated positives; its optimiser, whose rate is searched; and its
    scope of negatives."""
    return replace(
        recipe,
        model=replace_options(recipe.model, dropout=DSM.model.options["dropout"]),
        points=DSM.points,
        augment=DSM.augment,
        schedule=DSM.schedule,
        budget=TCDESC_BUDGET,
    )


EQUAL = {key: on_equal_footing(RECIPES[name]) for key, name in METHODS.items()}


def _swapped(recipe: Recipe) -> Recipe:
    """Return a method with the other optimiser: HyNet's Adam, or DSM's SGD."""
    return replace(recipe, optimizer=(DSM if recipe.optimizer.name == "adam" else HYNET).optimizer)


# Keys of the methods with the other optimiser (`equal_hynet_aug_sgd`, `equal_dsm_aug_adam`, …), and the
# key of each in `METHODS`.
SWAPPED_KEYS = {
    f"equal_{name}_{_swapped(EQUAL[key]).optimizer.name}": key for key, name in METHODS.items()
}
SWAPPED = {other: _swapped(EQUAL[key]) for other, key in SWAPPED_KEYS.items()}
# Likewise, methods whose SGD is dampened, as in HardNet's code or less, with DSM's SGD instead
# (`equal_hardnet_aug_undamped`, …).
UNDAMPED_KEYS = {
    f"{key}_undamped": key for key, own in EQUAL.items() if own.optimizer.options.get("dampening")
}
UNDAMPED = {
    other: replace(EQUAL[key], label=f"{EQUAL[key].label}, no dampening", optimizer=DSM.optimizer)
    for other, key in UNDAMPED_KEYS.items()
}
ALIKE = {**EQUAL, **SWAPPED, **UNDAMPED}
_OPTIMISER = {key: f", {recipe.optimizer.name}" for key, recipe in SWAPPED.items()}
# Recipes with a search of their own; their labels tell them from the papers' own settings.
SEARCHED = {
    key: replace(recipe, label=f"{recipe.label}, equal footing{_OPTIMISER.get(key, '')}")
    for key, recipe in ALIKE.items()
    if key.startswith("equal_")
}


def orders(study: Study) -> list[Job]:
    """Jobs of every method at its own learning rate, on the first train set, with its own optimiser and
    with the other one. The quick size has only the own optimiser, since searches for the other would
    take longer than all its other work; as its runs are short, it trains on each set in turn. On real
    places SIFT, RootSIFT and the committed networks are measured too, and longer profiles also train on
    the other places, each method with the optimiser that suits it."""
    quick, places = study.profile.name == "quick", study.source.scenes is not None
    jobs = Runs(EQUAL, recipes=EQUAL, hpatches="a", sets="all" if quick else "first")(study)
    if places:
        networks = sorted(ROOT.glob("networks/*/*.safetensors"))
        jobs += Runs(handcrafted=HANDCRAFTED)(study, networks)
    if quick:
        return jobs
    jobs += Runs(SWAPPED, recipes=SWAPPED, hpatches="a")(study)
    if places:
        suited = suited_keys(study).values()
        jobs += Runs(suited, most=OPTION_SEEDS, sets=study.source.sets[1:], recipes=ALIKE)(study)
    return jobs


def equal_footing(study: Study) -> list[Job]:
    """Jobs of `orders` on the first train set and, at longer profiles on real places, of `UNDAMPED`."""
    jobs = [job for job in orders(study) if job.train_set in (study.source.sets[0], None)]
    if study.source.scenes is None or study.profile.name == "quick":
        return jobs
    return jobs + Runs(UNDAMPED, recipes=UNDAMPED)(study)


# Methods that are also trained longer.
LONGER = ("equal_hardnet_aug", "dsm_long", "equal_sosnet_aug", "equal_hynet_aug", "tcdesc_dsm_aug")


def duration(study: Study) -> list[Job]:
    """Jobs of `LONGER` with each optimiser, dampened and not, four times as long at the same rate, those
    without dampening also tested on the train set; and of all methods at the profile's length, whose
    spread over seeds the intervals use."""
    longer = [key for key in ALIKE if (SWAPPED_KEYS | UNDAMPED_KEYS).get(key, key) in LONGER]
    budget = study.profile.budget_for(EQUAL["tcdesc_dsm_aug"])
    overrides = {"budget": replace(budget, epochs=4 * budget.epochs)}
    return Runs(ALIKE, recipes=ALIKE)(study) + [
        job if job.name in UNDAMPED_KEYS.values() else measured(job, "fpr95_by_stage", [job.train_set])
        for job in Runs(longer, recipes=ALIKE, overrides=overrides)(study)
    ]


def suited_keys(study: Study) -> dict[str, str]:
    """Return, by the key of each method, the key of its run with the optimiser whose search reached the
    lower FPR95 on the reserve: Adam or SGD, which has no dampening on real places.

    Raises:
        NoSearch: one of the searches is not on record.
    """
    on_places = study.source.scenes is not None
    undamped = {key: other for other, key in UNDAMPED_KEYS.items() if on_places}
    return {
        key: min(undamped.get(key, key), other, key=lambda n: min(searched_fpr95(study, n).values()))
        for other, key in SWAPPED_KEYS.items()
    }


# How hard each level of HPatches' patches is for SIFT.
hpatches = Runs(handcrafted=("sift",), hpatches="full")
# How hard the data is for handcrafted descriptors: SIFT and RootSIFT, each on the patch as cut and at
# the keypoint's own smoothing.
embedded = Runs(handcrafted=(*HANDCRAFTED, "sift_smooth", "rootsift_smooth"))


def ranking(study: Study, checkpoints: Sequence[str | Path] = ()) -> list[Job]:
    """Jobs for descriptors on all embedded sequences, and on real ones where the study has them.

    Args:
        study: its real sequences are those that `open_study` got as `real`.
        checkpoints: published ones, as `published_jobs` takes them.

    Raises:
        FileNotFoundError, ValueError: as `published_jobs`.
    """
    sets = [sets.test_set("full") for sets in study.source.hpatches]
    row = Runs(("hardnet_aug_gen", "adasample_aug_gen"), "test", handcrafted=HANDCRAFTED)
    return [measured(job, "hpatches", sets) for job in row(study, checkpoints)]


def scenes(study: Study, checkpoints: Sequence[str | Path] = ()) -> list[Job]:
    """Jobs of the notebook on real scenes: descriptors on every place but the reserve, at each tolerance
    shown, and a network trained on the first place. Without scenes there are none.

    Args:
        study: with scenes or without.
        checkpoints: as `published_jobs` takes them.

    Raises:
        FileNotFoundError, ValueError: as `published_jobs`.
    """
    if study.source.scenes is None:
        return []
    jobs = []
    for job in Runs(("hardnet_aug",), (0,), handcrafted=(*HANDCRAFTED, "orb"))(study, checkpoints):
        places = job.test_sets
        patches = [f"{place}{kind}-{px:g}px" for place in places for px in SHOWN for kind in ("", WIDE)]
        images = [f"{place}{IMAGES_OF}" for place in places]
        if job.recipe is None:
            job = replace(job, measures=tuple(product(("fpr95", "set_statistics"), patches)), probes=())
        else:
            job = measured(job, "fpr95", patches)
        job = measured(job, "image_pairs", images)
        jobs.append(measured(job, "carrying_error", images) if job.name == "sift" else job)
    return jobs
