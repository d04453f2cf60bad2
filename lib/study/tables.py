"""Papers' tables beside ours, laid out from the tidy frame of runs.

**FPR95 along the six columns of UBC PhotoTour's protocol** (Brown et al., PAMI 2011): train on one set,
test on the other two. `liberty`, `notredame` and `yosemite` are roles: the first set of another data
source has the role of Liberty, the second that of Notre Dame, the third that of Yosemite. Test-only
places have further columns under their own names.

**HPatches** (Balntas et al., CVPR 2017): the numbers of `lib.benchmarks.hpatches`, in percent. Papers'
tables differ in the protocol, above all for retrieval, so a column's head names the protocol.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from lib.data.scenes.sets import WIDE
from lib.recipes import without_setting
from lib.study.printed import printed
from lib.study.requests import BY_SIGN
from lib.study.runs import Runs, Study

METHOD = ["method", "label"]
RUN = [*METHOD, "seed"]
ROLES = ("liberty", "notredame", "yosemite")
SHORT = {"liberty": "Lib", "notredame": "Ntr", "yosemite": "Yos"}
LEVELS = ("easy", "hard", "tough")
TASKS = ("verification", "matching", "retrieval")
# Key of a number -> its protocol. Imbalanced verification has 0.2 positives per negative.
PROTOCOLS = {
    "verification": "verification: AP, 1 to 5",
    "matching": "matching: mAP",
    "retrieval": "retrieval: mAP, whole pool",
    "retrieval.pools": "retrieval: mAP, pool sizes",
}


def numbers(runs: pd.DataFrame, module: str, test: str | None = None) -> pd.DataFrame:
    """Return all numbers of one measure, a row a run and a column a number.

    Args:
        runs: a tidy frame (`lib.study.Runs`).
        module: the measure's module, e.g. "hpatches" or "hpatches by sign".
        test: the set it was measured on; None for the only one.

    Returns:
        Index (`method`, `label`, `seed`), in the order of the frame. Columns are the numbers' keys,
        without the module's name.
    """
    own = runs[runs["measure"].str.startswith(f"{module}.")]
    if test is not None:
        own = own[own["test"] == test]
    own = own.assign(key=own["measure"].str.removeprefix(f"{module}."))
    return _in_order(own, own.pivot(index=RUN, columns="key", values="value"), "key")


def by_sign(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the numbers that were measured by the signs of descriptors, as numbers of further methods.

    Their methods and labels end with " by sign", and their measures do not.

    Args:
        runs: a tidy frame.
    """
    signs = runs[runs["measure"].str.contains(BY_SIGN, regex=False)]
    return pd.DataFrame(signs).assign(
        method=signs["method"] + BY_SIGN,
        label=signs["label"] + BY_SIGN,
        measure=signs["measure"].str.replace(BY_SIGN, "", regex=False),
    )


def _in_order(frame: pd.DataFrame, table: pd.DataFrame, columns: str) -> pd.DataFrame:
    """Return a pivoted table with methods and columns in the order of the frame."""
    methods = pd.Index(frame["method"].unique())
    position = methods.get_indexer(table.index.get_level_values("method"))
    return table.iloc[position.argsort(kind="stable")][list(frame[columns].unique())]


def column_name(train: str, test: str) -> str:
    """Return a column's short head, e.g. `Ntr>Lib` for Notre Dame to Liberty."""
    return f"{SHORT[train]}>{SHORT.get(test, test)}"


# Ordered by test set, as in the papers.
COLUMN_NAMES = tuple(column_name(train, test) for test in ROLES for train in ROLES if train != test)


def roles_of(sets: Sequence[str]) -> dict[str, str]:
    """Return the role of each of a data source's sets.

    The first three have `ROLES`, in order; test-only sets keep their own names.
    """
    return dict(zip(sets, (*ROLES, *sets[len(ROLES) :]), strict=False))


def own_columns(sets: Sequence[str]) -> dict[str, str]:
    """Map each column's head to the names of a data source's sets in it, e.g. `conch > banana`."""
    roles = roles_of(sets)
    columns = {}
    for train in sets[: len(ROLES)]:
        for test in sets:
            if train != test:
                columns[column_name(roles[train], roles[test])] = f"{train} > {test}"
    return columns


def with_columns(frame: pd.DataFrame) -> pd.DataFrame:
    """Add the `column` of each value; one without a train set gets a row per column of its test set.

    Args:
        frame: names sets by their roles, under `train` and `test`.
    """
    trains = [[role] if role in ROLES else list(ROLES) for role in frame["train"]]
    frame = frame.assign(train=trains).explode("train").query("train != test")
    return frame.assign(column=list(map(column_name, frame["train"], frame["test"])))


