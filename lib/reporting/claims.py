"""The papers' claims, fixed beforehand in `claims.csv`, and the rule that judges them.

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

from __future__ import annotations

import csv
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

CLAIMS = Path(__file__).parent / "claims.csv"
DIRECTIONS = ("less", "greater", "at_least", "at_most")
PAIRED = ("mean_difference", "each_difference", "share_better", "largest_relative_gain")
SINGLE = ("minimum", "maximum")
COUNT_BELOW = "count_below_"


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
        own_data: the name of the data on which the paper makes the claim.
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
        """Return the condition on the statistic in words, e.g. `below -0.02 points`."""
        wording = {
            "less": ("below", -self.margin if self.margin else 0.0),
            "greater": ("above", self.margin),
            "at_least": ("at least", self.margin),
            "at_most": ("at most", self.margin),
        }
        words, bound = wording[self.direction]
        return f"{words} {bound:g} {self.unit}".rstrip()


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

    def where(self) -> str:
        """Return profile, data and number of seeds in one phrase."""
        plural = "" if self.seeds == 1 else "s"
        return f"{self.profile} profile, {self.data_name} data, {self.seeds} seed{plural}"

    def observation(self, digits: int = 3) -> str:
        """Return the observed statistic with its standard error, rounded, or `not computed`."""
        if self.observed is None:
            return "not computed"
        text = f"{self.observed:.{digits}f}"
        if self.standard_error is not None:
            text += f" ± {self.standard_error:.{digits}f} (s.e.)"
        return f"{text} {self.claim.unit}".rstrip()

    def text(self) -> str:
        """Return the verdict in words, always naming profile, data and seeds."""
        if self.why:
            return f"{self.outcome}: {self.why} ({self.where()})"
        return f"{self.outcome} ({self.where()})"


def read_claims(paper: str | None = None, artefact: str | None = None) -> list[Claim]:
    """Read the claims, all or those of one paper and artefact.

    Raises:
        ValueError: a row is malformed, or nothing matches.
    """
    with CLAIMS.open(encoding="utf-8", newline="") as file:
        claims = [_parse(row) for row in csv.DictReader(file)]
    wanted = [
        claim
        for claim in claims
        if (paper is None or claim.paper == paper) and (artefact is None or claim.artefact == artefact)
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
        data_name: the data source's name; `ubc` is PhotoTour, and `ubc+hpatches` says that it
            was trained there and tested on HPatches.

    Raises:
        ValueError: an array's shape does not fit, or it holds a value that is not finite.
    """
    count = len(set(seeds))
    if count != len(seeds):
        raise ValueError(f"seeds {list(seeds)} hold one twice; give each once")

    def judged(outcome: str, observed: float | None, error: float | None, why: str = "") -> Verdict:
        return Verdict(claim, outcome, observed, error, count, profile, data_name, why)

    absent = [key for key in (*claim.a, *claim.b) if key not in values]
    if absent:
        return judged("undecided", None, None, f"no values of {', '.join(absent)}")
    arrays = {key: _seeds_by_cells(key, values[key], count) for key in (*claim.a, *claim.b)}
    if len({array.shape[1] for array in arrays.values()}) > 1:
        shapes = ", ".join(f"{key} {array.shape[1]}" for key, array in arrays.items())
        raise ValueError(f"claim {claim.id}: methods differ in their number of cells: {shapes}")
    observed, error = _statistic(claim, arrays)
    if count < claim.fewest_seeds:
        plural = "" if claim.fewest_seeds == 1 else "s"
        why = f"needs {claim.fewest_seeds} seed{plural}"
        return judged("undecided", observed, error, why)
    holds = _holds(claim, observed)
    if profile == "paper" and data_name == claim.own_data:
        return judged("reproduced" if holds else "not reproduced", observed, error)
    return judged("held there" if holds else "did not hold there", observed, error)


def verdict_table(verdicts: Sequence[Verdict]) -> pd.DataFrame:
    """Return the verdicts as a table, one row a claim, ready for `tables.save_table`."""
    rows = [
        {
            "claim": v.claim.id,
            "paper": v.claim.paper,
            "artefact": v.claim.artefact,
            "sentence": v.claim.sentence,
            "needed": v.claim.needed(),
            "observed": v.observed,
            "standard_error": v.standard_error,
            "unit": v.claim.unit,
            "profile": v.profile,
            "data": v.data_name,
            "seeds": v.seeds,
            "verdict": v.outcome,
            "why": v.why,
        }
        for v in verdicts
    ]
    return pd.DataFrame(rows).astype({"observed": "float64", "standard_error": "float64"})


