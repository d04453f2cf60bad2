"""Records as tidy frames, one row for each number of a run, and ways to lay these frames out."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from lib.study.jobs import SIGNS
from lib.study.open import Record

METHOD = ["key", "label"]
RUN = [*METHOD, "seed"]


def tidy(runs: Sequence[Record], measure: str, test_set: str | None = None) -> pd.DataFrame:
    """All numbers of a measure.

    Args:
        runs: records.
        measure: the module of `lib.benchmarks`, e.g. "fpr95".
        test_set: that the numbers are of; None for all.

    Returns:
        One row a record, test set and number: `key`, `label`, `train_set`, `seed` (missing where nothing
        was trained), `profile`, `data`, single values that the run changes of its profile, `test_set`,
        `metric` (the number's key) and `value`.
    """
    rows = [
        {**_about(run), "test_set": name, "metric": metric, "value": value}
        for run in runs
        for name, metrics in run.content["metrics"].items()
        if test_set in (None, name)
        for metric, value in metrics.get(measure, {}).items()
    ]
    return pd.DataFrame(rows).astype({"seed": "Int64"})


def fpr95(runs: Sequence[Record]) -> pd.DataFrame:
    """FPR95 in percent of every record and test set, the expected value over tie orders; as `tidy`."""
    return tidy(runs, "fpr95").query("metric == 'expected'").drop(columns="metric")


def epochs(runs: Sequence[Record]) -> pd.DataFrame:
    """FPR95 at the end of each epoch, from 1: as `tidy`, with `epoch` and `FPR95 (%)` for the number."""
    rows = [
        {**_about(run), "test_set": test_set, "epoch": epoch, "FPR95 (%)": value}
        for run in runs
        for test_set, values in run.content.get("epoch_fpr95", {}).items()
        for epoch, value in enumerate(values, 1)
    ]
    return pd.DataFrame(rows).astype({"seed": "Int64"})


def steps(runs: Sequence[Record]) -> pd.DataFrame:
    """The training curves: one row for each record and recorded step, with `step` and a column for each
    curve. Records of what nobody trains here have none."""
    curves = []
    for run in runs:
        if curve := run.content.get("curve"):
            # A curve that begins later, such as one that needs an average, ends with the others.
            ends = {name: pd.Series(values[::-1]) for name, values in curve.items()}
            curves.append(pd.DataFrame(ends)[::-1].assign(**_about(run)))
    return pd.concat(curves, ignore_index=True)


def _about(run: Record) -> Mapping[str, object]:
    job = run.job
    about = {"key": job.name, "label": job.label, "train_set": job.train_set, "seed": job.seed}
    about |= {name: run.content.get(name) for name in ("profile", "data")}
    return about | {name: value for name, value in job.overrides.items() if np.isscalar(value)}


def tenths(curve: pd.Series) -> tuple[float, float]:
    """The means of a curve over the first and over the last tenth of its points."""
    tenth = max(1, len(curve) // 10)
    return curve[:tenth].mean(), curve[-tenth:].mean()


def by_sign(runs: Sequence[Record]) -> list[Record]:
    """The runs whose descriptors' signs were measured too, as methods of their own.

    Their keys end with "_signs" and their labels with "by sign". Their metrics are those of the signs,
    under the names that the descriptors' metrics have, and they have no probes.
    """
    signs = []
    for run in runs:
        metrics = {
            test_set: {n.removesuffix(SIGNS): m for n, m in measures.items() if n.endswith(SIGNS)}
            for test_set, measures in run.content["metrics"].items()
        }
        if any(metrics.values()):
            job = replace(run.job, name=f"{run.job.name}_signs", label=f"{run.job.label} by sign")
            content = {**run.content, "metrics": metrics, "probes": {}}
            signs.append(replace(run, job=job, content=content))
    return signs


def by_label(runs: Sequence[Record]) -> dict[str, list[Record]]:
    """The runs of each method, by its label."""
    labels = dict.fromkeys(run.job.label for run in runs)
    return {label: [run for run in runs if run.job.label == label] for label in labels}


def wide(
    frame: pd.DataFrame, columns: str = "metric", index: Sequence[str] = tuple(RUN)
) -> pd.DataFrame:
    """One row a run, methods as they come and seeds ascending.

    Args:
        frame: of `tidy`, or part of it.
        columns: the column whose values head the columns.
        index: the columns that tell runs apart; the last is the seed.

    Raises:
        ValueError: two numbers fall into one cell.
    """
    methods = list(frame[index[0]].unique())
    table = frame.pivot(index=list(index), columns=columns, values="value")[frame[columns].unique()]
    in_order = {"level": 0, "key": lambda keys: keys.map(methods.index), "sort_remaining": False}
    return table.sort_index(kind="stable", **in_order)


def means(table: pd.DataFrame) -> pd.DataFrame:
    """Means over seeds of a frame of `wide`, index (`key`, `label`)."""
    return table.groupby(level=METHOD, sort=False).mean()


def summary(table: pd.DataFrame, name: str = "mean") -> dict[str, pd.DataFrame]:
    """Means over seeds of a frame of `wide`, under a name, and, where a method has several, the standard
    deviations over them (n − 1) under `sd`."""
    by_method = table.groupby(level=METHOD, sort=False)
    return {name: by_method.mean()} | ({"sd": by_method.std()} if by_method.size().max() > 1 else {})


def cell_by_cell(
    tables: Mapping[str, pd.DataFrame], cells: Iterable[str]
) -> dict[tuple[str, str], pd.Series]:
    """The columns of several tables, cell by cell, under (cell, name of the table).

    Args:
        tables: by name, each with the index (`key`, `label`) and a column a cell.
        cells: in the order to show; a table that lacks one has no column there.

    Returns:
        Each column by key.
    """
    return {
        (cell, whose): table[cell].droplevel("label")
        for cell in cells
        for whose, table in tables.items()
        if cell in table
    }


def named(table: pd.DataFrame, *methods: pd.DataFrame) -> pd.DataFrame:
    """A table by key with the methods' labels as its index, `Method`.

    Args:
        table: index `key`.
        methods: frames with the index (`key`, `label`, …). They give the rows and their order; a method
            takes its label from the first frame that has it.
    """
    labels = pd.concat([frame.index.to_frame()[METHOD] for frame in methods]).drop_duplicates("key")
    return table.reindex(labels["key"]).set_axis(pd.Index(labels["label"], name="Method"))


def beside(
    paper: pd.DataFrame,
    runs: pd.DataFrame,
    cells: Iterable[str],
    more: Mapping[tuple[str, str], pd.Series] = {},
    rows: Sequence[pd.DataFrame] = (),
) -> pd.DataFrame:
    """A paper's values and ours side by side.

    Args:
        paper: index (`key`, `label`), a column a cell.
        runs: ours, of `wide`, a column a cell.
        cells: to show; of either what it has.
        more: further columns, by key.
        rows: frames whose methods are shown, as for `named`; by default the paper's, then ours.

    Returns:
        Index `Method`. Columns (cell, `paper`, `ours` and, where there are several seeds, `sd` over
        them), further ones, and (``, `n`), our runs.
    """
    columns = cell_by_cell({"paper": paper, **summary(runs, "ours")}, cells) | dict(more)
    columns["", "n"] = runs.groupby(level="key").size()
    return named(pd.DataFrame(columns), *(rows or (paper, runs))).astype({("", "n"): "Int64"})