def _along_columns(frame: pd.DataFrame) -> pd.DataFrame:
    """Lay out a frame of FPR95, as for `with_columns`, along the six columns and further ones."""
    frame = with_columns(frame)
    table = _in_order(frame, frame.pivot(index=RUN, columns="column", values="value"), "column")
    return table.reindex(columns=[*COLUMN_NAMES, *table.columns.difference(COLUMN_NAMES, sort=False)])


def by_column(runs: pd.DataFrame, sets: Sequence[str]) -> pd.DataFrame:
    """Return FPR95 along the six columns, in percent.

    Args:
        runs: a tidy frame of one profile and data. A descriptor without a train set (SIFT) fills every
            column of its test sets. Other test sets, such as other pairs of a place, are left out.
        sets: the data source's three sets in the order of their roles, then the test-only sets.

    Returns:
        Index (`method`, `label`, `seed`); the columns and their `Mean`. A value is NaN if no run has it;
        the mean is NaN unless all columns have values. A column that no trained method has is left out,
        e.g. if a study trains on one set alone.
    """
    role = roles_of(sets)
    frame = pd.DataFrame(runs).query("measure == 'fpr95' and test in @sets")
    frame = frame.assign(train=frame["train"].map(role), test=frame["test"].map(role))
    table = _along_columns(frame)
    trained = table[table.index.get_level_values("seed").notna()]
    table = table.loc[:, trained.notna().any() | trained.empty]
    return table.assign(Mean=table.mean(axis=1, skipna=False))


def by_place(runs: pd.DataFrame) -> pd.DataFrame:
    """Return FPR95 by the place that networks were trained on, in percent.

    Args:
        runs: a tidy frame of the test sets that count, without zeros (`lib.study.runs.Study.counted`);
            wide pairs are left out.

    Returns:
        Index (`method`, `label`, `train`); a method of the shared setting has its paper's name, e.g.
        "hynet_aug". Columns are the test places, NaN where a network was trained there, and `Mean`, the
        geometric mean of the others. A descriptor without a train set has one row, with the train
        place "".
    """
    rates = pd.DataFrame(runs).query("measure == 'fpr95'")
    rates = rates[~rates["test"].str.endswith(WIDE)]
    rates = rates.assign(method=rates["method"].map(without_setting), train=rates["train"].fillna(""))
    table = rates.pivot_table("value", [*METHOD, "train"], "test", sort=False)
    return table.assign(Mean=np.exp(np.log(table).mean(axis=1)))


