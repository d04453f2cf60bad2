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
from lib.statistics.significance import holm
from lib.study.artefacts import factorial, together
from lib.study.artefacts.factorial import AXES, CELLS, HALVED, SEARCHED_CELLS, TERMS, Cell, sign
from lib.study.artefacts.searches import read_search
from lib.study.claims.measured import fpr95_by_column
from lib.study.forecast import cost
from lib.study.open import Record, Study, records_of
from lib.study.report.changes import methods, with_interval
from lib.study.report.together import FPR95, LEVEL, by_measure

POWER, ONE_AXIS, HALVED_WAY = 0.8, "one axis", "half beside DSM's loss"
NAMES = [" × ".join(term) for term in TERMS]
# The effects that half of R_L2's weight is about.
HALF_TOLD = ["loss", "regulariser", "loss × regulariser"]


def plan(study: Study) -> pd.DataFrame:
    """What is to be run and what it can tell, before any of it is.

    Returns:
        One row: "combinations", "seeds", "runs", and the "core hours" that these take by forecast; the
        standard deviation "sd" of FPR95 over seeds, the `residual` of the methods on equal footing; and
        the least effect in points that is found with a probability of 80%, by a test at 5% ("alone")
        and by the first of all by Holm's correction ("of all").
    """
    jobs, seeds = factorial.factorial(study), len(study.table_seeds)
    equal = together.equal_footing(study)
    spread, _ = residual(by_measure(records_of(study, equal), study)[FPR95].values())
    row = {"combinations": len(CELLS), "seeds": seeds, "runs": len(jobs)}
    row |= {"core hours": sum(cost(job, study.setting).seconds for job in jobs) / 3600}
    return pd.DataFrame([row | _least(spread, len(jobs), len(jobs) - seeds - len(TERMS))])


def _least(spread: float, runs: int, freedom: int) -> dict[str, float]:
    least = {"sd": spread}
    for name, level in (("alone", LEVEL), ("of all", LEVEL / len(TERMS))):
        ends = stats.t.ppf([1 - level / 2, POWER], freedom)
        least[name] = 2 * spread / math.sqrt(runs) * ends.sum()
    return least


def achieved(planned: pd.DataFrame, of: Mapping[Cell, Measured]) -> pd.DataFrame:
    """By "spread", as "planned" and as "achieved", the last columns of `plan`: with what was assumed of
    the runs, and with what their `effects` leave, which holds effects of three axes and more too.

    Args:
        planned: of `plan`.
        of: FPR95 of the combinations.
    """
    _, spread, runs, freedom = _least_squares(of)
    own = _least(spread, runs, freedom)
    rows = {"planned": planned.iloc[0][list(own)], "achieved": own}
    return pd.DataFrame(rows).T.astype(float).rename_axis("spread")


def _least_squares(of: Mapping[Cell, Measured]) -> tuple[np.ndarray, float, int, int]:
    """Halves of `TERMS`' effects, each seed a block; the residual's standard deviation, the number of
    runs and the residual's degrees of freedom."""
    signs = np.array([[sign(term, cell) for term in TERMS] for cell in of], dtype=float)
    runs = np.stack([each.values.mean(axis=1) for each in of.values()])
    cells, seeds = runs.shape
    design = np.hstack([np.repeat(signs, seeds, axis=0), np.tile(np.eye(seeds), (cells, 1))])
    halves, [left], rank, _ = np.linalg.lstsq(design, runs.ravel())
    freedom = runs.size - int(rank)
    return halves[: len(TERMS)], math.sqrt(left / freedom), runs.size, freedom


def by_cell(found: Sequence[Record], study: Study) -> dict[str, dict[Cell, Measured]]:
    """Runs of `lib.study.artefacts.factorial.factorial`, which may be among others, by measure and
    combination."""
    cells = {run.job.label: CELLS[run.job.name] for run in found if run.job.name in CELLS}
    of = by_measure([run for run in found if run.job.name in CELLS], study)
    return {measure: {cells[label]: m for label, m in each.items()} for measure, each in of.items()}


def effects(of: Mapping[Cell, Measured]) -> pd.DataFrame:
    """All effects of one axis and of two together, by ordinary least squares.

    Args:
        of: the balanced half of the combinations, with the same seeds, each seed a block.

    Returns:
        By "effect" its "points" with the interval "from" and "to": over seeds by the residual, to which
        effects of three axes and more belong, and jointly over what was tested on; its "p" and, by
        Holm's correction over all, "Holm"; and whether it is "of" one axis or two.
    """
    halves, spread, runs, freedom = _least_squares(of)
    # In the balanced half effects are at right angles to each other and to seeds.
    rows, error = {}, 2 * spread / math.sqrt(runs)
    for term, name, half in zip(TERMS, NAMES, halves, strict=True):
        both = contrast([(2 * sign(term, cell) / len(of), each) for cell, each in of.items()])
        both = replace(both, value=2 * half, over_seeds=error, seed_freedom=freedom)
        rows[name] = {**with_interval("points", both), "p": both.p_value()}
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("effect")
    return table.assign(
        Holm=holm(table["p"]), of=[ONE_AXIS if len(t) == 1 else "two axes" for t in TERMS]
    )


