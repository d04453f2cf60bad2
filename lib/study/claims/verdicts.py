"""Verdicts: what the rule says of a claim, and whether runs of this size and data may say it.

A claim is *not judged* where no run can decide it, where its methods have no values, where a test has
too few false positives, and where runs are short: `quick` shows numbers, not verdicts. What is computed
without training is judged at any size. A finding is shown, and is no claim.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd

from lib.statistics.intervals import CONFIDENCE, Measured
from lib.study.claims.judging import HELD, NOT_HELD, NOT_JUDGED, judged
from lib.study.claims.rows import FINDING, Claim, printed_values
from lib.study.open import Study

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


def judge(
    claims: Sequence[Claim],
    values: Values | Callable[[Claim], Values],
    study: Study,
    seeds: Sequence[int] | None = None,
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

    Returns:
        One row a claim, of `verdict`.

    Raises:
        ValueError: values do not fit.
    """
    seeds, rows = study.table_seeds if seeds is None else seeds, []
    for claim in claims:
        own = values if not callable(values) else {} if claim.why else values(claim)
        data_name = study.data_name(claim.on_hpatches)
        rows.append(verdict(claim, own, seeds, study.setting.profile.name, data_name))
    return pd.DataFrame(rows, columns=TABLE).astype(dict.fromkeys(NUMBERS, "float64"))


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
    keys = dict.fromkeys((*claim.a, *claim.b, *claim.given))
    values = {key: values.get(key, f"no values of {key}") for key in keys}
    reasons = [value for value in values.values() if isinstance(value, str)]
    if why := claim.why or "; ".join(reasons):
        return row | {"seeds": len(seeds), "verdict": NOT_JUDGED, "why": why}
    methods = {key: v if isinstance(v, Measured) else Measured(v) for key, v in values.items()}
    if len(counts := {method.values.shape[-1] for method in methods.values()}) > 1:
        raise ValueError(f"claim {claim.id}: methods differ in their numbers of cells, {counts}")
    enough = _cells_with_false_positives(methods)
    if enough:
        methods = {key: method.of_cells(enough) for key, method in methods.items()}
    trained = [len(method.values) for method in methods.values() if method.values.ndim == 2]
    fewest = min(trained, default=len(seeds))
    row |= judged(claim, methods) | {"seeds": fewest, "part": _part(claim, len(enough))}
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


def _cells_with_false_positives(methods: Mapping[str, Measured]) -> list[int]:
    """The cells in which every method whose pairs are known has enough of them that count as matches."""
    cells = np.ones(next(iter(methods.values())).values.shape[-1], dtype=bool)
    for method in methods.values():
        if method.pairs:
            rates = np.atleast_2d(method.values).mean(axis=0) / 100
            cells &= rates * method.pairs >= FEWEST_FALSE_POSITIVES
    return np.flatnonzero(cells).tolist()


def _part(claim: Claim, cells: int) -> str:
    """How many of the printed cells count, where these are fewer; of a claim whose metric is one of
    the printed tasks that one is all."""
    printed = printed_values(claim, claim.a[0], (claim.metric,))
    if printed is None or cells >= len(printed):
        return ""
    return f"{cells} of {len(printed)} {'tasks' if claim.on_hpatches else 'columns'}"


def wrong_by_chance(table: pd.DataFrame) -> str:
    """A sentence on how many verdicts may be wrong by chance alone.

    Args:
        table: of `judge`; minima and computations, which have no interval, are left out.
    """
    decided = table["verdict"].isin([HELD, NOT_HELD, *ON_OWN_DATA.values()]) & table["low"].notna()
    count = int(decided.sum())
    return (
        f"{count} verdicts rest on a {CONFIDENCE:.0%} interval, of which about "
        f"{(1 - CONFIDENCE) * count:.1f} are expected to be wrong by chance."
    )
