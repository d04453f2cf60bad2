"""Verdicts, and how they are shown and saved."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from lib.study.claims.rows import Claim

HELD, NOT_HELD, OPEN, NO_VERDICT = "held", "did not hold", "too close to call", "no verdict"
TABLE = [
    *("claim", "paper", "artefact", "sentence", "kind", "needed", "observed", "low", "high", "printed"),
    *("rival", "unit", "profile", "data", "seeds", "part", "seeds_needed", "verdict", "why", "seen"),
]
NUMBERS = ("observed", "low", "high", "printed")


@dataclass(frozen=True)
class Verdict:
    """What became of a claim under one profile, data source and set of seeds.

    Attributes:
        claim: the claim.
        outcome: `held`, `did not hold` or `too close to call`; with the profile `paper` on the paper's
            own data `reproduced` or `not reproduced`; or `no verdict`.
        seeds: how many seeds; 0 of what was computed without any.
        profile, data_name: where the values come from.
        observed: the statistic of the comparison that decides, or None where it was not computed.
        low, high: its 95% interval, or None where it has none.
        over: what the interval is over: seeds, tests (their points or sequences) or what else was drawn,
            or both.
        rival: the method and, where it matters, the cell that decides; else empty.
        printed: the same statistic of the values that the paper prints, or None.
        seeds_needed: where it is too close, how many would tell, in words; else empty.
        why: why it is too close or has no verdict, what its interval is one of, and what it leaves out;
            may be empty.
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
    seeds_needed: str = ""
    why: str = ""
    part: str = ""

    def observation(self) -> str:
        """What was observed, if anything: its interval, rival, condition and printed value, rounded."""
        if self.observed is None:
            return ""
        text = f"{_rounded(self.observed)} {self.claim.unit}".rstrip()
        if self.low is not None:
            text += f" (95% over {self.over}: {_rounded(self.low)} to {_rounded(self.high)})"
        if self.rival and (len(self.claim.b) != 1 or " in " in self.rival):
            text += f" {self.rival}" if self.rival.startswith("in ") else f" against {self.rival}"
        if self.printed is not None:
            text += f"; printed: {_rounded(self.printed)}"
        return f"{text}; to hold: {self.claim.needed()}"

    def text(self) -> str:
        """The verdict in words, with profile, data and seeds where there is a rule at all and something
        was trained."""
        why = f": {self.why}" if self.why else ""
        if self.claim.why:
            return f"{self.outcome}{why}"
        where = f"{self.profile} profile, {self.data_name} data, {in_seeds(self.seeds)}"
        seen = f"; {written_after(self.claim.seen)}" if self.claim.seen else ""
        return f"{self.outcome}{why} ({where if self.seeds else in_seeds(0)}{seen})"


def in_seeds(count: int) -> str:
    """`Verdict.seeds` in words."""
    return f"{count:.0f} seed{'s' * (count != 1)}" if count else "computed, no seeds"


def written_after(seen: str) -> str:
    """`Claim.seen` in words."""
    return f"written down when {seen} had been seen"


def _rounded(value: float) -> str:
    return f"{round(value, 3) + 0.0:.3f}".rstrip("0").rstrip(".")


def verdict_table(verdicts: Sequence[Verdict]) -> pd.DataFrame:
    """The verdicts as a table, one row a claim."""
    rows = [
        {**vars(v.claim), **vars(v), "claim": v.claim.id, "needed": v.claim.needed()} for v in verdicts
    ]
    table = pd.DataFrame(rows).rename(columns={"outcome": "verdict", "data_name": "data"})
    return table[TABLE].astype(dict.fromkeys(NUMBERS, "float64"))


def show_verdicts(verdicts: Sequence[Verdict], width: int = 100) -> None:
    """Print each claim, what was observed of it and the verdict, as plain text."""
    for number, v in enumerate(verdicts):
        if number:
            print()
        lead = "Claim: " if v.claim.kind == "claim" else "Reading: "
        for start, text in ((lead, v.claim.sentence), ("   ", v.observation()), ("   ", v.text())):
            if text:
                wrap = textwrap.TextWrapper(width, start, "   ", break_on_hyphens=False)
                print(wrap.fill(text))
