"""Records for the tests of reporting, as `lib.study.open.obtain` gives them."""

from __future__ import annotations

from pathlib import Path

from lib.study.jobs import Job
from lib.study.open import Found


def found(
    key: str, train_set: str | None, seed: int | None, *, label: str = "", **content: object
) -> Found:
    """A record of a method, labelled by its key in capitals; `content` as a record file holds it."""
    job = Job(key, label or key.upper(), train_set=train_set, seed=seed)
    return Found(job, Path("record.json"), {"metrics": {}, "probes": {}, **content}, False)


def with_fpr95(
    key: str, train_set: str | None, seed: int | None, *, label: str = "", **fpr95: float
) -> Found:
    """A record with an FPR95 a test set."""
    metrics = {name: {"fpr95": {"expected": value, "low": 0.0}} for name, value in fpr95.items()}
    return found(key, train_set, seed, label=label, metrics=metrics)
