"""FPR95 along the six columns of UBC PhotoTour's protocol (Brown et al., PAMI 2011).

Train on one set, test on the other two. `liberty`, `notredame` and `yosemite` are roles: of another
data source the first set stands in the role of Liberty, the second in that of Notre Dame, the third in
Yosemite's. Places on which nobody trains stand in further columns, by their own names.
"""

from collections.abc import Sequence

import pandas as pd

from lib.study.open import Record
from lib.study.printed import printed
from lib.study.report import frames

ROLES = ("liberty", "notredame", "yosemite")
SHORT = {"liberty": "Lib", "notredame": "Ntr", "yosemite": "Yos"}


def column_name(train: str, test: str) -> str:
    """The compact head of a column, e.g. `Ntr>Lib` for Notre Dame to Liberty."""
    return f"{SHORT[train]}>{SHORT.get(test, test)}"


# By test set, as the papers order them.
COLUMN_NAMES = tuple(column_name(train, test) for test in ROLES for train in ROLES if train != test)


def roles_of(sets: Sequence[str]) -> dict[str, str]:
    """The role of each of a data source's sets. The first three have `ROLES`, in order; sets that only
    test have their own names."""
    return dict(zip(sets, (*ROLES, *sets[len(ROLES) :]), strict=True))


def own_columns(sets: Sequence[str]) -> dict[str, str]:
    """By the head of each column the names of a data source's sets in it, e.g. `mini-b > mini-a`."""
    roles = roles_of(sets)
    pairs = ((train, test) for train in sets[:3] for test in sets if train != test)
    return {column_name(roles[train], roles[test]): f"{train} > {test}" for train, test in pairs}


def by_column(runs: Sequence[Record], sets: Sequence[str]) -> pd.DataFrame:
    """FPR95 of records along the six columns.

    Args:
        runs: records of one profile and data. One without a train set (SIFT) fills every column of its
            test sets. What else it was measured on, such as other pairs of a place, is left out.
        sets: the data source's three sets, in the order of their roles, then those that only test.

    Returns:
        FPR95 in percent, index (key, label, seed) as of `lib.study.report.frames.wide`, and `Mean`, NaN
        where no record holds the value; the mean is NaN unless all columns are there. A column that no
        trained method has is left out, as where a study trains on one set alone.

    Raises:
        ValueError: two records hold the same value.
    """
    role, frame = roles_of(sets), frames.fpr95(runs)
    frame = frame[frame["test_set"].isin(sets)]
    frame = frame.assign(train=frame["train_set"].map(role), test=frame["test_set"].map(role))
    table = _wide(frame)
    trained = table[table.index.get_level_values("seed").notna()]
    table = table.loc[:, trained.notna().any() | trained.empty]
    return table.assign(Mean=table.mean(axis=1, skipna=False))


def of_most_sets(runs: Sequence[Record]) -> list[Record]:
    """The records that can be compared along all columns: those of the methods that are trained on the
    most sets, and those of methods that nobody trains."""
    pairs = pd.DataFrame([(run.job.name, run.job.train_set) for run in runs], columns=["name", "set"])
    sets = pairs.groupby("name")["set"].nunique()
    return [run for run in runs if run.job.train_set is None or sets[run.job.name] == sets.max()]


def printed_by_column(rows: pd.DataFrame, columns: Sequence[str] = COLUMN_NAMES) -> pd.DataFrame:
    """A printed table of FPR95 like `by_column`: index (key, label), the columns and `Mean`.

    A value without a train set fills both columns of its test set. The mean is the printed one, or that
    of the columns where they are not all six. No paper has a value of a column that is none of the six.
    """
    frame = rows.assign(seed=0)
    table = _wide(frame[frame["statistic"] == "fpr95"]).droplevel("seed")
    table = table[[name for name in columns if name in COLUMN_NAMES]]
    if len(table.columns) < len(COLUMN_NAMES):
        return table.assign(Mean=table.mean(axis=1, skipna=False))
    means = frame[frame["statistic"] == "column_mean"].set_index(frames.METHOD)["value"]
    return table.assign(Mean=means)


def with_columns(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame of values with their `column`. A value without a train set has a row for each column of
    its test set.

    Args:
        frame: sets are named by their roles, under `train` and `test`.
    """
    trains = [[role] if role in ROLES else list(ROLES) for role in frame["train"]]
    frame = frame.assign(train=trains).explode("train").query("train != test")
    return frame.assign(column=list(map(column_name, frame["train"], frame["test"])))


def _wide(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame of FPR95 as `with_columns` takes it, laid out along the six columns and further ones."""
    table = frames.wide(with_columns(frame), "column")
    return table.reindex(columns=[*COLUMN_NAMES, *(name for name in table if name not in COLUMN_NAMES)])


def verification(paper: str, table: str, runs: Sequence[Record], sets: Sequence[str]) -> pd.DataFrame:
    """The printed FPR95 of a table and ours side by side, one row a method.

    Args:
        paper, table: e.g. "hynet", "table1", as for `lib.study.printed.printed`.
        runs: ours; the means over seeds are shown.
        sets: as for `by_column`, by whose names the columns of ours are called.

    Returns:
        Index `Method`, methods that the paper's table does not have last; columns (column, `paper`) and
        (sets, `ours`), e.g. ("Ntr>Lib", "paper") and ("mini-b > mini-a", "ours"), of those that ours
        has, and of `Mean`, in percent; then (`ours`, `sd`), the standard deviation of our mean over
        seeds, and (`ours`, `n`), their number; (``, `dim`) comes first.
    """
    rows, ours = printed(paper, table), by_column(runs, sets)
    papers, seeds = printed_by_column(rows, list(ours)), ours["Mean"].groupby(level="key")
    own = frames.means(ours).rename(columns=own_columns(sets))
    columns = {
        ("", "dim"): rows.groupby("key")["length"].first(),
        **frames.cell_by_cell({"paper": papers, "ours": own}, sum(zip(ours, own, strict=True), ())),
        **{("ours", "sd"): seeds.std(ddof=1), ("ours", "n"): seeds.size()},
    }
    beside = frames.named(pd.DataFrame(columns), papers, ours)
    return beside.astype({("", "dim"): "Int64", ("ours", "n"): "Int64"})
