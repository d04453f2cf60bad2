"""Does jobs on an existing Dask cluster, whose machines share the folder of results at the same path.

A Dask worker does a job as `lib.study.pool` has it done here: in a process of its own with the profile's
threads, under the job's lock, from its checkpoint where there is one. So a job whose worker dies goes on
elsewhere, and its record has the same bits. A worker does as many jobs at once as it has threads.
"""

import asyncio
import logging
import multiprocessing
import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from distributed import Client, Future, KilledWorker, get_worker
from distributed.comm import connect
from filelock import FileLock, Timeout

from lib.digests import value_digest
from lib.files import locked
from lib.processes import Outcome, Report, Task, run
from lib.study import records
from lib.study.jobs import Job, Setting, digests, record_status
from lib.study.pool import Failures, task

# Until a scheduler has to answer, and until what another machine wrote is to be seen here, in seconds.
_ANSWER = 20.0
_SEEN = 90.0


def at_once(address: str) -> int:
    """Jobs that the cluster does at once today: its workers' threads.

    Raises:
        OSError: no scheduler answers.
    """
    with _client(address) as client:
        return sum(client.nthreads().values())


def complete(jobs: Iterable[Job], setting: Setting, address: str, report: Report) -> Failures:
    """Does jobs as `lib.study.pool.complete` does, in the same folder seen from every worker.

    Workers may come and go; while there is none it waits. However this ends, the cluster lives on, and
    what it still does of these jobs ends within seconds.

    Args:
        jobs, setting, report: as there.
        address: of the cluster's scheduler, e.g. "tcp://10.0.0.1:8786".

    Returns:
        The jobs that failed, each with the reason; all others are complete.

    Raises:
        ValueError: a worker has other code or libraries than this machine, or another folder.
        OSError: no scheduler answers, or it is gone.
        KeyboardInterrupt, or what ``report`` raises.
    """
    jobs, failures, done = list(jobs), [], 0.0
    lock = setting.folder / "locks" / f"study-{uuid.uuid4().hex}.lock"
    tasks = []
    for job in jobs:
        own, state = task(job, setting), _state(job, setting)
        tasks.append(replace(own, do=partial(_do_if_alike, own, job, setting, lock, state)))
    whole = sum(task.weight for task in tasks)
    with locked(lock), _client(address) as client:
        waiting = {
            client.submit(_do, task, setting.profile.threads or 1, pure=False, priority=-number): number
            for number, task in enumerate(tasks)
        }
        while waiting:
            time.sleep(0.5)
            for future in [future for future in waiting if future.done()]:
                number, failure = waiting.pop(future), _failure(future, address)
                done += tasks[number].weight / whole
                if failure:
                    failures.append((jobs[number], failure))
                report(tasks[number], failure, len(waiting), done)
            report(None, None, len(waiting), done)
    failed = [job for job, _ in failures]
    return failures + _unseen([job for job in jobs if job not in failed], setting)


def _client(address: str) -> Client:
    """Closed, it takes back what the cluster has not done yet."""
    # What goes wrong is said here, and would be logged with a traceback besides.
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
    try:
        # A client waits for ever where something else than a scheduler listens.
        asyncio.run(asyncio.wait_for(connect(address, timeout=_ANSWER), _ANSWER)).abort()
    except Exception as error:
        raise OSError(f"no Dask scheduler answers at {address}: {error!r}") from error
    return Client(address, timeout=_ANSWER, set_as_default=False)


def _failure(future: Future, address: str) -> str | None:
    if future.cancelled():
        raise ConnectionError(f"the scheduler at {address} is gone; what was done is kept")
    error = future.exception()
    if isinstance(error, KilledWorker):
        return f"{error}"
    if error is not None:
        raise ValueError(f"a worker at {address} cannot do the study's jobs: {error!r}") from error
    outcome = future.result()
    if outcome.value is not None:
        raise ValueError(f"a worker at {address} is refused: {outcome.value}; what was done is kept")
    return outcome.failure


def _unseen(jobs: Iterable[Job], setting: Setting) -> Failures:
    # A network file system may show what was not there a moment ago only after a minute.
    until, unseen = time.monotonic() + _SEEN, list(jobs)
    while unseen := [job for job in unseen if record_status(job, setting).state != "complete"]:
        if time.monotonic() > until:
            break
        time.sleep(1)
    why = f"done by a worker, and its record in {setting.folder} is"
    return [(job, f"{why} {record_status(job, setting).state} here") for job in unseen]


def _do(task: Task, threads: int) -> Outcome:
    worker = get_worker()
    key = worker.get_current_task()
    # A worker that a nanny started may otherwise start no process.
    multiprocessing.current_process().daemon = False

    def check(*_: object) -> None:
        state = worker.state.tasks.get(key)
        if state is None or state.state == "cancelled":
            raise InterruptedError("nobody waits for it any more")

    return run([task], 1, check, threads)[0]


def _do_if_alike(task: Task, job: Job, setting: Setting, lock: Path, theirs: Mapping) -> str | None:
    """Does a task, or says why this machine must not."""
    if not lock.exists():
        return f"it does not see {lock}, so it does not share that folder"
    try:
        # The client holds it. Only the system's own locks will do: they go with a worker that dies.
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
    """What has to be the same on both machines for a job to have the same record."""
    # A local label such as +cpu names a build of the same version.
    versions = {name: version.partition("+")[0] for name, version in records.libraries().items()}
    return {**versions, "code": value_digest(digests(job, setting))}
