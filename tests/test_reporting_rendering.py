"""Notebooks executed for the report: what they saved, and which reference it is compared with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

import lib.study.open
from lib.data.manifest import write_manifest
from lib.data.sources import Source
from lib.recipes import RECIPES
from lib.study import records
from lib.study.artefacts.rows import training_job
from lib.study.catalogue import Artefact
from lib.study.jobs import Job, record_path
from lib.study.open import Study, open_study
from lib.study.report.page import rendering

SAVES = """
from pathlib import Path
table = Path(results, profile, data, "tables", "a", "b.csv")
table.parent.mkdir(parents=True, exist_ok=True)
table.write_text("method,mean\\nSIFT,26.5\\n")
"""


def write_notebook(root: Path, monkeypatch: pytest.MonkeyPatch, *cells: str) -> None:
    """The notebook of `A_B` in a checkout that lies at `root`."""
    monkeypatch.setattr(rendering, "ROOT", root)
    path = root / "notebooks/a/b.ipynb"
    parameters = new_code_cell('profile = data = results = ""', metadata={"tags": ["parameters"]})
    path.parent.mkdir(parents=True, exist_ok=True)
    python = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    cells = [parameters, *map(new_code_cell, cells)]
    nbformat.write(new_notebook(cells=cells, metadata=python), path)


A_B = {"a/b": Artefact(lambda study: [])}


def state_reference(folder: Path, monkeypatch: pytest.MonkeyPatch, profile: str, source: Source) -> None:
    """A reference that was made with this profile and data, with one table of the artefact a/b."""
    monkeypatch.setattr(lib.study.open, "REFERENCE", folder)
    write_manifest(folder / profile / source.name / "manifest.json", source, source.sets)
    table = folder / profile / source.name / "tables" / "a" / "b.csv"
    table.parent.mkdir(parents=True)
    table.write_text("method,mean\nSIFT,26.5\n")


@pytest.fixture
def opened(tmp_path: Path) -> Study:
    opened = open_study(results=str(tmp_path / "results"))
    opened.place.folder.mkdir(parents=True)
    return opened


def save_earlier(opened: Study, name: str) -> Path:
    path = opened.place.folder / "tables" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("method,mean\nSIFT,26.5\n")
    return path


def test_what_a_notebook_saved_before_it_failed_counts_as_missing(tmp_path, opened, monkeypatch, capsys):
    state_reference(tmp_path / "reference", monkeypatch, "quick", opened.place.source)
    save_earlier(opened, "a/b.csv")
    other = save_earlier(opened, "a/c.csv")
    write_notebook(tmp_path, monkeypatch, "1", "raise RuntimeError('as it should')", SAVES)
    copies, (failed,) = rendering.execute(opened, A_B, str(tmp_path / "results"))
    assert failed.notebook == "notebooks/a/b.ipynb"
    # Counted in the notebook as it is committed.
    assert failed.error == "cell 3, RuntimeError: as it should"
    report, (missing,) = rendering.report(opened, A_B, copies, [failed], compared=True)
    assert "as it should" in report.read_text(encoding="utf-8")
    assert missing.notebook == "tables/a/b.csv"
    said = capsys.readouterr().out
    assert "MISSING: tables/a/b.csv" in said
    assert "No cell differs" not in said
    assert other.exists()


def test_what_is_no_notebook_is_named_and_its_earlier_copy_is_gone(tmp_path, opened, monkeypatch):
    write_notebook(tmp_path, monkeypatch)
    (tmp_path / "notebooks/a/b.ipynb").write_text("{")
    copy = opened.place.folder / "notebooks/a/b.ipynb"
    copy.parent.mkdir(parents=True)
    copy.write_text("of a run before")
    (told,), (failed,) = rendering.execute(opened, A_B, str(tmp_path / "results"))
    assert told == copy
    assert not copy.exists()
    assert failed.notebook == "notebooks/a/b.ipynb"
    assert "cell" not in failed.error.partition(":")[0]


def test_a_notebook_whose_runs_failed_is_not_executed(opened):
    lacking = {"a/b": Artefact(lambda study: [training_job(study, "hardnet", "mini-a", 9)])}
    copies, (failure,) = rendering.execute(opened, lacking, "results")
    assert copies == []
    assert failure.error == "not executed: 1 of its records are missing, e.g. HardNet on mini-a, seed 9"


def test_a_notebook_that_only_reads_the_reference_removes_nothing(tmp_path, opened, monkeypatch):
    monkeypatch.setattr(rendering, "ROOT", tmp_path)
    saved = save_earlier(opened, "a/b.csv")
    reading = replace(opened, reading=(tmp_path / "reference", opened.place.folder))
    _, (absent,) = rendering.execute(reading, A_B, "reference")
    assert "b.ipynb" in absent.error
    assert saved.exists()


def test_folders_with_braces_in_their_names_are_taken_as_they_are(tmp_path, monkeypatch):
    root = tmp_path / "{x} {0}}"
    opened = open_study(results=str(root))
    write_notebook(root, monkeypatch, SAVES)
    (copy,), failures = rendering.execute(opened, A_B, str(root))
    assert failures == []
    assert copy.is_file()
    assert (root / "quick/mini/tables/a/b.csv").is_file()


@pytest.mark.parametrize(
    ("profile", "name", "compared"),
    [("quick", "mini", True), ("quick", "photos", False), ("standard", "mini", False)],
)
def test_results_are_compared_with_a_reference_of_their_own_profile_and_data(
    profile, name, compared, tmp_path, opened, monkeypatch, capsys
):
    source = replace(opened.place.source, name=name)
    state_reference(tmp_path / "reference", monkeypatch, profile, source)
    _, missing = rendering.report(opened, A_B, [], [], compared=True)
    assert [failure.notebook for failure in missing] == ["tables/a/b.csv"] * compared
    assert ("Not compared" in capsys.readouterr().out) is not compared


def test_a_reference_of_other_photographs_is_not_compared_with(tmp_path, opened, monkeypatch):
    own = opened.place.source
    first = own.allotment["a"][:1]
    others = replace(own, allotment={**own.allotment, "a": first})
    state_reference(tmp_path / "reference", monkeypatch, "quick", others)
    _, missing = rendering.report(opened, A_B, [], [], compared=True)
    assert missing == []


def put_on_record(study: Study, job: Job) -> Path:
    """A record of a job, by code that has changed since, in the folder that is read first."""
    path = record_path(job, study.place, study.reading[0])
    content = {"kind": "run", "name": job.name, "config": {}, "metrics": {}, "probes": {}}
    records.write(path, {**content, "digests": {"training": "", "evaluation": {}}})
    return path


def test_records_name_the_artefacts_that_show_them_those_of_an_evening_where_it_is_shown_whole(
    tmp_path, opened, monkeypatch
):
    folder = tmp_path / "evening"
    evening = open_study("evening", "mini", str(folder))
    monkeypatch.setattr(rendering, "evening_beside", lambda study: evening)
    jobs = [Job("n", "N", RECIPES["hynet_aug"], "mini-a", seed) for seed in (0, 1)]
    one, two = (Artefact(lambda study, of=of: jobs[:of]) for of in (1, 2))
    selected = {"a/whole": one, "a/lacking": two, "a/short": one}
    own = [put_on_record(opened, job) for job in jobs]
    longer = put_on_record(evening, jobs[0])
    for name in ("whole_evening", "lacking_evening", "short"):
        save_earlier(opened, f"a/{name}.csv")
    found = rendering._records(opened, selected, opened.place.folder)
    assert {record["path"]: record["artefacts"] for record in found} == {
        own[0]: ["a/whole", "a/lacking", "a/short"],
        own[1]: ["a/lacking"],
        longer: ["a/whole"],
    }
    files = found[0]["equations"]
    assert {"distances/hybrid.py", "models/hynet.py", "regularizers/norm.py"} <= set(files)
    assert all((Path(rendering.__file__).parents[3] / file).is_file() for file in files)


def test_an_evening_whose_search_is_not_on_record_shows_nothing(opened, monkeypatch):
    def jobs(study: Study) -> list[Job]:
        if study is not opened:
            raise rendering.NoSearch("none")
        return []

    monkeypatch.setattr(rendering, "evening_beside", lambda study: open_study("evening"))
    save_earlier(opened, "a/b_evening.csv")
    assert rendering._records(opened, {"a/b": Artefact(jobs)}, opened.place.folder) == []
