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
from lib.study.artefacts.factorial import AXES, CELLS, DESIGN, SEARCHED_CELLS, TERMS
from lib.study.artefacts.searches import read_search
from lib.study.jobs import cost
from lib.study.open import Record, Study, records_of
from lib.study.report.changes import methods, with_tests
from lib.study.report.together import FPR95, LEVEL, by_measure

POWER = 0.8


def plan(study: Study) -> pd.DataFrame:
    """The runs that the factorial takes, and the effects that it can find, forecast before any run.

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
    return pd.DataFrame([row | least_effects(spread, len(CELLS), seeds)])


def least_effects(spread: float, combinations: int, seeds: int) -> dict[str, float]:
    """The last columns of `plan`, by a residual's standard deviation."""
    freedom = combinations * seeds - seeds - len(TERMS)
    ends = {
        name: stats.t.ppf([1 - level / 2, POWER], freedom).sum()
        for name, level in (("alone", LEVEL), ("of all", LEVEL / len(TERMS)))
    }
    error = 2 * spread / math.sqrt(combinations * seeds)
    return {"sd": spread, **{name: error * end for name, end in ends.items()}}


def achieved(planned: pd.DataFrame, fpr95: Mapping[str, Measured]) -> pd.DataFrame:
    """The `least_effects` by "spread": "planned", with the spread that was assumed, and "achieved", with
    what the runs' `effects` leave over, to which effects of three axes and more belong.

    Args:
        planned: of `plan`.
        fpr95: of the combinations, by key.
    """
    own = least_effects(_residual(fpr95)[0], *_means_of_runs(fpr95).shape)
    rows = {"planned": planned.iloc[0][list(own)], "achieved": own}
    return pd.DataFrame(rows).T.astype(float).rename_axis("spread")


def _means_of_runs(cells: Mapping[str, Measured]) -> np.ndarray:
    return np.stack([method.values.mean(axis=1) for method in cells.values()])


def _residual(cells: Mapping[str, Measured]) -> tuple[float, int]:
    """The standard deviation of a run after its seed and all `TERMS` are taken off, and its degrees of
    freedom. Terms and seeds are orthogonal, so that each is taken off by itself."""
    runs, signs = _means_of_runs(cells), DESIGN.loc[list(cells), TERMS].to_numpy()
    left = runs - runs.mean(axis=0)
    left -= (signs @ signs.T @ left.mean(axis=1) / len(signs))[:, None]
    freedom = left.size - left.shape[1] - len(TERMS)
    return math.sqrt((left**2).sum() / freedom), freedom


def by_cell(runs: Sequence[Record], study: Study) -> dict[str, dict[str, Measured]]:
    """Runs of `lib.study.artefacts.factorial.factorial`, which may be among others, by measure and
    combination."""
    runs = [run for run in runs if run.job.name in CELLS]
    keys = {run.job.label: run.job.name for run in runs}
    return {
        measure: {keys[label]: method for label, method in methods.items()}
        for measure, methods in by_measure(runs, study).items()
    }


def effects(cells: Mapping[str, Measured]) -> pd.DataFrame:
    """All effects of one axis and of two together, by ordinary least squares.

    Args:
        cells: by key the balanced half of the combinations, in which effects are at right angles to each
            other and to seeds, with the same seeds, each seed a block.

    Returns:
        By "effect" its "points" with the interval "from" and "to": over seeds by the residual, to which
        effects of three axes and more belong, and jointly over what was tested on; its "p" and, by
        Holm's correction over all, "Holm"; and whether it is "of" one axis or two.
    """
    spread, freedom = _residual(cells)
    error = {"over_seeds": 2 * spread / math.sqrt(_means_of_runs(cells).size), "seed_freedom": freedom}
    weights = 2 * DESIGN.loc[list(cells), TERMS] / len(cells)
    points = {
        term: replace(contrast([*zip(weights[term], cells.values(), strict=True)]), **error)
        for term in TERMS
    }
    table = with_tests(points, "points").rename_axis("effect")
    return table.assign(of=["two axes" if "×" in term else "one axis" for term in TERMS])


def four_means(fpr95: Mapping[str, Measured], effect: str) -> tuple[pd.DataFrame, float]:
    """Mean FPR95 with a choice ("on") and without ("off") on either of two axes, over all others.

    Args:
        fpr95: of the combinations, by key.
        effect: of two axes together, as `effects` names it.

    Returns:
        Index the first axis, columns the second; and half the 95% interval over seeds, by `residual`.
    """
    levels = DESIGN.loc[list(fpr95), effect.split(" × ")].replace({1: "on", -1: "off"})
    runs, (spread, freedom) = _means_of_runs(fpr95), residual(fpr95.values())
    half = stats.t.ppf(1 - LEVEL / 2, freedom) * spread / math.sqrt(runs.size / 4)
    means = levels.assign(mean=runs.mean(axis=1)).groupby(list(levels))["mean"].mean()
    return means.unstack(), half


def rates(study: Study) -> pd.DataFrame:
    """By how much FPR95 on the reserve is higher where searched combinations share a learning rate.

    Returns:
        By "combination" its "own" rate and the one "taken", FPR95 "at own" and by how many points it is
        higher at the other, "lost"; and by axis the mean "lost" with the paper's choice less without.
    """
    rows = {}
    for key in SEARCHED_CELLS:
        search, taken = read_search(study, key), factorial.rate_of(study, key)
        own, fpr95 = search["best"], search["metrics"]["mean_fpr95"]
        rows[key] = (own, taken, fpr95[str(own)], fpr95[str(taken)] - fpr95[str(own)])
    table = pd.DataFrame.from_dict(rows, orient="index", columns=["own", "taken", "at own", "lost"])
    lost = 2 * DESIGN.loc[table.index, list(AXES)].mul(table["lost"], axis=0).mean()
    by_axis = lost.rename("{}, with − without".format).to_frame("lost")
    return pd.concat([table, by_axis]).rename_axis("combination")


def confirmed(runs: Sequence[Record], halves: pd.Series) -> pd.DataFrame:
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
    best, terms = factorial.best(halves), {}
    for term in factorial.largest(halves):
        signs = DESIGN.loc[factorial.around(term, best), term]
        terms[term] = [*(2 * signs / len(signs)).items()]
    rivals = {"papers' best": factorial.rival(halves), "HardNet": factorial.PAPERS["HardNet"]}
    terms |= {f"best − {name}": [(best, 1.0), (key, -1.0)] for name, key in rivals.items()}
    points = {
        name: contrast([(weight, trained[labels[key]]) for key, weight in own])
        for name, own in terms.items()
    }
    fpr95 = factorial.foreseen(halves)
    table = with_tests(points, "points").rename_axis("effect")
    foreseen = [sum(weight * fpr95[key] for key, weight in own) for own in terms.values()]
    table.insert(0, "foreseen", foreseen)
    held = (table["Holm"] <= LEVEL) & (table["points"] * table["foreseen"] > 0)
    return table.assign(confirmed=held.map({True: "yes", False: "no"}))
