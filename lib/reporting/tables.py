"""Tables with the paper's values and ours side by side, as plain text and as CSV.

The six columns are those of UBC PhotoTour's protocol (Brown et al., PAMI 2011): train on one set,
test on the other two. `liberty`, `notredame` and `yosemite` are roles: of another data source the
first set stands in the role of Liberty, the second in that of Notre Dame, the third in Yosemite's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd

from lib.files import write_bytes
from lib.reporting.artefacts import artefact_path

ROLES = ("liberty", "notredame", "yosemite")
COLUMNS = (
    ("notredame", "liberty"),
    ("yosemite", "liberty"),
    ("liberty", "notredame"),
    ("yosemite", "notredame"),
    ("liberty", "yosemite"),
    ("notredame", "yosemite"),
)
SHORT = {"liberty": "Lib", "notredame": "Ntr", "yosemite": "Yos"}


def column_name(train: str, test: str) -> str:
    """Return the compact head of a column, e.g. `Ntr>Lib` for Notre Dame to Liberty."""
    return f"{SHORT[train]}>{SHORT[test]}"


COLUMN_NAMES = tuple(column_name(train, test) for train, test in COLUMNS)


def roles_of(sets: Sequence[str]) -> dict[str, str]:
    """Say which role each of a data source's three sets stands in, in their order.

    Raises:
        ValueError: there are not three different sets.
    """
    if len(sets) != len(ROLES) or len(set(sets)) != len(sets):
        raise ValueError(f"sets {list(sets)}: a data source needs three different ones")
    return dict(zip(sets, ROLES, strict=True))


def fpr95_by_column(records: Iterable[Mapping], sets: Sequence[str]) -> pd.DataFrame:
    """Lay out the FPR95 of records along the six columns.

    Args:
        records: records as `lib.study.records.read` gives them, all of one profile and data; `name` is
            the method's key. One whose train set is empty or None (SIFT) fills every column of its
            test sets.
        sets: the data source's three sets, in the order of their roles.

    Returns:
        FPR95 in percent, index (key, seed), the six columns and `Mean`, NaN where no record holds
        the value; the mean is NaN unless all six are there. Methods stand in the records' order,
        seeds in ascending order.

    Raises:
        ValueError: two records hold the same value, or one has FPR95 on a set that is not in `sets`.
    """
    role = roles_of(sets)
    cells: dict[tuple[str, int], dict[str, float]] = {}
    for record in records:
        train = record.get("train_set") or None
        for test, metrics in record["metrics"].items():
            if "fpr95" not in metrics:
                continue
            unknown = [name for name in (train, test) if name is not None and name not in role]
            if unknown:
                raise ValueError(
                    f"a record of {record['name']} names the set {unknown[0]!r}; "
                    f"this data source has {', '.join(sets)}"
                )
            if test == train:
                continue
            trains = [other for other in sets if other != test] if train is None else [train]
            row = cells.setdefault((record["name"], int(record.get("seed") or 0)), {})
            for name in (column_name(role[other], role[test]) for other in trains):
                if name in row:
                    raise ValueError(
                        f"two records of {record['name']}, seed {record.get('seed')}, "
                        f"hold column {name}; ask for one profile and one data source"
                    )
                row[name] = float(metrics["fpr95"]["expected"])
    order = {key: place for place, key in enumerate(dict.fromkeys(key for key, _ in cells))}
    index = sorted(cells, key=lambda pair: (order[pair[0]], pair[1]))
    frame = pd.DataFrame(
        [[cells[pair].get(name, np.nan) for name in COLUMN_NAMES] for pair in index],
        index=pd.MultiIndex.from_tuples(index, names=["key", "seed"]),
        columns=list(COLUMN_NAMES),
        dtype="float64",
    )
    frame["Mean"] = frame.mean(axis=1, skipna=False)
    return frame


def values_of_methods(ours: pd.DataFrame) -> dict[str, np.ndarray]:
    """Return each method's six columns, (seeds, 6) in percent, as `lib.reporting.claims` takes them.

    Args:
        ours: from `fpr95_by_column`. A method with one row where others have more, such as SIFT,
            has no seeds and gets (6,).
    """
    rows = {key: of.to_numpy() for key, of in ours[list(COLUMN_NAMES)].groupby(level="key", sort=False)}
    most = max(map(len, rows.values()), default=0)
    return {key: of[0] if len(of) == 1 < most else of for key, of in rows.items()}


def means(values: Mapping[str, Mapping[float, Sequence[float]]], index: str) -> pd.DataFrame:
    """Lay out means: a column a label, a row a setting, and `mean` over the labels.

    Args:
        values: by label, by setting, the values of its runs.
        index: the settings' name.
    """
    frame = pd.DataFrame(
        {label: {setting: np.mean(runs) for setting, runs in of.items()} for label, of in values.items()}
    )
    return frame.sort_index().rename_axis(index).assign(mean=frame.mean(axis=1))


def by_seed(
    values: Mapping[tuple[object, int], Mapping[str, float]], names: tuple[str, str]
) -> pd.DataFrame:
    """Lay out runs as rows: index (setting, seed), a column a test set, and `mean` over them.

    Args:
        values: for each (setting, seed) the measure by test set.
        names: of the two levels of the index.
    """
    frame = pd.DataFrame.from_dict(values, orient="index")
    frame.index = pd.MultiIndex.from_tuples(values, names=names)
    return frame.assign(mean=frame.mean(axis=1))


def difference(values: pd.DataFrame, before: str, after: str) -> pd.DataFrame:
    """Compare two settings over seeds: their means, and the difference with its standard error.

    Args:
        values: (seeds, settings), a column a setting; 2 seeds or more for a spread.
        before, after: the two columns.

    Returns:
        Rows `before`, `after` and their difference; columns `mean`, `sd` over seeds and `s.e.` of
        the mean; that of the difference is Welch's, √(s₁²/n + s₂²/n).
    """
    n = len(values)
    means, deviations = values.mean(), values.std(ddof=1)
    rows = {name: [means[name], deviations[name], deviations[name] / n**0.5] for name in (before, after)}
    error = ((deviations[before] ** 2 + deviations[after] ** 2) / n) ** 0.5
    rows[f"{after} − {before}"] = [means[after] - means[before], np.nan, error]
    frame = pd.DataFrame.from_dict(rows, orient="index", columns=["mean", "sd", "s.e."])
    return frame.rename_axis("FPR95 (%)")


def printed_by_column(printed: pd.DataFrame) -> pd.DataFrame:
    """Lay out a printed table of FPR95 like `fpr95_by_column`: index key, six columns and `Mean`.

    A value without a train set fills both columns of its test set. The mean is the printed one.
    """
    rows: dict[str, dict[str, float]] = {key: {} for key in printed["key"]}
    for value in printed.itertuples():
        row = rows[value.key]
        if value.statistic == "column_mean":
            row["Mean"] = value.value
        elif value.statistic == "fpr95":
            trains = [value.train] if value.train else [r for r in ROLES if r != value.test]
            row.update({column_name(train, value.test): value.value for train in trains})
    return pd.DataFrame.from_dict(rows, orient="index", columns=[*COLUMN_NAMES, "Mean"])


def paper_beside_ours(
    printed: pd.DataFrame, ours: pd.DataFrame, labels: Mapping[str, str] | None = None
) -> pd.DataFrame:
    """Put the printed FPR95 beside ours, one row a method.

    Args:
        printed: from `lib.reporting.printed.printed`.
        ours: from `fpr95_by_column`; the means over seeds are shown.
        labels: display names of methods that the paper's table does not have; they come last.

    Returns:
        Index `Method`; columns (column, `paper` or `ours`) for the six columns and `Mean`, in
        percent, then (`ours`, `sd`), the standard deviation of our mean over seeds, and
        (`ours`, `n`), the number of seeds; (``, `dim`) comes first.
    """
    paper = printed_by_column(printed)
    labels = {**(labels or {}), **dict(zip(printed["key"], printed["label"], strict=True))}
    length = dict(zip(printed["key"], printed["length"], strict=True))
    keys = [*paper.index, *(key for key in ours.index.unique("key") if key not in paper.index)]
    unnamed = [key for key in keys if key not in labels]
    if unnamed:
        raise ValueError(f"no label for {', '.join(unnamed)}; name it in labels")
    by_key = ours.groupby(level="key", sort=False)
    means = by_key.mean().reindex(keys)
    columns = {("", "dim"): [length.get(key, np.nan) for key in keys]}
    for name in (*COLUMN_NAMES, "Mean"):
        columns[(name, "paper")] = paper[name].reindex(keys).to_numpy()
        columns[(name, "ours")] = means[name].to_numpy()
    columns[("ours", "sd")] = by_key["Mean"].std(ddof=1).reindex(keys).to_numpy()
    columns[("ours", "n")] = by_key.size().reindex(keys).to_numpy()
    index = pd.Index([labels[key] for key in keys], name="Method")
    table = pd.DataFrame(columns, index=index)
    return table.astype({("", "dim"): "Int64", ("ours", "n"): "Int64"})


def show(table: pd.DataFrame, decimals: int | Mapping[str, int] = 2, missing: str = "·") -> None:
    """Print a table as aligned plain text, the same on every machine.

    Args:
        table: any frame; its index is shown if it has a name.
        decimals: digits after the point of floats, for all or by (last level of) column name.
        missing: what stands for a missing value.
    """
    print(as_text(table, decimals, missing))


def as_text(table: pd.DataFrame, decimals: int | Mapping[str, int] = 2, missing: str = "·") -> str:
    """Return the text that `show` prints."""
    body = table.reset_index() if any(name is not None for name in table.index.names) else table
    two_heads = body.columns.nlevels > 1
    columns = []
    for position, head in enumerate(body.columns):
        levels = [str(part) for part in (head if two_heads else (head,))]
        if two_heads and not levels[-1]:
            levels = ["", levels[0]]
        series = body.iloc[:, position]
        digits = decimals if isinstance(decimals, int) else decimals.get(levels[-1], 2)
        cells = [_cell(value, digits, missing) for value in series]
        numeric = pd.api.types.is_numeric_dtype(series.dtype)
        columns.append((levels, cells, numeric and series.dtype != bool))
    return "\n".join(_lines(columns, two_heads))


def _cell(value: object, digits: int, missing: str) -> str:
    if value is None or value is pd.NA or (isinstance(value, float) and np.isnan(value)):
        return missing
    if isinstance(value, float | np.floating):
        text = f"{value:.{digits}f}"
        return text.removeprefix("-") if float(text) == 0 else text
    return str(value)


def _lines(columns: list[tuple[list[str], list[str], bool]], two_heads: bool) -> Iterable[str]:
    widths = [max(map(len, [levels[-1], *cells])) for levels, cells, _ in columns]
    if two_heads:
        groups = _groups([levels[0] for levels, _, _ in columns])
        for name, places in groups:
            short = len(name) - (sum(widths[p] for p in places) + len(places) - 1)
            widths[places[0]] += max(short, 0)
        heads = []
        for name, places in groups:
            width = sum(widths[p] for p in places) + len(places) - 1
            heads.append(name.center(width) if len(places) > 1 else name.rjust(width))
        yield "  ".join(heads).rstrip()
    gaps = _gaps(columns, two_heads)

    def line(cells: Sequence[str]) -> str:
        text = ""
        for cell, width, gap, (_, _, numeric) in zip(cells, widths, gaps, columns, strict=True):
            text += gap + (cell.rjust(width) if numeric else cell.ljust(width))
        return text.rstrip()

    yield line([levels[-1] for levels, _, _ in columns])
    for row in zip(*(cells for _, cells, _ in columns), strict=True):
        yield line(row)


def _groups(names: Sequence[str]) -> list[tuple[str, list[int]]]:
    groups: list[tuple[str, list[int]]] = []
    for place, name in enumerate(names):
        if groups and name and groups[-1][0] == name:
            groups[-1][1].append(place)
        else:
            groups.append((name, [place]))
    return groups


def _gaps(columns: list[tuple[list[str], list[str], bool]], two_heads: bool) -> list[str]:
    """One space inside a group of columns, two between groups, none before the first."""
    gaps = [""]
    for (before, _, _), (after, _, _) in pairwise(columns):
        same = two_heads and after[0] and before[0] == after[0]
        gaps.append(" " if same else "  ")
    return gaps


def save_table(table: pd.DataFrame, folder: Path | str | None, name: str) -> Path | None:
    """Write a table to `folder/tables/<name>.csv`, atomically.

    Floats are written with six significant digits, missing values as nothing, column heads of
    several levels joined by a space.

    Args:
        table: the table.
        folder: the results folder, or None: then nothing is saved.
        name: e.g. `adasample/table1`.

    Returns:
        The file's path, or None.

    Raises:
        ValueError: the name leads out of the folder.
        OSError: the folder cannot be written.
    """
    if folder is None:
        return None
    path = artefact_path(Path(folder), "tables", name, ".csv")
    flat = table.reset_index() if any(n is not None for n in table.index.names) else table.copy()
    if flat.columns.nlevels > 1:
        flat.columns = [" ".join(str(part) for part in head if part) for head in flat.columns]
    text = flat.to_csv(index=False, float_format="%.6g", lineterminator="\n")
    write_bytes(path, text.encode("utf-8"))
    return path
