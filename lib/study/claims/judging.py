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
them are on its
side of the margin: below -margin (`less`), above margin (`greater`), at least or at most margin, or in
between -margin and margin (`within`). It *held* where all 95% intervals lie there wholly; it *did not
hold* where one lies wholly on the other side, of intervals that hold together in 95% (Bonferroni).
Else it is *too close to call*. Of a largest gain the two are exchanged: one comparison is enough for it.
A share lies between the cells whose intervals say better, and all but those whose say not, of intervals
that hold together. The verdict shows the comparison that decides. Minima, maxima and counts are about
the very runs, and are judged as they are, or, with resamples, by the intervals of each run's cells.

The share of a gain, or a gain compared with another, says nothing where there is none: such a claim
names what is `given`, a method that has to be surely better than another, and else has *no verdict*.

The margin of 0.02 points of mean FPR95 is what test pairs leave open in the paper's own tables (50 000
non-matching pairs a set, FPR95 near 1.5%, six columns). It stands where FPR95 is higher, since a claim
that one is lower needs a sure difference whatever the margin, and intervals hold what fewer pairs leave
open; where two are to be the same the margin is relative. That of 0.02 points of mean average precision
is what rounding leaves open: Table 2 prints two digits, so that of a difference of two values at most
0.01 points are rounding, and it is that twice.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from lib.statistics.intervals import (
    CONFIDENCE,
    MOST_SEEDS,
    Estimate,
    Measured,
    SpreadRatio,
    contrast,
    relative_difference,
    relative_gain,
    spread_ratio,
)
from lib.study.claims.rows import COUNT_BELOW, PAIRED, SINGLE, Claim, printed_values
from lib.study.claims.verdicts import HELD, NO_VERDICT, NOT_HELD, OPEN, Verdict

POINTS_NEEDED = "more test points, not seeds"


def verdict(
    claim: Claim, values: Mapping[str, object], seeds: Sequence[int], profile: str, data_name: str
) -> Verdict:
    """Judge one claim.

    Args:
        claim: the claim.
        values: for each method a `Measured`, or an array (seeds, cells), or (cells,) for a method
            without seeds. All methods' cells are the same, in the same order. A method that was not
            asked for may be absent, or be a text that says why it has no values: a claim that names it
            has no verdict.
        seeds: in the order of the arrays' first axis; a method may have the first of them alone. None
            of a computation: values without seeds are then told as computed.
        profile: the profile's name.
        data_name: what it was trained and tested on, named as `Claim.own_data` is.

    Raises:
        ValueError: a shape does not fit, or a value is not finite.
    """
    count = len(seeds)
    keys = dict.fromkeys((*claim.a, *claim.b, *claim.given))
    absent = [key for key in keys if key not in values]
    told = [of for key in keys if isinstance(of := values.get(key), str)]
    if absent:
        told.append(f"no values of {', '.join(absent)}")
    if why := claim.why or "; ".join(told):
        return Verdict(claim, NO_VERDICT, count, profile, data_name, why=why)
    methods = {key: _with_seeds(values[key], seeds) for key in keys}
    if len({of.values.shape[-1] for of in methods.values()}) > 1:
        shapes = ", ".join(f"{key} {of.values.shape[-1]}" for key, of in methods.items())
        raise ValueError(f"claim {claim.id}: methods differ in their number of cells: {shapes}")
    part = _part(claim, methods)
    if missing := _missing(claim, methods):
        judged = {"outcome": NO_VERDICT, "why": missing}
    else:
        judged = (_judge_share if claim.statistic == "share_better" else _judge)(claim, methods)
    said = (part, judged.get("why", ""), "" if missing else _seeds_alone(claim, methods))
    judged |= {"part": part, "why": "; ".join(filter(None, said))}
    own_seeds = [len(of.values) for of in methods.values() if of.values.ndim == 2]
    if profile == "paper" and data_name == claim.own_data:
        own = {HELD: "reproduced", NOT_HELD: "not reproduced"}
        judged["outcome"] = own.get(judged["outcome"], judged["outcome"])
    fewest = min(own_seeds, default=count)
    return Verdict(claim, seeds=fewest, profile=profile, data_name=data_name, **judged)


