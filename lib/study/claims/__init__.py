"""The papers' claims as they were written down beforehand, in one CSV per paper beside this file; the
rule that turns values into a verdict; and what a paper prints for the methods that a claim names.

Each claim names a statistic of the methods' values over seeds and cells. A cell is a column of the table
or a point of the figure:

- `mean_difference`: mean over the cells of `a` minus that of `b`.
- `each_difference`, `most_difference`, `any_difference`: `a` minus `b` in each cell, in more than half
  of them, or in one.
- `sum_difference`: the sum of the means of all `a` minus that of all `b`, e.g. for a difference of
  differences.
- `deviation_ratio`: the standard deviation over seeds of `a` over that of `b`.
- `minimum`, `maximum`: over all seeds and cells of `a`.

**Ratios.** The spread of FPR95 over seeds is proportional to FPR95. In points, the deviations of eight
methods differ sixfold (Bartlett, p = 0.003); those of their logarithms do not (p = 0.53). Where a
claim's unit is `ratio`, the difference is therefore one of logarithms, and its exp is shown: the
geometric mean over seeds and cells of `a` over `b`. The difference of the means in points is shown too.
Average precision is compared in points, and so are standard deviations, since papers print these.

**Margins.** For FPR95 the margin is 0.02 points in the papers' own tables: the uncertainty that 50 000
non-matching pairs per set leave at an FPR95 near 1.5%, over six columns. All such margins were converted
to ratios at once, before runs on real scenes were read, by one rule: 0.02 points is
1.5 / (1.5 - 0.02) = 1.0135, and p percent is 1 + p / 100. For mean average precision, 0.02 points is
twice the uncertainty that rounding to two digits leaves in a difference. A margin never decides alone: a
difference must be on the same side with it and without it, and any other statistic by more than a
hundredth.

**Several comparisons.** Where `a` or `b` names several methods, or the statistic is of each cell, each
pairing and cell is a comparison with its own interval (`lib.statistics.intervals`). A comparison is for
the claim where its 95% interval lies wholly on the claim's side: below the bound (`less`), above it
(`greater`), at least or at most there, or between two (`within`). It is against the claim where its
interval lies wholly on the other side. Intervals against a claim are simultaneous at 95% (Bonferroni:
whether the smallest of several p is rejected is the same by Holm's correction). A cell is for the claim
where all its pairings are, and against it where one is. The claim *held* where as many cells as it needs
are for it, *did not hold* where too many are against it, and is *open* otherwise. Where not all cells
are needed, the intervals for the claim are simultaneous too. The verdict shows the comparison that
decides. Minima and maxima are about these very runs. They are judged as they are or, with resamples, by
the intervals of each run's cells.

**Few seeds.** Ratios of three or more methods with the same two to four seeds share one pooled residual.

**Gains.** A claim about a share of a gain, or about one gain against another, says nothing without a
gain. Such a claim names in `given` a method that must be significantly better than another, and is
*not judged* otherwise.

A claim is also *not judged* where no run can decide it, where its methods have no values, where a test
has too few false positives, and where runs are short: `quick` shows numbers, not verdicts. Values that
are computed without training are judged at any size. A finding is shown, but is not a claim.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from lib.statistics import intervals
from lib.statistics.intervals import CONFIDENCE, Estimate, Measured, SpreadRatio
from lib.study.open import Study
from lib.study.printed import printed
from lib.study.report.frames import ROLES, own_columns, with_columns

SINGLE = ("minimum", "maximum")
NONE = "none"
# Our margins decide nothing by less than this, in the claim's unit.
HUNDREDTH = 0.01
HELD, NOT_HELD, OPEN, NOT_JUDGED = "held", "did not hold", "open", "not judged"
# With at least so many seeds, two methods' own spread is known well enough.
OWN_SPREAD = 5
# The profiles whose runs are long enough to judge a claim by.
JUDGING = ("evening", "standard", "paper")
# Outcomes with the profile `paper` on the paper's own data.
ON_OWN_DATA = {HELD: "reproduced", NOT_HELD: "not reproduced"}
# With fewer in a test set, a method's rate is mostly due to chance in the non-matching pairs.
FEWEST_FALSE_POSITIVES = 200
TABLE = [
    *("claim", "paper", "artefact", "sentence", "kind", "needed", "observed", "low", "high", "points"),
    *("over", "printed", "rival", "unit", "profile", "data", "seeds", "part", "verdict", "why", "seen"),
]
NUMBERS = ("observed", "low", "high", "points", "printed")
# By the method's key or display name.
Methods = Mapping[str, Measured]
# By the method's key: a `Measured`, an array, or a text that says why there are no values.
Values = Mapping[str, Measured | np.ndarray | str]


@dataclass(frozen=True)
class Claim:
    """One claim of a paper, written down before its runs were made unless `seen` says otherwise.

    Attributes:
        id: unique name.
        paper, artefact: where the claim is made, e.g. `adasample`, `Table 1`.
        kind: `claim`, a sentence of the paper; or `finding`, a comparison that no sentence states, e.g.
            with a control of ours, which is shown with its interval and has no verdict.
        sentence: the claim in our words; `quote` is the wording of the paper that it rests on.
        statistic, direction, margin: the rule, see the top of this module; statistic `none` is no rule.
        metric, unit: what is compared, and the statistic's unit. `ratio` compares logarithms, and the
            margin is then a factor, 1 for none.
        better: `lower` or `higher`, which values of the metric are better.
        a, b: the keys of the compared methods.
        own_data: the name of the data on which the paper makes the claim. `ubc` is PhotoTour;
            `ubc+hpatches` is training on PhotoTour and testing on HPatches.
        printed: the printed table and kind of values that the claim is about, e.g. `table1:fpr95`.
        counts_against: what would count against the claim. "Written as …" at its end is the margin in
            points or percent that was converted to a ratio.
        why: why there can be no verdict, where there is no rule.
        given: what a claim about a gain presupposes, as two methods' keys `better<worse`: there is no
            verdict unless the first is significantly better in the mean over the cells.
        seen: what had been seen when the claim was written down, e.g. `the quick runs`; empty if it was
            written beforehand.
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
        """Whether the claim is about tests on HPatches, so that training data alone do not decide it."""
        return self.own_data.endswith("+hpatches")

    @property
    def is_ratio(self) -> bool:
        """Whether logarithms are compared."""
        return self.unit == "ratio"

    @property
    def bound(self) -> float:
        """The bound on the statistic, or on its logarithm; for `within`, the upper of two."""
        bound = math.log(self.margin) if self.is_ratio else self.margin
        return -bound if self.direction == "less" and bound else bound

    @property
    def bounds(self) -> tuple[float, ...]:
        """The bounds at which an outcome must be the same, so that the margin alone decides nothing: for
        a difference, with the margin and without; otherwise a hundredth to either side."""
        bound = self.bound
        if "difference" in self.statistic and self.direction in ("less", "greater"):
            return bound, 0.0
        by = HUNDREDTH if abs(bound) > HUNDREDTH else 0.0
        return bound - by, bound + by

    def shown(self, value: float) -> float:
        """Return a statistic as readers see it: its exp, where logarithms were compared."""
        return math.exp(value) if self.is_ratio else value

    def needed(self) -> str:
        """Return the condition on the statistic in words, e.g. `below -0.02 points`."""
        if self.statistic == NONE:
            return ""
        bound = self.shown(self.bound)
        least = self.shown(-self.bound)
        words = {"less": "below", "greater": "above", "within": f"from {least:.4g} to"}
        direction = words.get(self.direction, self.direction.replace("_", " "))
        return f"{direction} {bound:.4g} {self.unit}".rstrip()


