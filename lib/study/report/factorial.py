"""The factorial over the papers' axes: its plan, effects, interactions, rates and confirmation.

An effect is the mean with a paper's choice less the mean without; of two axes together, half of what
the one's choice changes of the other's effect. FPR95 and HPatches' numbers are in percent.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy import stats

from lib.statistics.intervals import Measured, contrast, residual
from lib.study.artefacts import factorial, together
from lib.study.artefacts.factorial import AXES, CELLS, SEARCHED_CELLS, TERMS, Cell, sign
from lib.study.artefacts.searches import read_search
from lib.study.jobs import cost
from lib.study.open import Record, Study, records_of
from lib.study.report.changes import methods, with_tests
from lib.study.report.together import FPR95, LEVEL, by_measure

POWER, ONE_AXIS = 0.8, "one axis"
NAMES = {term: " × ".join(term) for term in TERMS}


def plan(study: Study) -> pd.DataFrame:
    """What is to be run and what it can tell, before any of it is.

    Returns:
        One row: "combinations", "seeds", "runs", and the "core hours" that these take by forecast; the
        standard deviation "sd" of FPR95 over seeds, the `residual` of the methods on equal footing; and
        the least effect in points that is found with a probability of 80%, by a test at 5% ("alone")
        and by the first of all by Holm's correction ("of all").
    """
    jobs, seeds = factorial.factorial(study), len(study.table_seeds)
    equal = records_of(study, together.equal_footing(study))
    spread, _ = residual(by_measure(equal, study)[FPR95].values())
    row = {"combinations": len(CELLS), "seeds": seeds, "runs": len(jobs)}
    row |= {"core hours": sum(sum(cost(job, study.setting)) for job in jobs) / 3600}
    return pd.DataFrame([row | least_effects(spread, len(jobs), len(jobs) - seeds - len(TERMS))])


def least_effects(spread: float, runs: int, freedom: int) -> dict[str, float]:
    """The last columns of `plan`: by a residual's standard deviation and degrees of freedom, and the
    number of runs."""
    least = {"sd": spread}
    for name, level in (("alone", LEVEL), ("of all", LEVEL / len(TERMS))):
        ends = stats.t.ppf([1 - level / 2, POWER], freedom)
        least[name] = 2 * spread / math.sqrt(runs) * ends.sum()
    return least


def achieved(planned: pd.DataFrame, fpr95: Mapping[Cell, Measured]) -> pd.DataFrame:
    """By "spread", as "planned" and as "achieved", the `least_effects`: with what was assumed of the
    runs, and with what their `effects` leave, which holds effects of three axes and more too.

    Args:
        planned: of `plan`.
        fpr95: of the combinations.
    """
    own = least_effects(*_least_squares(fpr95)[1:])
    rows = {"planned": planned.iloc[0][list(own)], "achieved": own}
    return pd.DataFrame(rows).T.astype(float).rename_axis("spread")


def _least_squares(cells: Mapping[Cell, Measured]) -> tuple[np.ndarray, float, int, int]:
    """Halves of `TERMS`' effects, each seed a block; the residual's standard deviation, the number of
    runs and the residual's degrees of freedom."""
    signs = np.array([[sign(term, cell) for term in TERMS] for cell in cells], dtype=float)
    runs = np.stack([method.values.mean(axis=1) for method in cells.values()])
    seeds = runs.shape[1]
    design = np.hstack([np.repeat(signs, seeds, axis=0), np.tile(np.eye(seeds), (len(runs), 1))])
    halves, [left], rank, _ = np.linalg.lstsq(design, runs.ravel())
    freedom = runs.size - int(rank)
    return halves[: len(TERMS)], math.sqrt(left / freedom), runs.size, freedom


def by_cell(runs: Sequence[Record], study: Study) -> dict[str, dict[Cell, Measured]]:
    """Runs of `lib.study.artefacts.factorial.factorial`, which may be among others, by measure and
    combination."""
    runs = [run for run in runs if run.job.name in CELLS]
    cells = {run.job.label: CELLS[run.job.name] for run in runs}
    return {
        measure: {cells[label]: method for label, method in methods.items()}
        for measure, methods in by_measure(runs, study).items()
    }


