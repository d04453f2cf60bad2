"""Records for the tests of reporting, as `lib.study.open.records_of` gives them, and verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from lib.study import claims
from lib.study.claims import Claim, read_claims
from lib.study.jobs import Job
from lib.study.open import Record


@dataclass(frozen=True)
class Run(Record):
    """A record whose probes are given by name; FPR95 has 400 resamples about it."""

    arrays_of: Mapping[str, Mapping[str, np.ndarray]] = field(default_factory=dict)

    def probe(self, name: str, test_set: str | None = None) -> Mapping[str, np.ndarray]:
        if name != "resampled_fpr95":
            return self.arrays_of[name]
        rates = self.fpr95(test_set) * (1 + 0.01 * np.random.default_rng(0).normal(size=400))
        return {"rates": rates, "pair_rates": rates}


def found(
    key: str, train_set: str | None, seed: int | None, *, label: str = "", **content: object
) -> Record:
    """A record of a method, labelled by its key in capitals; `content` as a record file holds it."""
    job = Job(key, label or key.upper(), train_set=train_set, seed=seed)
    return Record(job, Path("record.json"), {"metrics": {}, "probes": {}, **content})


def with_fpr95(
    key: str, train_set: str | None, seed: int | None, *, label: str = "", **fpr95: float
) -> Record:
    """A record with an FPR95 a test set."""
    metrics = {name: {"fpr95": {"expected": value, "low": 0.0}} for name, value in fpr95.items()}
    return found(key, train_set, seed, label=label, metrics=metrics)


def verdict(claim: Claim, *judged_by: object) -> SimpleNamespace:
    """The columns of `lib.study.claims.verdict` as attributes; a finding has the outcome of a claim."""
    row = claims.verdict(replace(claim, kind="claim"), *judged_by)
    return SimpleNamespace(**row | {"claim": claim, "outcome": row["verdict"]})


def claims_on(paper: str, artefact: str) -> list[Claim]:
    """The claims on an artefact, those on parts of it too."""
    return [claim for claim in read_claims(paper) if claim.artefact.split(", ")[0] == artefact]


def verdicts(
    paper: str, artefact: str, values: object, seeds: Sequence[int] = (0, 1, 2)
) -> dict[str, SimpleNamespace]:
    """By id, without the paper's name, the verdicts of an evening on the claims on an artefact;
    `values` as `lib.study.report.artefact.Artefact.judge` takes them."""
    of = values if callable(values) else lambda claim: values
    return {
        claim.id.removeprefix(f"{paper}-"): verdict(
            claim, {} if claim.why else of(claim), seeds, "evening", "mini"
        )
        for claim in claims_on(paper, artefact)
    }


def outcomes(
    paper: str, artefact: str, values: object, seeds: Sequence[int] = (0, 1, 2)
) -> dict[str, str]:
    """What `verdicts` come to, of the claims that have a rule."""
    found = verdicts(paper, artefact, values, seeds)
    return {key: of.outcome for key, of in found.items() if not of.claim.why}