def _with_seeds(of: object, seeds: Sequence[int]) -> Measured:
    of = of if isinstance(of, Measured) else Measured(of)
    named = tuple(seeds[: len(of.values)]) if of.values.ndim == 2 else ()
    return of if of.seeds or len(named) < len(of.values) else replace(of, seeds=named)


def _part(claim: Claim, methods: Mapping[str, Measured]) -> str:
    """How many of the printed cells there are, where these are fewer; of a claim whose metric is one of
    the printed tasks that one is all."""
    printed = printed_values(claim, claim.a[0], (claim.metric,)) if claim.printed else None
    cells = methods[claim.a[0]].values.shape[-1]
    if printed is None or cells >= len(printed):
        return ""
    return f"{cells} of {len(printed)} {'tasks' if claim.on_hpatches else 'columns'}"


def _missing(claim: Claim, methods: Mapping[str, Measured]) -> str:
    """Why the gain that the claim is about is not there, or nothing."""
    if not claim.given:
        return ""
    better, worse = claim.given
    gain = _difference(methods[better], methods[worse], -1.0 if claim.better == "lower" else 1.0)
    low, high = gain.limits()
    if low > 0:
        return ""
    limits = f"95%: {low:.3g} to {high:.3g}" if math.isfinite(low) else "one seed gives no interval"
    pair = f"{_label(methods, better)} gains {gain.value:.3g} on {_label(methods, worse)}"
    return f"no sure gain: {pair} ({limits})"


def _seeds_alone(claim: Claim, methods: Mapping[str, Measured]) -> str:
    """Which cells' differences are judged without what tests leave open, where seeds are what varies."""
    differences = claim.statistic in (*PAIRED, "sum_difference", "relative_difference")
    if not differences or all(of.values.ndim == 1 for of in methods.values()):
        return ""
    first = next(iter(methods.values()))
    cells = range(first.values.shape[-1])
    still = [cell for cell in cells if all(_is_still(of.one(cell)) for of in methods.values())]
    if not still or len(still) == len(cells):
        return "over seeds alone" if still else ""
    names = dict.fromkeys(first.cells[cell] for cell in still if first.cells)
    return f"{', '.join(names) or f'{len(still)} of {len(cells)} cells'} over seeds alone"


def _is_still(of: Measured) -> bool:
    return of.resampled is None or not np.ptp(of.resampled, axis=-1).any()


@dataclass(frozen=True)
class _Comparison:
    """One pairing, in one cell or, None, over all: what was found of whom."""

    found: Estimate | SpreadRatio
    a: str = ""
    b: str = ""
    cell: int | None = None


def _comparisons(claim: Claim, methods: Mapping[str, Measured]) -> list[_Comparison]:
    if claim.statistic.startswith(COUNT_BELOW):
        level = float(claim.statistic.removeprefix(COUNT_BELOW))
        means = {key: np.atleast_2d(methods[key].values).mean(axis=0) for key in claim.a}
        return [_Comparison(Estimate(float((of < level).sum())), key) for key, of in means.items()]
    if claim.statistic in SINGLE:
        return [
            _Comparison(contrast([(1.0, run.one(cell))]), key, cell=cell)
            for key in claim.a
            for run in methods[key].runs()
            for cell in range(len(run.values))
        ]
    if claim.statistic == "sum_difference":
        terms = [(sign, methods[key]) for sign, keys in ((1, claim.a), (-1, claim.b)) for key in keys]
        return [_Comparison(contrast(terms))]
    found = []
    for a, b in product(claim.a, claim.b):
        both = methods[a], methods[b]
        if claim.statistic == "mean_difference":
            found.append(_Comparison(_difference(*both), a, b))
        elif claim.statistic == "relative_difference":
            found.append(_Comparison(relative_difference(*both), a, b))
        elif claim.statistic == "deviation_ratio":
            found.append(_Comparison(spread_ratio(*both), a, b))
        else:
            of = relative_gain if claim.statistic == "largest_relative_gain" else _difference
            cells = range(both[0].values.shape[-1])
            found += [_Comparison(of(*(each.one(c) for each in both)), a, b, c) for c in cells]
    return found


