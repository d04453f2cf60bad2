"""Carry out many tasks at once: in processes of this machine by joblib, or on a Dask cluster.

What joblib does not do by itself: a task returns its failure and never raises; if a worker is killed,
the sweep goes on once with what is missing; and workers end with the process that started them, whatever
ended it. A Dask scheduler starts a killed worker's task again itself and gives up after a few times, of
which joblib's own Dask backend takes no notice: it waits for ever. So a cluster is asked directly.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import sys
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import joblib
from joblib.externals.loky.process_executor import TerminatedWorkerError
from tqdm import tqdm

if TYPE_CHECKING:
    from distributed import Client

# Seconds within which a Dask scheduler must answer.
ANSWER = 20.0
KILLED = "its process was killed; where memory ran out, --jobs with a smaller number takes less"
_watched = False


@dataclass(frozen=True)
class Task:
    """A task for another process.

    Attributes:
        title: what the task is, in one line.
        do: called in that process; it must be picklable, and its value is ignored.
        seconds: roughly how long it takes.
        group: a number that tasks have in common if only all of them together are of use, such as those
            of all methods at one place.
    """

    title: str
    do: Callable[[], object]
    seconds: float = 1.0
    group: int = 0


@dataclass(frozen=True)
class Cluster:
    """A Dask cluster whose workers share this machine's results folder.

    Attributes:
        address: of the scheduler, e.g. "tcp://10.0.0.1:8786".
        folder: a folder that client and workers see at the same path.
        state: by name, what must be equal on client and workers, e.g. the version of torch.
        state_here: called on a worker, returns the worker's state.
    """

    address: str
    folder: Path
    state: Mapping[str, object]
    state_here: Callable[[], Mapping[str, object]]


def processes_for(threads: int) -> int:
    """Return how many processes of ``threads`` threads fit the usable cores; 1 for 0 threads."""
    return max(1, joblib.cpu_count() // threads) if threads else 1


def sweep(
    tasks: Sequence[Task],
    jobs: int,
    threads: int = 1,
    cluster: Cluster | None = None,
    unit: str = "run",
) -> list[tuple[str, str]]:
    """Carry out tasks, one group after another and the longest of a group first; show the progress.

    Args:
        tasks: the tasks.
        jobs: number of processes on this machine.
        threads: threads of a process; 0 leaves the number to the libraries.
        cluster: where tasks are carried out instead.
        unit: what a task is, for the progress bar.

    Returns:
        The titles of the tasks that failed, each with the reason.

    Raises:
        KeyboardInterrupt: what was done is kept.
        OSError: the disk is full, or no scheduler answers.
        ValueError: a worker of the cluster must not carry out these tasks.
    """
    left = dict(enumerate(sorted(tasks, key=lambda task: (task.group, -task.seconds))))
    failures: list[tuple[str, str]] = []
    with tqdm(total=len(tasks), unit=f" {unit}s", mininterval=1, file=sys.stderr) as bar:
        for trial in (1, 2):
            try:
                for number, failure in _outcomes(dict(left), jobs, threads, cluster):
                    task = left.pop(number)
                    bar.update()
                    if failure:
                        failures.append((task.title, failure))
                        bar.write(f"FAILED {task.title}: {failure}", file=sys.stderr)
                    if f"[Errno {errno.ENOSPC}]" in (failure or ""):
                        advice = "the disk is full: make room, and the same command goes on"
                        raise OSError(errno.ENOSPC, advice)
                break
            except TerminatedWorkerError:
                if trial == 1:
                    bar.write("A process was killed; going on with what is missing.", file=sys.stderr)
    return failures + [(task.title, KILLED) for task in left.values()]


def _outcomes(
    tasks: Mapping[int, Task], jobs: int, threads: int, cluster: Cluster | None
) -> Iterator[tuple[int, str | None]]:
    """Yield the number of each task that has ended, with the reason if it failed."""
    if cluster is None:
        return _outcomes_here(tasks, jobs, threads)
    return _outcomes_on_cluster(tasks, cluster)


def _outcomes_here(
    tasks: Mapping[int, Task], jobs: int, threads: int
) -> Iterator[tuple[int, str | None]]:
    with (
        warnings.catch_warnings(),
        joblib.parallel_config("loky", inner_max_num_threads=threads or None),
    ):
        # joblib replaces a process whose memory has grown, as in training it does, and warns of it.
        warnings.filterwarnings("ignore", "A worker stopped while some jobs were given")
        parallel = joblib.Parallel(n_jobs=jobs, batch_size=1, return_as="generator_unordered")
        attempt = joblib.delayed(_attempt_here)
        yield from parallel(attempt(number, task, os.getpid()) for number, task in tasks.items())


def _outcomes_on_cluster(
    tasks: Mapping[int, Task], cluster: Cluster
) -> Iterator[tuple[int, str | None]]:
    from distributed import KilledWorker, as_completed

    with _token(cluster) as token, _client(cluster, token) as client:
        futures = {}
        for place, (number, task) in enumerate(tasks.items()):
            future = client.submit(
                _attempt_on_cluster, number, task, cluster, token, pure=False, priority=-place
            )
            futures[future] = number
        for future in as_completed(futures):
            error = future.exception()
            if isinstance(error, KilledWorker):
                yield futures[future], KILLED
            else:
                yield future.result()


def _attempt_here(number: int, task: Task, parent: int) -> tuple[int, str | None]:
    _end_with(parent)
    return number, _failure(task)


def _attempt_on_cluster(
    number: int, task: Task, cluster: Cluster, token: Path
) -> tuple[int, str | None]:
    from distributed import get_worker

    why = _refusal(cluster, token, get_worker())
    if why:
        return number, f"a worker at {cluster.address} is refused: {why}"
    return number, _failure(task)


def _failure(task: Task) -> str | None:
    """Carry out a task, and return why it failed; None if it did not."""
    try:
        task.do()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def _end_with(parent: int) -> None:
    """Make this process end within a second of the one that started it, whatever ended that one."""
    global _watched
    if _watched or os.getpid() == parent:
        return
    _watched = True
    # Ctrl-C reaches every process of a terminal; the first one decides what to do.
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextlib.contextmanager
def _token(cluster: Cluster) -> Iterator[Path]:
    """Provide a file that only those workers see which share the client's folder."""
    token = cluster.folder / f"client-{uuid.uuid4().hex}"
    token.parent.mkdir(parents=True, exist_ok=True)
    token.touch()
    try:
        yield token
    finally:
        token.unlink(missing_ok=True)


