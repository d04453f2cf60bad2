"""The papers' claims as they were written down beforehand, a CSV a paper beside this file.

And the values that a paper prints for what a claim names.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import pandas as pd

from lib.study.printed import printed
from lib.study.report.phototour import ROLES, column_name

CLAIMS = Path(__file__).parent
SINGLE = ("minimum", "maximum")
NONE = "none"
FINDING = "finding"
# A margin of ours decides nothing by less than this, in the claim's unit.
HUNDREDTH = 0.01


@dataclass(frozen=True)
class Claim:
    """One claim of a paper, as written down before its runs were made but where `seen` says otherwise.

    Attributes:
        id: unique name.
        paper, artefact: where the claim stands, e.g. `adasample`, `Table 1`.
        kind: `claim`, a sentence of the paper; or `finding`, a comparison that no sentence states, e.g.
            with a control of ours: it is shown with its interval and has no verdict.
        sentence: the claim in our words; `quote` the paper's words that it rests on.
        statistic, direction, margin: the rule, see `lib.study.claims.judging`; `none` has none.
        metric, unit: what is compared and the statistic's unit; `ratio` compares logarithms, and the
            margin is a factor, 1 for none.
        better: `lower` or `higher`, which values of the metric are better.
        a, b: the keys of the compared methods.
        own_data: the name of the data on which the paper makes the claim; `ubc` is PhotoTour, and
            `ubc+hpatches` says that it trains there and tests on HPatches.
        printed: the printed table and its kind of values that the claim is of, e.g. `table1:fpr95`.
        counts_against: what would count against it; at its end "Written as …", the margin in points or
            percent that was converted to a ratio.
        why: why there can be no verdict, where there is no rule.
        given: what a claim about a gain presupposes, two methods' keys as `better<worse`: that the mean
            over the cells of the first is significantly better, or there is no verdict.
        seen: what had been seen when the claim was written down, e.g. `the quick runs`; empty of those
            that were written beforehand.
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
    def is_ratio(self) -> bool:
        """Whether logarithms are compared."""
        return self.unit == "ratio"

    @property
    def bound(self) -> float:
        """What the statistic, or its logarithm, is compared with; of `within`, the upper one of two."""
        bound = math.log(self.margin) if self.is_ratio else self.margin
        return -bound if self.direction == "less" and bound else bound

    @property
    def bounds(self) -> tuple[float, ...]:
        """The bounds by which an outcome has to be the same, so that the margin alone decides nothing:
        with the margin and without, of a difference; or a hundredth to either side."""
        bound = self.bound
        if "difference" in self.statistic and self.direction in ("less", "greater"):
            return bound, 0.0
        by = HUNDREDTH if abs(bound) > HUNDREDTH else 0.0
        return bound - by, bound + by

    def shown(self, value: float | None) -> float | None:
        """A statistic as readers see it, where logarithms were compared."""
        return math.exp(value) if self.is_ratio and value is not None else value

    def needed(self) -> str:
        """The condition on the statistic in words, e.g. `below -0.02 points`."""
        if self.statistic == NONE:
            return ""
        bound = self.shown(self.bound)
        least = 1 / bound if self.is_ratio else -bound
        words = {"less": "below", "greater": "above", "within": f"from {least:.4g} to"}
        direction = words.get(self.direction, self.direction.replace("_", " "))
        return f"{direction} {bound:.4g} {self.unit}".rstrip()


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
    rows = read_rows().query("kind != 'print'")
    for column, wanted in (("paper", paper), ("artefact", artefact)):
        rows = rows if wanted is None else rows[rows[column] == wanted]
    if rows.empty:
        raise ValueError(f"no claim of {paper} on {artefact}")
    for name, separator in (("a", ";"), ("b", ";"), ("given", "<")):
        rows[name] = [tuple(filter(None, text.split(separator))) for text in rows[name]]
    columns = [field.name for field in fields(Claim)]
    return [Claim(**row) for row in rows[columns].astype({"margin": float}).to_dict("records")]


def printed_values(claim: Claim, key: str, cells: Sequence[str] = ()) -> np.ndarray | None:
    """What the paper prints for a method, or for the group of rows that a key stands for.

    Args:
        claim: names the table and the kind of values.
        key: as the claim has it: a method's key, or what another column of the table holds, e.g. `aht`.
        cells: names of ours; of the printed ones those that have these names.

    Returns:
        (cells,), or None where the table does not print it, or the claim is of no table.
    """
    if not claim.printed:
        return None
    table, _, statistic = claim.printed.partition(":")
    rows = printed(claim.paper, table)
    rows = rows[rows["statistic"] == statistic]
    named = rows[["key", "statistic", *rows.columns.intersection(["loss"])]].eq(key).any(axis=1)
    # Without a train set a value is of both columns of its test set.
    values = [
        (name, row.value)
        for row in rows[named].itertuples()
        for name in (
            [column_name(t, row.test) for t in ROLES if t != row.test and row.train in ("", t)]
            if row.test in ROLES
            else [getattr(row, "task", "")]
        )
    ]
    by_name = pd.Series(dict(values), dtype=float)
    common = [name for name in cells if name in by_name]
    if common and len(by_name) == len(values):
        return by_name[common].to_numpy()
    return np.array([value for _, value in values]) if values else None
