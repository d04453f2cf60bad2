"""Executes the notebooks with papermill and puts what they show into the report."""

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import pandas as pd

from lib.files import replacing
from lib.parts import modules
from lib.study import pool
from lib.study.artefacts.searches import NoSearch
from lib.study.catalogue import ARTEFACTS, Artefact
from lib.study.jobs import Job, look
from lib.study.open import (
    ROOT,
    Found,
    Study,
    evening_beside,
    find,
    is_on_record,
    on_record,
    reference_folder,
)
from lib.study.report.page.compare import artefacts_in, compare
from lib.study.report.page.report import Failure, build_report


def execute(
    study: Study, selected: Mapping[str, Artefact], results: str
) -> tuple[list[Path], list[Failure]]:
    """Executes copies of the notebooks, as many at once as runs.

    What earlier executions saved of these artefacts is removed first, so that all that is there
    afterwards is of this one.

    Args:
        study: whose profile and data the notebooks get as parameters.
        selected: artefacts by name.
        results: the notebooks' parameter of that name.

    Returns:
        The executed copies, in the study's folder, and the notebooks that failed with the cell.
    """
    parameters = {"profile": study.place.profile.name, "data": study.data, "results": results}
    if study.saving is not None:
        for name in artefacts_in(study.saving, selected):
            (study.saving / name).unlink()
    failures, notebooks = [], []
    for name, artefact in selected.items():
        notebook = f"notebooks/{name}.ipynb"
        lacking = [job for job in artefact.jobs(study) if find(study, job) is None]
        if lacking:
            # Executed, it would train them itself, one notebook after the other.
            reason = f"not executed: {len(lacking)} of its records are missing, e.g. {lacking[0].title}"
            failures.append(Failure(notebook, reason))
        else:
            notebooks.append(notebook)
    copies = {notebook: study.place.folder / notebook for notebook in notebooks}
    tasks = [
        pool.Task(notebook, partial(_execute, ROOT / notebook, copy, parameters))
        for notebook, copy in copies.items()
    ]
    # A notebook that computes has as many threads as a run, since as many are executed at once.
    outcomes = pool.run(tasks, study.at_once, pool.printed(len(tasks)), study.place.profile.threads)
    failed = {name: of.failure for name, of in zip(copies, outcomes, strict=True) if of.failure}
    failures += [Failure(name, why.removeprefix("RuntimeError: ")) for name, why in failed.items()]
    return list(copies.values()), failures


def _execute(notebook: Path, copy: Path, parameters: dict, tell: pool.Tell) -> None:
    import papermill

    copy.unlink(missing_ok=True)
    # papermill writes after every cell; a copy takes its place once it is whole.
    with replacing(copy) as half:
        try:
            _papermill(notebook, half, parameters)
        except papermill.PapermillExecutionError as error:
            shutil.copyfile(half, copy)
            # Counted from 0 with the cell of parameters that papermill added: from 1 as committed.
            what = f"cell {error.cell_index}, {error.ename}: {error.evalue}"
            raise RuntimeError(what) from error


def _papermill(notebook: Path, copy: Path, parameters: dict | None = None):
    import papermill

    from lib.study.report.page.kernels import ForkedKernelManager

    # papermill takes paths for format strings.
    source, target = (str(path).replace("{", "{{").replace("}", "}}") for path in (notebook, copy))
    return papermill.execute_notebook(
        source,
        target,
        parameters=parameters,
        cwd=notebook.parent,
        progress_bar=False,
        # Kernels on this machine alone need no encryption, and each would say that it has none; ended,
        # some say that they were interrupted. What a cell gets wrong is told by papermill.
        extra_arguments=["--log-level=CRITICAL"],
        kernel_manager_class=ForkedKernelManager,
        # What a notebook saves is whole when its cell is done.
        shutdown_kernel="immediate",
    )


