"""The papers' jobs without searches, their records with made-up numbers, and how two recipes differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path

import pytest

from lib.recipes import Recipe
from lib.study.artefacts import hynet, rows
from lib.study.jobs import Job
from lib.study.open import Record, Study, open_study

# The best margins of HyNet's searches: the last one of each similarity.
BEST = {"hynet_aug", "hynet_d_1.4", "hynet_s_1"}


def searched(monkeypatch: pytest.MonkeyPatch, seeds: Sequence[int] | None = None) -> Study:
    """A quick study whose searches found the margins `BEST`, and rates that name their search."""

    def fpr95_by_rate(study: Study, key: str) -> dict:
        assert study.profile.name == "quick"
        return {"0.005": 30.0, "0.01": 20.0 if key in BEST else 25.0}

    monkeypatch.setattr(hynet, "searched_fpr95", fpr95_by_rate)
    monkeypatch.setattr(rows, "searched_rate", lambda opened, *names: _Rate(" and ".join(names)))
    return open_study(seeds=seeds)


def changed(recipe: Recipe, base: Recipe) -> set[str]:
    """The axes on which two recipes differ."""
    axes = {f.name for f in fields(Recipe)} - {"label"}
    return {name for name in axes if getattr(recipe, name) != getattr(base, name)}


class _Rate(float):
    """A rate of 1 with the name of its search."""

    def __new__(cls, name: str) -> _Rate:
        rate = super().__new__(cls, 1.0)
        rate.search = name
        return rate


def rate_of(job: Job) -> str:
    """The name of the search of a job's rate."""
    return job.recipe.optimizer.options["lr"].search


def records(
    jobs: Sequence[Job], fpr95: Callable[[Job], float], number: Callable[[Job], float] | None = None
) -> list[Record]:
    """One record per job: the same FPR95 on every set, one point more on the second and 10 points more
    by its signs, and the same number in all of HPatches' tasks."""
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
    """`records` with the FPR95 of five epochs, each a point lower, down to the final one."""
    runs = []
    for run in records(jobs, fpr95, number):
        fpr95s = {name: run.fpr95(name) for name in run.job.test_sets}
        by_epoch = {name: [last + 4 - epoch for epoch in range(5)] for name, last in fpr95s.items()}
        runs.append(replace(run, content={**run.content, "epoch_fpr95": by_epoch}))
    return runs
