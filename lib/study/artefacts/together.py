"""Which records the notebooks of no paper need: the four papers' methods on equal footing, and how hard
embedded and real data are for descriptors."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

from lib.data.scenes.sets import IMAGES_OF, SHOWN, WIDE
from lib.recipes import DSM, HYNET, RECIPES, TCDESC_BUDGET, Recipe, replace_options
from lib.study.artefacts.rows import HANDCRAFTED, Runs, measured, several
from lib.study.artefacts.searches import searched_fpr95
from lib.study.jobs import Job
from lib.study.open import ROOT, Study

# The papers' methods and those that they start from, by the key of their runs. DSM+ in this setting is
# what TCDesc-DSM+ stands on, so that both share the runs of TCDesc's tables.
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
    """A method in DSM's setting, which TCDesc takes over: points used up before they repeat, one rule of
    flips and turns, one dropout, schedule and budget. What its paper proposes stays, a network and
    generated positives too; so do the optimiser, whose rate is searched, and the scope of negatives."""
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
    """A method with the optimiser that it does not have: HyNet's Adam, or DSM's SGD."""
    return replace(recipe, optimizer=(DSM if recipe.optimizer.name == "adam" else HYNET).optimizer)


# Each method with the other optimiser (`equal_hynet_aug_sgd`, `equal_dsm_aug_adam`, …), by the key of
# the method that it is.
SWAPPED_KEYS = {
    f"equal_{name}_{_swapped(EQUAL[key]).optimizer.name}": key for key, name in METHODS.items()
}
SWAPPED = {other: _swapped(EQUAL[key]) for other, key in SWAPPED_KEYS.items()}
# Each method whose SGD is dampened, as HardNet's code has it or in part, with DSM's
# (`equal_hardnet_aug_undamped`, …), likewise.
UNDAMPED_KEYS = {
    f"{key}_undamped": key for key, own in EQUAL.items() if own.optimizer.options.get("dampening")
}
UNDAMPED = {
    other: replace(EQUAL[key], label=f"{EQUAL[key].label}, no dampening", optimizer=DSM.optimizer)
    for other, key in UNDAMPED_KEYS.items()
}
ALIKE = {**EQUAL, **SWAPPED, **UNDAMPED}
_OPTIMISER = {key: f", {recipe.optimizer.name}" for key, recipe in SWAPPED.items()}
# Those with a search of their own; labels tell them from the papers' own settings beside them.
SEARCHED = {
    key: replace(recipe, label=f"{recipe.label}, equal footing{_OPTIMISER.get(key, '')}")
    for key, recipe in ALIKE.items()
    if key.startswith("equal_")
}


def orders(study: Study) -> list[Job]:
    """Every method at its own learning rate with its own optimiser, on the first train set, and with the
    other one. The quick size has the first alone, since searches of the other would take longer than all
    else that is asked of it; there, where runs are short, each set is trained on in turn. On real places
    SIFT, RootSIFT and the committed networks are measured too."""
    quick = study.profile.name == "quick"
    jobs = Runs(EQUAL, recipes=EQUAL, hpatches="a", sets="all" if quick else "first")(study)
    if study.source.scenes is not None:
        networks = sorted(ROOT.glob("networks/*/*.safetensors"))
        jobs += Runs(handcrafted=HANDCRAFTED)(study, networks)
    return jobs if quick else jobs + Runs(SWAPPED, recipes=SWAPPED, hpatches="a")(study)


def equal_footing(study: Study) -> list[Job]:
    """Those of `orders` on the first train set and, at longer profiles on real places, `UNDAMPED`."""
    source, profile = study.source, study.profile
    jobs = [job for job in orders(study) if job.train_set in (source.sets[0], None)]
    if source.scenes is None or profile.name == "quick":
        return jobs
    return jobs + Runs(UNDAMPED, recipes=UNDAMPED)(study)


# Those that train longer, too, and how many times as long.
LONGER = ("equal_hardnet_aug", "equal_sosnet_aug", "tcdesc_dsm_aug")
TIMES = 4


def duration(study: Study) -> list[Job]:
    """`LONGER` with each optimiser, dampened and not, `TIMES` as long at the same learning rates; and
    all methods at the profile's length, whose spread over seeds the intervals use."""
    short = Runs(ALIKE, recipes=ALIKE)
    others = [other for other, key in (SWAPPED_KEYS | UNDAMPED_KEYS).items() if key in LONGER]
    budget = study.profile.budget_for(EQUAL["tcdesc_dsm_aug"])
    overrides = {"budget": replace(budget, epochs=TIMES * budget.epochs)}
    return several(short, replace(short, methods=[*LONGER, *others], overrides=overrides))(study)


def optimiser_on_reserve(study: Study) -> dict[str, str]:
    """By a method's label the optimiser with which its search reached the lower FPR95, on the reserve:
    Adam or SGD, on real places without dampening.

    Raises:
        NoSearch: one of them is not on record.
    """
    suited, on_places = {}, study.source.scenes is not None
    undamped = {key: other for other, key in UNDAMPED_KEYS.items() if on_places}
    for other, key in SWAPPED_KEYS.items():
        searched = (undamped.get(key, key), other)
        lowest = {n: min(searched_fpr95(study, n).values()) for n in searched}
        suited[EQUAL[key].label] = ALIKE[min(lowest, key=lowest.get)].optimizer.name
    return suited


# How hard each level of HPatches' patches is for SIFT.
hpatches = Runs(handcrafted=("sift",), hpatches="full")
# How hard the data is for descriptors that nobody trained: SIFT and RootSIFT, each on the cut as it is
# and at the keypoint's own smoothing.
embedded = Runs(handcrafted=(*HANDCRAFTED, "sift_smooth", "rootsift_smooth"))


def ranking(study: Study, checkpoints: Sequence[str | Path] = ()) -> list[Job]:
    """Descriptors on all embedded sequences and on real ones, where the study has them.

    Args:
        study: real sequences are what `open_study` was given as `real`.
        checkpoints: published ones, as `published_jobs` takes them.

    Raises:
        FileNotFoundError, ValueError: as `published_jobs`.
    """
    sets = [sets.test_set("full") for sets in study.source.hpatches]
    row = Runs(("hardnet_aug_gen", "adasample_aug_gen"), "test", handcrafted=HANDCRAFTED)
    return [measured(job, "hpatches", sets) for job in row(study, checkpoints)]


def scenes(study: Study, checkpoints: Sequence[str | Path] = ()) -> list[Job]:
    """The notebook on real scenes: descriptors on every place but the reserve, at each tolerance shown,
    and a network trained on the first place; without scenes nothing.

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
