"""Run tasks on an existing Dask cluster, each in a process of its own there (`lib.processes`).

Workers may come and go; while there are none, `run` waits. A worker runs as many tasks at once as it has
threads.
"""

import asyncio
import logging
import multiprocessing
import time
from collections.abc import Sequence

from distributed import Client, Future, KilledWorker, get_worker
from distributed.comm import connect

from lib import processes
from lib.processes import Outcome, Report, Task

# Seconds within which a scheduler must answer.
_ANSWER = 20.0


def at_once(address: str) -> int:
    """Return how many tasks the cluster can run at once now: the number of its workers' threads.

    Raises:
        OSError: no scheduler answers.
    """
    with _client(address) as client:
        return sum(client.nthreads().values())


def run(tasks: Sequence[Task], address: str, report: Report, threads: int) -> list[Outcome]:
    """Run tasks as `lib.processes.run` does.

    However this ends, the cluster lives on, and tasks still running there end within seconds.

    Args:
        tasks: each returns None, or a text that says why its worker must not run it.
        address: address of the cluster's scheduler, e.g. "tcp://10.0.0.1:8786".
        report: as in `lib.processes.run`.
        threads: threads per task.

    Raises:
        ValueError: a worker cannot or must not run a task.
        OSError: the scheduler does not answer, or is gone.
        KeyboardInterrupt, or what ``report`` raises.
    """
    outcomes, whole, done = {}, sum(task.weight for task in tasks), 0.0
    with _client(address) as client:
        waiting = {
            client.submit(_do, task, threads, pure=False, priority=-number): number
            for number, task in enumerate(tasks)
        }
        while waiting:
            time.sleep(0.5)
            for future in [future for future in waiting if future.done()]:
                number, outcome = waiting.pop(future), _outcome(future, address)
                outcomes[number] = outcome
                done += tasks[number].weight / whole
                report(tasks[number], outcome.failure, len(waiting), done)
            report(None, None, len(waiting), done)
    return [outcomes[number] for number in range(len(tasks))]


def _client(address: str) -> Client:
    """Return a client; closing it withdraws the tasks that the cluster has not finished."""
    # This module reports errors itself; distributed would also log them with a traceback.
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
    try:
        # A client waits for ever if something other than a scheduler listens at the address.
        asyncio.run(asyncio.wait_for(connect(address, timeout=_ANSWER), _ANSWER)).abort()
    except Exception as error:
        raise OSError(f"no Dask scheduler answers at {address}: {error!r}") from error
    return Client(address, timeout=_ANSWER, set_as_default=False)


def _outcome(future: Future, address: str) -> Outcome:
    if future.cancelled():
        raise ConnectionError(f"the scheduler at {address} is gone; what was done is kept")
    error = future.exception()
    if isinstance(error, KilledWorker):
        return Outcome(failure=f"{error}")
    if error is not None:
        raise ValueError(f"a worker at {address} cannot do the study's jobs: {error!r}") from error
    outcome = future.result()
    if outcome.value is not None:
        raise ValueError(f"a worker at {address} is refused: {outcome.value}; what was done is kept")
    return outcome


def _do(task: Task, threads: int) -> Outcome:
    worker = get_worker()
    key = worker.get_current_task()
    # Otherwise a worker that was started by a nanny may not start processes.
    multiprocessing.current_process().daemon = False

    def check(*_: object) -> None:
        state = worker.state.tasks.get(key)
        if state is None or state.state == "cancelled":
            raise InterruptedError("nobody waits for it any more")

    return processes.run([task], 1, check, threads)[0]