def fpr95(runs: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Return FPR95 as a study compares it: `by_place`, or `by_column` over seeds."""
    if study.profile.by_place:
        return by_place(study.counted(runs))
    return by_column(runs, study.tests)


def mean_fpr95(runs: pd.DataFrame, study: Study) -> pd.Series:
    """Return the mean FPR95 of each run in percent, index (`method`, `label`, `seed`).

    The mean is that of the columns (`by_column`) or, where the replicate is the place, the geometric
    mean over the test places that count; methods then have their papers' names, as in `by_place`.
    """
    if not study.profile.by_place:
        return by_column(runs, study.tests)["Mean"]
    rates = study.counted(runs).query("measure == 'fpr95' and test in @study.tests")
    rates = rates.assign(method=rates["method"].map(without_setting), log=np.log(rates["value"]))
    return np.exp(rates.groupby(RUN, sort=False, dropna=False)["log"].mean()).rename("Mean")


def printed_by_column(rows: pd.DataFrame, columns: Sequence[str] = COLUMN_NAMES) -> pd.DataFrame:
    """Return a printed table of FPR95 like `by_column`: index (`method`, `label`), columns and `Mean`.

    A value without a train set fills both columns of its test set. The mean is the printed one, or that
    of the columns if they are some of the six. No paper has a value in a column other than the six.
    """
    rows = rows.rename(columns={"key": "method"})
    table = _along_columns(rows.query("statistic == 'fpr95'").assign(seed=0)).droplevel("seed")
    table = table.filter(columns)
    mean = table.mean(axis=1, skipna=False)
    if len(table.columns) in (0, len(COLUMN_NAMES)):
        mean = rows.query("statistic == 'column_mean'").set_index(METHOD)["value"]
    return table.assign(Mean=mean)


def means(table: pd.DataFrame) -> pd.DataFrame:
    """Return means over seeds, index (`method`, `label`)."""
    return table.groupby(level=METHOD, sort=False).mean()


def named(table: pd.DataFrame, *methods: pd.DataFrame) -> pd.DataFrame:
    """Return a table with the methods' labels as its index, `Method`, in place of their names.

    Args:
        table: index `method`.
        methods: frames with the index (`method`, `label`, …). They give the rows and their order; a
            method takes its label from the first frame that has it.
    """
    labels = pd.concat([frame.index.to_frame()[METHOD] for frame in methods]).drop_duplicates("method")
    return table.reindex(labels["method"]).set_axis(labels["label"].rename("Method"))


def beside(paper: pd.DataFrame, runs: pd.DataFrame, cells: Iterable[str]) -> pd.DataFrame:
    """Return a paper's values and ours side by side.

    Args:
        paper: index (`method`, `label`), one column a cell.
        runs: ours, index (`method`, `label`, `seed`), one column a cell.
        cells: cells to show, each for the side that has it.

    Returns:
        Index `Method`. Columns (cell, `paper`), (cell, `ours`), our mean over seeds, and, if there are
        several seeds, (cell, `sd`) over them; then (``, `n`), the number of our runs.
    """
    seeds = runs.groupby(level=METHOD, sort=False)
    sides = {"paper": paper, "ours": seeds.mean()}
    if seeds.size().max() > 1:
        sides["sd"] = seeds.std()
    columns = {}
    for cell in cells:
        for whose, table in sides.items():
            if cell in table:
                columns[cell, whose] = table[cell].droplevel("label")
    columns["", "n"] = runs.groupby(level="method").size()
    return named(pd.DataFrame(columns), paper, runs).astype({("", "n"): "Int64"})


def fpr95_beside(paper: str, table: str, runs: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Return the printed FPR95 of a table and ours side by side, one row a method.

    Args:
        paper, table: e.g. "hynet", "table1", as for `lib.study.printed.printed`.
        runs: a tidy frame; means over seeds are shown.
        study: where the replicate is its place, the table is `by_place`.

    Returns:
        Index `Method`, with methods that the paper's table lacks last. Columns: (``, `dim`); for the
        columns that ours has and for `Mean`, (column, `paper`) and (sets, `ours`) in percent, e.g.
        ("Ntr>Lib", "paper") and ("conch > banana", "ours"); then (`ours`, `sd`), the standard deviation
        of our mean over seeds, and (`ours`, `n`), the number of seeds. Where the replicate is the
        place, columns are (`paper`, `Mean`); (train place, `ours`), the mean over test places; and
        (`ours`, `mean`). Methods that were not trained are then left out.
    """
    rows = printed(paper, table).rename(columns={"key": "method"})
    if study.profile.by_place:
        return _beside_by_place(rows, by_place(study.counted(runs)))
    sets = study.tests
    ours = by_column(runs, sets)
    theirs = printed_by_column(rows, list(ours))
    heads = own_columns(sets)
    columns: dict[tuple[str, str], pd.Series] = {("", "dim"): rows.groupby("method")["length"].first()}
    mean = means(ours)
    for column in ours:
        if column in theirs:
            columns[column, "paper"] = theirs[column].droplevel("label")
        columns[heads.get(column, column), "ours"] = mean[column].droplevel("label")
    seeds = ours["Mean"].groupby(level="method")
    columns["ours", "sd"] = seeds.std(ddof=1)
    columns["ours", "n"] = seeds.size()
    table = named(pd.DataFrame(columns), theirs, ours)
    return table.astype({("", "dim"): "Int64", ("ours", "n"): "Int64"})


def _beside_by_place(rows: pd.DataFrame, ours: pd.DataFrame) -> pd.DataFrame:
    """Lay out printed rows of FPR95 and ours, from `by_place`, as `fpr95_beside` does."""
    theirs = printed_by_column(rows, [])
    known = ours.index.get_level_values("method")
    theirs = theirs[theirs.index.get_level_values("method").isin(known)]
    means = ours["Mean"].droplevel("label").unstack("train", sort=False)
    columns = {("paper", "Mean"): theirs["Mean"].droplevel("label")}
    for place in means.columns.drop("", errors="ignore"):
        columns[place, "ours"] = means[place]
    # An untrained descriptor has the one row, which stands for every place.
    columns["ours", "mean"] = np.exp(np.log(means).mean(axis=1))
    return named(pd.DataFrame(columns), theirs, ours)


def means_beside(paper: str, table: str, runs: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Return the printed mean FPR95 of a table and ours, of the methods that both have.

    Args:
        paper, table, runs, study: as for `fpr95_beside`.

    Returns:
        A row a replicate, a seed or a train place, in the order of the printed means, the highest
        first. Columns: `method`, `label`, `paper` and `ours`, both in percent. Means are over the
        columns that all our rows have, or by train place over the test places that count.
    """
    ours = fpr95(runs, study)
    columns: list[str] = []
    mean = ours["Mean"]
    if not study.profile.by_place:
        complete = ours.drop(columns="Mean").dropna(axis=1)
        columns, mean = list(complete), complete.mean(axis=1)
    rows = printed(paper, table).rename(columns={"key": "method"})
    theirs = printed_by_column(rows, columns)["Mean"].rename("paper").reset_index()
    beside = theirs.merge(mean.rename("ours").reset_index("method"), on="method")
    return beside.sort_values("paper", ascending=False, kind="stable", ignore_index=True)


def tasks_beside(
    rows: pd.DataFrame,
    runs: pd.DataFrame,
    study: Study,
    tasks: Sequence[str] = TASKS,
    test: str | None = None,
) -> pd.DataFrame:
    """Return a printed table of HPatches' tasks, with or without FPR95, and ours side by side.

    Args:
        rows: from `lib.study.printed.printed`, with a column `task`, which is "" for FPR95.
        runs: a tidy frame of one train set, or of all train places where these are the replicates; runs
            not measured on HPatches have no such numbers.
        study: the notebook's, for `mean_fpr95`.
        tasks: tasks to show.
        test: the set of HPatches patches; None for the only one.

    Returns:
        As from `beside`, FPR95 and the tasks in percent.
    """
    rows = rows.rename(columns={"key": "method"}).replace({"task": {"": "FPR95"}})
    paper = rows.pivot_table("value", METHOD, "task", sort=False)
    fpr95 = mean_fpr95(runs, study).rename("FPR95").to_frame()
    if study.profile.by_place:
        runs = runs.assign(method=runs["method"].map(without_setting))
    ours = fpr95.join(numbers(runs, "hpatches", test)[list(tasks)])
    return beside(paper, ours, ("FPR95", *tasks))


def by_task(numbers: pd.DataFrame) -> pd.DataFrame:
    """Return HPatches' tasks, one row a method.

    Args:
        numbers: from `numbers(runs, "hpatches")`.

    Returns:
        Index `Method (in %)`. Columns (protocol, `mean`) and, if a method has several seeds, (protocol,
        `sd`) over them; then (``, `n`), the number of runs.
    """
    numbers = numbers.rename(columns=PROTOCOLS)
    table = beside(numbers[[]], numbers, PROTOCOLS.values())
    return table.rename(columns={"ours": "mean"}, level=1).rename_axis("Method (in %)")


def topology(*runs: Runs) -> pd.DataFrame:
    """Tabulate TCDesc's distances of matching pairs in training, as means over all steps and runs.

    Args:
        runs: from `lib.study.runs.Study.runs`; methods without topology are left out.

    Returns:
        A row a method, index `Method`: `k / n (%)`, k as a share of the other pairs of a batch, which is
        the share of neighbours that match by chance; `matched (%)`, the share of neighbours that match;
        `mean λ`; `capped (%)`, the share of pairs for which Eq. 11 reaches 0.5; `d_T`, the mean topology
        distance; and `beyond (%)`, the share of differences beyond the range of DSM's histogram, if the
        loss has one.
    """
    curves = pd.concat([own.curves for own in runs])
    mean = curves.pivot_table("value", METHOD, "curve", sort=False).dropna(subset="mean_lambda")
    about = pd.concat([own.table for own in runs]).drop_duplicates("method").set_index("method")
    about = about.loc[mean.index.get_level_values("method")]
    options = [config["recipe"]["positive"]["options"] for config in about["config"]]
    neighbours = pd.Series([own["neighbours"] for own in options], mean.index)
    table = pd.DataFrame({"k / n (%)": 100 * neighbours / (about["batch"].to_numpy() - 1)})
    table["matched (%)"] = 100 * mean["matched_share"]
    table["mean λ"] = mean["mean_lambda"]
    table["capped (%)"] = 100 * mean["capped_share"]
    table["d_T"] = mean["d_topology"]
    if "beyond_share" in mean:
        table["beyond (%)"] = 100 * mean["beyond_share"]
    return table.droplevel("method").rename_axis("Method")


def tenths(curve: pd.Series) -> tuple[float, float]:
    """Return the means of a curve over the first and over the last tenth of its points."""
    tenth = max(1, len(curve) // 10)
    return curve[:tenth].mean(), curve[-tenth:].mean()
