"""Methods' values with their resamples, as claims are judged by, from records."""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd

from lib.statistics.intervals import Measured
from lib.study.claims.rows import Claim
from lib.study.open import Found
from lib.study.report import frames, hpatches, phototour

# From a claim to the values of the methods that it names.
OfClaim = Callable[[Claim], Mapping[str, Measured | np.ndarray]]
RESAMPLED = "resampled_fpr95"
SEQUENCES_DRAWN = 400


def fpr95_by_column(found: Sequence[Found], sets: Sequence[str]) -> dict[str, Measured]:
    """FPR95 of each method along the columns that all of them have, with the resamples of test points.

    Args:
        found: records of one profile and data, with the probe `resampled_fpr95` of every test set; where
            one has none, no method has resamples.
        sets: the data source's three sets, in the order of their roles.

    Returns:
        By key; cells are named as `phototour.COLUMN_NAMES`.

    Raises:
        ValueError: as `phototour.by_column`, or the methods share no column.
    """
    table = phototour.by_column(found, sets).reindex(columns=list(phototour.COLUMN_NAMES))
    cells = tuple(table.columns[table.notna().all()])
    if not cells:
        raise ValueError("the methods share no column")
    draws = _draws(found, sets)

    def drawn(index: tuple) -> np.ndarray:
        key, _, seed = index
        of = [draws[key, None if pd.isna(seed) else int(seed), cell] for cell in cells]
        return np.stack(of, axis=1)

    rates = None if draws is None else np.stack([drawn(index) for index in table.index], axis=1)
    return by_method(table, cells, rates)


def of_claims(found: Sequence[Found], sets: Sequence[str], tested: str) -> OfClaim:
    """The values of a claim, of the methods that it names alone.

    Only so is it about all columns that these have, where others have fewer. Of a claim whose metric is
    "fpr95" they are the columns of `lib.study.report.phototour`, of one of HPatches' tasks that
    task, and of "map" the three.

    Args:
        found: records; those without the probe `resampled_fpr95` leave their claims without resamples.
        sets: the data source's three sets, in the order of their roles.
        tested: the set of HPatches patches that they were measured on.
    """

    def values(claim: Claim) -> Mapping[str, Measured]:
        named = {*claim.a, *claim.b, *claim.given}
        chosen = [record for record in found if record.job.name in named]
        if not chosen:
            return {}
        if claim.metric == "fpr95":
            return fpr95_by_column(chosen, sets)
        tasks = hpatches.TASKS if claim.metric == "map" else [claim.metric]
        return hpatches_by_task(hpatches.numbers(chosen, tested), tasks)

    return values


def by_method(
    table: pd.DataFrame, cells: Sequence[str], drawn: np.ndarray | None, freedom: float = math.inf
) -> dict[str, Measured]:
    """Of a frame of `frames.wide` each method by its key, with (kinds, runs, cells, B) resamples, of so
    many degrees of freedom."""
    measured, places = {}, pd.Series(range(len(table)), table.index)
    for (key, label), of in places.groupby(level=frames.METHOD, sort=False):
        values = table[list(cells)].to_numpy(dtype=np.float64)[of]
        own, seeds = None if drawn is None else drawn[:, of], of.index.get_level_values("seed")
        if seeds.isna().all():
            values, own, seeds = values[0], None if own is None else own[:, 0], ()
        named = {"label": label, "seeds": tuple(map(int, seeds))}
        measured[key] = Measured(values, own, freedom, tuple(cells), **named)
    return measured


def _draws(found: Sequence[Found], sets: Sequence[str]) -> dict[tuple, np.ndarray] | None:
    """By key, seed (None without) and column (2, B): the rates of points and of pairs drawn anew."""
    role, draws = phototour.roles_of(sets), {}
    for record in found:
        for test_set in [name for name, of in record.content["metrics"].items() if "fpr95" in of]:
            if f"{RESAMPLED}.{test_set}" not in record.content["probes"]:
                return None
            probe = record.probe(RESAMPLED, test_set)
            train = record.job.train_set
            for other in [role[train]] if train in role else phototour.ROLES:
                column = phototour.column_name(other, role[test_set])
                rates = np.stack([probe["rates"], probe["pair_rates"]])
                draws[record.job.name, record.job.seed, column] = rates
    return draws


def hpatches_by_task(runs: pd.DataFrame, tasks: Sequence[str] = hpatches.TASKS) -> dict[str, Measured]:
    """HPatches' numbers of each method, with resamples of what its sequences show, as `by_things`.

    Verification is over pairs of all sequences, so its cell has no spread over them.

    Args:
        runs: of `hpatches.numbers`.
        tasks: the cells.
    """
    parts = [hpatches.by_sequence(runs, task) for task in tasks]
    return by_things(runs[list(tasks)], [(of, hpatches.things_shown(of.columns)) for of in parts])


def by_things(
    runs: pd.DataFrame, parts: Sequence[tuple[pd.DataFrame, Sequence[str]]]
) -> dict[str, Measured]:
    """Numbers of each method that are means, with resamples of the things that they are means over.

    What is shown is drawn, not sequences or pairs, since several may show one thing; a drawn thing
    brings all of its own, and all runs share the draws. With m things, the resamples' deviations are
    widened by √(m / (m − 1)), and have m − 1 degrees of freedom.

    Args:
        runs: as of `frames.wide`, a column a cell.
        parts: of each cell the parts of its mean, a row a run, and what each shows; none does not move.

    Returns:
        By key; without resamples where there is one thing alone.
    """
    moved, things = zip(*(over_things(*of) for of in parts), strict=True)
    fewest = min(filter(None, things), default=0)
    own = runs.to_numpy(dtype=np.float64)[..., None]
    rates = (own + np.stack(moved, axis=1))[None] if fewest > 1 else None
    return by_method(runs, list(runs), rates, max(1, fewest - 1))


def over_things(parts: pd.DataFrame, things: Sequence[str]) -> tuple[np.ndarray, int]:
    """(runs, B) by how much a mean moves when the things that it is over are drawn anew, and how many
    these are; `parts` and `things` as for `by_things`."""
    if parts.empty:
        return np.zeros((len(parts), SEQUENCES_DRAWN)), 0
    by_thing = parts.T.groupby(pd.Index(things))
    sums, counts = by_thing.sum().to_numpy().T, by_thing.count().to_numpy().T
    number = sums.shape[1]
    random = np.random.default_rng([SEQUENCES_DRAWN, number])
    times = random.multinomial(number, np.full(number, 1 / number), SEQUENCES_DRAWN).T
    means = (sums @ times) / (counts @ times)
    return np.sqrt(number / max(1, number - 1)) * (means - means.mean(axis=1, keepdims=True)), number