def show_verdicts(verdicts: Sequence[Verdict], width: int = 100) -> None:
    """Print each claim, what counts against it, what was observed and the verdict, as plain text."""
    for number, v in enumerate(verdicts):
        if number:
            print()
        print(_wrapped("Claim: ", v.claim.sentence, width))
        for name, text in (
            ("against it", v.claim.counts_against),
            ("observed", f"{v.observation()}; to hold: {v.claim.needed()}"),
            ("verdict", v.text()),
        ):
            print(_wrapped(f"   {name + ':':<12}", text, width))


def _wrapped(lead: str, text: str, width: int) -> str:
    indent = " " * len(lead)
    return textwrap.fill(
        text, width, initial_indent=lead, subsequent_indent=indent, break_on_hyphens=False
    )


def _parse(row: dict[str, str]) -> Claim:
    names = [field.name for field in fields(Claim)]
    if set(row) != set(names) or None in row.values():
        raise ValueError(f"claims.csv: row {row.get('id')!r} does not have the columns {names}")
    try:
        claim = Claim(
            **{
                **row,
                "a": tuple(filter(None, row["a"].split(";"))),
                "b": tuple(filter(None, row["b"].split(";"))),
                "margin": float(row["margin"]),
                "fewest_seeds": int(row["fewest_seeds"]),
            }
        )
    except ValueError as error:
        raise ValueError(f"claims.csv: row {row['id']!r}: {error}") from error
    known = claim.statistic in (*PAIRED, *SINGLE) or claim.statistic.startswith(COUNT_BELOW)
    if not known:
        raise ValueError(f"claims.csv: row {claim.id!r}: unknown statistic {claim.statistic!r}")
    if claim.direction not in DIRECTIONS or claim.better not in ("lower", "higher"):
        raise ValueError(f"claims.csv: row {claim.id!r}: unknown direction or sense of better")
    if not claim.a or bool(claim.b) != (claim.statistic in PAIRED):
        raise ValueError(f"claims.csv: row {claim.id!r}: a or b does not fit the statistic")
    if claim.margin < 0 or claim.fewest_seeds < 1:
        raise ValueError(f"claims.csv: row {claim.id!r}: margin below 0 or fewest_seeds below 1")
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


def _statistic(claim: Claim, arrays: Mapping[str, np.ndarray]) -> tuple[float, float | None]:
    first = [arrays[key] for key in claim.a]
    second = [arrays[key] for key in claim.b]
    worst = max if claim.direction in ("less", "at_most") else min
    if claim.statistic == "minimum":
        return float(min(array.min() for array in first)), None
    if claim.statistic == "maximum":
        return float(max(array.max() for array in first)), None
    if claim.statistic.startswith(COUNT_BELOW):
        level = float(claim.statistic.removeprefix(COUNT_BELOW))
        return float(worst((a.mean(axis=0) < level).sum() for a in first)), None
    if claim.statistic == "share_better":
        sign = 1.0 if claim.better == "lower" else -1.0
        best_rival = np.min([sign * b.mean(axis=0) for b in second], axis=0)
        return float(worst((sign * a.mean(axis=0) < best_rival).mean() for a in first)), None
    pairs = list(product(first, second))
    if claim.statistic == "mean_difference":
        return worst(((_mean_gap(a, b)) for a, b in pairs), key=lambda pair: pair[0])
    cells = [(a.mean(axis=0), b.mean(axis=0)) for a, b in pairs]
    if claim.statistic == "each_difference":
        return float(worst(worst(a - b) for a, b in cells)), None
    return float(worst(((b - a) / b * 100).max() for a, b in cells)), None


def _mean_gap(a: np.ndarray, b: np.ndarray) -> tuple[float, float | None]:
    """Difference of the means over seeds and cells, with Welch's standard error over seeds."""
    by_seed = [array.mean(axis=1) for array in (a, b)]
    gap = float(by_seed[0].mean() - by_seed[1].mean())
    seeded = [means for means in by_seed if len(means) > 1]
    if not seeded:
        return gap, None
    return gap, float(np.sqrt(sum(means.var(ddof=1) / len(means) for means in seeded)))


def _holds(claim: Claim, observed: float) -> bool:
    return {
        "less": observed < -claim.margin,
        "greater": observed > claim.margin,
        "at_least": observed >= claim.margin,
        "at_most": observed <= claim.margin,
    }[claim.direction]
