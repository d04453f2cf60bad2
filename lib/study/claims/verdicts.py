"""Verdicts: what the rule says of a claim, and whether runs of this size and data may say it.

A claim is *not judged* where no run can decide it, where its methods have no values, and where runs are
short: `quick` shows numbers, not verdicts. What is computed without training is judged at any size.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from lib.statistics.intervals import Measured
from lib.study.claims.judging import HELD, NOT_HELD, NOT_JUDGED, judged
from lib.study.claims.rows import Claim, printed_values
from lib.study.open import Study

# The profiles whose runs are long enough to judge a claim by.
JUDGING = ("evening", "standard", "paper")
# Outcomes with the profile `paper` on the paper's own data.
ON_OWN_DATA = {HELD: "reproduced", NOT_HELD: "not reproduced"}
TABLE = [
    *("claim", "paper", "artefact", "sentence", "kind", "needed", "observed", "low", "high", "over"),
    *("printed", "rival", "unit", "profile", "data", "seeds", "part", "verdict", "why", "seen"),
]
NUMBERS = ("observed", "low", "high", "printed")
# By method's key a `Measured`, an array, or a text that says why there are no values.
Values = Mapping[str, Measured | np.ndarray | str]


@dataclass(frozen=True)
class Verdict:
    """What became of a claim under one profile, data source and set of seeds.

    Attributes:
        claim: the claim.
        outcome: `held`, `did not hold`, `open` or `not judged`; with the profile `paper` on the paper's
            own data `reproduced` or `not reproduced`.
        seeds: how many seeds; 0 of what was computed without any.
        profile, data_name: where the values come from.
        observed: the statistic of the comparison that decides, in the claim's unit, or None where it was
            not computed.
        low, high: its 95% interval, or None where it has none.
        over: what the interval is over: seeds, tests (their points or sequences) or what else was drawn,
            or both. Verification on HPatches is over pairs of all sequences, so over seeds alone.
        rival: the method and, where it matters, the cell that decides; else empty.
        printed: the same statistic of the values that the paper prints, or None.
        why: why it is open, with the seeds that would tell, or not judged, and what its interval is one
            of; may be empty.
        part: how many of the cells that the paper prints there were, e.g. `2 of 6 columns`; empty where
            all.
    """

    claim: Claim
    outcome: str
    seeds: int
    profile: str
    data_name: str
    observed: float | None = None
    low: float | None = None
    high: float | None = None
    over: str = ""
    rival: str = ""
    printed: float | None = None
    why: str = ""
    part: str = ""


def judge(
    claims: Sequence[Claim],
    values: Values | Callable[[Claim], Values],
    study: Study,
    seeds: Sequence[int] | None = None,
) -> pd.DataFrame:
    """Judge claims by the values of one study.

        claims = read_claims("dsm", "Table 1")
        table = judge(claims, lambda claim: values_of(claim, runs, study.place.source.sets), study)

    Args:
        claims: e.g. of `lib.study.claims.read_claims`.
        values: by method's key as `verdict` takes them, or a function that gives them for a claim, such
            as `lib.study.claims.measured.values_of`, which is not called where no run can decide.
        study: whose profile, data and seeds the values are of.
        seeds: in the order of the arrays' first axis; by default those of a table. None, `()`, where
            values without seeds are of a computation.

    Returns:
        One row a claim, as `verdict_table`.

    Raises:
        ValueError: values do not fit.
    """
    seeds = study.table_seeds if seeds is None else seeds
    verdicts = []
    for claim in claims:
        own = values if not callable(values) else {} if claim.why else values(claim)
        data_name = study.data_name(claim.on_hpatches)
        verdicts.append(verdict(claim, own, seeds, study.place.profile.name, data_name))
    return verdict_table(verdicts)


def verdict(claim: Claim, values: Values, seeds: Sequence[int], profile: str, data_name: str) -> Verdict:
    """Judge one claim.

    Args:
        claim: the claim.
        values: for each method a `Measured`, or an array (seeds, cells), or (cells,) for a method
            without seeds. All methods' cells are the same, in the same order. A method that was not
            asked for may be absent, or be a text that says why it has no values: a claim that names it
            is not judged.
        seeds: in the order of the arrays' first axis; a method may have the first of them alone. None
            of a computation: values without seeds are then taken as computed.
        profile: the profile's name.
        data_name: what it was trained and tested on, named as `Claim.own_data` is.

    Raises:
        ValueError: a shape does not fit, or a value is not finite.
    """
    keys = dict.fromkeys((*claim.a, *claim.b, *claim.given))
    absent = [key for key in keys if key not in values]
    reasons = [f"no values of {', '.join(absent)}"] if absent else []
    reasons += [values[key] for key in keys if isinstance(values.get(key), str)]
    if why := claim.why or "; ".join(reasons):
        return Verdict(claim, NOT_JUDGED, len(seeds), profile, data_name, why=why)
    methods = {key: _with_seeds(values[key], seeds) for key in keys}
    cells = {method.values.shape[-1] for method in methods.values()}
    if len(cells) > 1:
        raise ValueError(f"claim {claim.id}: methods differ in their numbers of cells, {cells}")
    trained = [len(method.values) for method in methods.values() if method.values.ndim == 2]
    fewest, said = min(trained, default=len(seeds)), judged(claim, methods)
    if fewest and profile not in JUDGING:
        said |= {"outcome": NOT_JUDGED, "why": f"{profile} shows numbers, not verdicts"}
    if profile == "paper" and data_name == claim.own_data:
        said["outcome"] = ON_OWN_DATA.get(said["outcome"], said["outcome"])
    part = _part(claim, *cells)
    return Verdict(claim, seeds=fewest, profile=profile, data_name=data_name, part=part, **said)


def _with_seeds(values: Measured | np.ndarray, seeds: Sequence[int]) -> Measured:
    method = values if isinstance(values, Measured) else Measured(values)
    runs = len(method.values)
    unnamed = method.values.ndim == 2 and not method.seeds and runs <= len(seeds)
    return replace(method, seeds=tuple(seeds[:runs])) if unnamed else method


def _part(claim: Claim, cells: int) -> str:
    """How many of the printed cells there are, where these are fewer; of a claim whose metric is one of
    the printed tasks that one is all."""
    printed = printed_values(claim, claim.a[0], (claim.metric,)) if claim.printed else None
    if printed is None or cells >= len(printed):
        return ""
    return f"{cells} of {len(printed)} {'tasks' if claim.on_hpatches else 'columns'}"


def verdict_table(verdicts: Sequence[Verdict]) -> pd.DataFrame:
    """The verdicts as a table, one row a claim, with the columns of `TABLE`."""
    rows = [
        {**vars(v.claim), **vars(v), "claim": v.claim.id, "needed": v.claim.needed()} for v in verdicts
    ]
    table = pd.DataFrame(rows).rename(columns={"outcome": "verdict", "data_name": "data"})
    return table[TABLE].astype(dict.fromkeys(NUMBERS, "float64"))