def read_rows() -> pd.DataFrame:
    """Read all rows of the claims' files as text, with "" where a paper's file lacks a column."""
    files = [pd.read_csv(path, dtype=str) for path in sorted(Path(__file__).parent.glob("*.csv"))]
    return pd.concat(files, ignore_index=True).fillna("")


def read_claims(paper: str | None = None, artefact: str | None = None) -> list[Claim]:
    """Read all claims, or those of one paper or on one artefact of it, e.g. "Table 1".

    Sentences of kind `print`, which no run bears on, are left to `lib.study.audit`.

    Raises:
        ValueError: there are none.
    """
    rows = read_rows().query("kind != 'print'")
    for column, wanted in (("paper", paper), ("artefact", artefact)):
        rows = rows if wanted is None else rows[rows[column] == wanted]
    if rows.empty:
        raise ValueError(f"no claim of {paper} on {artefact}")
    for name in ("a", "b", "given"):
        rows[name] = rows[name].str.findall("[^;<]+").map(tuple)
    columns = [field.name for field in fields(Claim)]
    return [Claim(**row) for row in rows[columns].astype({"margin": float}).to_dict("records")]


def printed_values(claim: Claim, key: str, cells: Sequence[str]) -> np.ndarray:
    """Return what the paper prints for a method, or for the group of rows that a key stands for.

    Args:
        claim: names the table and the kind of values.
        key: as in the claim: a method's key, or a value of another column of the table, e.g. `aht`.
        cells: names of our cells, which select the printed cells with the same names.

    Returns:
        (cells,); empty where the table does not print it, or the claim is not about a table.
    """
    if not claim.printed:
        return np.empty(0)
    table, _, statistic = claim.printed.partition(":")
    rows = printed(claim.paper, table)
    named = rows.filter(["key", "statistic", "loss"]).eq(key).any(axis=1)
    rows = rows[named & (rows["statistic"] == statistic)]
    if set(rows["test"]) <= {*ROLES}:
        rows = with_columns(rows)
    values = rows["value"].set_axis(rows.get("column", rows.get("task", rows.index)))
    common = [name for name in cells if name in values]
    if common and values.index.is_unique:
        values = values[common]
    return values.to_numpy()


