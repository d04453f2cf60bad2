"""The papers' claims as they were written down beforehand, a CSV a paper beside this file.

And the values that a paper prints for what a claim names.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import pandas as pd

from lib.study.printed import printed
from lib.study.report.phototour import ROLES, column_name

CLAIMS = Path(__file__).parent
# How the direction of a bound is put into words, where it is not done by its name.
DIRECTIONS = {"less": "below", "greater": "above", "within": "within ±"}
SINGLE = ("minimum", "maximum")
COUNT_BELOW = "count_below_"
NONE = "none"


@dataclass(frozen=True)
class Claim:
    """One claim of a paper, as written down before its runs were made but where `seen` says otherwise.

    Attributes:
        id: unique name.
        paper, artefact: where the claim stands, e.g. `adasample`, `Table 1`.
        kind: `claim`, a sentence of the paper; or `reading`, what a reader infers but no sentence says.
        sentence: the claim in our words; `quote` the paper's words that it rests on.
        statistic, direction, margin: the rule, see `lib.study.claims.judging`; `none` has none.
        metric, unit: what is compared and the statistic's unit.
        better: `lower` or `higher`, which values of the metric are better.
        a, b: the keys of the compared methods.
        own_data: the name of the data on which the paper makes the claim; `ubc` is PhotoTour, and
            `ubc+hpatches` says that it trains there and tests on HPatches.
        printed: the printed table and its kind of values that the claim is of, e.g. `table1:fpr95`.
        counts_against: what would count against it.
        why: why there can be no verdict, where there is no rule.
        given: what a claim about a gain presupposes, two methods' keys as `better<worse`: that the mean
            over the cells of the first is surely better, or there is no verdict.
            An optional column.
        seen: what had been seen when the claim was written down, e.g. `the quick runs`; empty of those
            that were written beforehand. An optional column.
    """

    id: str
    paper: str
    artefact: str
    kind: str
    sentence: str
    quote: str
    statistic: str
    metric: str
    unit: str
    better: str
    a: tuple[str, ...]
    b: tuple[str, ...]
    direction: str
    margin: float
    own_data: str
    printed: str
    counts_against: str
    why: str
    given: tuple[str, ...] = ()
    seen: str = ""

    @property
    def on_hpatches(self) -> bool:
        """Whether it is about tests on HPatches, so that training data alone do not decide it."""
        return self.own_data.endswith("+hpatches")

    @property
    def bound(self) -> float:
        """What the statistic is compared with; of `within`, the upper one of two."""
        return -self.margin if self.direction == "less" and self.margin else self.margin

    def needed(self) -> str:
        """The condition on the statistic in words, e.g. `below -0.02 points`."""
        if self.statistic == NONE:
            return ""
        words = DIRECTIONS.get(self.direction, self.direction.replace("_", " "))
        return f"{words} {self.bound:g} {self.unit}".replace("± ", "±").rstrip()


def read_rows() -> pd.DataFrame:
    """All rows of the claims' files as text, "" where a paper's file has not a column."""
    files = [pd.read_csv(path, dtype=str) for path in sorted(CLAIMS.glob("*.csv"))]
    return pd.concat(files, ignore_index=True).fillna("")


def read_claims(paper: str | None = None, artefact: str | None = None) -> list[Claim]:
    """Read the claims, all or those of one paper and on one artefact of it, e.g. "Table 1".

    Sentences of kind `print`, which no run bears on, are left to `lib.study.audit.sentences`.

    Raises:
        ValueError: there are none.
    """
    rows = read_rows()
    rows = rows[rows["kind"] != "print"]
    for column, wanted in (("paper", paper), ("artefact", artefact)):
        rows = rows if wanted is None else rows[rows[column] == wanted]
    if rows.empty:
        raise ValueError(f"no claim of {paper} on {artefact}")
    claims = []
    for row in rows.to_dict("records"):
        methods = {name: tuple(filter(None, row[name].split(";"))) for name in ("a", "b")}
        given = tuple(filter(None, row["given"].split("<")))
        parsed = row | methods | {"given": given, "margin": float(row["margin"])}
        claims.append(Claim(**{field.name: parsed[field.name] for field in fields(Claim)}))
    return claims


def printed_values(claim: Claim, key: str, cells: Sequence[str] = ()) -> np.ndarray | None:
    """What the paper prints for a method, or for the group of rows that a key stands for.

    Args:
        claim: names the table and the kind of values.
        key: as the claim has it: a method's key, or what another column of the table holds, e.g. `aht`.
        cells: names of ours; of the printed ones those that have these names.

    Returns:
        (cells,), or None where the table does not print it.
    """
    table, _, statistic = claim.printed.partition(":")
    rows = printed(claim.paper, table)
    rows = rows[rows["statistic"] == statistic]
    named = rows[["key", "statistic", *rows.columns.intersection(["loss"])]].eq(key).any(axis=1)
    values = [(name, row.value) for row in rows[named].itertuples() for name in _cells_of(row)]
    by_name = pd.Series(dict(values), dtype=float)
    common = [name for name in cells if name in by_name]
    if common and len(by_name) == len(values):
        return by_name[common].to_numpy()
    return np.array([value for _, value in values]) if values else None


def _cells_of(row: tuple) -> list[str]:
    """The names of the cells that a printed value is of; without a train set it is of both columns."""
    if row.test not in ROLES:
        return [getattr(row, "task", "")]
    return [
        column_name(train, row.test)
        for train in ([row.train] if row.train else ROLES)
        if train != row.test
    ]