def at_half_weight(found: Sequence[Record], study: Study) -> pd.DataFrame:
    """The effects on FPR95 of DSM's loss, of R_L2 and of both together, and the three largest, beside
    those with half of R_L2's weight wherever DSM's loss is on.

    Args:
        found: of `lib.study.artefacts.factorial.jobs` at quick.
        study: that they are of.

    Returns:
        By "effect" under "all" and `HALVED_WAY` what `effects` has of it but for Holm's
        correction; each way's three largest are among the rows.
    """
    of, taken = fpr95_by_column(found, study.setting.source.sets), set(HALVED.values())
    ways = {"all": CELLS, HALVED_WAY: {k: c for k, c in CELLS.items() if c not in taken} | HALVED}
    tables = {
        way: effects({cell: of[key] for key, cell in cells.items()})[["points", "from", "to", "p"]]
        for way, cells in ways.items()
    }
    shown = {*HALF_TOLD}.union(*(table["points"].abs().nlargest(3).index for table in tables.values()))
    return pd.concat(tables, axis=1).loc[[name for name in NAMES if name in shown]]


def four_means(methods: Mapping[Cell, Measured], effect: str) -> tuple[pd.DataFrame, float]:
    """Mean FPR95 with a choice ("on") and without ("off") on either of two axes, over all others.

    Args:
        methods: FPR95 of the combinations.
        effect: of two axes together, as `effects` names it.

    Returns:
        Index the first axis, columns the second; and half the 95% interval over seeds, by `residual`.
    """
    _, second = both = effect.split(" × ")
    levels = pd.DataFrame([["on" if axis in cell else "off" for axis in both] for cell in methods])
    levels = levels.set_axis(both, axis=1).assign(mean=[m.values.mean() for m in methods.values()])
    means = levels.groupby(both)["mean"].mean().unstack(second)
    (spread, freedom), combinations = residual(methods.values()), len(methods) // 4
    runs = combinations * len(next(iter(methods.values())).values)
    return means, stats.t.ppf(1 - LEVEL / 2, freedom) * spread / math.sqrt(runs)


def rates(study: Study) -> pd.DataFrame:
    """What it costs the searched combinations to share a rate, on the reserve.

    Returns:
        By "combination" its "own" rate and the one "taken", FPR95 "at own" and by how many points it is
        higher at the other, "lost"; and by axis the mean "lost" with the paper's choice less without.
    """
    rows = {}
    for key, cell in SEARCHED_CELLS.items():
        search, taken = read_search(study, key), factorial.rate_of(study, cell)
        of = search["metrics"]["mean_fpr95"]
        own = {"own": search["best"], "taken": taken, "at own": of[str(search["best"])]}
        rows[key] = {**own, "lost": of[str(taken)] - own["at own"]}
    for axis in AXES:
        lost = [sign((axis,), cell) * rows[key]["lost"] for key, cell in SEARCHED_CELLS.items()]
        rows[f"{axis}, with − without"] = {"lost": 2 * np.mean(lost)}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("combination")


def confirmed(found: Sequence[Record], halves: factorial.Halves) -> pd.DataFrame:
    """The confirmation, on unseen seeds and the second reserve.

    Args:
        found: of `lib.study.artefacts.factorial.confirmation`.
        halves: of the quick effects that asked for it.

    Returns:
        By "effect" what the quick effects say of it at the best combination, all else as there,
        "foreseen"; what it is there in these runs, in "points" with the interval "from" and "to"; its
        "p" and, by Holm's correction over all rows, "Holm"; and whether it is "confirmed", significant
        and of the sign foreseen. Last the best combination less the best of the papers' own, and less
        HardNet's.
    """
    label = {run.job.name: run.job.label for run in found}
    trained, best = methods(found), factorial.best(halves)
    sums = {
        " × ".join(term): [
            (sign(term, cell) / 2 ** (len(term) - 1), cell) for cell in factorial.around(term, best)
        ]
        for term in factorial.largest(halves)
    }
    rivals = {"papers' best": factorial.rival(halves), "HardNet": factorial.PAPERS["HardNet"]}
    sums |= {f"best − {name}": [(1.0, best), (-1.0, other)] for name, other in rivals.items()}
    rows = {}
    for name, of in sums.items():
        points = contrast([(weight, trained[label[factorial.key_of(cell)]]) for weight, cell in of])
        foreseen = sum(weight * factorial.at(halves, cell) for weight, cell in of)
        rows[name] = {"foreseen": foreseen, **with_interval("points", points), "p": points.p_value()}
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("effect")
    table["Holm"] = holm(table["p"])
    held = (table["Holm"] <= LEVEL) & (table["points"] * table["foreseen"] > 0)
    return table.assign(confirmed=held.map({True: "yes", False: "no"}))