def effects(cells: Mapping[Cell, Measured]) -> pd.DataFrame:
    """All effects of one axis and of two together, by ordinary least squares.

    Args:
        cells: the balanced half of the combinations, in which effects are at right angles to each other
            and to seeds, with the same seeds, each seed a block.

    Returns:
        By "effect" its "points" with the interval "from" and "to": over seeds by the residual, to which
        effects of three axes and more belong, and jointly over what was tested on; its "p" and, by
        Holm's correction over all, "Holm"; and whether it is "of" one axis or two.
    """
    halves, spread, runs, freedom = _least_squares(cells)
    error, points = {"over_seeds": 2 * spread / math.sqrt(runs), "seed_freedom": freedom}, {}
    for (term, name), half in zip(NAMES.items(), halves, strict=True):
        terms = [(2 * sign(term, cell) / len(cells), method) for cell, method in cells.items()]
        points[name] = replace(contrast(terms), value=2 * half, **error)
    table = with_tests(points, "points").rename_axis("effect")
    return table.assign(of=[ONE_AXIS if len(term) == 1 else "two axes" for term in TERMS])


def four_means(fpr95: Mapping[Cell, Measured], effect: str) -> tuple[pd.DataFrame, float]:
    """Mean FPR95 with a choice ("on") and without ("off") on either of two axes, over all others.

    Args:
        fpr95: of the combinations.
        effect: of two axes together, as `effects` names it.

    Returns:
        Index the first axis, columns the second; and half the 95% interval over seeds, by `residual`.
    """
    both, means = effect.split(" × "), [method.values.mean() for method in fpr95.values()]
    levels = [["on" if axis in cell else "off" for axis in both] for cell in fpr95]
    index = pd.MultiIndex.from_tuples(levels, names=both)
    spread, freedom = residual(fpr95.values())
    runs = sum(len(method.values) for method in fpr95.values()) / 4
    half = stats.t.ppf(1 - LEVEL / 2, freedom) * spread / math.sqrt(runs)
    return pd.Series(means, index).groupby(both).mean().unstack(), half


def rates(study: Study) -> pd.DataFrame:
    """What it costs the searched combinations to share a rate, on the reserve.

    Returns:
        By "combination" its "own" rate and the one "taken", FPR95 "at own" and by how many points it is
        higher at the other, "lost"; and by axis the mean "lost" with the paper's choice less without.
    """
    rows = {}
    for key, cell in SEARCHED_CELLS.items():
        search, taken = read_search(study, key), factorial.rate_of(study, cell)
        own, fpr95 = search["best"], search["metrics"]["mean_fpr95"]
        rows[key] = (own, taken, fpr95[str(own)], fpr95[str(taken)] - fpr95[str(own)])
    columns = ["own", "taken", "at own", "lost"]
    table = pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("combination")
    for axis in AXES:
        signs = [sign((axis,), cell) for cell in SEARCHED_CELLS.values()]
        lost = 2 * (signs * table["lost"].iloc[: len(signs)]).mean()
        table.loc[f"{axis}, with − without", "lost"] = lost
    return table


def confirmed(runs: Sequence[Record], halves: factorial.Halves) -> pd.DataFrame:
    """The confirmation, on unseen seeds and the second reserve.

    Args:
        runs: of `lib.study.artefacts.factorial.confirmation`.
        halves: of the quick effects that asked for it.

    Returns:
        By "effect" what the quick effects say of it at the best combination, all else as there,
        "foreseen"; what it is there in these runs, in "points" with the interval "from" and "to"; its
        "p" and, by Holm's correction over all rows, "Holm"; and whether it is "confirmed", significant
        and of the sign foreseen. Last the best combination less the best of the papers' own, and less
        HardNet's.
    """
    labels, trained = {run.job.name: run.job.label for run in runs}, methods(runs)
    best = factorial.best(halves)
    sums = {
        NAMES[term]: [
            (sign(term, cell) / 2 ** (len(term) - 1), cell) for cell in factorial.around(term, best)
        ]
        for term in factorial.largest(halves)
    }
    rivals = {"papers' best": factorial.rival(halves), "HardNet": factorial.PAPERS["HardNet"]}
    sums |= {f"best − {name}": [(1.0, best), (-1.0, other)] for name, other in rivals.items()}
    points, foreseen = {}, []
    for name, terms in sums.items():
        points[name] = contrast([(w, trained[labels[factorial.key_of(cell)]]) for w, cell in terms])
        foreseen.append(sum(weight * factorial.at(halves, cell) for weight, cell in terms))
    table = with_tests(points, "points").rename_axis("effect")
    table.insert(0, "foreseen", foreseen)
    held = (table["Holm"] <= LEVEL) & (table["points"] * table["foreseen"] > 0)
    return table.assign(confirmed=held.map({True: "yes", False: "no"}))
