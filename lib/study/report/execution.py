"""Executes notebooks by papermill, several at once, and makes a page of the report of each."""

import ast
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path

import nbformat
import papermill
from jupyter_client import AsyncKernelManager
from jupyter_client.utils import run_sync
from nbconvert.preprocessors import CoalesceStreamsPreprocessor

from lib.study import pool
from lib.study.catalogue import Artefact
from lib.study.jobs import Job, RecordStatus, record_status
from lib.study.open import ROOT, Study
from lib.study.report import pages, reference

# What the report passes for a notebook's parameters other than profile, data and results, so that a
# value changed by hand in a saved notebook does not come into the report.
PARAMETERS: Mapping[str, object] = {
    **dict.fromkeys(("seeds", "real", "scenes", "train_set", "images")),
    **{"also": [], "checkpoints": [], "descriptor": "dsm_aug"},
    **{"one_camera": True, "longest_side": 1024, "orientation": "refuse"},
}


# By artefact's name its jobs, and how their records stand.
Runs = Mapping[str, Sequence[tuple[Job, RecordStatus]]]


def standing(study: Study, selected: Mapping[str, Artefact]) -> Runs:
    """The artefacts' jobs, and how their records stand in the folder that is read first."""
    return {
        name: [
            (job, record_status(job, study.setting, study.reading[0])) for job in artefact.jobs(study)
        ]
        for name, artefact in selected.items()
    }


def execute(study: Study, runs: Runs, results: str, report: Path) -> list[tuple[str, str]]:
    """Executes copies of the notebooks in the study's folder, as many at once as runs, and writes their
    pages. What earlier executions saved of these artefacts is removed first.

    Args:
        study: whose profile and data the notebooks get as parameters.
        runs: of `standing`.
        results: the notebooks' parameter of that name.
        report: the folder of the pages.

    Returns:
        The notebooks that failed, each with the cell and the error.
    """
    parameters = {"profile": study.setting.profile.name, "data": study.data, "results": results}
    for name in reference.saved_files(study.saving, runs) if study.saving else ():
        (study.saving / name).unlink()
    failures, tasks = [], []
    for name, records in runs.items():
        copy, notebook = study.setting.folder / f"notebooks/{name}.ipynb", f"notebooks/{name}.ipynb"
        for earlier in (copy, report / f"{name}.html"):
            earlier.unlink(missing_ok=True)
        missing = [job for job, at in records if at.state != "complete" and not at.readable]
        if missing:
            # Executed, it would train them itself, one notebook after the other.
            why = f"not executed: {len(missing)} of its records are missing, e.g. {missing[0].title}"
            failures.append((notebook, why))
            continue
        equations = pages.equations(job for job, _ in records)
        page = partial(pages.write_page, copy, report, tuple(runs), equations)
        tasks.append(pool.Task(notebook, partial(_execute, ROOT / notebook, copy, parameters, page)))
    # A notebook that computes has as many threads as a run, since as many are executed at once.
    outcomes = pool.run(tasks, study.at_once, pool.printed(len(tasks)), study.setting.profile.threads)
    return failures + [
        (task.title, outcome.failure.removeprefix("RuntimeError: "))
        for task, outcome in zip(tasks, outcomes, strict=True)
        if outcome.failure
    ]


def _execute(
    notebook: Path, copy: Path, parameters: Mapping, write_page: Callable, tell: pool.Tell
) -> None:
    own = own_parameters(notebook)
    source = nbformat.read(notebook, as_version=4)
    if (own.get("profile"), own.get("data")) != (parameters["profile"], parameters["data"]):
        # What interprets the numbers of the committed notebook says nothing of others.
        source.cells = [c for c in source.cells if "evidence" not in c.metadata.get("tags", ())]
    every = {name: value for name, value in {**PARAMETERS, **parameters}.items() if name in own}
    copy.parent.mkdir(parents=True, exist_ok=True)
    kernel = _kernel()
    try:
        if kernel.has_kernel:
            _clear(kernel, notebook.parent)
        _papermill(source, copy, every, notebook.parent, km=kernel)
    except Exception as error:
        _kernel.cache_clear()
        run_sync(kernel.shutdown_kernel)(now=True)
        if isinstance(error, papermill.PapermillExecutionError):
            # Counted from 0 with the cell of parameters that papermill added: from 1 as committed.
            raise RuntimeError(f"cell {error.cell_index}, {error.ename}: {error.evalue}") from error
        raise
    finally:
        if copy.exists():
            write_page()


