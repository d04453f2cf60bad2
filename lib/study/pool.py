"""Run jobs in parallel, each in its own process (`lib.processes`), and make their data likewise."""

from collections.abc import Iterable
from functools import partial

from lib.data.sources import Source
from lib.processes import Report, Task, run
from lib.study.jobs import Job, Setting, cost

# Jobs that failed, each with the reason.
Failures = list[tuple[Job, str]]


def complete(jobs: Iterable[Job], setting: Setting, at_once: int, report: Report) -> Failures:
    """Run jobs in the order given, so that the first jobs are the first on record. Jobs that are already
    complete cost nothing.

    Args:
        jobs: the jobs whose records are needed.
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
    """Return the task that makes a job's record; the task itself returns None."""
    return Task(job.title, partial(_carry_out, job, setting), sum(cost(job, setting)))


def prepare(source: Source, names: Iterable[str], at_once: int) -> None:
    """Make sets that are missing, and read the others once.

    Args:
        source: the source of the sets.
        names: of the sets.
        at_once: number of processes.

    Raises:
        ValueError: a set could not be made or read; the message names each and why.
    """
    # Sets in one folder are made together.
    by_folder = {source.scene_folder(name): name for name in names}
    tasks = [Task(f"data {name}", partial(_load, source, name)) for name in by_folder.values()]
    ended = zip(tasks, run(tasks, at_once), strict=True)
    if failed := [f"{task.title}: {outcome.failure}" for task, outcome in ended if outcome.failure]:
        raise ValueError("; ".join(failed))


def _carry_out(job: Job, setting: Setting) -> None:
    from lib.study.runs import carry_out  # imports torch in the worker, not in the parent

    carry_out(job, setting)


def _load(source: Source, name: str) -> None:
    source.load(name)