class Comparison(NamedTuple):
    """The estimate of one pairing, in one cell or over all (None)."""

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
        table = judge(claims, lambda claim: values_of(claim, runs, study.source.sets), study)

    Args:
        claims: e.g. from `lib.study.claims.read_claims`.
        values: by the method's key, as `verdict` takes them; or a function that returns them for a
            claim, such as `lib.study.claims.measured.values_of`. It is not called where no run can
            decide.
        study: the study whose profile, data and seeds the values have.
        seeds: of the runs, by default the table seeds; `()` where values without seeds come from a
            computation.
        computed: used in place of `values`: by key, values of a computation without seeds.

    Returns:
        One row per claim, from `verdict`.

    Raises:
        ValueError: values do not fit.
    """
    seeds = study.table_seeds if seeds is None else seeds
    source = study.source
    rows = []
    for claim in claims:
        own, own_seeds = (computed, ()) if computed.keys() & claim.a else (values, seeds)
        own = own if not callable(own) else {} if claim.why else own(claim)
        # Trained on the source's patches and tested on HPatches.
        tested = "+hpatches" if claim.on_hpatches and not source.embedded else ""
        rows.append(verdict(claim, own, own_seeds, study.profile.name, f"{source.name}{tested}"))
    table = pd.DataFrame(rows, columns=TABLE).astype(dict.fromkeys(NUMBERS, "float64"))
    # Sets that stand in for real ones are shown under their own names.
    return table.replace({"rival": own_columns(source.tested)}, regex=True)


def verdict(
    claim: Claim, values: Values, seeds: Sequence[int], profile: str, data_name: str
) -> dict[str, object]:
    """Judge one claim.

    Args:
        claim: the claim.
        values: for each method a `Measured`, or an array (seeds, cells), or (cells,) for a method
            without seeds. All methods have the same cells in the same order. A method that was not
            asked for may be absent, or be a text that says why it has no values: a claim that names it
            is not judged.
        seeds: of the runs. Empty for a computation: values without seeds are then taken as computed.
        profile: the profile's name.
        data_name: the data that methods were trained and tested on, named as in `Claim.own_data`.

    Returns:
        The columns of `TABLE`: what `Claim` says, the condition that is `needed`, and

        - `verdict`: `held`, `did not hold`, `open` or `not judged`; with the profile `paper` on the
          paper's own data `reproduced` or `not reproduced`.
        - `seeds`: how many; 0 for values computed without any.
        - `observed`: the statistic of the comparison that decides, in the claim's unit, with its
          interval `low` to `high`, as far as there are any. For a ratio, `points` is the difference of
          the means.
        - `over`: what the interval is over: seeds, tests (their points or sequences) or what else was
          drawn, or both. Verification on HPatches uses pairs of all sequences, so over seeds alone.
        - `rival`: the method and, where it matters, the cell that decides.
        - `printed`: the same statistic of the values that the paper prints.
        - `part`: how many of the cells that the paper prints count, e.g. `2 of 6 columns`; empty if
          all do.
        - `why`: why it is open or not judged, and how many simultaneous intervals its own is one of.

    Raises:
        ValueError: a shape does not fit, or a value is not finite.
    """
    row = vars(claim) | dict.fromkeys(NUMBERS) | dict.fromkeys(("over", "rival", "part"), "")
    row |= {"claim": claim.id, "needed": claim.needed(), "profile": profile, "data": data_name}
    values = {key: values.get(key, f"no runs of {key}") for key in (*claim.a, *claim.b, *claim.given)}
    reasons = [value for value in values.values() if isinstance(value, str)]
    if why := claim.why or "; ".join(reasons):
        return row | {"seeds": len(seeds), "verdict": NOT_JUDGED, "why": why}
    methods = {key: v if isinstance(v, Measured) else Measured(v) for key, v in values.items()}
    cells = methods[claim.a[0]].values.shape[-1]
    # Where non-matching pairs were counted, enough of them must be taken for matches.
    matched = [np.atleast_2d(m.values).mean(axis=0) / 100 * m.pairs for m in methods.values() if m.pairs]
    least = np.min([np.full(cells, np.inf), *matched], axis=0)
    enough = np.flatnonzero(least >= FEWEST_FALSE_POSITIVES).tolist()
    if enough:
        methods = {key: method.of_cells(enough) for key, method in methods.items()}
    trained = (len(method.values) for method in methods.values() if method.values.ndim == 2)
    fewest = min(trained, default=len(seeds))
    row |= _by_rule(claim, methods) | {"seeds": fewest}
    # If the claim's metric is one of the printed tasks, only that task counts.
    printed = printed_values(claim, claim.a[0], (claim.metric,))
    if len(enough) < len(printed):
        kind = "tasks" if claim.on_hpatches else "columns"
        row["part"] = f"{len(enough)} of {len(printed)} {kind}"
    why = ""
    if row["verdict"] == NOT_JUDGED:
        why = row["why"]
    elif fewest and profile not in JUDGING:
        why = f"{profile} shows numbers, not verdicts"
    elif claim.kind == "finding":
        why = "our own comparison: no sentence of the paper states it"
    elif not enough:
        few = "false positives are expected; average precision decides"
        why = f"fewer than {FEWEST_FALSE_POSITIVES} {few}"
    elif profile == "paper" and data_name == claim.own_data:
        row["verdict"] = ON_OWN_DATA.get(row["verdict"], row["verdict"])
    return row | {"verdict": NOT_JUDGED, "why": why} if why else row


def wrong_by_chance(table: pd.DataFrame) -> str:
    """Return a sentence on how many verdicts may be wrong by chance alone. Open comparisons count too,
    since they could have been wrong as well.

    Args:
        table: from `judge`; minima and computations, which have no interval, are left out.
    """
    judged = table[table["low"].notna() & (table["verdict"] != NOT_JUDGED)]
    decided = (judged["verdict"] != OPEN).sum()
    head = f"{CONFIDENCE:.0%} intervals decide {decided} of their {len(judged)} comparisons"
    return f"{head} (at most {(1 - CONFIDENCE) * len(judged):.1f} wrong by chance)."


def _by_rule(claim: Claim, methods: Methods) -> dict[str, object]:
    """Return the verdict on a claim by its rule alone, whatever runs the methods' values come from, and
    the numbers behind it, by columns of `TABLE`."""
    labels = {key: method.label or key for key, method in methods.items()}
    if claim.given:
        better, worse = claim.given
        pair = replace(claim, statistic="mean_difference", a=(worse,), b=(better,))
        low, high = comparisons(pair, methods)[0].estimate.limits()
        if low <= 0 if claim.better == "lower" else high >= 0:
            why = f"no significant gain of {labels[better]} over {labels[worse]}"
            return {"verdict": NOT_JUDGED, "why": why}
    compared = comparisons(claim, methods)
    side, decides, confidence = _deciding(claim, compared)
    estimate = decides.estimate
    low, high = estimate.limits(confidence)
    reasons = []
    if math.isinf(high):
        reasons.append("one seed gives no interval")
    elif confidence != CONFIDENCE and low < high:
        reasons.append(f"one of {len(compared)} simultaneous intervals")
    if side == 0 and _side(claim, low, high, [claim.bound]):
        reasons.append("the verdict would change if the margin were zero")
    first = methods[claim.a[0]]
    cells = first.cells
    rival = labels.get(decides.b, "")
    if rival and len(claim.a) > 1:
        rival += f" against {labels[decides.a]}"
    if cells and decides.cell is not None:
        rival += f" in {cells[decides.cell]}"
    over = {"seeds": estimate.over_seeds, first.units: estimate.over_units}
    in_points = comparisons(replace(claim, unit="points"), methods) if claim.is_ratio else []
    numbers = {
        "observed": estimate.value,
        "printed": _printed(claim, decides, cells),
        **({"low": low, "high": high} if low < high < math.inf else {}),
    }
    return {name: claim.shown(number) for name, number in numbers.items()} | {
        "verdict": {1: HELD, 0: OPEN, -1: NOT_HELD}[side],
        "points": in_points[compared.index(decides)].estimate.value if in_points else None,
        "over": " and ".join(name for name, error in over.items() if error),
        "rival": rival.strip(),
        "why": "; ".join(reasons),
    }


def _deciding(claim: Claim, compared: Sequence[Comparison]) -> tuple[int, Comparison, float]:
    """Find the comparison that decides a claim.

    Returns:
        1 where it is for the claim, -1 where it is against it and 0 where it leaves the claim open; the
        comparison; and the confidence of the interval to show. An interval that leaves the claim open
        contains the claim's bound.
    """
    cells = dict.fromkeys(comparison.cell for comparison in compared)
    fewer = {"any_difference": 1, "most_difference": len(cells) // 2 + 1}
    needed = fewer.get(claim.statistic, len(cells))
    # Several intervals are simultaneous (Bonferroni).
    for_it = 1 - (1 - CONFIDENCE) / (len(cells) if needed < len(cells) else 1)
    together = len(compared) if needed > 1 else len(compared) // len(cells)
    against_it = 1 - (1 - CONFIDENCE) / together

    def standing(comparison: Comparison) -> tuple[int, float, float]:
        """Return the side, the interval's distance from the other side, and the value: each is larger
        where it is better for the claim."""
        estimate = comparison.estimate
        held = _side(claim, *estimate.limits(for_it)) > 0
        lost = _side(claim, *estimate.limits(against_it)) < 0
        end, value = (_oriented(claim, *ends)[1] for ends in (estimate.limits(), [estimate.value] * 2))
        return held - lost, -end, -value

    of_cells = [min((c for c in compared if c.cell == cell), key=standing) for cell in cells]
    decides = sorted(of_cells, key=standing, reverse=True)[needed - 1]
    alone = _side(claim, *decides.estimate.limits())
    return standing(decides)[0], decides, {1: for_it, 0: CONFIDENCE, -1: against_it}[alone]


def comparisons(claim: Claim, methods: Methods) -> list[Comparison]:
    """Return all comparisons that a claim makes, by pairing, then by cell. A claim on a ratio compares
    logarithms."""
    named = {key: methods[key] for key in (*claim.a, *claim.b)}
    if claim.is_ratio:
        named = {key: method.logarithm() for key, method in named.items()}
    cells = range(methods[claim.a[0]].values.shape[-1])
    pairs = list(product(claim.a, claim.b))
    if claim.statistic in SINGLE:
        return [
            Comparison(intervals.contrast([(1.0, run.one(cell))]), key, cell=cell)
            for key, method in named.items()
            for run in method.runs()
            for cell in cells
        ]
    # With few seeds, all methods together estimate the residual better than two do.
    trained = [method for method in named.values() if method.values.ndim == 2]
    alike = claim.is_ratio and len(trained) > 2 and len({method.seeds for method in trained}) == 1
    few = alike and 2 <= len(trained[0].values) < OWN_SPREAD
    pooled = intervals.residual(trained) if few else None
    if claim.statistic == "sum_difference":
        terms = [(claim.a.count(key) - claim.b.count(key), own) for key, own in named.items()]
        return [Comparison(intervals.contrast(terms, pooled))]
    of_all_cells = {
        "deviation_ratio": intervals.spread_ratio,
        "mean_difference": partial(intervals.difference, pooled=pooled),
    }
    if compare := of_all_cells.get(claim.statistic):
        return [Comparison(compare(named[a], named[b]), a, b) for a, b in pairs]
    return [
        Comparison(intervals.difference(named[a].one(cell), named[b].one(cell)), a, b, cell)
        for a, b in pairs
        for cell in cells
    ]


def _printed(claim: Claim, decides: Comparison, cells: Sequence[str]) -> float:
    """Compute the claim's statistic from the paper's printed values, for the pairing and the cell that
    decide; NaN where the paper does not print them."""
    if decides.b:
        claim = replace(claim, a=(decides.a,), b=(decides.b,))
    values = {key: printed_values(claim, key, cells) for key in (*claim.a, *claim.b)}
    if not all(map(len, values.values())):
        return math.nan
    if claim.statistic == "deviation_ratio":
        return math.sqrt((values[decides.a] ** 2).mean() / (values[decides.b] ** 2).mean())
    compared = comparisons(claim, {key: Measured(numbers) for key, numbers in values.items()})
    if claim.statistic == "any_difference":
        return _deciding(claim, compared)[1].estimate.value
    cell = decides.cell or 0
    return compared[cell].estimate.value if cell < len(compared) else math.nan


def _side(claim: Claim, low: float, high: float, bounds: Sequence[float] = ()) -> int:
    """Return 1 where an interval lies wholly on the claim's side of all bounds, -1 where it lies wholly
    on the other side, else 0. The bounds are the claim's own by default."""
    # A count that equals the bound is decided by that bound alone.
    bounds = bounds or ([claim.bound] if low == high == claim.bound else claim.bounds)
    low, high = _oriented(claim, low, high)
    ends = [_oriented(claim, end, end)[1] for end in bounds]
    if claim.direction in ("less", "greater"):
        return (high < min(ends)) - (low >= max(ends))
    return (high <= min(ends)) - (low > max(ends))


def _oriented(claim: Claim, low: float, high: float) -> tuple[float, float]:
    """Orient an interval's ends so that less is better; for `within`, return distances from 0."""
    if claim.direction == "within":
        return max(low, -high, 0.0), max(-low, high)
    return (-high, -low) if claim.direction in ("greater", "at_least") else (low, high)
