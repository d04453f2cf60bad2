"""Does jobs at once, each in a process of its own (`lib.processes`), and makes their data likewise."""

from collections.abc import Iterable
from functools import partial

from lib.data.sources import Source
from lib.processes import Report, Task, run
from lib.study.jobs import Job, Setting, cost

# Jobs that failed, each with the reason.
Failures = list[tuple[Job, str]]


def complete(jobs: Iterable[Job], setting: Setting, at_once: int, report: Report) -> Failures:
    """Does jobs in the order given, so that what was asked first is first on record; those already
    complete cost nothing.

    Args:
        jobs: what to have.
        setting: data, size and folder.
        at_once, report: as for `lib.processes.run`.

    Returns:
        The jobs that failed, each with the reason; all others are complete.

    Raises:
        KeyboardInterrupt: as `run` does.
    """
    jobs = list(jobs)
    outcomes = run([task(job, setting) for job in jobs], at_once, report, setting.profile.threads)
    ended = zip(jobs, outcomes, strict=True)
    return [(job, outcome.failure) for job, outcome in ended if outcome.failure]


def task(job: Job, setting: Setting) -> Task:
    """What having a job's record comes to; it returns None."""
    return Task(job.title, partial(_carry_out, job, setting), sum(cost(job, setting)))


def prepare(source: Source, names: Iterable[str], at_once: int) -> None:
    """Has sets made, or read once where they are there.

    Args:
        source: whose sets they are.
        names: of the sets.
        at_once: processes.

    Raises:
        ValueError: one could not be had; the message names each and why.
    """
    # Sets of one folder come of one making.
    by_folder = {source.scene_folder(name): name for name in names}
    tasks = [Task(f"data {name}", partial(_load, source, name)) for name in by_folder.values()]
    ended = zip(tasks, run(tasks, at_once), strict=True)
    if failed := [f"{task.title}: {outcome.failure}" for task, outcome in ended if outcome.failure]:
        raise ValueError("; ".join(failed))


def _carry_out(job: Job, setting: Setting) -> None:
    from lib.study.runs import carry_out  # torch is imported here, in the worker, and not by the parent

    carry_out(job, setting)


def _load(source: Source, name: str) -> None:
    source.load(name)
