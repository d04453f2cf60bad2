"""Run jobs on an existing Dask cluster whose machines share the results folder at the same path.

A worker runs a job as `lib.study.pool` does locally: in its own process with the profile's threads,
under the job's lock, and from its checkpoint if there is one. A job whose worker dies therefore
continues on another worker, and its record has the same bits.
"""

import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from filelock import FileLock, Timeout

from lib import cluster
from lib.digests import value_digest
from lib.files import locked
from lib.processes import Report, Task
from lib.study import records
from lib.study.jobs import Job, Setting, digests, record_status
from lib.study.pool import Failures, task

# Seconds to wait for a file that another machine wrote to be visible here.
_SEEN = 90.0


def complete(jobs: Iterable[Job], setting: Setting, address: str, report: Report) -> Failures:
    """Run jobs as `lib.study.pool.complete` does, in a folder that every worker sees.

    Args:
        jobs, setting, report: as for `lib.study.pool.complete`.
        address: of the cluster's scheduler, e.g. "tcp://10.0.0.1:8786".

    Returns:
        The jobs that failed, each with the reason; all others are complete.

    Raises:
        ValueError: a worker has other code or libraries than this machine, or another folder.
        OSError, KeyboardInterrupt: as `lib.cluster.run` raises.
    """
    jobs = list(jobs)
    lock = setting.folder / "locks" / f"study-{uuid.uuid4().hex}.lock"
    tasks = []
    for job in jobs:
        own, state = task(job, setting), _state(job, setting)
        tasks.append(replace(own, do=partial(_do_if_alike, own, job, setting, lock, state)))
    with locked(lock):
        outcomes = cluster.run(tasks, address, report, setting.profile.threads or 1)
    ended = list(zip(jobs, [outcome.failure for outcome in outcomes], strict=True))
    failed = [(job, failure) for job, failure in ended if failure]
    return failed + _unseen([job for job, failure in ended if not failure], setting)


def _unseen(jobs: Iterable[Job], setting: Setting) -> Failures:
    # A network file system may take a minute to show a new file.
    until, unseen = time.monotonic() + _SEEN, list(jobs)
    while unseen := [job for job in unseen if record_status(job, setting).state != "complete"]:
        if time.monotonic() > until:
            break
        time.sleep(1)
    why = f"done by a worker, and its record in {setting.folder} is"
    return [(job, f"{why} {record_status(job, setting).state} here") for job in unseen]


def _do_if_alike(task: Task, job: Job, setting: Setting, lock: Path, theirs: Mapping) -> str | None:
    """Run a task, or return why this machine must not."""
    if not lock.exists():
        return f"it does not see {lock}, so it does not share that folder"
    try:
        # The client holds this lock. Only the system's own locks will do: a dead worker releases them.
        with FileLock(lock, timeout=0, fallback_to_soft=False):
            return f"locks in {lock.parent} do not hold between its machine and the client's"
    except Timeout:
        ours = _state(job, setting)
    other = [
        f"{name} {ours.get(name)} (here: {theirs.get(name)})"
        for name in sorted(theirs.keys() | ours.keys())
        if ours.get(name) != theirs.get(name)
    ]
    return f"it has {', '.join(other)}" if other else task.do()


def _state(job: Job, setting: Setting) -> dict[str, str]:
    """Return what must be equal on two machines for a job to have the same record on both."""
    # A local label such as +cpu names a build of the same version.
    versions = {name: version.partition("+")[0] for name, version in records.libraries().items()}
    return {**versions, "code": value_digest(digests(job, setting))}