def _judge(claim: Claim, methods: Mapping[str, Measured]) -> dict:
    """What all comparisons together say, as fields of `Verdict`."""
    compared = _comparisons(claim, methods)
    together = 1 - (1 - CONFIDENCE) / len(compared)
    # One comparison is enough for a largest gain, and against all else.
    largest = claim.statistic == "largest_relative_gain"
    for_it, against_it = (together, CONFIDENCE) if largest else (CONFIDENCE, together)
    held = [c for c in compared if _side(claim, *c.found.limits(for_it)) > 0]
    lost = [c for c in compared if _side(claim, *c.found.limits(against_it)) < 0]
    outcome, confidence = OPEN, CONFIDENCE
    among = [c for c in compared if c not in (lost if largest else held)]
    if len(held) == len(compared) or (held and largest):
        outcome, among, confidence = HELD, held, for_it
    elif len(lost) == len(compared) or (lost and not largest):
        outcome, among, confidence = NOT_HELD, lost, against_it
    worst = max if largest else min
    decides = worst(among, key=lambda c: _favour(claim, c.found, confidence))
    value = decides.found.value
    if outcome == OPEN:
        needed = for_it if _side(claim, value, value) > 0 else against_it
        # The interval that is shown is one that does hold the bound.
        confidence = needed if _side(claim, *decides.found.limits(CONFIDENCE)) else CONFIDENCE
    judged = _shown(value, *decides.found.limits(confidence))
    judged |= {"outcome": outcome, "rival": _rival(claim, decides, methods)}
    judged |= {"over": _over([decides.found], methods), "printed": _printed(claim, decides, methods)}
    if outcome == OPEN:
        bound = math.copysign(claim.bound, value) if claim.direction == "within" else claim.bound
        judged |= _what_would_tell(decides.found, bound, needed)
    if confidence != CONFIDENCE and judged["low"] is not None:
        together_in = f"one of {len(compared)} intervals that hold together"
        judged["why"] = "; ".join(filter(None, (together_in, judged.get("why"))))
    return judged


def _judge_share(claim: Claim, methods: Mapping[str, Measured]) -> dict:
    """`_judge` of a share of cells, each judged by its own intervals against every rival."""
    [a] = claim.a
    sign = 1.0 if claim.better == "lower" else -1.0
    cells = methods[a].values.shape[-1]
    # A cell is won against all rivals, and lost to any.
    for_it = 1 - (1 - CONFIDENCE) / cells
    against_it = 1 - (1 - CONFIDENCE) / cells / len(claim.b)
    won, decided = np.zeros((2, cells), dtype=bool)
    gaps, rivals = [], []
    for cell in range(cells):
        of = {b: _difference(methods[a].one(cell), methods[b].one(cell), sign) for b in claim.b}
        rivals.append(max(of, key=lambda b: of[b].value))
        gaps.append(of[rivals[-1]])
        won[cell] = gaps[-1].value < 0
        if won[cell]:
            decided[cell] = all(gap.limits(for_it)[1] < 0 for gap in of.values())
        else:
            decided[cell] = any(gap.limits(against_it)[0] >= 0 for gap in of.values())
    observed, low, high = won.mean(), (won & decided).mean(), 1 - (decided & ~won).mean()
    side = _side(claim, low, high)
    judged = _shown(observed, low, high) | {"outcome": {1: HELD, 0: OPEN, -1: NOT_HELD}[side]}
    judged |= {"over": _over(gaps, methods), "printed": _printed(claim, None, methods)}
    lost_to = [rivals[cell] for cell in np.flatnonzero(~won)]
    judged["rival"] = _label(methods, max(claim.b, key=lost_to.count)) if lost_to else ""
    if side == 0:
        # The share excludes the margin once enough cells of the side that is ahead are decided.
        ahead = _side(claim, observed, observed) > 0
        most = math.floor(claim.margin * cells)
        fewest = most + 1 if ahead else cells - most
        confidence = for_it if ahead else against_it
        seeds = {
            cell: 0 if decided[cell] else gaps[cell].seeds_to_tell(0.0, confidence) or MOST_SEEDS + 1
            for cell in np.flatnonzero(won == ahead)
        }
        last = sorted(seeds, key=seeds.get)[fewest - 1]
        judged |= _what_would_tell(gaps[last], 0.0, confidence)
    return judged


