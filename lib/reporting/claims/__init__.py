"""The papers' claims, fixed beforehand, a CSV a paper beside this file, and the rule that judges them.

Each claim names a statistic of the methods' values. Values are arrays (seeds, cells), a cell being
a column of the table or a point of the figure; every statistic but `minimum` and `maximum` is taken
of the means over seeds:

- `mean_difference`: mean over the cells of `a` minus that of `b`.
- `each_difference`: `a` minus `b` in the cell where the claim fares worst.
- `share_better`: share of the cells in which `a` is strictly better than every `b`.
- `largest_relative_gain`: the greatest (b - a) / b over the cells, in percent.
- `minimum`, `maximum`: over all seeds and cells of `a`.
- `count_below_X`: number of cells of `a` below X.

Where `a` or `b` names several methods, a difference is that of the worst pairing, so the claim has
to hold for every pairing. A claim holds if the statistic is below -margin (`less`), above margin
(`greater`), at least margin (`at_least`) or at most margin (`at_most`). Significance is no part of
this rule: the standard error beside a mean difference shows how far it carries. The margin of 0.02
points of mean FPR95 is about what the test pairs alone leave open (50 000 non-matching pairs a
set, FPR95 near 1.5%, six columns).
"""

import csv
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from lib.significance import difference

CLAIMS = Path(__file__).parent
DIRECTIONS = {
    "less": ("below", lambda observed, margin: observed < -margin),
    "greater": ("above", lambda observed, margin: observed > margin),
    "at_least": ("at least", lambda observed, margin: observed >= margin),
    "at_most": ("at most", lambda observed, margin: observed <= margin),
}
PAIRED = ("mean_difference", "each_difference", "share_better", "largest_relative_gain")
SINGLE = ("minimum", "maximum")
COUNT_BELOW = "count_below_"
TABLE = [
    *("claim", "paper", "artefact", "sentence", "needed", "observed", "standard_error", "unit"),
    *("profile", "data", "seeds", "verdict", "why"),
]


@dataclass(frozen=True)
class Claim:
    """One claim of a paper, as written down before anything was measured.

    Attributes:
        id: unique name.
        paper, artefact: where the claim stands, e.g. `adasample`, `Table 1`.
        sentence: the claim in our words; `quote` the paper's words that it rests on.
        statistic, direction, margin: the rule, see the module's docstring.
        metric, unit: what is compared and the statistic's unit.
        better: `lower` or `higher`, which values of the metric are better.
        a, b: the keys of the compared methods.
        fewest_seeds: with fewer the verdict is undecided.
        own_data: the name of the data on which the paper makes the claim; `ubc` is PhotoTour, and
            `ubc+hpatches` says that it trains there and tests on HPatches.
        counts_against: what would count against it.
    """

    id: str
    paper: str
    artefact: str
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
    fewest_seeds: int
    own_data: str
    counts_against: str

    @property
    def on_hpatches(self) -> bool:
        """Whether it is about tests on HPatches, so that training data alone do not decide it."""
        return self.own_data.endswith("+hpatches")

    def needed(self) -> str:
        """The condition on the statistic in words, e.g. `below -0.02 points`."""
        bound = -self.margin if self.direction == "less" and self.margin else self.margin
        return f"{DIRECTIONS[self.direction][0]} {bound:g} {self.unit}".rstrip()


