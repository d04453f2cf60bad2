"""Papers' jobs without searches, records of them with numbers made up, and how two recipes differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path

import pytest

from lib.recipes import Recipe
from lib.study.artefacts import hynet, rows
from lib.study.jobs import Job
from lib.study.open import Record, Study, open_study

# What the searches of HyNet's margins found best, of each similarity its last.
BEST = {"hynet_aug", "hynet_d_1.4", "hynet_s_1"}


def searched(monkeypatch: pytest.MonkeyPatch, seeds: Sequence[int] | None = None) -> Study:
    """A quick study whose searches all found a rate that tells whose it was, and the margins `BEST`."""

    def found(study: Study, key: str) -> dict:
        assert study.profile.name == "quick"
        return {"0.005": 30.0, "0.01": 20.0 if key in BEST else 25.0}

    monkeypatch.setattr(hynet, "searched_fpr95", found)
    monkeypatch.setattr(rows, "searched_rate", lambda of, *names: _Rate(" and ".join(names)))
    return open_study(seeds=seeds)


def changed(recipe: Recipe, base: Recipe) -> set[str]:
    """The axes on which two recipes differ."""
    axes = {f.name for f in fields(Recipe)} - {"label"}
    return {name for name in axes if getattr(recipe, name) != getattr(base, name)}


class _Rate(float):
    """1, and the name of the search that it is of."""

    def __new__(cls, name: str) -> _Rate:
        rate = super().__new__(cls, 1.0)
        rate.search = name
        return rate


def rate_of(job: Job) -> str:
    """The name of the search that a job's rate is of."""
    return job.recipe.optimizer.options["lr"].search


def records(
    jobs: Sequence[Job], fpr95: Callable[[Job], float], number: Callable[[Job], float] | None = None
) -> list[Record]:
    """A record a job with the same FPR95 on every set, one point more on the second, and 10 points more
    by its signs; and with the same number in all of HPatches' tasks."""
    return [_record(job, fpr95, number) for job in jobs]


def _record(job: Job, fpr95: Callable[[Job], float], number: Callable[[Job], float] | None) -> Record:
    metrics: dict[str, dict] = {}
    for module, test_set in job.measures:
        value = fpr95(job) + 10 * module.endswith("signs") + test_set.endswith("-b")
        metrics.setdefault(test_set, {})[module] = (
            _tasks(number(job)) if module.startswith("hpatches") else {"expected": value}
        )
    curve = {"zero_share": [0.0] * 8 + [0.1, 0.3]}
    content = {"metrics": metrics, "probes": {}, "curve": curve}
    return Record(job, Path("record.json"), content)


def _tasks(value: float) -> dict[str, float]:
    """HPatches' three numbers."""
    return {task: value for task in ("verification", "matching", "retrieval", "retrieval.pools")}


def followed(
    jobs: Sequence[Job], fpr95: Callable[[Job], float], number: Callable[[Job], float] | None = None
) -> list[Record]:
    """`records` that were followed for five epochs, a point lower at each, down to their FPR95."""
    found = []
    for run in records(jobs, fpr95, number):
        fpr95s = {name: run.fpr95(name) for name in run.job.test_sets}
        by_epoch = {name: [of + 4 - epoch for epoch in range(5)] for name, of in fpr95s.items()}
        found.append(replace(run, content={**run.content, "epoch_fpr95": by_epoch}))
    return found
