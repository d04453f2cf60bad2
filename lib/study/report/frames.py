"""Records as tidy frames, a row a number with the run that it is of, and ways to lay them out."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from lib.study.jobs import SIGNS
from lib.study.open import Record

METHOD = ["key", "label"]
RUN = [*METHOD, "seed"]


def tidy(found: Sequence[Record], measure: str) -> pd.DataFrame:
    """All numbers of a measure.

    Args:
        found: records.
        measure: the module of `lib.benchmarks`, e.g. "fpr95".

    Returns:
        One row a record, test set and number: `key`, `label`, `train_set`, `seed` (missing where nothing
        was trained), `profile`, `data`, single values that the run changes of its profile, `test_set`,
        `metric` (the number's key) and `value`.
    """
    return _frame(
        {**_about(record), "test_set": test_set, "metric": metric, "value": value}
        for record in found
        for test_set, metrics in record.content["metrics"].items()
        for metric, value in metrics.get(measure, {}).items()
    )


def fpr95(found: Sequence[Record]) -> pd.DataFrame:
    """FPR95 in percent of every record and test set, the expected value over tie orders; as `tidy`."""
    frame = tidy(found, "fpr95")
    return frame[frame["metric"] == "expected"].drop(columns="metric")


def on_set(found: Sequence[Record], measure: str, test_set: str) -> pd.DataFrame:
    """The rows of `tidy` of one test set.

    Raises:
        ValueError: a record has no such numbers.
    """
    for record in found:
        if measure not in record.content["metrics"].get(test_set, {}):
            raise ValueError(f"{record.job.title}: no {measure} on {test_set}; measure it there")
    frame = tidy(found, measure)
    return frame[frame["test_set"] == test_set]


def by_sign(found: Sequence[Record]) -> list[Record]:
    """The runs that were measured by their descriptors' signs too, as methods of their own.

    Their keys end with "_signs" and their labels with "by sign"; what was measured of the signs stands
    where the same of the descriptors stood, and there are no probes.
    """
    runs = []
    for run in found:
        metrics = {
            test_set: {name.removesuffix(SIGNS): of[name] for name in of if name.endswith(SIGNS)}
            for test_set, of in run.content["metrics"].items()
        }
        if any(metrics.values()):
            job = replace(run.job, name=f"{run.job.name}_signs", label=f"{run.job.label} by sign")
            runs.append(replace(run, job=job, content={**run.content, "metrics": metrics, "probes": {}}))
    return runs


def by_label(found: Sequence[Record]) -> dict[str, list[Record]]:
    """The runs of each method, by its label."""
    groups: dict[str, list[Record]] = {}
    for run in found:
        groups.setdefault(run.job.label, []).append(run)
    return groups


def epochs(found: Sequence[Record]) -> pd.DataFrame:
    """FPR95 at the end of each epoch, from 1: as `tidy`, with `epoch` and `FPR95 (%)` for the number."""
    return _frame(
        {**_about(record), "test_set": test_set, "epoch": epoch, "FPR95 (%)": value}
        for record in found
        for test_set, values in record.content.get("epoch_fpr95", {}).items()
        for epoch, value in enumerate(values, 1)
    )


def steps(found: Sequence[Record]) -> pd.DataFrame:
    """What training said of itself: a row a record and step, `step` and a column a curve; of the records
    that are of training."""
    curves = []
    for record in (of for of in found if of.content.get("curve")):
        # A curve that begins later, such as one that needs an average, ends with the others.
        ends = {name: pd.Series(of[::-1]) for name, of in record.content["curve"].items()}
        curves.append(pd.DataFrame(ends)[::-1].assign(**_about(record)))
    return pd.concat(curves, ignore_index=True)


def tenths(curve: pd.Series) -> tuple[float, float]:
    """The means of a curve over the first and over the last tenth of its points."""
    some = max(1, len(curve) // 10)
    return curve[:some].mean(), curve[-some:].mean()


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
    first = list(frame[index[0]].unique())
    table = frame.pivot(index=list(index), columns=columns, values="value")[frame[columns].unique()]
    in_order = {"level": 0, "key": lambda of: of.map(first.index), "sort_remaining": False}
    return table.sort_index(kind="stable", **in_order)


def means(table: pd.DataFrame) -> pd.DataFrame:
    """Means over seeds of a frame of `wide`, index (`key`, `label`)."""
    return table.groupby(level=METHOD, sort=False).mean()


def deviations(table: pd.DataFrame) -> pd.DataFrame:
    """Standard deviations over seeds (n − 1), NaN where a method has one run; as `means`."""
    return table.groupby(level=METHOD, sort=False).std(ddof=1)


def summary(runs: pd.DataFrame, name: str = "mean") -> dict[str, pd.DataFrame]:
    """Means over seeds of a frame of `wide`, under a name, and, of several, the deviations `sd`."""
    several = runs.groupby(level=METHOD).size().max() > 1
    return {name: means(runs)} | ({"sd": deviations(runs)} if several else {})


def cell_by_cell(
    of: Mapping[str, pd.DataFrame], cells: Iterable[str]
) -> dict[tuple[str, str], pd.Series]:
    """Columns (cell, whose) by key of frames by whose they are, each with the index (`key`, `label`);
    of the cells that a frame has."""
    return {
        (cell, whose): each[cell].droplevel("label")
        for cell in cells
        for whose, each in of.items()
        if cell in each
    }


def named(table: pd.DataFrame, *of: pd.DataFrame) -> pd.DataFrame:
    """A table by key, index `Method`: the labels that methods have in the first of several frames that
    has them, in their order."""
    methods = pd.concat([each.index.to_frame()[METHOD] for each in of]).drop_duplicates("key")
    return table.reindex(methods["key"]).set_axis(pd.Index(methods["label"], name="Method"))


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


def _about(record: Record) -> Mapping[str, object]:
    job, content = record.job, record.content
    of = {"key": job.name, "label": job.label, "train_set": job.train_set, "seed": job.seed}
    changed = {name: value for name, value in job.overrides.items() if np.isscalar(value)}
    return {**of, "profile": content.get("profile"), "data": content.get("data"), **changed}


def _frame(rows: object) -> pd.DataFrame:
    frame = pd.DataFrame(rows)
    if frame.empty:
        raise ValueError("no such number in these records")
    return frame.astype({"seed": "Int64"})
