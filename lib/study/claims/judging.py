"""The rule that turns values into a verdict.

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
names what is `given`, a method that has to be surely better than another, and else is *not judged*.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from lib.statistics import intervals
from lib.statistics.intervals import CONFIDENCE, Estimate, Measured, SpreadRatio
from lib.study.claims.rows import SINGLE, Claim, printed_values

HELD, NOT_HELD, OPEN, NOT_JUDGED = "held", "did not hold", "open", "not judged"
# From as many seeds on two methods' own spread is known well enough.
OWN_SPREAD = 5


@dataclass(frozen=True)
class Comparison:
    """The estimate of one pairing, in one cell or, None, over all."""

    estimate: Estimate | SpreadRatio
    a: str = ""
    b: str = ""
    cell: int | None = None


def judged(claim: Claim, methods: Mapping[str, Measured]) -> dict[str, object]:
    """What the values of methods say of a claim, whatever runs they come from.

    Args:
        claim: one that has a rule.
        methods: by key at least those that the claim names, all with the same cells.

    Returns:
        `verdict` and, as far as there are any, `observed`, `low`, `high`, `points`, `over`, `rival`,
        `printed` and `why`, as columns of `lib.study.claims.verdicts`.
    """
    labels = {key: method.label or key for key, method in methods.items()}
    if claim.given:
        better, worse = claim.given
        pair = replace(claim, statistic="mean_difference", a=(worse,), b=(better,))
        low, high = comparisons(pair, methods)[0].estimate.limits()
        if low <= 0 if claim.better == "lower" else high >= 0:
            why = f"no sure gain: {labels[better]} is not surely better than {labels[worse]}"
            return {"verdict": NOT_JUDGED, "why": why}
    compared = comparisons(claim, methods)
    side, decides, confidence = _deciding(claim, compared)
    estimate, (low, high) = decides.estimate, decides.estimate.limits(confidence)
    reasons = []
    if math.isinf(high):
        reasons.append("one seed gives no interval")
    elif confidence != CONFIDENCE and low < high:
        reasons.append(f"one of {len(compared)} intervals that hold together")
    if side == 0 and _side_of(claim, claim.bound, low, high):
        reasons.append("the margin alone would decide")
    named, rival, cells = claim, [], methods[claim.a[0]].cells
    if decides.b:
        named = replace(claim, a=(decides.a,), b=(decides.b,))
        rival = [labels[decides.b]] + [f"of {labels[decides.a]}"] * (len(claim.a) > 1)
    if cells and decides.cell is not None:
        rival.append(f"in {cells[decides.cell]}")
    over = {"seeds": estimate.over_seeds, methods[claim.a[0]].units: estimate.over_units}
    in_points = comparisons(replace(claim, unit="points"), methods) if claim.is_ratio else []
    numbers = {
        "observed": None if math.isnan(estimate.value) else estimate.value,
        "printed": _printed(named, cells, decides.cell or 0),
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
    for_it = _together(len(cells)) if needed < len(cells) else CONFIDENCE
    against_it = _together(len(compared) if needed > 1 else len(compared) // len(cells))

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
    cells = range(methods[claim.a[0]].values.shape[-1])
    if claim.statistic in SINGLE:
        return [
            Comparison(intervals.contrast([(1.0, run.one(cell))]), key, cell=cell)
            for key, method in named.items()
            for run in method.runs()
            for cell in cells
        ]
    pooled = _pooled(claim, named)
    if claim.statistic == "sum_difference":
        terms = [(claim.a.count(key) - claim.b.count(key), method) for key, method in named.items()]
        return [Comparison(intervals.contrast(terms, pooled))]
    pairs = list(product(claim.a, claim.b))
    if claim.statistic == "deviation_ratio":
        return [Comparison(intervals.spread_ratio(named[a], named[b]), a, b) for a, b in pairs]
    if claim.statistic == "mean_difference":
        return [Comparison(intervals.difference(named[a], named[b], pooled), a, b) for a, b in pairs]
    return [
        Comparison(intervals.difference(named[a].one(cell), named[b].one(cell)), a, b, cell)
        for a, b in pairs
        for cell in cells
    ]


def _pooled(claim: Claim, methods: Mapping[str, Measured]) -> tuple[float, int] | None:
    """The residual of all methods together, where few seeds tell little of each one's spread."""
    trained = [method for method in methods.values() if method.values.ndim == 2]
    alike = len(trained) > 2 and len({method.seeds for method in trained}) == 1
    few = claim.is_ratio and alike and 2 <= len(trained[0].values) < OWN_SPREAD
    return intervals.residual(trained) if few else None


def _together(count: int) -> float:
    """The confidence of each of several intervals that hold together (Bonferroni)."""
    return 1 - (1 - CONFIDENCE) / count


def _printed(claim: Claim, cells: tuple[str, ...], cell: int) -> float | None:
    """The claim's statistic of the paper's printed values, if these are there; in one cell, if it is of
    each."""
    values = {key: printed_values(claim, key, cells) for key in (*claim.a, *claim.b)}
    if any(numbers is None for numbers in values.values()):
        return None
    if claim.statistic == "deviation_ratio":
        return math.sqrt((values[claim.a[0]] ** 2).mean() / (values[claim.b[0]] ** 2).mean())
    compared = comparisons(claim, {key: Measured(numbers) for key, numbers in values.items()})
    if claim.statistic == "any_difference":
        return compared[_deciding(claim, compared)[1].cell].estimate.value
    return compared[cell].estimate.value if cell < len(compared) else None


def _side(claim: Claim, low: float, high: float) -> int:
    """1 where an interval lies wholly on the claim's side of its bounds, -1 on the other, else 0."""
    # A count that is just the bound is decided by it.
    bounds = (claim.bound,) if low == high == claim.bound else claim.bounds
    sides = {_side_of(claim, bound, low, high) for bound in bounds}
    return sides.pop() if len(sides) == 1 else 0


def _side_of(claim: Claim, bound: float, low: float, high: float) -> int:
    (low, high), (_, bound) = _oriented(claim, low, high), _oriented(claim, bound, bound)
    if claim.direction in ("less", "greater"):
        return int(high < bound) - int(low >= bound)
    return int(high <= bound) - int(low > bound)


def _oriented(claim: Claim, low: float, high: float) -> tuple[float, float]:
    """The ends of an interval so that less is better for the claim; of `within` the distances from 0."""
    if claim.direction == "within":
        return max(low, -high, 0.0), max(-low, high)
    return (-high, -low) if claim.direction in ("greater", "at_least") else (low, high)