@dataclass(frozen=True)
class Verdict:
    """What became of a claim under one profile, data source and set of seeds.

    Attributes:
        claim: the claim.
        outcome: `undecided`, `reproduced`, `not reproduced`, `held there` or `did not hold there`.
        observed: the statistic, or None where its values were not asked for.
        standard_error: of a mean difference over the seeds (Welch), or None.
        seeds: how many seeds.
        profile, data_name: where the values come from.
        why: why it is undecided, else empty.
    """

    claim: Claim
    outcome: str
    observed: float | None
    standard_error: float | None
    seeds: int
    profile: str
    data_name: str
    why: str = ""

    def observation(self, digits: int = 3) -> str:
        """The observed statistic with its standard error, rounded, or `not computed`."""
        if self.observed is None:
            return "not computed"
        text = f"{self.observed:.{digits}f}"
        if self.standard_error is not None:
            text += f" ± {self.standard_error:.{digits}f} (s.e.)"
        return f"{text} {self.claim.unit}".rstrip()

    def text(self) -> str:
        """The verdict in words, always naming profile, data and seeds."""
        why = f": {self.why}" if self.why else ""
        where = f"{self.profile} profile, {self.data_name} data, {_seeds(self.seeds)}"
        return f"{self.outcome}{why} ({where})"


