"""Does many jobs at once, each in a process of its own, and tells how far they are."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import queue
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass

from lib.profiles import Profile
from lib.study.jobs import Job, Place, cost

_STEPS_PER_MESSAGE = 10
# glibc's allocator keeps what a step frees: returned to the system and fetched again at each step,
# it costs a fifth of a run. Other allocators take no notice.
_WORKERS = {
    "MALLOC_MMAP_THRESHOLD_": str(32 * 2**20),
    "MALLOC_TRIM_THRESHOLD_": str(4 * 10**9),
    "MALLOC_TOP_PAD_": str(64 * 2**20),
}


@dataclass(frozen=True)
class Failure:
    """A job that could not be done, and why."""

    job: Job
    reason: str


@dataclass(frozen=True)
class Standing:
    """How far the work is: the job that just ended, if one did, and where the whole stands.

    Attributes:
        ended: the job, or None when only time has passed.
        failure: why it failed, or None.
        left: jobs not ended yet.
        share: of all work, 0 to 1.
        seconds: since the start.
    """

    ended: Job | None
    failure: str | None
    left: int
    share: float
    seconds: float

    @property
    def seconds_left(self) -> float | None:
        """A forecast from the speed so far, or None at the very start."""
        return self.seconds * (1 - self.share) / self.share if self.share > 0.02 else None


def default_at_once(profile: Profile, device: str) -> int:
    """Runs at once: one on a GPU, on a CPU as many as its cores hold at the profile's threads."""
    if not device.startswith("cpu") or not profile.threads:
        return 1
    return max(1, (os.cpu_count() or 1) // profile.threads)


def complete(
    jobs: Sequence[Job], place: Place, at_once: int, report: Callable[[Standing], None]
) -> list[Failure]:
    """Does jobs, the longest first; those already complete cost nothing.

    Args:
        jobs: what to have.
        place: where.
        at_once: processes.
        report: called at least twice a second.

    Returns:
        The jobs that failed; all others are complete.

    Raises:
        KeyboardInterrupt: once the processes have ended; no file is left half-written.
    """
    todo = sorted(jobs, key=lambda job: -cost(job, place))
    # Starting a process and evaluating cost about as much as a few thousand patches.
    whole = [5_000.0 + cost(job, place) for job in todo]
    shares = [0.0] * len(todo)
    failures: list[Failure] = []
    started = time.monotonic()
    context = multiprocessing.get_context("spawn")
    with contextlib.ExitStack() as stack:
        stack.enter_context(_environment(_WORKERS | _threads(place.profile.threads)))
        messages = stack.enter_context(context.Manager()).Queue()
        pool = ProcessPoolExecutor(at_once, context, _ready)
        stack.enter_context(_ended(pool))
        futures: dict[Future, int] = {
            pool.submit(_do, number, job, place, messages): number for number, job in enumerate(todo)
        }
        waiting = set(futures)
        while waiting:
            ended, waiting = wait(waiting, timeout=0.5, return_when=FIRST_COMPLETED)
            with contextlib.suppress(queue.Empty):
                while True:
                    number, share = messages.get_nowait()
                    shares[number] = share
            for future in ended or (None,):
                job = reason = None
                if future is not None:
                    shares[futures[future]] = 1.0
                    job, error = todo[futures[future]], future.exception()
                    if error is not None:
                        reason = f"{type(error).__name__}: {error}"
                        failures.append(Failure(job, reason))
                share = sum(w * s for w, s in zip(whole, shares, strict=True)) / sum(whole)
                seconds = time.monotonic() - started
                report(Standing(job, reason, len(waiting), share, seconds))
    return failures


@contextlib.contextmanager
def _ended(pool: ProcessPoolExecutor) -> Iterator[None]:
    try:
        yield
    except BaseException:
        processes = list((pool._processes or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()
        for process in processes:
            process.join(10)
        raise
    pool.shutdown()


@contextlib.contextmanager
def _environment(changes: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _threads(threads: int) -> dict[str, str]:
    return {"OMP_NUM_THREADS": str(threads)} if threads else {}


def _ready() -> None:
    # Ctrl-C reaches every process and the parent decides; told to end, a worker unwinds, which
    # removes its half-written files.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))


def _do(number: int, job: Job, place: Place, messages: queue.Queue) -> None:
    from lib.study.runs import carry_out  # torch is imported here, in the worker, and not by the parent

    def on_step(step: int, total: int) -> None:
        if step % _STEPS_PER_MESSAGE == 0:
            messages.put((number, step / total))

    try:
        carry_out(job, place, on_step)
    except SystemExit:
        # The pool would take it for a failure of this job and begin the next.
        os._exit(1)
