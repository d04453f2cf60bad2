"""Records as tidy frames, one row for each number of a run, and ways to lay these frames out.

**FPR95 along the six columns of UBC PhotoTour's protocol** (Brown et al., PAMI 2011): train on one set,
test on the other two. `liberty`, `notredame` and `yosemite` are roles: the first set of another data
source has the role of Liberty, the second that of Notre Dame, the third that of Yosemite. Test-only
places have further columns under their own names.

**HPatches** (Balntas et al., CVPR 2017): the numbers of `lib.benchmarks.hpatches`, in percent. Papers'
tables differ in the protocol, above all for retrieval, so every column head names the protocol.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from lib.study.jobs import SIGNS
from lib.study.open import Record, Runs
from lib.study.printed import printed

METHOD = ["key", "label"]
RUN = [*METHOD, "seed"]
ROLES = ("liberty", "notredame", "yosemite")
SHORT = {"liberty": "Lib", "notredame": "Ntr", "yosemite": "Yos"}
# Copied from lib.data.hpatches.release, which needs OpenCV.
LEVELS = ("easy", "hard", "tough")
TASKS = ("verification", "matching", "retrieval")
# Key of a number -> its protocol. Imbalanced verification has 0.2 positives per negative.
PROTOCOLS = {
    "verification": "verification: AP, 1 to 5",
    "matching": "matching: mAP",
    "retrieval": "retrieval: mAP, whole pool",
    "retrieval.pools": "retrieval: mAP, pool sizes",
}
FPR95 = "FPR95"


def tidy(runs: Runs, measure: str, test_set: str | None = None) -> pd.DataFrame:
    """Return all numbers of a measure.

    Args:
        runs: records.
        measure: the module of `lib.benchmarks`, e.g. "fpr95".
        test_set: the test set of the numbers; None for all.

    Returns:
        One row per record, test set and number: `key`, `label`, `train_set`, `seed` (missing if nothing
        was trained), `profile`, `data`, scalars that the run overrides in its profile, `test_set`,
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


def fpr95(runs: Runs) -> pd.DataFrame:
    """Return FPR95 in percent of every record and test set, expected over tie orders, as `tidy`."""
    return tidy(runs, "fpr95").query("metric == 'expected'").drop(columns="metric")


def epochs(runs: Runs) -> pd.DataFrame:
    """Return FPR95 at the end of each epoch as `tidy`, with `epoch` (from 1) and `FPR95 (%)`."""
    rows = [
        {**_about(run), "test_set": test_set, "epoch": epoch, "FPR95 (%)": value}
        for run in runs
        for test_set, values in run.content.get("epoch_fpr95", {}).items()
        for epoch, value in enumerate(values, 1)
    ]
    return pd.DataFrame(rows).astype({"seed": "Int64"})


def steps(runs: Runs) -> pd.DataFrame:
    """Return the training curves, one row per record and recorded step.

    Columns are `step` and each curve. Records of methods that are not trained here have none.
    """
    curves = []
    for run in runs:
        if curve := run.content.get("curve"):
            # A curve that begins later, such as one that needs an average, ends with the others.
            ends = {name: pd.Series(values[::-1]) for name, values in curve.items()}
            curves.append(pd.DataFrame(ends)[::-1].assign(**_about(run)))
    return pd.concat(curves, ignore_index=True)


def _about(run: Record) -> Mapping[str, object]:
    job = run.job
    return {
        **{"key": job.name, "label": job.label, "train_set": job.train_set, "seed": job.seed},
        **{name: run.content.get(name) for name in ("profile", "data")},
        **{name: value for name, value in job.overrides.items() if np.isscalar(value)},
    }


