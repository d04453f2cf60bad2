"""The rule that turns values into a verdict.

Each claim names a statistic of the methods' values, over seeds and cells, a cell being a column of the
table or a point of the figure:

- `mean_difference`: mean over the cells of `a` minus that of `b`.
- `each_difference`: `a` minus `b` in each cell.
- `relative_difference`: of the means over the cells (a - b) / b, in percent.
- `sum_difference`: the sum of the means of all `a` minus that of all `b`, e.g. of a difference of
  differences.
- `largest_relative_gain`: the greatest (b - a) / b over the cells, in percent.
- `deviation_ratio`: the standard deviation over seeds of `a` over that of `b`.
- `share_better`: share of the cells in which `a` is better than every `b`.
- `minimum`, `maximum`: over all seeds and cells of `a`.
- `count_below_X`: number of cells of `a` below X.

Where `a` or `b` names several methods, or the statistic is of each cell, each pairing and cell is a
comparison with an interval of its own (`lib.statistics.intervals`), and the claim is that all of
them are on its side of the margin: below -margin (`less`), above margin (`greater`), at least or at
most margin, or between -margin and margin (`within`). It *held* where all 95% intervals lie there
wholly; it *did not hold* where one lies wholly on the other side, of intervals that hold together in
95% (Bonferroni). Else it is *open*. Of a largest gain the two are exchanged: one comparison is enough.
A share lies between the cells whose intervals say better, and all but those whose say not, of intervals
that hold together. The verdict shows the comparison that decides. Minima, maxima and counts are about
the very runs, and are judged as they are, or, with resamples, by the intervals of each run's cells.

The share of a gain, or a gain compared with another, says nothing where there is none: such a claim
names what is `given`, a method that has to be surely better than another, and else is *not judged*.

The margin of 0.02 points of mean FPR95 is what test pairs leave open in the paper's own tables (50 000
non-matching pairs a set, FPR95 near 1.5%, six columns). It stands where FPR95 is higher, since a claim
that one is lower needs a sure difference whatever the margin, and intervals hold what fewer pairs leave
open; where two are to be the same the margin is relative. That of 0.02 points of mean average precision
is what rounding leaves open: Table 2 prints two digits, so that of a difference of two values at most
0.01 points are rounding, and it is that twice.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from lib.statistics import intervals
from lib.statistics.intervals import CONFIDENCE, Estimate, Measured, SpreadRatio
from lib.study.claims.rows import COUNT_BELOW, SINGLE, Claim, printed_values

HELD, NOT_HELD, OPEN, NOT_JUDGED = "held", "did not hold", "open", "not judged"


def judged(claim: Claim, methods: Mapping[str, Measured]) -> dict[str, object]:
    """What the values of methods say of a claim, whatever runs they come from.

    Args:
        claim: one that has a rule.
        methods: by key at least those that the claim names, all with the same cells.

    Returns:
        `outcome` and, as far as there are any, the fields `observed`, `low`, `high`, `over`, `rival`,
        `printed` and `why` of `lib.study.claims.verdicts.Verdict`.
    """
    if claim.given:
        better, worse = claim.given
        gain = _difference(methods[better], methods[worse], -1.0 if claim.better == "lower" else 1.0)
        low, high = gain.limits()
        if not low > 0:
            pair = f"{_label(methods, better)} gains {gain.value:.3g} on {_label(methods, worse)}"
            return {"outcome": NOT_JUDGED, "why": f"no sure gain: {pair} ({low:.3g} to {high:.3g})"}
    return (_judged_share if claim.statistic == "share_better" else _judged)(claim, methods)


@dataclass(frozen=True)
class _Comparison:
    """The estimate of one pairing, in one cell or, None, over all."""

    estimate: Estimate | SpreadRatio
    a: str = ""
    b: str = ""
    cell: int | None = None


def _comparisons(claim: Claim, methods: Mapping[str, Measured]) -> list[_Comparison]:
    if claim.statistic.startswith(COUNT_BELOW):
        level = float(claim.statistic.removeprefix(COUNT_BELOW))
        means = {key: np.atleast_2d(methods[key].values).mean(axis=0) for key in claim.a}
        return [_Comparison(Estimate(float((mean < level).sum())), key) for key, mean in means.items()]
    if claim.statistic in SINGLE:
        return [
            _Comparison(intervals.contrast([(1.0, run.one(cell))]), key, cell=cell)
            for key in claim.a
            for run in methods[key].runs()
            for cell in range(len(run.values))
        ]
    if claim.statistic == "sum_difference":
        terms = [(sign, methods[key]) for sign, keys in ((1, claim.a), (-1, claim.b)) for key in keys]
        return [_Comparison(intervals.contrast(terms))]
    estimate, in_each_cell = {
        "mean_difference": (_difference, False),
        "each_difference": (_difference, True),
        "relative_difference": (intervals.relative_difference, False),
        "largest_relative_gain": (intervals.relative_gain, True),
        "deviation_ratio": (intervals.spread_ratio, False),
    }[claim.statistic]
    pairs = [(a, b, methods[a], methods[b]) for a, b in product(claim.a, claim.b)]
    if not in_each_cell:
        return [_Comparison(estimate(one, other), a, b) for a, b, one, other in pairs]
    return [
        _Comparison(estimate(one.one(cell), other.one(cell)), a, b, cell)
        for a, b, one, other in pairs
        for cell in range(one.values.shape[-1])
    ]


def _judged(claim: Claim, methods: Mapping[str, Measured]) -> dict[str, object]:
    """What all comparisons together say."""
    compared = _comparisons(claim, methods)
    together = _together(len(compared))
    # One comparison is enough for a largest gain, and against all else.
    largest = claim.statistic == "largest_relative_gain"
    for_it, against_it = (together, CONFIDENCE) if largest else (CONFIDENCE, together)
    held = [c for c in compared if _side(claim, *c.estimate.limits(for_it)) > 0]
    lost = [c for c in compared if _side(claim, *c.estimate.limits(against_it)) < 0]
    outcome, confidence = OPEN, CONFIDENCE
    among = [c for c in compared if c not in (lost if largest else held)]
    if len(held) == len(compared) or (held and largest):
        outcome, among, confidence = HELD, held, for_it
    elif len(lost) == len(compared) or (lost and not largest):
        outcome, among, confidence = NOT_HELD, lost, against_it
    worst = max if largest else min
    decides = worst(among, key=lambda c: _favour(claim, c.estimate, confidence))
    estimate, reasons = decides.estimate, []
    if outcome == OPEN:
        needed = for_it if _side(claim, estimate.value, estimate.value) > 0 else against_it
        # The interval that is shown is one that does hold the bound.
        confidence = needed if _side(claim, *estimate.limits(CONFIDENCE)) else CONFIDENCE
        reasons.append(_what_would_tell(claim, estimate, needed))
    shown = _shown([estimate], methods, *estimate.limits(confidence))
    if confidence != CONFIDENCE and "low" in shown:
        reasons.insert(0, f"one of {len(compared)} intervals that hold together")
    named, rival, cells = claim, [], methods[claim.a[0]].cells
    if decides.b:
        named = replace(claim, a=(decides.a,), b=(decides.b,))
        rival = [_label(methods, decides.b)]
        rival += [f"of {_label(methods, decides.a)}"] * (len(claim.a) > 1)
    if cells and decides.cell is not None:
        rival.append(f"in {cells[decides.cell]}")
    return shown | {
        "outcome": outcome,
        "observed": None if math.isnan(estimate.value) else estimate.value,
        "rival": " ".join(rival),
        "printed": _printed(named, cells, decides.cell or 0),
        "why": "; ".join(reasons),
    }


def _judged_share(claim: Claim, methods: Mapping[str, Measured]) -> dict[str, object]:
    """`_judged` of a share of cells: each is won against all rivals and lost to any."""
    method, sign = methods[claim.a[0]], 1.0 if claim.better == "lower" else -1.0
    cells = range(method.values.shape[-1])
    gaps = [[_difference(method.one(c), methods[b].one(c), sign) for c in cells] for b in claim.b]
    values = np.array([[gap.value for gap in row] for row in gaps])
    for_it, against_it = _together(len(cells)), _together(values.size)
    surely_won = np.array([[gap.limits(for_it)[1] < 0 for gap in row] for row in gaps]).all(axis=0)
    surely_lost = np.array([[gap.limits(against_it)[0] >= 0 for gap in row] for row in gaps]).any(axis=0)
    won, low, high = (values < 0).all(axis=0), surely_won.mean(), 1 - surely_lost.mean()
    outcome = {1: HELD, 0: OPEN, -1: NOT_HELD}[_side(claim, low, high)]
    lost_to = values.argmax(axis=0)[~won]
    most = np.bincount(lost_to, minlength=len(claim.b)).argmax()
    undecided = (~surely_won & ~surely_lost).sum()
    return _shown([gap for row in gaps for gap in row], methods, low, high) | {
        "outcome": outcome,
        "observed": won.mean(),
        "rival": _label(methods, claim.b[most]) if lost_to.size else "",
        "printed": _printed(claim, method.cells),
        "why": f"{undecided} of {len(cells)} cells are open" if outcome == OPEN else "",
    }


def _together(count: int) -> float:
    """The confidence of each of several intervals that hold together (Bonferroni)."""
    return 1 - (1 - CONFIDENCE) / count


def _shown(estimates: list, methods: Mapping[str, Measured], low: float, high: float) -> dict:
    """An interval, unless it has no ends, and what the estimates' intervals are over."""
    units = next(iter(methods.values())).units
    over = {
        "seeds": any(isinstance(e, SpreadRatio) or e.over_seeds for e in estimates),
        units: any(isinstance(e, Estimate) and e.over_units for e in estimates),
    }
    ends = {} if low == high or math.isinf(low) or math.isinf(high) else {"low": low, "high": high}
    return {"over": " and ".join(name for name, there in over.items() if there), **ends}