def own_parameters(notebook: Path) -> dict[str, object]:
    """A notebook's parameters with the values that stand in it."""
    parameters = papermill.inspect_notebook(_literal(notebook))
    return {name: ast.literal_eval(parameter["default"]) for name, parameter in parameters.items()}


@cache
def _kernel() -> AsyncKernelManager:
    """The kernel of this process, which executes one notebook after the other: most of them take less
    time than importing pandas, seaborn and torch anew."""
    return AsyncKernelManager(kernel_name="python3")


def _clear(kernel, folder: Path) -> None:
    """Have a kernel forget what a notebook left, except for modules, and work in another folder."""
    client = kernel.blocking_client()
    client.start_channels()
    client.execute(f"get_ipython().reset()\n__import__('os').chdir({str(folder)!r})", reply=True)
    client.stop_channels()


def _papermill(notebook, copy: Path, parameters: Mapping[str, object], folder: Path, **kernel: object):
    return papermill.execute_notebook(
        notebook,
        _literal(copy),
        parameters=parameters,
        cwd=folder,
        progress_bar=False,
        # Kernels on this machine alone need no encryption, and each would say that it has none; ended,
        # some say that they were interrupted. What a cell gets wrong is told by papermill.
        extra_arguments=["--log-level=CRITICAL"],
        # What a notebook saves is whole when its cell is done.
        shutdown_kernel="immediate",
        **kernel,
    )


def _literal(path: Path) -> str:
    # papermill takes paths for format strings.
    return str(path).replace("{", "{{").replace("}", "}}")


def store_outputs(notebook: Path) -> None:
    """Executes a notebook with its own parameters and stores its outputs in it.

    Raises:
        papermill.PapermillExecutionError: a cell failed; the notebook is left as it was.
    """
    with tempfile.TemporaryDirectory() as folder:
        executed = _papermill(_literal(notebook), Path(folder) / notebook.name, {}, notebook.parent)
    # A slow kernel sends what it prints in several messages.
    executed, _ = CoalesceStreamsPreprocessor().preprocess(executed, {})
    # The executed copy's metadata hold times, paths and versions.
    committed = nbformat.read(notebook, as_version=4)
    for cell, copy in zip(committed.cells, executed.cells, strict=True):
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = copy.outputs, copy.execution_count
    nbformat.write(committed, notebook)


def report(
    study: Study,
    runs: Runs,
    folder: Path,
    failures: Sequence[tuple[str, str]],
    compared_with: Path | None,
) -> tuple[Path, list[tuple[str, str]]]:
    """Compares with the reference and writes the report's index.

    Args:
        study: what was run.
        runs: of `standing`.
        folder: of the report, which has their pages.
        failures: to be named at the index's head.
        compared_with: the folder of the reference, or None.

    Returns:
        The index's path, and the artefacts of the reference that are missing.
    """
    made, missing, sentence = study.reading[0], [], ""
    if compared_with is not None:
        paths = {record.path for records in runs.values() for _, record in records}
        sentence, lacking = reference.reproduction(made, compared_with, paths, runs)
        print(f"\n{sentence}")
        missing = [(name, "it is in the reference and was not made") for name in lacking]
    notebooks = {name: study.setting.folder / f"notebooks/{name}.ipynb" for name in runs}
    verdicts = reference.saved_verdicts(made, runs)
    texts = {"heading": study.heading(), "reproduced": sentence}
    index = pages.write_index(folder, notebooks, verdicts, runs, [*failures, *missing], **texts)
    return index, missing
