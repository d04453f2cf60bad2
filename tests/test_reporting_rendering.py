"""Notebooks executed for the report, and how far they reproduce the reference."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import nbformat
import pytest
from forked import forked_workers
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from small_study import training_job

from lib.processes import Outcome
from lib.study import records
from lib.study.catalogue import Artefact
from lib.study.open import Study, open_study
from lib.study.report import execution
from lib.study.report.reference import reproduction

A_B = {"a/b": Artefact(lambda study: [])}
PARAMETERS = """
profile = ""
data = ""
results = ""
seeds = [7]
descriptor = "mine"
own = "as it is"
"""
# The size that each notebook's committed numbers are of.
COMMITTED = {"a/shows": "evening", "c/shows": "quick"}
SAVES = """
from pathlib import Path
table = Path(results, profile, data, "tables", "a", "b.csv")
table.parent.mkdir(parents=True, exist_ok=True)
table.write_text("method,mean\\nSIFT,26.5\\n")
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout, with a blank in its path, whose notebooks are executed."""
    root = tmp_path / "a checkout"
    monkeypatch.setattr(execution, "ROOT", root)
    return root


@pytest.fixture
def opened(root: Path) -> Study:
    return open_study(results=str(root / "results"))


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, Path, list[tuple[str, str]]]:
    """The study of notebooks executed in turn, the folder of their pages and the failures."""
    root = tmp_path_factory.mktemp("checkout") / "a checkout"
    opened = replace(open_study(results=str(root / "results")), at_once=1)
    for name in "bc":
        save(opened.folder, f"tables/a/{name}.csv")
    source = "import os\nprint('left' in dir(), os.path.basename(os.getcwd()), os.getpid())\nleft = 1"
    cells = {
        **{"a/b": ["1", "raise RuntimeError('as it should')", SAVES]},
        **{"a/killed": ["import os, signal\nos.kill(os.getpid(), signal.SIGKILL)"]},
        **{"a/after": ["print(profile, data, seeds, descriptor, own)"], "a/shows": [source]},
        **{"c/shows": [source]},
    }
    for name, sources in cells.items():
        path = write_notebook(root, *sources, name=name)
        if sources == [source]:
            notebook = nbformat.read(path, as_version=4)
            tags = {"tags": ["evidence"]}
            notebook.cells.append(new_markdown_cell("HardNet is ahead.", metadata=tags))
            notebook.cells[1].source = f'profile = "{COMMITTED[name]}"\ndata = "mini"\nresults = ""\n'
            nbformat.write(notebook, path)
    with pytest.MonkeyPatch.context() as patch:
        forked_workers(patch)
        patch.setattr(execution, "ROOT", root)
        failures = execute(opened, root, dict.fromkeys(cells, A_B["a/b"]))
    return opened, root / "report", failures


def write_notebook(root: Path, *cells: str, name: str = "a/b") -> Path:
    parameters = new_code_cell(PARAMETERS, metadata={"tags": ["parameters"]})
    path = root / f"notebooks/{name}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    python = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    cells = [new_markdown_cell("# B"), parameters, *map(new_code_cell, cells)]
    nbformat.write(new_notebook(cells=cells, metadata=python), path)
    return path


def execute(opened: Study, root: Path, selected: dict = A_B) -> list[tuple[str, str]]:
    runs = {name: artefact.records(opened) for name, artefact in selected.items()}
    return execution.execute(opened, runs, str(root / "results"), root / "report")


def printed(opened: Study, name: str = "a/b") -> str:
    copy = nbformat.read(opened.folder / f"notebooks/{name}.ipynb", as_version=4)
    outputs = (output for cell in copy.cells for output in cell.get("outputs", ()))
    return "".join(output.text for output in outputs)


def test_a_notebook_gets_the_study_s_parameters_and_the_profile_s_seeds(executed):
    opened, report, _ = executed
    assert printed(opened, "a/after") == "quick mini None tcdesc_dsm_aug as it is\n"
    assert "quick mini None" in (report / "a/after.html").read_text(encoding="utf-8")


def test_text_on_the_committed_numbers_is_left_out_of_copies_at_other_sizes(executed):
    for name, size in COMMITTED.items():
        shown = "HardNet is ahead." in (executed[1] / f"{name}.html").read_text()
        assert shown is (size == "quick")


def test_no_notebook_sees_another_s_variables_and_each_runs_in_its_folder(executed):
    for folder in "ac":
        assert printed(executed[0], f"{folder}/shows").startswith(f"False {folder} ")


def test_a_failure_is_named_with_its_cell_and_has_a_page_and_the_next_is_executed(executed):
    opened, report, ((failed, reason), (killed, _)) = executed
    # Cells are counted in the committed notebook.
    assert (failed, reason) == ("notebooks/a/b.ipynb", "cell 4, RuntimeError: as it should")
    assert killed == "notebooks/a/killed.ipynb"
    page = (report / "a/b.html").read_text(encoding="utf-8")
    assert "as it should" in page
    assert "<title>B</title>" in page, "papermill puts a cell of its own above"
    stale, unrelated = (opened.folder / f"tables/a/{name}.csv" for name in "bc")
    assert not stale.exists(), "what an earlier execution saved would pass for this one's"
    assert unrelated.exists()


def test_a_notebook_whose_runs_failed_is_not_executed(root, opened):
    lacking = {"a/b": Artefact(lambda study: [training_job(study, "hardnet", "mini-a", 9)])}
    [(_, reason)] = execute(opened, root, lacking)
    assert reason.startswith(
        "not executed: 1 of its records are not whole, e.g. HardNet on mini-a, seed 9, missing: /"
    )


def test_a_notebook_that_only_reads_the_reference_removes_nothing(root, opened, monkeypatch):
    monkeypatch.setattr(execution, "run", lambda tasks, *_: [Outcome()] * len(tasks))
    save(opened.folder, "tables/a/b.csv")
    execute(replace(opened, reading=(root / "reference", opened.folder)), root)
    assert (opened.folder / "tables/a/b.csv").exists()


def test_stored_outputs_hold_nothing_that_a_second_execution_changes(root):
    path = write_notebook(root, "print(own, end=' ', flush=True)\nprint(2)")
    execution.store_outputs(path)
    first = path.read_bytes()
    execution.store_outputs(path)
    assert path.read_bytes() == first
    assert "papermill" not in first.decode()
    assert '"as it is 2\\n"' in first.decode()


def write_run(folder: Path, seed: int, fpr95: float, **more: object) -> Path:
    path = folder / f"records/n/{seed}.json"
    metrics = {"b": {"fpr95": {"expected": fpr95}}}
    config = {"seed": seed, "width": 1}
    digests = {"training": "", "evaluation": {}}
    run = {"kind": "run", "name": "n", "seed": seed, "config": config, "digests": digests}
    records.write(path, {**run, "metrics": metrics, **more})
    return path


def save(folder: Path, name: str, text: str = "") -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize(
    ("ours", "within"),
    # By hand: of (1, 2, 3), sd 1 and t(2) = 4.303, another mean lies within 4.303 · √(2/3) = 3.513.
    [((1, 2, 3), 1), ((4.5, 5.5, 6.5), 1), ((4.6, 5.6, 6.6), 0)],
)
def test_a_mean_is_reproduced_within_the_interval_of_the_references_seeds(ours, within, tmp_path):
    results, reference = tmp_path / "results", tmp_path / "reference"
    paths = [write_run(results, seed, value) for seed, value in enumerate(ours)]
    for seed, value in enumerate((1.0, 2.0, 3.0)):
        write_run(reference, seed, value)
    sentence, missing = reproduction(results, reference, paths, {})
    assert sentence.startswith(f"{within} of 1 means over seeds lie within")
    assert (sentence.endswith("changed: none."), missing) == (True, [])


def test_changed_verdicts_and_missing_files_are_named(tmp_path):
    results, reference = tmp_path / "results", tmp_path / "reference"
    paths = [write_run(results, 0, 1.0)]
    assert reproduction(results, reference, paths, {"a/b"})[0].startswith("The reference has none")
    write_run(reference, 0, 1.0)
    save(results, "tables/a/b_verdicts.csv", "claim,verdict\nx,held\ny,open\nnew,held\n")
    save(reference, "tables/a/b_verdicts.csv", "claim,verdict\ny,held\nx,held\n")
    save(reference, "figures/a/b.png")
    save(reference, "figures/a/bc.png")
    sentence, missing = reproduction(results, reference, paths, {"a/b"})
    assert sentence.startswith("0 of 0 means")
    assert sentence.endswith("changed: y.")
    assert missing == ["figures/a/b.png"]


# Last, since a kernel checks only now and then whether its parent still runs.
def test_the_kernel_ends_with_the_executing_process(executed):
    *_, pid = printed(executed[0], "a/shows").split()
    kernel, deadline = Path(f"/proc/{pid}"), time.monotonic() + 20
    while kernel.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not kernel.exists()
