"""Executes the notebooks with papermill and puts what they show into the report."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from lib.experiments.artefacts import Artefact
from lib.files import replacing
from lib.reporting.compare import compare
from lib.reporting.report import Failure, build_report
from lib.study import records
from lib.study.jobs import record_path, state
from lib.study.open import ROOT, Study, where

if TYPE_CHECKING:
    from nbformat import NotebookNode

REFERENCE = ROOT / "results" / "reference"


def execute(
    study: Study, selected: Mapping[str, Artefact], results: str
) -> tuple[list[Path], list[Failure]]:
    """Executes copies of the notebooks, as many at once as runs.

    Args:
        study: whose profile and data the notebooks get as parameters.
        selected: artefacts by name.
        results: the notebooks' parameter of that name.

    Returns:
        The executed copies, in the study's folder, and the notebooks that failed with the cell.
    """
    parameters = {"profile": study.place.profile.name, "data": study.data, "results": results}
    failures, notebooks = [], []
    for artefact in selected.values():
        lacking = [job for job in artefact.jobs(study) if where(study, job) is None]
        if lacking:
            # Executed, it would train them itself, one notebook after the other.
            reason = f"not executed: {len(lacking)} of its runs failed, e.g. {lacking[0].title}"
            failures.append(Failure(artefact.notebook, None, reason))
        else:
            notebooks.append(artefact.notebook)
    if not notebooks:
        return [], failures
    copies = [study.place.folder / notebook for notebook in notebooks]
    with ProcessPoolExecutor(min(study.at_once, len(notebooks)), get_context("spawn")) as pool:
        reasons = pool.map(_execute, notebooks, copies, [parameters] * len(notebooks))
        for number, (notebook, reason) in enumerate(zip(notebooks, reasons, strict=True), start=1):
            outcome = "done" if reason is None else "FAILED"
            print(f"[{number:>3}/{len(notebooks)}] {notebook}: {outcome}", flush=True)
            if reason is not None:
                failures.append(Failure(notebook, *reason))
                print(f"      {reason[1]}", flush=True)
    return copies, failures


def _execute(notebook: str, copy: Path, parameters: dict) -> tuple[int | None, str] | None:
    import papermill

    try:
        # papermill writes after every cell; a copy takes its place once it is whole.
        with replacing(copy) as half:
            try:
                _papermill(ROOT / notebook, half, parameters)
            except papermill.PapermillExecutionError:
                shutil.copyfile(half, copy)
                raise
    except papermill.PapermillExecutionError as error:
        return _cell_number(copy, error.cell_index), f"{error.ename}: {error.evalue}"
    except Exception as error:  # the kernel died or the file is no notebook: name it, do the others
        return None, f"{type(error).__name__}: {error}"
    return None


def _cell_number(copy: Path, index: int) -> int:
    """The cell's number in the notebook as committed, from 1, without the cell papermill injects."""
    import nbformat

    before = nbformat.read(copy, nbformat.NO_CONVERT).cells[: index + 1]
    return len([c for c in before if "injected-parameters" not in c.metadata.get("tags", [])])


def belongs(file: Path, artefact: str) -> bool:
    """Whether a file below a results folder, e.g. tables/adasample/table1_verdicts.csv, is one of an
    artefact's, e.g. adasample/table1."""
    name = Path(*file.with_suffix("").parts[1:]).as_posix()
    return name == artefact or name.startswith(f"{artefact}_")


def _papermill(notebook: Path, copy: Path, parameters: dict | None = None) -> NotebookNode:
    import papermill

    return papermill.execute_notebook(
        notebook,
        copy,
        parameters=parameters,
        cwd=notebook.parent,
        progress_bar=False,
        # Kernels on this machine alone need no encryption, and each would say that it has none; ended,
        # some say that they were interrupted. What a cell gets wrong is told by papermill.
        extra_arguments=["--log-level=CRITICAL"],
    )


def store_outputs(notebook: Path) -> None:
    """Executes a notebook as it stands and stores its outputs in it.

    Only what a second execution repeats is kept: no times, no paths, no version of Python.

    Raises:
        papermill.PapermillExecutionError: a cell failed; the notebook is left as it was.
    """
    import nbformat

    with tempfile.TemporaryDirectory() as folder:
        executed = _papermill(notebook, Path(folder) / notebook.name)
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
    place = study.place
    reference = REFERENCE / place.profile.name
    comparison = None
    if compared and place.source.name == "mini" and reference.is_dir():

        def wanted(path: str) -> bool:
            return any(belongs(Path(path), name) for name in selected)

        comparison = compare(place.folder, reference, wanted=wanted)
        print("\n" + comparison.text())
    path = build_report(
        place.folder,
        profile=place.profile.name,
        data_name=place.source.name,
        notebooks=[copy for copy in executed if copy.exists()],
        records=_records(study, selected),
        comparison=comparison,
        failures=failures,
        verdicts=_verdicts(study.saving or study.reading[0], selected),
    )
    missing = comparison.missing if comparison is not None else ()
    return path, [Failure(name, None, "it is in the reference and was not made") for name in missing]


def _verdicts(folder: Path, selected: Mapping[str, Artefact]) -> pd.DataFrame:
    files = [folder / "tables" / f"{name}_verdicts.csv" for name in selected]
    found = [pd.read_csv(file, keep_default_na=False) for file in files if file.exists()]
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame()


def _records(study: Study, selected: Mapping[str, Artefact]) -> list[dict]:
    found = {}
    for artefact in selected.values():
        for job in artefact.jobs(study):
            standing = state(job, study.place, study.reading[0])
            if standing in ("complete", "incomplete", "older code"):
                path = record_path(job, study.place, study.reading[0])
                found[path] = records.read(path) | {"older_code": standing == "older code"}
    return list(found.values())
