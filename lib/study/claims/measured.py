"""Methods' values with their resamples, as claims are judged by, from records."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from lib.statistics.intervals import Measured, resampled_means
from lib.study.claims import Claim
from lib.study.open import Record
from lib.study.report import frames

RESAMPLED, COUNTED = "resampled_fpr95", "distance_histogram"
SEQUENCES_DRAWN = 400


def values_of(
    claim: Claim,
    runs: Sequence[Record],
    sets: Sequence[str],
    arrays: Mapping[str, Mapping[str, Measured | np.ndarray]] = {},
) -> Mapping[str, Measured | np.ndarray]:
    """The values of the methods that a claim names, by its metric.

    Only of these methods, so that a claim is about all columns that they have where others have fewer.

        table = judge(claims, lambda claim: values_of(claim, runs, study.setting.source.sets), study)

    Args:
        claim: whose metric is "fpr95" (the columns of `lib.study.report.frames`), one of these
            columns, a task of HPatches, "map" (its three tasks), or one of `arrays`.
        runs: records of one profile and data. Those without the probe `resampled_fpr95` leave their
            claims without resamples of test points. Of HPatches those count that were measured there.
        sets: the data source's three sets, in the order of their roles.
        arrays: by metric what is no number of a record, e.g. of a curve or a probe: by method's key as
            `lib.study.claims.verdict` takes values.

    Returns:
        By method's key; {} where no run is of a method that the claim names.
    """
    if claim.metric in arrays:
        return arrays[claim.metric]
    named = [run for run in runs if run.job.name in (*claim.a, *claim.b, *claim.given)]
    if claim.metric in ("fpr95", *frames.COLUMN_NAMES):
        measured = fpr95_by_column(named, sets) if named else {}
        if claim.metric == "fpr95":
            return measured
        return {key: method.one(method.cells.index(claim.metric)) for key, method in measured.items()}
    tested = [run for run in named if run.job.sets_of("hpatches")]
    tasks = frames.TASKS if claim.metric == "map" else [claim.metric]
    return hpatches_by_task(frames.hpatches_numbers(tested), tasks) if tested else {}


def fpr95_by_column(runs: Sequence[Record], sets: Sequence[str]) -> dict[str, Measured]:
    """FPR95 of each method along the columns that all of them have, with the resamples of test points.

    Args:
        runs: records of one profile and data, with the probe `resampled_fpr95` of every test set; where
            one has none, no method has resamples. Non-matching pairs are counted by the probe
            `distance_histogram` of any run.
        sets: as `frames.by_column` takes them.

    Returns:
        By key; cells are named as its columns.

    Raises:
        ValueError: as `frames.by_column`, or the methods share no column.
    """
    table = frames.by_column(runs, sets).drop(columns="Mean").dropna(axis="columns")
    if table.empty:
        raise ValueError("the methods share no column")
    short = {name: frames.SHORT.get(role, role) for name, role in frames.roles_of(sets).items()}
    tested, drawn = dict(zip(short.values(), short, strict=True)), None
    at = {(run.job.name, run.job.seed, short.get(run.job.train_set)): run for run in runs}
    rows = []
    for key, _, seed in table.index:
        about = key, None if pd.isna(seed) else int(seed)
        columns = (cell.split(">") for cell in table)
        # What was trained on none of the sets stands in all columns.
        rows.append([(at.get((*about, None)) or at[*about, on], tested[test]) for on, test in columns])
    if all(f"{RESAMPLED}.{name}" in run.content["probes"] for row in rows for run, name in row):
        probes = [[run.probe(RESAMPLED, name) for run, name in row] for row in rows]
        drawn = np.array([[(probe["rates"], probe["pair_rates"]) for probe in row] for row in probes])
        drawn = np.moveaxis(drawn, 2, 0)
    counted = {
        name: run for row in rows for run, name in row if f"{COUNTED}.{name}" in run.content["probes"]
    }
    number = {name: int(run.probe(COUNTED, name)["non_matching"].sum()) for name, run in counted.items()}
    pairs = tuple(number.get(name) for _, name in rows[0])
    methods = by_method(table, list(table), drawn)
    return {key: replace(m, pairs=() if None in pairs else pairs) for key, m in methods.items()}


def by_method(
    table: pd.DataFrame, cells: Sequence[str], drawn: np.ndarray | None, freedom: float = math.inf
) -> dict[str, Measured]:
    """Of a frame of `frames.wide` each method by its key, with (kinds, runs, cells, B) resamples, of so
    many degrees of freedom."""
    measured, rows = {}, pd.Series(range(len(table)), table.index)
    for (key, label), own in rows.groupby(level=frames.METHOD, sort=False):
        values = table[list(cells)].to_numpy(dtype=np.float64)[own]
        resampled, seeds = None if drawn is None else drawn[:, own], own.index.get_level_values("seed")
        if seeds.isna().all():
            values, resampled, seeds = values[0], None if drawn is None else resampled[:, 0], ()
        named = {"label": label, "seeds": tuple(map(int, seeds))}
        measured[key] = Measured(values, resampled, freedom, tuple(cells), **named)
    return measured


def hpatches_by_task(runs: pd.DataFrame, tasks: Sequence[str] = frames.TASKS) -> dict[str, Measured]:
    """HPatches' numbers of each method, with resamples of what its sequences show, as `by_things`.

    Verification is over pairs of all sequences, so its cell has no spread over them.

    Args:
        runs: of `frames.hpatches_numbers`.
        tasks: the cells.
    """
    parts = [frames.by_sequence(runs, task) for task in tasks]
    return by_things(runs[list(tasks)], [(part, frames.things_shown(part.columns)) for part in parts])


def by_things(
    runs: pd.DataFrame, parts: Sequence[tuple[pd.DataFrame, Sequence[str]]]
) -> dict[str, Measured]:
    """Numbers of each method, with resamples of what single sequences or images show.

    Those that show one thing go together, and the deviations of n things are widened by √(n / (n − 1)).

    Args:
        runs: as of `frames.wide`, a column a cell.
        parts: of each cell the parts of its mean, a row a run, and what each shows; none does not move.

    Returns:
        By key; without resamples where there is one thing alone.
    """
    moved, counts = zip(
        *(resampled_means(part.to_numpy(float), things, SEQUENCES_DRAWN) for part, things in parts),
        strict=True,
    )
    fewest = min(filter(None, counts), default=0)
    values = runs.to_numpy(dtype=np.float64)[..., None]
    drawn = (values + np.stack(moved, axis=1))[None] if fewest > 1 else None
    return by_method(runs, list(runs), drawn, max(1, fewest - 1))
