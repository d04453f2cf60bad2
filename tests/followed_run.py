"""A small run for a cluster's worker that logs its steps and waits at step 5 to be killed."""

from __future__ import annotations

import multiprocessing
import os
import time
from functools import partial
from pathlib import Path

from distributed import Worker, WorkerPlugin
from forked import fork_tasks

from lib.study.jobs import Job, Setting


class ForkedTasks(WorkerPlugin):
    """Fork the processes of a forked worker's tasks, which spares them the imports."""

    def setup(self, worker: Worker) -> None:
        fork_tasks()


def followed(job: Job, setting: Setting, folder: Path) -> None:
    """Do a job with a checkpoint at each step; wait at step 5 unless `folder` has a file "killed".

    While it waits, a file "waiting" holds the process ids of the worker and of the job.
    """
    from lib import training
    from lib.study import runs

    worker = multiprocessing.parent_process().pid

    def step(number: int, total: int) -> None:
        with open(folder / f"{worker}.steps", "a") as file:
            file.write(f"{number}\n")
        if number == 5 and not (folder / "killed").exists():
            marker = folder / f"{worker}.half"
            marker.write_text(f"{worker} {os.getpid()}")
            marker.rename(folder / "waiting")
            time.sleep(600)

    training.train = partial(training.train, checkpoint_seconds=0, on_step=step)
    runs.train = training.train
    runs.carry_out(job, setting)


def undone() -> None:
    """Do none of the work of a job."""
