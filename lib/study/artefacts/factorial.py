"""Which part of the four papers matters: a factorial over the axes on which they differ.

Six axes have two levels each, 64 combinations. Half of them are trained, those with an odd number of
papers' choices: no effect of one axis or of two together is then mixed up with another such (resolution
VI), and four of the papers' own methods are among them.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from statistics import fmean

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
# A combination: the axes on which it has the paper's choice.
Cell = frozenset[str]
# An effect: of one axis, or of two together.
Term = tuple[str, ...]
TERMS: Sequence[Term] = (*((axis,) for axis in AXES), *combinations(AXES, 2))
PAPERS: Mapping[str, Cell] = {
    "HardNet": frozenset(),
    "AdaSample": frozenset({"sampler"}),
    "DSM": frozenset({"loss"}),
    "HyNet": frozenset({"distance", "regulariser", "network"}),
    "TCDesc-HN": frozenset({"positive"}),
    "TCDesc-DSM": frozenset({"loss", "positive"}),
}


def key_of(cell: Cell) -> str:
    """Of a combination's runs: "cell_" and the initials of its axes, e.g. "cell_drn" of HyNet's."""
    return f"cell_{''.join(axis[0] for axis in AXES if axis in cell) or 'plain'}"


def recipe_of(cell: Cell) -> Recipe:
    """A combination; a loss of its own stands in place of the distance's hinge."""
    chosen = [axis for axis in AXES if axis in cell]
    label = f"factorial: {', '.join(chosen) or 'plain'}"
    return replace(PLAIN, label=label, **{k: v for axis in chosen for k, v in AXES[axis].items()})


def subsets(axes: Sequence[str]) -> list[Cell]:
    """The combinations of some axes, smaller ones first."""
    sizes = range(len(axes) + 1)
    return [frozenset(some) for size in sizes for some in combinations(axes, size)]


EVERY = subsets([*AXES])
CELLS: Mapping[str, Cell] = {key_of(cell): cell for cell in EVERY if len(cell) % 2}
# Rates are searched for eight combinations in which each axis is balanced; of the two that have a loss
# and a network in common, every other axis has its choice in one.
SEARCHED_CELLS: Mapping[str, Cell] = {
    key_of(cell): cell
    for cell in (
        frozenset(),
        frozenset({"sampler", "distance", "regulariser", "positive"}),
        frozenset({"distance", "loss", "positive"}),
        frozenset({"regulariser", "positive", "network"}),
        frozenset({"sampler", "loss", "regulariser"}),
        frozenset({"sampler", "distance", "network"}),
        frozenset({"distance", "loss", "regulariser", "network"}),
        frozenset({"sampler", "loss", "positive", "network"}),
    )
}
SEARCHED: Mapping[str, Recipe] = {key: recipe_of(cell) for key, cell in SEARCHED_CELLS.items()}
# DSM's weights are about one half in the mean, so that beside its loss a regulariser weighs about twice
# what it weighs beside a hinge. These combinations are trained once more with half of R_L2's weight.
HALVED: Mapping[str, Cell] = {
    key.replace("cell", "half"): cell for key, cell in CELLS.items() if {"loss", "regulariser"} <= cell
}
[_R_L2] = HYNET.regularizers
_HALF = (replace_options(_R_L2, weight=_R_L2.options["weight"] / 2),)


def _searched(cell: Cell) -> tuple[str, ...]:
    """The two searched combinations that have a combination's loss and network."""
    shared = {"loss", "network"}
    return tuple(key for key, other in SEARCHED_CELLS.items() if shared.isdisjoint(other ^ cell))


def rate_of(study: Study, cell: Cell) -> float:
    """The learning rate at which the two searched combinations that have a combination's loss and
    network did best together.

    Raises:
        NoSearch: one of them is not on record.
    """
    return shared_rate(study, _searched(cell))


_CELLS = {**{key_of(cell): cell for cell in EVERY}, **HALVED}
_HALVED = {
    key: replace(
        recipe_of(cell), label=f"{recipe_of(cell).label}, half of R_L2's weight", regularizers=_HALF
    )
    for key, cell in HALVED.items()
}
cell_runs = partial(
    Runs,
    recipes={key: recipe_of(cell) for key, cell in _CELLS.items()} | _HALVED,
    searched={key: _searched(cell) for key, cell in _CELLS.items()},
)
# On the first train set, with the seeds of a table.
factorial = cell_runs(CELLS, hpatches="a")
jobs = several(factorial, cell_runs(HALVED))


def sign(term: Term, cell: Cell) -> int:
    """A combination's side of an effect, 1 or −1: the product over the effect's axes of 1 where it has
    the paper's choice and −1 where it has not."""
    return math.prod(1 if axis in cell else -1 for axis in term)


# By effect half of it, and of no axis the mean of all combinations.
Halves = Mapping[Term, float]


def halves_of(records: Sequence[Record]) -> Halves:
    """Effects on FPR95 by least squares, which in a balanced design are means with signs.

    Args:
        records: of `factorial`.
    """
    runs = [(CELLS[run.job.name], fmean(run.fpr95s().values())) for run in records]
    return {term: fmean(sign(term, cell) * fpr95 for cell, fpr95 in runs) for term in ((), *TERMS)}


def at(halves: Halves, cell: Cell) -> float:
    """FPR95 that a combination should have by the effects, trained or not."""
    return sum(half * sign(term, cell) for term, half in halves.items())


def best(halves: Halves) -> Cell:
    """The combination that should have the lowest."""
    return min(EVERY, key=lambda cell: at(halves, cell))


def rival(halves: Halves) -> Cell:
    """Of the papers' own methods the one that should have the lowest."""
    return min(PAPERS.values(), key=lambda cell: at(halves, cell))


def largest(halves: Halves) -> list[Term]:
    """The three largest effects."""
    return sorted(TERMS, key=lambda term: -abs(halves[term]))[:3]


def around(term: Term, cell: Cell) -> list[Cell]:
    """The combinations that an effect is made of where all else is as in one."""
    return [cell ^ axes for axes in subsets(term)]


# Seeds that no table, grid or search has.
UNSEEN = (5, 6, 7, 8, 9)


def confirmation(study: Study, halves: Halves) -> list[Job]:
    """The best combination, what its three largest effects are made of, the best of the papers' own and
    HardNet's, on unseen seeds, tested on the second reserve, which nothing else reads. None where the
    data has no second reserve, or under `paper`, whose rates are stated of the methods alone. Real
    homography sequences, where the study has them, are an illustration beside it."""
    tested = study.setting.source.confirmation
    if not tested or study.setting.profile.search is None:
        return []
    cells = [best(halves), rival(halves), PAPERS["HardNet"]]
    cells += [cell for term in largest(halves) for cell in around(term, cells[0])]
    runs = cell_runs(dict.fromkeys(map(key_of, cells)), study.seeds or UNSEEN)(study)
    runs = [replace(job, **evaluated_on(study, tested)) for job in runs]
    if sequences := study.setting.source.real_hpatches:
        runs = [measured(job, "hpatches", [sequences.test_set("full")]) for job in runs]
    return runs


def on_quick_record() -> Halves | None:
    """The effects of the quick reference, or None while that lacks a run."""
    quick = open_study()
    records = on_record(quick, factorial(quick))
    return halves_of(records) if records else None


def confirmed(study: Study) -> list[Job]:
    """The `confirmation` of what is `on_quick_record`; none at quick."""
    halves = None if study.setting.profile.name == "quick" else on_quick_record()
    return confirmation(study, halves) if halves else []