@contextlib.contextmanager
def _client(cluster: Cluster, token: Path) -> Iterator[Client]:
    """Provide a client of a cluster all of whose present workers may carry out the tasks."""
    import distributed
    from distributed.comm import connect

    try:
        # A client waits for ever if something other than a scheduler listens at the address.
        answered = connect(cluster.address, timeout=ANSWER)
        asyncio.run(asyncio.wait_for(answered, ANSWER)).abort()
        client = distributed.Client(cluster.address, timeout=ANSWER)
    except Exception as error:
        raise OSError(f"no Dask scheduler answers at {cluster.address}: {error!r}") from error
    with client:
        for worker, why in client.run(_refusal, cluster, token).items():
            if why:
                raise ValueError(f"the worker {worker} is refused: {why}")
        yield client


def _refusal(cluster: Cluster, token: Path, dask_worker: object) -> str:
    """Say why a worker must not carry out the client's tasks; empty if it may.

    `distributed.Client.run` hands over ``dask_worker``, the worker on which this is called.
    """
    # Two trainings in one process would share torch's random numbers.
    if dask_worker.state.nthreads != 1:
        return "it has several threads: start it with one, and several workers instead"
    return _difference(cluster, token)


def _difference(cluster: Cluster, token: Path) -> str:
    """Say how this process differs from the client; empty if it does not."""
    if not token.exists():
        return f"it does not see {token}, so it does not share that folder"
    ours = cluster.state_here()
    other = [
        f"{name} {ours.get(name)} (here: {value})"
        for name, value in cluster.state.items()
        if ours.get(name) != value
    ]
    return f"it has {', '.join(other)}" if other else ""


def span(seconds: float) -> str:
    """Format a time in hours, minutes and seconds, e.g. "0:03:05"."""
    return str(timedelta(seconds=round(seconds)))


def wall_clock(seconds: Sequence[float], jobs: int) -> float:
    """Estimate the seconds until tasks of these lengths are done, ``jobs`` of them at a time."""
    return max([sum(seconds) / jobs, *seconds, 0.0])
