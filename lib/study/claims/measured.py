"""Methods' values and their resamples, read from records, by which claims are judged."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from lib.statistics.intervals import Measured, resampled_means
from lib.study.claims import Claim, Methods, Values
from lib.study.open import Runs
from lib.study.report import frames

RESAMPLED, COUNTED = "resampled_fpr95", "distance_histogram"
SEQUENCES_DRAWN = 400


def values_of(
    claim: Claim,
    runs: Runs,
    sets: Sequence[str],
    arrays: Mapping[str, Values] = {},
) -> Values:
    """Return the values of the methods that a claim names, by its metric.

    Other methods are left out, so that a claim is about all columns of its own methods even where others
    have fewer.

        table = judge(claims, lambda claim: values_of(claim, runs, study.source.sets), study)

    Args:
        claim: its metric is "fpr95" (the columns of `lib.study.report.frames`), one of these columns, a
            task of HPatches, "map" (its three tasks), or one of `arrays`.
        runs: records of one profile and data. If they lack the probe `resampled_fpr95`, their claims
            have no resamples of test points. For HPatches, only runs measured there count.
        sets: the data source's three sets, in the order of their roles.
        arrays: by metric, values that are not numbers of a record, e.g. of a curve or a probe; by the
            method's key, as `lib.study.claims.verdict` takes values.

    Returns:
        Values by the method's key; {} where no run is of a method that the claim names.
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


def fpr95_by_column(runs: Runs, sets: Sequence[str]) -> Methods:
    """Return FPR95 of each method in the columns that all of them have, with resamples of test points.

    Args:
        runs: records of one profile and data, with the probe `resampled_fpr95` of every test set; if
            one lacks it, no method has resamples. Non-matching pairs are counted by the probe
            `distance_histogram` of any run.
        sets: as `frames.by_column` takes them.

    Returns:
        Values by the method's key; cells have the names of the columns.

    Raises:
        ValueError: as `frames.by_column`.
    """
    table = frames.by_column(runs, sets).drop(columns="Mean").dropna(axis="columns")
    columns = [name.split(" > ") for name in table.rename(columns=frames.own_columns(sets))]
    by_training = {(run.job.name, run.job.seed, run.job.train_set): run for run in runs}
    rows = []
    for key, _, seed in table.index:
        method = key, None if pd.isna(seed) else seed
        # A method that was trained on none of the sets is in all columns.
        untrained = by_training.get((*method, None))
        rows.append([(untrained or by_training[*method, train], test) for train, test in columns])
    cells = [cell for row in rows for cell in row]
    drawn = None
    if all(f"{RESAMPLED}.{test}" in run.content["probes"] for run, test in cells):
        probes = [[run.probe(RESAMPLED, test) for run, test in row] for row in rows]
        kinds = ("rates", "pair_rates")
        drawn = np.array([[[probe[kind] for probe in row] for row in probes] for kind in kinds])
    counted = {test: run for run, test in cells if f"{COUNTED}.{test}" in run.content["probes"]}
    number = {test: int(run.probe(COUNTED, test)["non_matching"].sum()) for test, run in counted.items()}
    pairs = tuple(number.get(test) for _, test in columns)
    methods = by_method(table, drawn).items()
    return {key: replace(method, pairs=() if None in pairs else pairs) for key, method in methods}


def by_method(
    table: pd.DataFrame, drawn: np.ndarray | None = None, freedom: float = math.inf
) -> Methods:
    """Return each method of a frame of `frames.wide`, with one column per cell, by its key. `drawn` are
    resamples of all rows, (kinds, runs, cells, B) or None, with `freedom` degrees of freedom."""
    measured = {}
    rows = pd.Series(range(len(table)), table.index)
    for (key, label), own in rows.groupby(level=frames.METHOD, sort=False):
        seeds = tuple(map(int, own.index.get_level_values("seed").dropna()))
        at = own if seeds else own.iloc[0]
        resampled = None if drawn is None else drawn[:, at]
        values = table.to_numpy()[at]
        measured[key] = Measured(values, resampled, freedom, tuple(table), label, seeds=seeds)
    return measured


def hpatches_by_task(runs: pd.DataFrame, tasks: Sequence[str] = frames.TASKS) -> Methods:
    """Return HPatches' numbers of each method, with resamples of what its sequences show (`by_things`).

    Verification is over pairs of all sequences, so its cell has no spread over them.

    Args:
        runs: from `frames.hpatches_numbers`.
        tasks: the cells.
    """
    parts = [frames.by_sequence(runs, task) for task in tasks]
    return by_things(runs[list(tasks)], [(part, frames.things_shown(part.columns)) for part in parts])


def by_things(runs: pd.DataFrame, parts: Sequence[tuple[pd.DataFrame, Sequence[str]]]) -> Methods:
    """Return numbers of each method, with resamples of the things that single sequences or images show.

    Those that show one thing are drawn together. Deviations of n things are widened by √(n / (n − 1)).

    Args:
        runs: as from `frames.wide`, with one column per cell.
        parts: for each cell, the parts of its mean (one row per run) and what each part shows. A cell
            without parts does not move.

    Returns:
        Values by the method's key; without resamples where there is only one thing.
    """
    moved, counts = zip(
        *(resampled_means(part.to_numpy(float), things, SEQUENCES_DRAWN) for part, things in parts),
        strict=True,
    )
    fewest = min(filter(None, counts), default=0)
    drawn = (runs.to_numpy()[..., None] + np.stack(moved, axis=1))[None] if fewest > 1 else None
    return by_method(runs, drawn, max(1, fewest - 1))