def store_outputs(notebook: Path) -> None:
    """Executes a notebook as it stands and stores its outputs in it.

    Only what a second execution repeats is kept: no times, no paths, no version of Python, no seams
    between what was printed in pieces.

    Raises:
        papermill.PapermillExecutionError: a cell failed; the notebook is left as it was.
    """
    import nbformat
    from nbconvert.preprocessors import CoalesceStreamsPreprocessor

    with tempfile.TemporaryDirectory() as folder:
        executed = _papermill(notebook, Path(folder) / notebook.name)
    # A slow kernel sends what it prints in several messages.
    executed, _ = CoalesceStreamsPreprocessor().preprocess(executed, {})
    executed.metadata.pop("papermill", None)
    executed.metadata.get("language_info", {}).pop("version", None)
    for cell in executed.cells:
        for name in ("papermill", "execution"):
            cell.metadata.pop(name, None)
        # papermill tags cells while it runs them.
        if not cell.metadata.get("tags", True):
            cell.metadata.pop("tags")
    nbformat.write(executed, notebook)


def report(
    study: Study,
    selected: Mapping[str, Artefact],
    executed: Sequence[Path],
    failures: Sequence[Failure],
    *,
    compared: bool,
) -> tuple[Path, list[Failure]]:
    """Builds the report and compares with the reference.

    Args:
        study: what was run.
        selected: artefacts by name.
        executed: their notebooks' executed copies; those that failed early may not be there.
        failures: to be named at the report's head.
        compared: whether results were made that the reference can be compared with.

    Returns:
        The report's path, and the artefacts of the reference that are missing.
    """
    place, comparison, folder = study.place, None, study.saving or study.reading[0]
    reference = reference_folder(place.profile.name, place.source.name)
    if compared and is_on_record(place):
        comparison = compare(place.folder, reference, selected=selected)
        print("\n" + comparison.text())
    elif compared:
        print("\nNot compared: no reference is of this profile and data by today's code.")
    path = build_report(
        place.folder.parent,
        profile=place.profile.name,
        data_name=place.source.name,
        notebooks=[copy for copy in executed if copy.exists()],
        records=_records(study, selected, folder),
        comparison=comparison,
        failures=failures,
        verdicts=saved_verdicts(folder, selected),
        absent=[name for name in ARTEFACTS if name not in selected],
    )
    missing = comparison.missing if comparison is not None else ()
    return path, [Failure(name, "it is in the reference and was not made") for name in missing]


def saved_verdicts(folder: Path, selected: Mapping[str, Artefact]) -> pd.DataFrame | None:
    """The verdicts that notebooks saved below a folder, with `notebook`, the artefact's name; None
    where there are none."""
    found = [
        pd.read_csv(file, keep_default_na=False).assign(notebook=name)
        for name in selected
        for pattern in ("_verdicts.csv", "_verdicts_*.csv")
        for file in sorted((folder / "tables").glob(name + pattern))
    ]
    return pd.concat(found, ignore_index=True) if found else None


def _records(study: Study, selected: Mapping[str, Artefact], saved: Path) -> list[dict]:
    """The records of the study and of the evening shown beside it, each once, with the `artefacts` that
    show it and the files of lib in which its `equations` are."""
    by_path: dict[Path, dict] = {}
    evening = evening_beside(study)
    for name, artefact in selected.items():
        # An artefact that shows the evening has saved something under its name.
        shows = evening and any(
            Path(file).stem.endswith(f"_{evening.place.profile.name}")
            for file in artefacts_in(saved, [name])
        )
        for of in (*_own(study, artefact), *(_whole(evening, artefact) if shows else ())):
            told = {"older_code": of.older, "path": of.path, "equations": _equations(of.job)}
            record = by_path.setdefault(of.path, {**of.content, **told, "artefacts": []})
            if name not in record["artefacts"]:
                record["artefacts"].append(name)
    return list(by_path.values())


def _own(study: Study, artefact: Artefact) -> Iterator[Found]:
    for job in artefact.jobs(study):
        there = look(job, study.place, study.reading[0])
        if there.content is not None:
            yield Found(job, there.path, there.content, there.state == "older code")


def _whole(study: Study, artefact: Artefact) -> list[Found]:
    """An artefact's records, where all of them are there, or else none."""
    try:
        return on_record(study, artefact.jobs(study))
    except NoSearch:
        return []


def _equations(job: Job) -> list[str]:
    """The files of lib that state what a job trains by, or computes, e.g. "losses/cdf.py"."""
    computed = job.computation and f"lib.theory.{job.computation.name}"
    of = [computed] if computed else modules(job.recipe) if job.recipe else ()
    files = (module.removeprefix("lib.").replace(".", "/") + ".py" for module in of)
    return [file for file in files if not file.startswith(("points/", "schedules/"))]