def read_claims(paper: str | None = None, artefact: str | None = None) -> list[Claim]:
    """Read the claims, all or those of one paper and artefact.

    Raises:
        ValueError: a row is malformed, or nothing matches.
    """
    claims = []
    for path in sorted(CLAIMS.glob("*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            claims += [_parse(path.name, row) for row in csv.DictReader(file)]
    wanted = [
        claim for claim in claims if paper in (None, claim.paper) and artefact in (None, claim.artefact)
    ]
    if not wanted:
        known = sorted({f"{claim.paper}, {claim.artefact}" for claim in claims})
        raise ValueError(f"no claim of {paper}, {artefact}; there are: {'; '.join(known)}")
    return wanted


def verdict(
    claim: Claim,
    values: Mapping[str, object],
    seeds: Sequence[int],
    profile: str,
    data_name: str,
) -> Verdict:
    """Judge one claim.

    Args:
        claim: the claim.
        values: for each method an array (seeds, cells), or (cells,) for a method without seeds.
            All methods' cells are the same, in the same order. A method that was not asked for may
            be absent: a claim that names it is undecided.
        seeds: the seeds, in the order of the arrays' first axis.
        profile: the profile's name.
        data_name: what it was trained and tested on, named as `Claim.own_data` is.

    Raises:
        ValueError: an array's shape does not fit, or it holds a value that is not finite.
    """
    count = len(set(seeds))
    if count != len(seeds):
        raise ValueError(f"seeds {list(seeds)} hold one twice; give each once")
    observed = error = None
    methods = (*claim.a, *claim.b)
    absent = [key for key in methods if key not in values]
    if not absent:
        arrays = {key: _seeds_by_cells(key, values[key], count) for key in methods}
        if len({array.shape[1] for array in arrays.values()}) > 1:
            shapes = ", ".join(f"{key} {array.shape[1]}" for key, array in arrays.items())
            raise ValueError(f"claim {claim.id}: methods differ in their number of cells: {shapes}")
        observed, error = _statistic(
            claim, [arrays[key] for key in claim.a], [arrays[key] for key in claim.b]
        )
    why = ""
    if absent:
        outcome, why = "undecided", f"no values of {', '.join(absent)}"
    elif count < claim.fewest_seeds:
        outcome, why = "undecided", f"needs {_seeds(claim.fewest_seeds)}"
    else:
        _, condition = DIRECTIONS[claim.direction]
        own = profile == "paper" and data_name == claim.own_data
        outcomes = ("not reproduced", "reproduced") if own else ("did not hold there", "held there")
        outcome = outcomes[condition(observed, claim.margin)]
    return Verdict(claim, outcome, observed, error, count, profile, data_name, why)


def verdict_table(verdicts: Sequence[Verdict]) -> pd.DataFrame:
    """The verdicts as a table, one row a claim."""
    rows = [
        {**vars(v), **vars(v.claim), "claim": v.claim.id, "needed": v.claim.needed()} for v in verdicts
    ]
    table = pd.DataFrame(rows).rename(columns={"outcome": "verdict", "data_name": "data"})
    return table[TABLE].astype({"observed": "float64", "standard_error": "float64"})


def show_verdicts(verdicts: Sequence[Verdict], width: int = 100) -> None:
    """Print each claim, what counts against it, what was observed and the verdict, as plain text."""
    for number, v in enumerate(verdicts):
        if number:
            print()
        for lead, text in (
            ("Claim: ", v.claim.sentence),
            ("   against it: ", v.claim.counts_against),
            ("   observed:   ", f"{v.observation()}; to hold: {v.claim.needed()}"),
            ("   verdict:    ", v.text()),
        ):
            wrap = textwrap.TextWrapper(width, lead, " " * len(lead), break_on_hyphens=False)
            print(wrap.fill(text))


def _seeds(count: int) -> str:
    return f"{count} seed{'' if count == 1 else 's'}"


def _parse(file: str, row: dict[str, str]) -> Claim:
    where = f"{file}: row {row.get('id')!r}"
    names = [field.name for field in fields(Claim)]
    if set(row) != set(names) or None in row.values():
        raise ValueError(f"{where} does not have the columns {names}")
    methods = {name: tuple(filter(None, row[name].split(";"))) for name in ("a", "b")}
    try:
        numbers = {"margin": float(row["margin"]), "fewest_seeds": int(row["fewest_seeds"])}
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error
    claim = Claim(**{**row, **methods, **numbers})
    wrong = ""
    if claim.statistic not in (*PAIRED, *SINGLE) and not claim.statistic.startswith(COUNT_BELOW):
        wrong = f"unknown statistic {claim.statistic!r}"
    elif claim.direction not in DIRECTIONS or claim.better not in ("lower", "higher"):
        wrong = "unknown direction or sense of better"
    elif not claim.a or bool(claim.b) != (claim.statistic in PAIRED):
        wrong = "a or b does not fit the statistic"
    elif claim.margin < 0 or claim.fewest_seeds < 1:
        wrong = "margin below 0 or fewest_seeds below 1"
    if wrong:
        raise ValueError(f"{where}: {wrong}")
    return claim


def _seeds_by_cells(key: str, values: object, seeds: int) -> np.ndarray:
    array = np.asarray(values, dtype=np.float64)
    array = array[None, :] if array.ndim == 1 else array
    if array.ndim != 2 or array.shape[0] not in (1, seeds) or array.size == 0:
        raise ValueError(
            f"values of {key} have shape {np.shape(values)}; give (seeds, cells) with {seeds} "
            "seeds, or (cells,) for a method without seeds"
        )
    if not np.isfinite(array).all():
        raise ValueError(f"values of {key} hold one that is not finite")
    return array


def _statistic(
    claim: Claim, first: list[np.ndarray], second: list[np.ndarray]
) -> tuple[float, float | None]:
    """The claim's statistic of the arrays of `a` and of `b`, and its standard error where it has one."""
    worst = max if claim.direction in ("less", "at_most") else min
    if claim.statistic in SINGLE:
        every = np.concatenate([array.ravel() for array in first])
        return float(every.min() if claim.statistic == "minimum" else every.max()), None
    if claim.statistic == "mean_difference":
        gaps = [difference(a.mean(axis=1), b.mean(axis=1)) for a, b in product(first, second)]
        return worst(gaps, key=lambda gap: gap[0])
    first, second = ([array.mean(axis=0) for array in arrays] for arrays in (first, second))
    pairs = list(product(first, second))
    if claim.statistic.startswith(COUNT_BELOW):
        level = float(claim.statistic.removeprefix(COUNT_BELOW))
        found = worst((a < level).sum() for a in first)
    elif claim.statistic == "share_better":
        sign = 1.0 if claim.better == "lower" else -1.0
        rival = np.min([sign * b for b in second], axis=0)
        found = worst((sign * a < rival).mean() for a in first)
    elif claim.statistic == "each_difference":
        found = worst(worst(a - b) for a, b in pairs)
    else:
        found = worst(((b - a) / b * 100).max() for a, b in pairs)
    return float(found), None
