"""The papers' claims as they were written down beforehand, a CSV a paper beside this file."""

import csv
from dataclasses import dataclass, fields
from pathlib import Path

CLAIMS = Path(__file__).parent
# By direction, how the bound is put into words.
DIRECTIONS = {
    "less": "below",
    "greater": "above",
    "at_least": "at least",
    "at_most": "at most",
    "within": "within",
}
PAIRED = ("mean_difference", "each_difference", "share_better", "largest_relative_gain")
SINGLE = ("minimum", "maximum")
COUNT_BELOW = "count_below_"
NONE = "none"


@dataclass(frozen=True)
class Claim:
    """One claim of a paper, as written down before anything was measured.

    Attributes:
        id: unique name.
        paper, artefact: where the claim stands, e.g. `adasample`, `Table 1`.
        kind: `claim`, a sentence of the paper; or `reading`, what a reader infers but no sentence says.
        sentence: the claim in our words; `quote` the paper's words that it rests on.
        statistic, direction, margin: the rule, see `lib.reporting.claims.judging`; `none` has none.
        metric, unit: what is compared and the statistic's unit.
        better: `lower` or `higher`, which values of the metric are better.
        a, b: the keys of the compared methods.
        own_data: the name of the data on which the paper makes the claim; `ubc` is PhotoTour, and
            `ubc+hpatches` says that it trains there and tests on HPatches.
        printed: the printed table and its kind of values that the claim is of, e.g. `table1:fpr95`.
        counts_against: what would count against it.
        why: why there can be no verdict, where there is no rule.
        given: what a claim about a gain presupposes, two methods' keys as `better<worse`: that the mean
            over the cells of the first is surely better, or there is no verdict.
            An optional column.
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

    @property
    def on_hpatches(self) -> bool:
        """Whether it is about tests on HPatches, so that training data alone do not decide it."""
        return self.own_data.endswith("+hpatches")

    @property
    def bound(self) -> float:
        """What the statistic is compared with; of `within`, the upper one of two."""
        return -self.margin if self.direction == "less" and self.margin else self.margin

    def needed(self) -> str:
        """The condition on the statistic in words, e.g. `below -0.02 points`."""
        if self.statistic == NONE:
            return ""
        sign = "±" if self.direction == "within" else ""
        return f"{DIRECTIONS[self.direction]} {sign}{self.bound:g} {self.unit}".rstrip()


def read_claims(paper: str | None = None, artefact: str | None = None) -> list[Claim]:
    """Read the claims, all or those of one paper and artefact.

    Sentences of kind `print`, which no run bears on, are left to `lib.reporting.audit.sentences`.

    Raises:
        ValueError: nothing matches.
    """
    claims = []
    for path in sorted(CLAIMS.glob("*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            claims += [_parse(row) for row in csv.DictReader(file) if row["kind"] != "print"]
    wanted = [
        claim for claim in claims if paper in (None, claim.paper) and artefact in (None, claim.artefact)
    ]
    if not wanted:
        known = sorted({f"{claim.paper}, {claim.artefact}" for claim in claims})
        raise ValueError(f"no claim of {paper}, {artefact}; there are: {'; '.join(known)}")
    return wanted


def _parse(row: dict[str, str]) -> Claim:
    methods = {
        name: tuple(filter(None, row.get(name, "").split(between)))
        for name, between in (("a", ";"), ("b", ";"), ("given", "<"))
    }
    named = {field.name: row[field.name] for field in fields(Claim) if field.name in row}
    return Claim(**{**named, **methods, "margin": float(row["margin"])})
