"""Which part of the four papers matters: a factorial over the axes on which they differ.

Six axes have two levels each, 64 combinations. Half of them are trained, those with an odd number of
papers' choices: no effect of one axis or of two together is then mixed up with another such (resolution
VI), and four of the papers' own methods are among them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from statistics import fmean

import pandas as pd

from lib.recipes import HARDNET, HYNET, TCDESC_DSM, Recipe, adasample, hybrid, replace_options
from lib.study.artefacts.rows import Runs, evaluated_on, measured, several
from lib.study.artefacts.searches import shared_rate
from lib.study.artefacts.together import on_equal_footing
from lib.study.jobs import Job
from lib.study.open import Record, Study, on_record, open_study

# What all combinations share: the setting of `on_equal_footing`, Adam, negatives across the pair sets,
# and no generated positives.
PLAIN = replace(on_equal_footing(HARDNET), optimizer=HYNET.optimizer)
_ADASAMPLE, _HYBRID = adasample(), hybrid(PLAIN)
# L_avg is of hinges, since DSM's loss is negative.
_SAMPLER = replace_options(_ADASAMPLE.sampler, of="hinge")
_ACROSS = replace_options(_HYBRID.negatives, scope=PLAIN.negatives.options["scope"])
# By axis what a paper's choice changes; a distance has the margin of its paper with it.
AXES: Mapping[str, Mapping[str, object]] = {
    "sampler": {"sampler": _SAMPLER, "pair_weight": _ADASAMPLE.pair_weight},
    "distance": {"distance": _HYBRID.distance, "negatives": _ACROSS, "loss": _HYBRID.loss},
    "loss": {"loss": TCDESC_DSM.loss},
    "regulariser": {"regularizers": HYNET.regularizers},
    "positive": {"positive": TCDESC_DSM.positive},
    "network": {"model": on_equal_footing(HYNET).model},
}
# The axes on which a combination has the paper's choice.
Cell = frozenset[str]


def subsets(axes: Iterable[str]) -> list[Cell]:
    """All subsets of some axes, smaller ones first."""
    axes = [*axes]
    return [frozenset(chosen) for size in range(len(axes) + 1) for chosen in combinations(axes, size)]


def key_of(cell: Cell) -> str:
    """The key of a combination's runs: "cell_" and its axes' initials, e.g. "cell_drn" for HyNet."""
    return f"cell_{''.join(axis[0] for axis in AXES if axis in cell) or 'plain'}"


# All combinations by key, and the half that is trained.
EVERY: Mapping[str, Cell] = {key_of(cell): cell for cell in subsets(AXES)}
CELLS: Sequence[str] = [key for key, cell in EVERY.items() if len(cell) % 2]
PAPERS: Mapping[str, str] = {
    **{"HardNet": "cell_plain", "AdaSample": "cell_s", "DSM": "cell_l", "HyNet": "cell_drn"},
    **{"TCDesc-HN": "cell_p", "TCDesc-DSM": "cell_lp"},
}
# Rates are searched for eight combinations in which each axis is balanced. Two of them share each loss
# and network, and every other axis has the paper's choice in one of the two.
SEARCHED_CELLS = (
    *("cell_plain", "cell_sdrp", "cell_dlp", "cell_rpn"),
    *("cell_slr", "cell_sdn", "cell_dlrn", "cell_slpn"),
)


def _design() -> pd.DataFrame:
    rows = [[1, *(1 if axis in cell else -1 for axis in AXES)] for cell in EVERY.values()]
    design = pd.DataFrame(rows, list(EVERY), ["mean", *AXES])
    for one, other in combinations(AXES, 2):
        design[f"{one} × {other}"] = design[one] * design[other]
    return design


# A row a combination; the columns are the mean, then the effects of one axis and of two together. An
# axis is 1 where the combination has the paper's choice and −1 elsewhere, two axes are the product.
DESIGN = _design()
TERMS = DESIGN.columns[1:]


def recipe_of(key: str) -> Recipe:
    """A combination's recipe; a loss of its own takes the place of the distance's hinge."""
    chosen = [axis for axis in AXES if axis in EVERY[key]]
    label = f"factorial: {', '.join(chosen) or 'plain'}"
    return replace(PLAIN, label=label, **{k: v for axis in chosen for k, v in AXES[axis].items()})


SEARCHED: Mapping[str, Recipe] = {key: recipe_of(key) for key in SEARCHED_CELLS}
# DSM's weights are about one half in the mean, so that beside its loss a regulariser weighs about twice
# what it weighs beside a hinge. These combinations are trained once more with half of R_L2's weight.
HALVED: Mapping[str, str] = {
    key.replace("cell", "half"): key for key in CELLS if {"loss", "regulariser"} <= EVERY[key]
}
[_R_L2] = HYNET.regularizers
_HALF = (replace_options(_R_L2, weight=_R_L2.options["weight"] / 2),)


def _searched(key: str) -> tuple[str, ...]:
    """The two searched combinations that have a combination's loss and network."""
    shared = {"loss", "network"}
    return tuple(k for k in SEARCHED_CELLS if shared.isdisjoint(EVERY[k] ^ EVERY[key]))


