"""Notebooks executed for the report, their pages, and what stays out of copies."""

from __future__ import annotations

import re
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import nbformat
import pandas as pd
import pytest
from IPython.display import Markdown
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from PIL import Image

from lib.study import Study, open_study, planning, render, show
from lib.study.requests import Refused

ROOT = Path(__file__).resolve().parents[1]
PARAMETERS = 'profile = "{profile}"\ndata = "free"\nresults = "reference"\nseeds = [7]\nown = 3\n'
SAVES = """
from pathlib import Path
table = Path(results, profile, "tables", "a", "b.csv")
table.parent.mkdir(parents=True, exist_ok=True)
table.write_text("method,mean\\nSIFT,26.5\\n")
"""
DIES_ONCE = """
import os, signal
from pathlib import Path
if not Path("started").exists():
    Path("started").touch()
    os.kill(os.getpid(), signal.SIGKILL)
"""
TEXTS = {
    "question": "Which method is ahead?",
    "method": "Means are over seeds.",
    "evidence": "HardNet is ahead.",
}


def write(root: Path, name: str, *sources: str, profile: str = "quick") -> None:
    cells = [new_markdown_cell("# B", metadata={"tags": ["question"]})]
    cells += [new_code_cell(PARAMETERS.format(profile=profile), metadata={"tags": ["parameters"]})]
    cells += [new_code_cell(source) for source in sources]
    cells += [new_markdown_cell(text, metadata={"tags": [tag]}) for tag, text in TEXTS.items()]
    cells += [new_markdown_cell("Text without a tag.")]
    python = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    path = root / "notebooks" / f"{name}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(new_notebook(cells=cells, metadata=python), path)


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, Path, list[tuple[str, str]]]:
    """The study of five executed notebooks, the folder of their pages, and the failures."""
    root = tmp_path_factory.mktemp("checkout") / "a checkout"
    study = open_study(results=str(root / "results"))
    study = replace(study, jobs=2)
    write(root, "a/b", "1", "raise RuntimeError('as it should')", SAVES)
    write(root, "a/after", "print(profile, data, seeds, own)")
    write(root, "a/larger", "print(own)", profile="evening")
    write(root, "a/killed", "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
    write(root, "a/dies_once", DIES_ONCE)
    earlier = study.results / "tables" / "a" / "b_old.csv"
    earlier.parent.mkdir(parents=True)
    earlier.write_text("of an earlier run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planning, "NOTEBOOKS", root / "notebooks")
        # The workers see the patched folder if they are threads of this process.
        patch.setattr(render, "sweep", in_this_process)
        names = ["a/b", "a/after", "a/larger", "a/killed", "a/dies_once"]
        failures = render.execute(names, study, str(root / "results"), root / "report")
        titles = render.write_evidence(["a/after", "a/larger"], root / "report")
        index = ["a/after", "a/larger"]
        render.write_index(root / "report", titles, index, failures, study.heading, "All of it.")
    return study, root / "report", failures


def in_this_process(tasks, *_: object, **__: object) -> list[tuple[str, str]]:
    failures = []
    for task in tasks:
        try:
            task.do()
        except Exception as error:
            failures.append((task.title, f"{type(error).__name__}: {error}"))
    return failures


def page(report: Path, name: str) -> str:
    return (report / f"{name}.html").read_text(encoding="utf-8")


def test_a_notebook_keeps_its_own_parameters_at_its_own_profile(executed) -> None:
    assert "quick free [7] 3" in page(executed[1], "a/after")


def test_a_copy_with_other_numbers_keeps_questions_and_methods_alone(executed) -> None:
    own, other = page(executed[1], "a/after"), page(executed[1], "a/larger")
    for tag, text in TEXTS.items():
        assert text in own
        assert (text in other) is (tag != "evidence")
    assert "Text without a tag." in own
    assert "Text without a tag." not in other


def test_a_failure_is_named_with_its_cell_and_the_others_are_executed(executed) -> None:
    _, report, failures = executed
    by_name = dict(failures)
    # Cells are counted in the committed notebook.
    assert by_name["a/b"] == "cell 4, RuntimeError: as it should"
    assert set(by_name) == {"a/b", "a/killed"}
    assert "as it should" in page(report, "a/b")
    assert "<title>B</title>" in page(report, "a/b"), "papermill puts a cell of its own above"


def test_a_kernel_that_dies_is_started_once_more(executed) -> None:
    failures = dict(executed[2])
    assert "a/dies_once" not in failures
    assert "a/killed" in failures


def test_what_an_earlier_execution_saved_is_removed(executed) -> None:
    assert render.saved(executed[0].results, "tables", "a/b", "csv") == []


def test_the_evidence_is_shown_as_it_is_committed(executed) -> None:
    evidence = page(executed[1] / "evidence", "a/larger")
    assert all(text in evidence for text in TEXTS.values())


def test_the_index_leads_to_the_evidence_and_lists_what_failed(executed) -> None:
    index = page(executed[1], "index")
    for link in ("a/after", "a/larger"):
        assert f'href="{link}.html"' in index
    assert "cell 4, RuntimeError: as it should" in index
    assert "All of it." in index


@pytest.mark.parametrize("name", ["a/after", "evidence/a/larger", "index"])
def test_links_to_the_style_and_the_index_lead_there(executed, name: str) -> None:
    report = executed[1]
    text, folder = page(report, name), (report / name).parent
    style = text.partition('rel="stylesheet" href="')[2].partition('"')[0]
    assert (folder / style).resolve() == (report / "style.css").resolve()
    assert "http://" not in text.replace("http://www.w3.org", "")


def test_the_line_below_a_notebooks_runs_shows_names_as_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[Markdown] = []
    monkeypatch.setattr(show, "display", shown.append)
    show.footer("data places (<img src=x onerror=alert(1)>, [a](b), $x$)")
    cell = new_code_cell(outputs=[new_output("display_data", {"text/markdown": shown[0].data})])
    nbformat.write(new_notebook(cells=[new_markdown_cell("# A"), cell]), tmp_path / "a.ipynb")
    written = tmp_path / "report" / "a.html"
    render.write_page(tmp_path / "a.ipynb", written, "a/b", {})
    text = written.read_text(encoding="utf-8")
    assert "<em>data places (&lt;img src=x onerror=alert(1)&gt;, [a](b), $x$)</em>" in text


@pytest.mark.parametrize("name", ["../../escaped", "/escaped", "<b>"])
def test_a_file_that_is_named_after_a_method_stays_in_its_folder(tmp_path: Path, name: str) -> None:
    study = open_study("a/b", results=str(tmp_path))
    with pytest.raises(Refused, match="rename"):
        study.show(pd.DataFrame({"FPR95": [1.0]}), name)
    assert not list(tmp_path.rglob("*.csv"))


def test_files_that_the_reference_has_and_the_results_lack_are_named(tmp_path: Path) -> None:
    for folder, names in {"made": ["b.csv"], "reference": ["b.csv", "b_x.csv", "bc.csv"]}.items():
        for name in names:
            path = tmp_path / folder / "tables" / "a" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
    missing = render.missing_files(tmp_path / "made", tmp_path / "reference", ["a/b"])
    assert missing == ["tables/a/b_x.csv"]


def test_equations_are_mathml() -> None:
    assert render.mathml(r"\frac{a}{b}").startswith("<math")


@pytest.mark.parametrize("name", render.FIGURES)
def test_each_figure_of_the_index_is_stored_in_its_notebook(name: str) -> None:
    picture = Image.open(BytesIO(render.first_figure(planning.path_of(name))))
    assert min(picture.size) > 300


def test_a_notebook_without_a_figure_is_named(tmp_path: Path) -> None:
    path = tmp_path / "none.ipynb"
    nbformat.write(new_notebook(cells=[new_code_cell("1")]), path)
    with pytest.raises(ValueError, match=r"^none\.ipynb has no figure$"):
        render.first_figure(path)


@pytest.mark.parametrize("page", ["README.md", "docs/findings.md"])
def test_a_page_shows_the_figures_that_are_stored_in_the_notebooks(page: str) -> None:
    path = ROOT / page
    pictures = re.findall(r"!\[[^]]+\]\((.+?)\)", path.read_text(encoding="utf-8"))
    assert pictures
    for picture in pictures:
        shown = path.parent / picture
        name = shown.relative_to(path.parent / picture.partition("figures/")[0] / "figures")
        stored = render.first_figure(planning.path_of(name.with_suffix("").as_posix()))
        assert shown.read_bytes() == stored