def _what_would_tell(claim: Claim, estimate: Estimate | SpreadRatio, confidence: float) -> str:
    bound = claim.bound
    if claim.direction == "within":
        bound = math.copysign(bound, estimate.value)
    if math.isinf(estimate.limits(confidence)[1]):
        return "one seed gives no interval"
    if isinstance(estimate, Estimate) and (
        estimate.over_seeds == 0 or estimate.units_forbid(bound, confidence)
    ):
        return "more test points, not seeds, would tell"
    seeds = estimate.seeds_to_tell(bound, confidence)
    return f"{seeds or f'more than {intervals.MOST_SEEDS}'} seeds would tell"


def _label(methods: Mapping[str, Measured], key: str) -> str:
    return methods[key].label or key


def _printed(claim: Claim, cells: tuple[str, ...], cell: int = 0) -> float | None:
    """The claim's statistic of the paper's printed values, if these are there; in one cell, if it is of
    each."""
    if not claim.printed:
        return None
    values = {key: printed_values(claim, key, cells) for key in (*claim.a, *claim.b)}
    if any(numbers is None for numbers in values.values()):
        return None
    if claim.statistic == "deviation_ratio":
        return math.sqrt((values[claim.a[0]] ** 2).mean() / (values[claim.b[0]] ** 2).mean())
    printed = {key: Measured(numbers) for key, numbers in values.items()}
    if claim.statistic == "share_better":
        return _judged_share(replace(claim, printed=""), printed)["observed"]
    compared = [c.estimate.value for c in _comparisons(claim, printed)]
    if claim.statistic == "largest_relative_gain":
        return max(compared)
    return compared[cell] if cell < len(compared) else None


def _difference(a: Measured, b: Measured, sign: float = 1.0) -> Estimate:
    return intervals.contrast([(sign, a), (-sign, b)])


def _side(claim: Claim, low: float, high: float) -> int:
    """1 where an interval lies wholly on the claim's side of its bound, -1 on the other, else 0."""
    bound = claim.bound
    held, lost = {
        "less": (high < bound, low >= bound),
        "greater": (low > bound, high <= bound),
        "at_least": (low >= bound, high < bound),
        "at_most": (high <= bound, low > bound),
        "within": (-bound <= low and high <= bound, low > bound or high < -bound),
    }[claim.direction]
    return int(held) - int(lost)


def _favour(claim: Claim, estimate: Estimate | SpreadRatio, confidence: float) -> tuple[float, float]:
    """How far an interval is from the contrary, then its value: larger is better for the claim."""
    low, high = estimate.limits(confidence)
    if claim.direction in ("less", "at_most"):
        return -high, -estimate.value
    if claim.direction == "within":
        return -max(abs(low), abs(high)), -abs(estimate.value)
    return low, estimate.value