def rate_of(study: Study, key: str) -> float:
    """The learning rate at which the two searched combinations that have a combination's loss and
    network did best together.

    Raises:
        NoSearch: one of them is not on record.
    """
    return shared_rate(study, _searched(key))


def _halved(recipe: Recipe) -> Recipe:
    return replace(recipe, label=f"{recipe.label}, half of R_L2's weight", regularizers=_HALF)


_RECIPES = {key: recipe_of(key) for key in EVERY}
cell_runs = partial(
    Runs,
    recipes=_RECIPES | {half: _halved(_RECIPES[key]) for half, key in HALVED.items()},
    searched={key: _searched(HALVED.get(key, key)) for key in (*EVERY, *HALVED)},
)
# On the first train set, with the seeds of a table.
factorial = cell_runs(CELLS, hpatches="a")
jobs = several(factorial, cell_runs(HALVED))


def halves_of(records: Sequence[Record]) -> pd.Series:
    """Half of each effect on FPR95, and the mean of all combinations, by the columns of `DESIGN`.

    Least squares, which in a balanced design are means with signs.

    Args:
        records: of `factorial`.
    """
    runs = DESIGN.loc[[run.job.name for run in records]]
    return runs.mul([fmean(run.fpr95s().values()) for run in records], axis=0).mean()


def foreseen(halves: pd.Series) -> pd.Series:
    """The FPR95 that every combination should have by the effects, trained or not, by key."""
    return DESIGN @ halves


def best(halves: pd.Series) -> str:
    """The combination that should have the lowest FPR95."""
    return foreseen(halves).idxmin()


def rival(halves: pd.Series) -> str:
    """The one of the papers' own methods that should have the lowest FPR95."""
    return foreseen(halves)[list(PAPERS.values())].idxmin()


def largest(halves: pd.Series) -> list[str]:
    """The three largest effects."""
    return list(halves[TERMS].abs().nlargest(3).index)


def around(term: str, key: str) -> list[str]:
    """The combinations that differ from one in the axes of an effect alone, itself among them."""
    return [key_of(EVERY[key] ^ axes) for axes in subsets(term.split(" × "))]


# Seeds that no table, grid or search has.
UNSEEN = (5, 6, 7, 8, 9)


def confirmation(study: Study, halves: pd.Series) -> list[Job]:
    """The best combination, those that its three largest effects are made of, the best of the papers'
    own and HardNet's, on unseen seeds, tested on the second reserve, which nothing else reads.

    There are none where the data has no second reserve, or under `paper`, whose rates are stated of the
    methods alone. Real homography sequences, where the study has them, are an illustration beside it.
    """
    tested = study.setting.source.confirmation
    if not tested or study.setting.profile.search is None:
        return []
    cells = [best(halves), rival(halves), PAPERS["HardNet"]]
    cells += [key for term in largest(halves) for key in around(term, cells[0])]
    runs = cell_runs(cells, study.seeds or UNSEEN)(study)
    runs = [replace(job, **evaluated_on(study, tested)) for job in runs]
    if sequences := study.setting.source.real_hpatches:
        runs = [measured(job, "hpatches", [sequences.test_set("full")]) for job in runs]
    return runs


def on_quick_record() -> pd.Series | None:
    """The effects of the quick reference, or None while that lacks a run."""
    quick = open_study()
    records = on_record(quick, factorial(quick))
    return halves_of(records) if records else None


def confirmed(study: Study) -> list[Job]:
    """The `confirmation` of what is `on_quick_record`; none at quick."""
    halves = None if study.setting.profile.name == "quick" else on_quick_record()
    return [] if halves is None else confirmation(study, halves)
