"""Records for the tests of reporting, as `lib.study.open.records_of` returns them, and verdicts."""

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
    """A record with its probes given by name and 400 resamples about its FPR95."""

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
    """A record with one FPR95 per test set."""
    metrics = {name: {"fpr95": {"expected": value, "low": 0.0}} for name, value in fpr95.items()}
    return found(key, train_set, seed, label=label, metrics=metrics)


def verdict(claim: Claim, *judged_by: object) -> SimpleNamespace:
    """The columns of `lib.study.claims.verdict` as attributes; a finding has the outcome of a claim."""
    row = claims.verdict(replace(claim, kind="claim"), *judged_by)
    return SimpleNamespace(**row | {"claim": claim, "outcome": row["verdict"]})


def claims_on(paper: str, artefact: str) -> list[Claim]:
    """The claims on an artefact and on its parts."""
    return [claim for claim in read_claims(paper) if claim.artefact.split(", ")[0] == artefact]


def verdicts(
    paper: str, artefact: str, values: object, seeds: Sequence[int] = (0, 1, 2)
) -> dict[str, SimpleNamespace]:
    """The verdicts at evening size on the claims on an artefact, by id without the paper's name;
    `values` as `lib.study.report.artefact.Artefact.judge` takes them."""
    values_of = values if callable(values) else lambda claim: values
    return {
        claim.id.removeprefix(f"{paper}-"): verdict(
            claim, {} if claim.why else values_of(claim), seeds, "evening", "mini"
        )
        for claim in claims_on(paper, artefact)
    }


def outcomes(
    paper: str, artefact: str, values: object, seeds: Sequence[int] = (0, 1, 2)
) -> dict[str, str]:
    """The outcomes of `verdicts` on the claims that have a rule."""
    judged = verdicts(paper, artefact, values, seeds)
    return {key: row.outcome for key, row in judged.items() if not row.claim.why}