def tenths(curve: pd.Series) -> tuple[float, float]:
    """Return the means of a curve over the first and over the last tenth of its points."""
    tenth = max(1, len(curve) // 10)
    return curve[:tenth].mean(), curve[-tenth:].mean()


def by_sign(runs: Runs) -> Runs:
    """Return the runs that were also measured by their descriptors' signs, as separate methods.

    Their keys end with "_signs" and their labels with "by sign". Their metrics are those of the signs,
    under the names of the descriptors' metrics. They have no probes.
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


def by_label(runs: Runs) -> dict[str, list[Record]]:
    """Return the runs of each method, by its label."""
    labels = {}
    for run in runs:
        labels.setdefault(run.job.label, []).append(run)
    return labels


def wide(
    frame: pd.DataFrame, columns: str = "metric", index: Sequence[str] = tuple(RUN)
) -> pd.DataFrame:
    """Pivot a tidy frame to one row per run, with methods in the given order and seeds ascending.

    Args:
        frame: from `tidy`, or part of it.
        columns: the column whose values head the columns.
        index: the columns that identify a run; the last is the seed.

    Raises:
        ValueError: two numbers fall into one cell.
    """
    table = frame.pivot(index=list(index), columns=columns, values="value")
    return table.loc[frame[index[0]].unique(), frame[columns].unique()]


def means(table: pd.DataFrame) -> pd.DataFrame:
    """Return means over seeds of a frame of `wide`, index (`key`, `label`)."""
    return table.groupby(level=METHOD, sort=False).mean()


def summary(table: pd.DataFrame, name: str = "mean") -> dict[str, pd.DataFrame]:
    """Return means over seeds of a frame of `wide` under a name, and standard deviations under `sd`.

    The deviations (n − 1) are given only if a method has several seeds.
    """
    by_method = table.groupby(level=METHOD, sort=False)
    return {name: by_method.mean()} | ({"sd": by_method.std()} if by_method.size().max() > 1 else {})


def cell_by_cell(
    tables: Mapping[str, pd.DataFrame], cells: Iterable[str]
) -> dict[tuple[str, str], pd.Series]:
    """Interleave the columns of several tables, cell by cell, under (cell, name of the table).

    Args:
        tables: name -> table, with the index (`key`, `label`) and one column per cell.
        cells: in the order to show; a table that lacks a cell has no column for it.

    Returns:
        The columns, each indexed by key.
    """
    return {
        (cell, whose): table[cell].droplevel("label")
        for cell in cells
        for whose, table in tables.items()
        if cell in table
    }


def named(table: pd.DataFrame, *methods: pd.DataFrame) -> pd.DataFrame:
    """Return a table with the methods' labels as its index, `Method`, in place of their keys.

    Args:
        table: index `key`.
        methods: frames with the index (`key`, `label`, …). They give the rows and their order; a method
            takes its label from the first frame that has it.
    """
    labels = pd.concat([frame.index.to_frame()[METHOD] for frame in methods]).drop_duplicates("key")
    return table.reindex(labels["key"]).set_axis(labels["label"].rename("Method"))


def beside(
    paper: pd.DataFrame,
    runs: pd.DataFrame,
    cells: Iterable[str],
    more: Mapping[tuple[str, str], pd.Series] = {},
    rows: Sequence[pd.DataFrame] = (),
    name: str = "ours",
) -> pd.DataFrame:
    """Return a paper's values and ours side by side.

    Args:
        paper: index (`key`, `label`), one column per cell.
        runs: ours, from `wide`, one column per cell.
        cells: cells to show, each for the side that has it.
        more: further columns, indexed by key.
        rows: frames whose methods are shown, as for `named`; by default the paper's, then ours.
        name: column name of our means over seeds.

    Returns:
        Index `Method`. Columns (cell, `paper`), (cell, `ours`) and, if there are several seeds, (cell,
        `sd`) over them; then the further columns, and (``, `n`), the number of our runs.
    """
    columns = cell_by_cell({"paper": paper, **summary(runs, name)}, cells) | dict(more)
    columns["", "n"] = runs.groupby(level="key").size()
    return named(pd.DataFrame(columns), *(rows or (paper, runs))).astype({("", "n"): "Int64"})


def column_name(train: str, test: str) -> str:
    """Return a column's short head, e.g. `Ntr>Lib` for Notre Dame to Liberty."""
    return f"{SHORT[train]}>{SHORT.get(test, test)}"


# Ordered by test set, as in the papers.
COLUMN_NAMES = tuple(column_name(train, test) for test in ROLES for train in ROLES if train != test)


def roles_of(sets: Sequence[str]) -> dict[str, str]:
    """Return the role of each of a data source's sets.

    The first three have `ROLES`, in order; test-only sets keep their own names.
    """
    return dict(zip(sets, (*ROLES, *sets[len(ROLES) :]), strict=True))


def own_columns(sets: Sequence[str]) -> dict[str, str]:
    """Map each column's head to the names of a data source's sets in it, e.g. `mini-b > mini-a`."""
    roles = roles_of(sets)
    return {
        column_name(roles[train], roles[test]): f"{train} > {test}"
        for train in sets[:3]
        for test in sets
        if train != test
    }


def by_column(runs: Runs, sets: Sequence[str]) -> pd.DataFrame:
    """Return FPR95 of records along the six columns.

    Args:
        runs: records of one profile and data. A record without a train set (SIFT) fills every column of
            its test sets. Other test sets, such as other pairs of a place, are left out.
        sets: the data source's three sets in the order of their roles, then the test-only sets.

    Returns:
        FPR95 in percent, index (key, label, seed) as in `wide`, and `Mean`. A value is NaN if no record
        holds it; the mean is NaN unless all columns have values. A column that no trained method has is
        left out, e.g. if a study trains on one set alone.

    Raises:
        ValueError: two records hold the same value.
    """
    role = roles_of(sets)
    frame = fpr95(runs).query("test_set in @sets")
    frame = frame.assign(train=frame["train_set"].map(role), test=frame["test_set"].map(role))
    table = _wide(frame)
    trained = table[table.index.get_level_values("seed").notna()]
    table = table.loc[:, trained.notna().any() | trained.empty]
    return table.assign(Mean=table.mean(axis=1, skipna=False))


def of_most_sets(runs: Runs) -> Runs:
    """Return the records that can be compared along all columns.

    These are the records of methods trained on the most sets, and those of methods without training.
    """
    sets = fpr95(runs).groupby("key")["train_set"].nunique()
    return [run for run in runs if run.job.train_set is None or sets[run.job.name] == sets.max()]


def printed_by_column(rows: pd.DataFrame, columns: Sequence[str] = COLUMN_NAMES) -> pd.DataFrame:
    """Return a printed table of FPR95 like `by_column`: index (key, label), the columns and `Mean`.

    A value without a train set fills both columns of its test set. The mean is the printed one, or that
    of the columns if they are not all six. No paper has a value in a column other than the six.
    """
    table = _wide(rows.query("statistic == 'fpr95'").assign(seed=0)).droplevel("seed")
    table = table.filter(columns)
    means = table.mean(axis=1, skipna=False)
    if len(table.columns) == len(COLUMN_NAMES):
        means = rows.query("statistic == 'column_mean'").set_index(METHOD)["value"]
    return table.assign(Mean=means)


def with_columns(frame: pd.DataFrame) -> pd.DataFrame:
    """Add the `column` of each value; one without a train set gets a row per column of its test set.

    Args:
        frame: names sets by their roles, under `train` and `test`.
    """
    trains = [[role] if role in ROLES else list(ROLES) for role in frame["train"]]
    frame = frame.assign(train=trains).explode("train").query("train != test")
    return frame.assign(column=list(map(column_name, frame["train"], frame["test"])))


def _wide(frame: pd.DataFrame) -> pd.DataFrame:
    """Lay out a frame of FPR95, as for `with_columns`, along the six columns and further ones."""
    table = wide(with_columns(frame), "column")
    return table.reindex(columns=[*COLUMN_NAMES, *table.columns.difference(COLUMN_NAMES, sort=False)])


def fpr95_beside(paper: str, table: str, runs: Runs, sets: Sequence[str]) -> pd.DataFrame:
    """Return the printed FPR95 of a table and ours side by side, one row per method.

    Args:
        paper, table: e.g. "hynet", "table1", as for `lib.study.printed.printed`.
        runs: our records; their means over seeds are shown.
        sets: as for `by_column`; their names head our columns.

    Returns:
        Index `Method`, with methods that the paper's table lacks last. Columns: (``, `dim`); for the
        columns that ours has and for `Mean`, (column, `paper`) and (sets, `ours`) in percent, e.g.
        ("Ntr>Lib", "paper") and ("mini-b > mini-a", "ours"); then (`ours`, `sd`), the standard deviation
        of our mean over seeds, and (`ours`, `n`), the number of seeds.
    """
    rows = printed(paper, table)
    ours = by_column(runs, sets)
    papers = printed_by_column(rows, list(ours))
    seeds = ours["Mean"].groupby(level="key")
    own = means(ours).rename(columns=own_columns(sets))
    columns = {
        ("", "dim"): rows.groupby("key")["length"].first(),
        **cell_by_cell({"paper": papers, "ours": own}, sum(zip(ours, own, strict=True), ())),
        ("ours", "sd"): seeds.std(ddof=1),
        ("ours", "n"): seeds.size(),
    }
    beside = named(pd.DataFrame(columns), papers, ours)
    return beside.astype({("", "dim"): "Int64", ("ours", "n"): "Int64"})


def hpatches_set(runs: Runs) -> str:
    """Return the one set of HPatches patches that runs were measured on, "" if there is none."""
    return next((test_set for run in runs for test_set in run.job.sets_of("hpatches")), "")


def hpatches_numbers(
    runs: Runs, test_set: str | None = None, hp_train: str | None = None
) -> pd.DataFrame:
    """Return all numbers of runs on one set of HPatches patches.

    Args:
        runs: records with the measure `hpatches`.
        test_set: the set they were measured on; by default that of `hpatches_set`.
        hp_train: a set of HPatches patches; a method trained on it becomes a separate method, with "_hp"
            added to its key and "-HP" to its label.

    Returns:
        One row per run as in `wide`, every number under its key in percent, NaN if a run lacks it.

    Raises:
        ValueError: two runs of one method and seed.
    """
    frame = tidy(runs, "hpatches", test_set or hpatches_set(runs))
    if hp_train:
        frame.loc[frame["train_set"] == hp_train, METHOD] += ["_hp", "-HP"]
    return wide(frame)


def by_task(runs: pd.DataFrame) -> pd.DataFrame:
    """Tabulate the three tasks, one row per method.

    Args:
        runs: from `hpatches_numbers`.

    Returns:
        Indexed by the methods' labels in the order given. Columns (protocol, `mean`) in percent and, if
        a method has several seeds, (protocol, `sd`) over them; (``, `n`) is the number of runs.
    """
    runs = runs.rename(columns=PROTOCOLS)
    return beside(runs[[]], runs, PROTOCOLS.values(), name="mean").rename_axis("Method (in %)")


def tasks_beside(
    printed: pd.DataFrame, runs: Runs, fpr95: pd.Series, tasks: Sequence[str] = TASKS
) -> pd.DataFrame:
    """Return a printed table of tasks, with or without FPR95, and ours side by side.

    Args:
        printed: from `lib.study.printed.printed`, with a column `task`, which is "" for FPR95.
        runs: records of one train set; those not measured on HPatches have no such numbers.
        fpr95: FPR95 of each run in percent, index as in `wide`, e.g. the "Mean" of `by_column`.
        tasks: tasks to show.

    Returns:
        As from `beside`, FPR95 and the tasks in percent.
    """
    by_cell = printed.replace({"task": {"": FPR95}})
    paper = by_cell.pivot_table("value", METHOD, "task", sort=False)
    ours = fpr95.to_frame(FPR95).join(hpatches_numbers(runs)[list(tasks)])
    return beside(paper, ours, (FPR95, *tasks))


def by_sequence(runs: pd.DataFrame, task: str) -> pd.DataFrame:
    """Return the columns of `hpatches_numbers` that hold a task's number for a level and a sequence.

    Verification has none, because it is over pairs of all sequences.
    """
    # A sequence's name begins with its kind, which tells its key from the keys of kinds and pool sizes.
    return runs.filter(regex=rf"^{task}\.({'|'.join(LEVELS)})\.[vi]_")


def things_shown(names: pd.Index) -> pd.Index:
    """Return what sequences show, from names that end with the sequence's.

    v_NAME and i_NAME may show one thing, and so may NAME_left and NAME_right.
    """
    return names.str.replace(r"^(.*\.)?[vi]_|_(left|right)$", "", regex=True)