def _shown(value: float, low: float, high: float) -> dict:
    """A statistic and its interval, None where there is none or it has no ends."""
    ends = (None, None) if low == high or math.isinf(low) or math.isinf(high) else (low, high)
    return {"observed": None if math.isnan(value) else value, "low": ends[0], "high": ends[1]}


def _over(found: Sequence[Estimate | SpreadRatio], methods: Mapping[str, Measured]) -> str:
    """What the intervals are over, any of them."""
    if any(isinstance(of, SpreadRatio) for of in found):
        return "seeds"
    units = next(iter(methods.values())).units
    parts = {"seeds": any(of.over_seeds for of in found), units: any(of.over_units for of in found)}
    return " and ".join(name for name, there in parts.items() if there)


def _what_would_tell(found: Estimate | SpreadRatio, bound: float, confidence: float) -> dict:
    if math.isinf(found.limits(confidence)[1]):
        return {"seeds_needed": "2 or more", "why": "one seed gives no interval"}
    if isinstance(found, Estimate) and (found.over_seeds == 0 or found.units_forbid(bound, confidence)):
        return {"seeds_needed": POINTS_NEEDED, "why": f"{POINTS_NEEDED}, would tell"}
    needed = found.seeds_to_tell(bound, confidence)
    seeds = str(needed) if needed else f"more than {MOST_SEEDS}"
    return {"seeds_needed": seeds, "why": f"{seeds} seeds would tell"}


def _rival(claim: Claim, decides: _Comparison, methods: Mapping[str, Measured]) -> str:
    """The method that the deciding comparison is with, of which method if of several, in which cell."""
    parts = [_label(methods, decides.b)] if decides.b else []
    if decides.b and len(claim.a) > 1:
        parts.append(f"of {_label(methods, decides.a)}")
    names = next(iter(methods.values())).cells
    if names and decides.cell is not None:
        parts.append(f"in {names[decides.cell]}")
    return " ".join(parts)


def _label(methods: Mapping[str, Measured], key: str) -> str:
    return methods[key].label or key


def _printed(claim: Claim, decides: _Comparison | None, methods: Mapping[str, Measured]) -> float | None:
    """The claim's statistic of the paper's printed values, for the pairing that decides."""
    if not claim.printed:
        return None
    if decides is not None and decides.b:
        claim = replace(claim, a=(decides.a,), b=(decides.b,))
    cells = next(iter(methods.values())).cells
    values = {key: printed_values(claim, key, cells) for key in (*claim.a, *claim.b)}
    if any(of is None for of in values.values()):
        return None
    if claim.statistic == "deviation_ratio":
        return math.sqrt((values[claim.a[0]] ** 2).mean() / (values[claim.b[0]] ** 2).mean())
    printed = {key: Measured(of) for key, of in values.items()}
    if decides is None:
        return _judge_share(replace(claim, printed=""), printed)["observed"]
    found = [c.found.value for c in _comparisons(claim, printed)]
    if claim.statistic == "largest_relative_gain":
        return max(found)
    cell = decides.cell or 0
    return found[cell] if cell < len(found) else None


def _difference(a: Measured, b: Measured, sign: float = 1.0) -> Estimate:
    return contrast([(sign, a), (-sign, b)])


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


def _favour(claim: Claim, found: Estimate | SpreadRatio, confidence: float) -> tuple[float, float]:
    """How far an interval is from the contrary, then its value: larger is better for the claim."""
    low, high = found.limits(confidence)
    if claim.direction in ("less", "at_most"):
        return -high, -found.value
    if claim.direction == "within":
        return -max(abs(low), abs(high)), -abs(found.value)
    return low, found.value
