"""HyNet's jobs without searches, and records of them with numbers made up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from dsm_records import records
from dsm_records import searched as with_rates

from lib.experiments import hynet
from lib.study.jobs import Job
from lib.study.open import Found, Study

# What the searches of margins found best, of each similarity its second.
BEST = {"hynet_aug", "hynet_d_1.4", "hynet_s_1"}


def searched(monkeypatch: pytest.MonkeyPatch, seeds: Sequence[int] | None = None) -> Study:
    """A quick study whose searches all found a rate that tells whose it was, and the margins `BEST`."""

    def found(profile: str, key: str) -> dict:
        assert profile == "quick"
        return {"metrics": {"mean_fpr95": {"0.005": 30.0, "0.01": 20.0 if key in BEST else 25.0}}}

    monkeypatch.setattr(hynet, "read_search", found)
    return with_rates(monkeypatch, seeds)


def followed(
    jobs: Sequence[Job], fpr95: Callable[[Job], float], number: Callable[[Job], float] | None = None
) -> list[Found]:
    """`records` that were followed for five epochs, a point lower at each, down to their FPR95."""
    found = []
    for run in records(jobs, fpr95, number):
        fpr95s = run.fpr95s()
        by_epoch = {name: [of + 4 - epoch for epoch in range(5)] for name, of in fpr95s.items()}
        found.append(replace(run, content={**run.content, "epoch_fpr95": by_epoch}))
    return found
