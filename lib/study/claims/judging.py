"""The rule that turns values into a verdict, and whether runs of a size and data may say it.

Each claim names a statistic of the methods' values, over seeds and cells, a cell being a column of the
table or a point of the figure:

- `mean_difference`: mean over the cells of `a` minus that of `b`.
- `each_difference`, `most_difference`, `any_difference`: `a` minus `b` in each cell, in more than half
  of them, or in one.
- `sum_difference`: the sum of the means of all `a` minus that of all `b`, e.g. of a difference of
  differences.
- `deviation_ratio`: the standard deviation over seeds of `a` over that of `b`.
- `minimum`, `maximum`: over all seeds and cells of `a`.

**Ratios.** FPR95 spreads over seeds in proportion to itself: in points the deviations of eight methods
differ six times (Bartlett, p = 0.003), of their logarithms they do not (p = 0.53). Where a claim's unit
is `ratio`, the difference is therefore one of logarithms, and what is shown is exp of it: the geometric
mean over seeds and cells of `a` over `b`. The difference of the means in points stands beside it.
Average precision is compared in points, and so are standard deviations, since papers print these.

**Margins.** Of FPR95 the margin is 0.02 points in the papers' own tables: what 50 000 non-matching pairs
a set leave open at an FPR95 near 1.5%, over six columns. All such margins were converted to ratios at
once, before runs on real scenes were read, by one rule: 0.02 points is 1.5 / (1.5 - 0.02) = 1.0135, and
p percent is 1 + p / 100. Of mean average precision 0.02 points are twice what rounding to two digits
leaves open in a difference. A margin never decides alone: a difference has to be on one side with it and
without it, and any other statistic by more than a hundredth.

**Several comparisons.** Where `a` or `b` names several methods, or the statistic is of each cell, each
pairing and cell is a comparison with an interval of its own (`lib.statistics.intervals`). It is for the
claim where its 95% interval lies wholly on the claim's side: below the bound (`less`), above it
(`greater`), at least or at most there, or between two (`within`). It is against the claim where it lies
wholly on the other side, of intervals that hold together in 95% (Bonferroni: whether the least of
several p is rejected is the same by Holm's correction). A cell is for the claim where all its pairings
are, and against it where one is. The claim *held* where as many cells as it needs are for it, *did not
hold* where too many are against it, and is *open* otherwise. Where not all cells are needed, those for
it too have intervals that hold together. The verdict shows the comparison that decides. Minima and
maxima are about the very runs, and are judged as they are, or, with resamples, by the intervals of each
run's cells.

**Few seeds.** Three ratios or more of methods with the same two to four seeds have one pooled residual.

The share of a gain, or a gain compared with another, says nothing where there is none: such a claim
names what is `given`, a method that has to be significantly better than another, and else is
*not judged*.

A claim is *not judged* either where no run can decide it, where its methods have no values, where a test
has too few false positives, and where runs are short: `quick` shows numbers, not verdicts. What is
computed without training is judged at any size. A finding is shown, and is no claim.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd

from lib.statistics import intervals
from lib.statistics.intervals import CONFIDENCE, Estimate, Measured, SpreadRatio
from lib.study.claims.rows import FINDING, SINGLE, Claim, printed_values
from lib.study.open import Study
from lib.study.report.phototour import own_columns

HELD, NOT_HELD, OPEN, NOT_JUDGED = "held", "did not hold", "open", "not judged"
# From as many seeds on two methods' own spread is known well enough.
OWN_SPREAD = 5
# The profiles whose runs are long enough to judge a claim by.
JUDGING = ("evening", "standard", "paper")
# Outcomes with the profile `paper` on the paper's own data.
ON_OWN_DATA = {HELD: "reproduced", NOT_HELD: "not reproduced"}
# In a test set with fewer a method's rate is mostly chance of the non-matching pairs.
FEWEST_FALSE_POSITIVES = 200
TABLE = [
    *("claim", "paper", "artefact", "sentence", "kind", "needed", "observed", "low", "high", "points"),
    *("over", "printed", "rival", "unit", "profile", "data", "seeds", "part", "verdict", "why", "seen"),
]
NUMBERS = ("observed", "low", "high", "points", "printed")
# By method's key a `Measured`, an array, or a text that says why there are no values.
Values = Mapping[str, Measured | np.ndarray | str]


class Comparison(NamedTuple):
    """The estimate of one pairing, in one cell or, None, over all."""

    estimate: Estimate | SpreadRatio
    a: str = ""
    b: str = ""
    cell: int | None = None


def judge(
    claims: Sequence[Claim],
    values: Values | Callable[[Claim], Values],
    study: Study,
    seeds: Sequence[int] | None = None,
    computed: Mapping[str, np.ndarray] = {},
) -> pd.DataFrame:
    """Judge claims by the values of one study.

        claims = read_claims("dsm", "Table 1")
        table = judge(claims, lambda claim: values_of(claim, runs, study.setting.source.sets), study)

    Args:
        claims: e.g. of `lib.study.claims.read_claims`.
        values: by method's key as `verdict` takes them, or a function that gives them for a claim, such
            as `lib.study.claims.measured.values_of`, which is not called where no run can decide.
        study: whose profile, data and seeds the values are of.
        seeds: of the runs, by default those of a table. None, `()`, where values without seeds are of a
            computation.
        computed: in place of `values`, by key those of a computation without seeds.

    Returns:
        One row a claim, of `verdict`.

    Raises:
        ValueError: values do not fit.
    """
    seeds, rows = study.table_seeds if seeds is None else seeds, []
    for claim in claims:
        own, own_seeds = (computed, ()) if computed.keys() & claim.a else (values, seeds)
        own = own if not callable(own) else {} if claim.why else own(claim)
        data_name = study.data_name(claim.on_hpatches)
        rows.append(verdict(claim, own, own_seeds, study.setting.profile.name, data_name))
    table = pd.DataFrame(rows, columns=TABLE).astype(dict.fromkeys(NUMBERS, "float64"))
    # What stands in for a real set bears its own name.
    return table.replace({"rival": own_columns(study.setting.source.tested)}, regex=True)


def verdict(
    claim: Claim, values: Values, seeds: Sequence[int], profile: str, data_name: str
) -> dict[str, object]:
    """Judge one claim.

    Args:
        claim: the claim.
        values: for each method a `Measured`, or an array (seeds, cells), or (cells,) for a method
            without seeds. All methods' cells are the same, in the same order. A method that was not
            asked for may be absent, or be a text that says why it has no values: a claim that names it
            is not judged.
        seeds: of the runs. None of a computation: values without seeds are then taken as computed.
        profile: the profile's name.
        data_name: what it was trained and tested on, named as `Claim.own_data` is.

    Returns:
        By the columns of `TABLE`: what `Claim` says, the condition that is `needed`, and

        - `verdict`: `held`, `did not hold`, `open` or `not judged`; with the profile `paper` on the
          paper's own data `reproduced` or `not reproduced`.
        - `seeds`: how many; 0 of what was computed without any.
        - `observed`: the statistic of the comparison that decides, in the claim's unit, with its
          interval `low` to `high`, as far as there are any. Of a ratio, `points` is the difference of
          the means.
        - `over`: what the interval is over: seeds, tests (their points or sequences) or what else was
          drawn, or both. Verification on HPatches is over pairs of all sequences, so over seeds alone.
        - `rival`: the method and, where it matters, the cell that decides.
        - `printed`: the same statistic of the values that the paper prints.
        - `part`: how many of the cells that the paper prints count, e.g. `2 of 6 columns`; empty where
          all.
        - `why`: why it is open or not judged, and what its interval is one of.

    Raises:
        ValueError: a shape does not fit, or a value is not finite.
    """
    row = vars(claim) | dict.fromkeys(NUMBERS) | dict.fromkeys(("over", "rival", "part"), "")
    row |= {"claim": claim.id, "needed": claim.needed(), "profile": profile, "data": data_name}
    named = dict.fromkeys((*claim.a, *claim.b, *claim.given))
    values = {key: values.get(key, f"no values of {key}") for key in named}
    reasons = [value for value in values.values() if isinstance(value, str)]
    if why := claim.why or "; ".join(reasons):
        return row | {"seeds": len(seeds), "verdict": NOT_JUDGED, "why": why}
    methods = {key: v if isinstance(v, Measured) else Measured(v) for key, v in values.items()}
    if len(counts := {method.values.shape[-1] for method in methods.values()}) > 1:
        raise ValueError(f"claim {claim.id}: methods differ in their numbers of cells, {counts}")
    # Of the non-matching pairs, where they are known, enough have to count as matches.
    matched = [np.atleast_2d(m.values).mean(axis=0) / 100 * m.pairs for m in methods.values() if m.pairs]
    fewest_matched = np.min([np.full(counts.pop(), math.inf), *matched], axis=0)
    enough = np.flatnonzero(fewest_matched >= FEWEST_FALSE_POSITIVES).tolist()
    if enough:
        methods = {key: method.of_cells(enough) for key, method in methods.items()}
    trained = [len(method.values) for method in methods.values() if method.values.ndim == 2]
    fewest = min(trained, default=len(seeds))
    row |= _by_rule(claim, methods) | {"seeds": fewest}
    # Of a claim whose metric is one of the printed tasks that one is all.
    printed = printed_values(claim, claim.a[0], (claim.metric,))
    if printed is not None and len(enough) < len(printed):
        cells = "tasks" if claim.on_hpatches else "columns"
        row["part"] = f"{len(enough)} of {len(printed)} {cells}"
    if fewest and profile not in JUDGING:
        row |= {"verdict": NOT_JUDGED, "why": f"{profile} shows numbers, not verdicts"}
    elif claim.kind == FINDING and row["verdict"] != NOT_JUDGED:
        row |= {"verdict": NOT_JUDGED, "why": "a finding: no sentence of the paper says it"}
    elif not enough:
        few = f"fewer than {FEWEST_FALSE_POSITIVES} false positives are expected"
        row |= {"verdict": NOT_JUDGED, "why": f"{few}; average precision decides"}
    elif profile == "paper" and data_name == claim.own_data:
        row["verdict"] = ON_OWN_DATA.get(row["verdict"], row["verdict"])
    return row


def wrong_by_chance(table: pd.DataFrame) -> str:
    """A sentence on how many verdicts may be wrong by chance alone.

    Args:
        table: of `judge`; minima and computations, which have no interval, are left out.
    """
    decided = table["verdict"].isin([HELD, NOT_HELD, *ON_OWN_DATA.values()]) & table["low"].notna()
    count = int(decided.sum())
    return (
        f"A {CONFIDENCE:.0%} interval decides {count} comparisons; by chance about "
        f"{(1 - CONFIDENCE) * count:.1f} are expected to be wrong."
    )


def _by_rule(claim: Claim, methods: Mapping[str, Measured]) -> dict[str, object]:
    """What methods' values say of a claim that has a rule, whatever runs they come from: by the columns
    of `TABLE` as far as there are any."""
    labels = {key: method.label or key for key, method in methods.items()}
    if claim.given:
        better, worse = claim.given
        pair = replace(claim, statistic="mean_difference", a=(worse,), b=(better,))
        low, high = comparisons(pair, methods)[0].estimate.limits()
        if low <= 0 if claim.better == "lower" else high >= 0:
            why = (
                f"no significant gain: {labels[better]} is not significantly better than {labels[worse]}"
            )
            return {"verdict": NOT_JUDGED, "why": why}
    compared = comparisons(claim, methods)
    side, decides, confidence = _deciding(claim, compared)
    estimate, (low, high) = decides.estimate, decides.estimate.limits(confidence)
    reasons = []
    if math.isinf(high):
        reasons.append("one seed gives no interval")
    elif confidence != CONFIDENCE and low < high:
        reasons.append(f"one of {len(compared)} intervals that hold together")
    if side == 0 and _side(claim, low, high, [claim.bound]):
        reasons.append("the margin alone would decide")
    cells, units = methods[claim.a[0]].cells, methods[claim.a[0]].units
    rival = [labels[decides.b]] if decides.b else []
    rival += [f"of {labels[decides.a]}"] if decides.b and len(claim.a) > 1 else []
    rival += [f"in {cells[decides.cell]}"] if cells and decides.cell is not None else []
    over = {"seeds": estimate.over_seeds, units: estimate.over_units}
    in_points = comparisons(replace(claim, unit="points"), methods) if claim.is_ratio else []
    numbers = {
        "observed": None if math.isnan(estimate.value) else estimate.value,
        "printed": _printed(claim, decides, cells),
        **({"low": low, "high": high} if low < high < math.inf else {}),
    }
    return {name: claim.shown(number) for name, number in numbers.items()} | {
        "verdict": {1: HELD, 0: OPEN, -1: NOT_HELD}[side],
        "points": in_points[compared.index(decides)].estimate.value if in_points else None,
        "over": " and ".join(name for name, error in over.items() if error),
        "rival": " ".join(rival),
        "why": "; ".join(reasons),
    }


def _deciding(claim: Claim, compared: Sequence[Comparison]) -> tuple[int, Comparison, float]:
    """The comparison that decides: 1 where it is for the claim, -1 against it, 0 if open; it; and the
    confidence of the interval to show, which holds the bound of what is open."""
    cells = dict.fromkeys(comparison.cell for comparison in compared)
    needed = {"any_difference": 1, "most_difference": len(cells) // 2 + 1}.get(
        claim.statistic, len(cells)
    )
    # Several intervals hold together (Bonferroni).
    for_it = 1 - (1 - CONFIDENCE) / (len(cells) if needed < len(cells) else 1)
    together = len(compared) if needed > 1 else len(compared) // len(cells)
    against_it = 1 - (1 - CONFIDENCE) / together

    def standing(comparison: Comparison) -> tuple[int, float, float]:
        """Its side, how far it is from the contrary, and its value: larger is better for the claim."""
        estimate = comparison.estimate
        held = _side(claim, *estimate.limits(for_it)) > 0
        lost = _side(claim, *estimate.limits(against_it)) < 0
        end, value = (_oriented(claim, *ends)[1] for ends in (estimate.limits(), [estimate.value] * 2))
        return held - lost, -end, -value

    of_cells = [min((c for c in compared if c.cell == cell), key=standing) for cell in cells]
    decides = sorted(of_cells, key=standing, reverse=True)[needed - 1]
    alone = _side(claim, *decides.estimate.limits())
    return standing(decides)[0], decides, {1: for_it, 0: CONFIDENCE, -1: against_it}[alone]


def comparisons(claim: Claim, methods: Mapping[str, Measured]) -> list[Comparison]:
    """All that a claim compares, of logarithms where it is about a ratio; by pairing, then by cell."""
    named = {key: methods[key] for key in (*claim.a, *claim.b)}
    if claim.is_ratio:
        named = {key: method.logarithm() for key, method in named.items()}
    cells, pairs = range(methods[claim.a[0]].values.shape[-1]), list(product(claim.a, claim.b))
    if claim.statistic in SINGLE:
        return [
            Comparison(intervals.contrast([(1.0, run.one(cell))]), key, cell=cell)
            for key, method in named.items()
            for run in method.runs()
            for cell in cells
        ]
    # Of few seeds all methods together tell more of the residual than two.
    trained = [method for method in named.values() if method.values.ndim == 2]
    alike = len(trained) > 2 and len({method.seeds for method in trained}) == 1
    few = claim.is_ratio and alike and 2 <= len(trained[0].values) < OWN_SPREAD
    pooled = intervals.residual(trained) if few else None
    match claim.statistic:
        case "sum_difference":
            terms = [(claim.a.count(key) - claim.b.count(key), own) for key, own in named.items()]
            return [Comparison(intervals.contrast(terms, pooled))]
        case "deviation_ratio":
            return [Comparison(intervals.spread_ratio(named[a], named[b]), a, b) for a, b in pairs]
        case "mean_difference":
            return [Comparison(intervals.difference(named[a], named[b], pooled), a, b) for a, b in pairs]
    return [
        Comparison(intervals.difference(named[a].one(cell), named[b].one(cell)), a, b, cell)
        for a, b in pairs
        for cell in cells
    ]


def _printed(claim: Claim, decides: Comparison, cells: Sequence[str]) -> float | None:
    """The claim's statistic of the paper's printed values, of the pairing and cell that decide, if these
    are there."""
    if decides.b:
        claim = replace(claim, a=(decides.a,), b=(decides.b,))
    values = {key: printed_values(claim, key, cells) for key in (*claim.a, *claim.b)}
    if any(numbers is None for numbers in values.values()):
        return None
    if claim.statistic == "deviation_ratio":
        return math.sqrt((values[decides.a] ** 2).mean() / (values[decides.b] ** 2).mean())
    compared = comparisons(claim, {key: Measured(numbers) for key, numbers in values.items()})
    if claim.statistic == "any_difference":
        return _deciding(claim, compared)[1].estimate.value
    cell = decides.cell or 0
    return compared[cell].estimate.value if cell < len(compared) else None


def _side(claim: Claim, low: float, high: float, bounds: Sequence[float] = ()) -> int:
    """1 where an interval lies wholly on the claim's side of all bounds, by default the claim's own, -1
    where it lies on the other, else 0."""
    # A count that is just the bound is decided by it.
    bounds = bounds or ([claim.bound] if low == high == claim.bound else claim.bounds)
    (low, high), ends = _oriented(claim, low, high), [_oriented(claim, end, end)[1] for end in bounds]
    if claim.direction in ("less", "greater"):
        return int(high < min(ends)) - int(low >= max(ends))
    return int(high <= min(ends)) - int(low > max(ends))


def _oriented(claim: Claim, low: float, high: float) -> tuple[float, float]:
    """The ends of an interval so that less is better for the claim; of `within` the distances from 0."""
    if claim.direction == "within":
        return max(low, -high, 0.0), max(-low, high)
    return (-high, -low) if claim.direction in ("greater", "at_least") else (low, high)
