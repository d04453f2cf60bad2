"""A small run in a worker process that logs its steps and waits at step 5 to be killed."""

from __future__ import annotations

import os
import time
from functools import partial
from pathlib import Path

from lib.study.jobs import Job, Setting


def followed(job: Job, setting: Setting, folder: Path) -> None:
    """Do a job with a checkpoint at each step; wait at step 5 unless `folder` has a file "killed"."""
    from lib import training
    from lib.study import runs

    worker = os.getppid()

    def step(number: int, total: int) -> None:
        with open(folder / f"{worker}.steps", "a") as file:
            file.write(f"{number}\n")
        if number == 5 and not (folder / "killed").exists():
            marker = folder / f"{worker}.half"
            marker.write_text(str(worker))
            marker.rename(folder / "waiting")
            time.sleep(600)

    training.train = partial(training.train, checkpoint_seconds=0, on_step=step)
    runs.train = training.train
    runs.carry_out(job, setting)


def undone() -> None:
    """Do none of the work of a job."""
