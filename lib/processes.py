"""Run many tasks at once in separate processes, and report their progress.

If a process is killed, only its current task fails. All processes end with the one that started them.
"""

import contextlib
import errno
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing import connection, resource_tracker
from unittest.mock import patch

# Make glibc's allocator keep the memory that a step frees: returning it to the system and fetching it
# again at each step costs a fifth of a run. Other allocators ignore these variables.
_WORKERS = {
    "MALLOC_MMAP_THRESHOLD_": str(32 * 2**20),
    "MALLOC_TRIM_THRESHOLD_": str(4 * 10**9),
    "MALLOC_TOP_PAD_": str(64 * 2**20),
}
# The environment is shared by the whole process, and several of its threads may run tasks.
_environment_lock = threading.Lock()
# Processes by the pipe to each.
Workers = dict[connection.Connection, multiprocessing.Process]


@dataclass(frozen=True)
class Task:
    """A task for another process.

    Attributes:
        title: one line that tells people what the task is.
        do: called in that process; it and its return value must be picklable.
        weight: the task's share of all work, in any unit.
    """

    title: str
    do: Callable[[], object]
    weight: float = 1.0


@dataclass(frozen=True)
class Outcome:
    """The value that a task returned, or why it failed."""

    value: object = None
    failure: str | None = None


# Called with the progress: the task that just ended, or None when only time has passed; why it failed,
# or None; how many tasks have not ended yet; and the share of all work that is done, 0 to 1.
Report = Callable[[Task | None, str | None, int, float], None]


def held_at_once(threads: int) -> int:
    """Return how many processes of ``threads`` threads fit the usable cores; 1 for 0 threads."""
    from joblib import cpu_count

    return max(1, cpu_count() // threads) if threads else 1


def run(
    tasks: Sequence[Task], at_once: int, report: Report | None = None, threads: int = 0
) -> list[Outcome]:
    """Run tasks in order, several at once, in processes that each go on to the next task.

    Args:
        tasks: the tasks to run.
        at_once: number of processes.
        report: called at least twice a second, or None.
        threads: threads per process; 0 leaves the number to the libraries.

    Returns:
        The outcomes, in the tasks' order.

    Raises:
        KeyboardInterrupt, or what ``report`` raises: once the processes have ended and unwound, so that
            no file is left half-written.
    """
    show = report or (lambda *standing: None)
    outcomes: list[Outcome | None] = [None] * len(tasks)
    done, whole = 0.0, sum(task.weight for task in tasks)
    waiting = list(reversed(range(len(tasks))))
    workers: Workers = {}
    busy: dict[connection.Connection, int] = {}
    environment = _WORKERS | ({"OMP_NUM_THREADS": str(threads)} if threads else {})
    try:
        while None in outcomes:
            while waiting and len(busy) < at_once:
                if not workers.keys() - busy.keys():
                    _start(workers, environment)
                idle = next(pipe for pipe in workers if pipe not in busy)
                busy[idle] = waiting.pop()
                # A process that has ended meanwhile is noticed below.
                with contextlib.suppress(BrokenPipeError):
                    idle.send(tasks[busy[idle]].do)
            for pipe in connection.wait(list(busy), timeout=0.5):
                number = busy.pop(pipe)
                try:
                    outcomes[number] = pipe.recv()
                except (EOFError, OSError):
                    outcomes[number] = Outcome(failure=_end_of(workers.pop(pipe)))
                done += tasks[number].weight / whole
                show(tasks[number], outcomes[number].failure, outcomes.count(None), done)
            show(None, None, outcomes.count(None), done)
    except BaseException:
        for worker in workers.values():
            worker.terminate()
        raise
    finally:
        for pipe, worker in workers.items():
            pipe.close()
            worker.join(10)
            worker.kill()
    return outcomes


def _start(workers: Workers, environment: Mapping[str, str]) -> None:
    context = multiprocessing.get_context("spawn")
    pipe, theirs = context.Pipe()
    worker = context.Process(target=_work, args=(theirs,), daemon=True)
    # Ctrl-C reaches every process of a terminal, and the first process decides what to do. The others
    # start with SIGINT blocked, so that it cannot interrupt them halfway through their imports. Blocking
    # both signals here keeps them from ending this process before it has handed a new one its start-up
    # data. Starting multiprocessing's tracker unblocks both signals, so it is started first.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        with _environment_lock, patch.dict(os.environ, environment):
            worker.start()
        theirs.close()
        workers[pipe] = worker
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_of(process: multiprocessing.Process) -> str:
    process.join()
    code = process.exitcode
    ended = f"was killed by signal {-code}" if code < 0 else f"ended with status {code}"
    return f"its process {ended}; where memory ran out, --jobs with a smaller number takes less"


class _Ended(SystemExit, KeyboardInterrupt):
    """An exception that ends a worker without a traceback, as SystemExit does.

    It is a KeyboardInterrupt, too: a worker compiles the modules that it imports for the first time, and
    Python's compiler swallows every other exception while it folds constants.
    """


def _end(*_: object) -> None:
    raise _Ended(1)


def _work(pipe: connection.Connection) -> None:
    # On SIGTERM a process unwinds, which removes its half-written files.
    signal.signal(signal.SIGTERM, _end)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with contextlib.suppress(EOFError, OSError):  # the pipe is closed: there is no more to do
        while True:
            do = pipe.recv()
            try:
                outcome = Outcome(do())
            except Exception as error:
                outcome = Outcome(failure=f"{type(error).__name__}: {error}")
            pipe.send(outcome)


def _end_with_parent() -> None:
    multiprocessing.parent_process().join()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(1)
    os._exit(1)


def printed(count: int) -> Report:
    """Return a report that prints a line when a task ends, and once a minute while none does.

    The report raises OSError when a task has failed because the disk is full, since the next tasks would
    work in vain.

    Args:
        count: number of tasks.
    """
    started, last = time.monotonic(), 0.0

    def report(ended: Task | None, failure: str | None, left: int, share: float) -> None:
        nonlocal last
        seconds = time.monotonic() - started
        if ended is None and seconds - last < 60:
            return
        last, line = seconds, f"{share:.0%} of all work is done"
        if ended is not None:
            outcome = f"FAILED: {failure}" if failure else "done"
            line = f"[{count - left:>3}/{count}] {ended.title}: {outcome}"
        # A forecast from the speed so far; none at the very start.
        more = seconds * (1 / share - 1) if share > 0.02 else 0.0
        forecast = f", {span(more)} more" if more else ""
        print(f"{line} ({span(seconds)} so far{forecast})", flush=True)
        if f"[Errno {errno.ENOSPC}]" in (failure or ""):
            raise OSError(errno.ENOSPC, "the disk is full: make room, and the same command goes on")

    return report


def span(seconds: float) -> str:
    """Format a time in hours, minutes and seconds, e.g. "0:03:05"."""
    return str(timedelta(seconds=round(seconds)))


def wall_clock(seconds: Iterable[float], at_once: int) -> float:
    """Estimate the seconds until tasks of these lengths are done, ``at_once`` of them at a time."""
    lengths = list(seconds)
    return max([sum(lengths) / at_once, *lengths])
