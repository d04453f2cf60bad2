"""The report: notebooks executed by papermill, several at once, a page for each, and an index.

The pages work offline: pictures are embedded, equations are MathML, and there is one style sheet.
"""

import os
from base64 import b64decode
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from functools import cache, partial
from pathlib import Path

import nbformat
import papermill
from jinja2 import Environment, FileSystemLoader
from latex2mathml.converter import convert
from nbclient import NotebookClient
from nbconvert import HTMLExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

from lib.files import write_bytes
from lib.study import planning
from lib.study.planning import path_of
from lib.study.runs import REFERENCE, ROOT, Study
from lib.study.sweep import Task, processes_for, sweep

# Local kernels need no encryption, but each would log that it has none, and some log an interrupt when
# they are shut down. Papermill reports the errors of cells.
QUIET = ["--log-level=CRITICAL"]
# Markdown that holds for any numbers. Other Markdown speaks of the committed notebook's own numbers.
GENERAL = {"question", "method"}
PAGES = Path(__file__).parent / "pages"
# Folders of what notebooks save, with the suffixes of the files.
SAVED = {"tables": "csv", "figures": "png"}
# By the folder of its notebooks, what a part of the report is called.
PARTS = {
    "adasample": "AdaSample",
    "dsm": "DSM",
    "hynet": "HyNet",
    "tcdesc": "TCDesc",
    "together": "The four together",
    "study": "The study itself",
    "audit": "What the papers print",
    "data": "Data",
    "use": "For use",
}
# What the index shows, if README does not: of each notebook its first figure, and what is drawn.
FIGURES = {
    "study/grades": "What each paper's method changes against the method that it starts from.",
    "together/methods": "Each method against HardNet+ with the same optimiser.",
    "together/duration": "FPR95 after short training and four times as long, with each optimiser.",
    "adasample/ablation": "AdaSample's choices, one added to the other, and its sampling by itself.",
    "together/places": "Whether close pairs of methods keep their order in smaller studies.",
    "study/detectable": "The gains that the papers print, and what five seeds or eight places find.",
}


def execute(names: Sequence[str], study: Study, results: str, report: Path) -> list[tuple[str, str]]:
    """Execute copies of notebooks in the study's folder, as many at once as runs; write their pages.

    Files that earlier executions saved for these notebooks are removed first.

    Args:
        names: of the notebooks.
        study: its profile and data become the notebooks' parameters.
        results: the notebooks' parameter of that name.
        report: the folder of the pages.

    Returns:
        The notebooks that failed, each with the cell and the error.
    """
    copies = study.results / "notebooks"
    parameters = {}
    for name in names:
        earlier = [copies / f"{name}.ipynb", report / f"{name}.html"]
        for kind, suffix in SAVED.items():
            earlier += saved(study.results, kind, name, suffix)
        for path in earlier:
            path.unlink(missing_ok=True)
        parameters[name] = {**planning.parameters(name, study), "results": results}
    return _execute_all(parameters, copies, report, study.profile.threads or 1, study.jobs)


def execute_committed(
    names: Sequence[str], copies: Path, report: Path, jobs: int | None
) -> list[tuple[str, str]]:
    """Execute copies of committed notebooks with their own parameters, from the reference, and write
    their pages as the evidence on record.

    Args:
        names: of the notebooks.
        copies: the folder of the copies.
        report: the folder of the pages.
        jobs: how many notebooks are executed at once; None is as many as the cores hold.

    Returns:
        The notebooks that failed, each with the cell and the error.
    """
    parameters = {name: planning.own_parameters(name) for name in names}
    return _execute_all(parameters, copies, report / "evidence", 1, jobs)


def _execute_all(
    parameters: Mapping[str, Mapping[str, object]],
    copies: Path,
    folder: Path,
    threads: int,
    jobs: int | None,
) -> list[tuple[str, str]]:
    """Execute copies of notebooks with the parameters of each, by name, and write their pages to a
    folder."""
    pages = _pages(parameters, folder)
    tasks = []
    for name, own in parameters.items():
        do = partial(_execute, name, copies / f"{name}.ipynb", own, pages[name], pages)
        tasks.append(Task(name, do))
    failures = sweep(tasks, jobs or processes_for(threads), threads, unit="notebook")
    return [(name, why.removeprefix("RuntimeError: ")) for name, why in failures]


def _pages(names: Iterable[str], folder: Path) -> dict[str, Path]:
    """Return the paths of notebooks' pages in a folder, by name."""
    return {name: folder / f"{name}.html" for name in names}


def saved(folder: Path, kind: str, name: str, suffix: str) -> list[Path]:
    """Return the files that a notebook saved: ``tables/dsm/table3.csv``, ``tables/dsm/table3_….csv``."""
    stem = folder / kind / name
    alone = stem.parent.glob(f"{stem.name}.{suffix}")
    further = stem.parent.glob(f"{stem.name}_*.{suffix}")
    return sorted([*alone, *further])


def _execute(
    name: str, copy: Path, parameters: Mapping[str, object], page: Path, pages: Mapping[str, Path]
) -> None:
    source = nbformat.read(path_of(name), as_version=4)
    own = planning.own_parameters(name)
    if any(own[key] != parameters[key] for key in ("profile", "data")):
        source.cells = [cell for cell in source.cells if _is_general(cell)]
    copy.parent.mkdir(parents=True, exist_ok=True)
    given = {key: value for key, value in parameters.items() if key in own}
    try:
        _execute_cells(source, copy, given, path_of(name).parent)
    except papermill.PapermillExecutionError as error:
        # The index counts from 0 and includes the parameter cell that papermill added. For the
        # committed cells below that one it therefore counts from 1.
        raise RuntimeError(f"cell {error.cell_index}, {error.ename}: {error.evalue}") from error
    finally:
        if copy.exists():
            write_page(copy, page, name, pages)


def _execute_cells(
    source: nbformat.NotebookNode, copy: Path, parameters: Mapping[str, object], folder: Path
) -> None:
    execute = partial(
        papermill.execute_notebook,
        source,
        str(copy),
        parameters=dict(parameters),
        cwd=folder,
        kernel_name="python3",
        progress_bar=False,
        extra_arguments=QUIET,
    )
    try:
        execute()
    except RuntimeError:
        # The kernel died, most likely while it started: notebooks are executed several at once, and
        # another kernel can take a port that this one was to listen on.
        execute()


def _is_general(cell) -> bool:
    """Whether a cell belongs in a copy with other numbers than the committed notebook's."""
    return cell.cell_type != "markdown" or bool(GENERAL & set(cell.metadata.get("tags", ())))


def store_outputs(name: str) -> None:
    """Execute a notebook with its own parameters and store its outputs in it.

    The figure of one of `FIGURES` also goes to the reference, where README and findings link to it.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell failed; the notebook stays unchanged.
    """
    path = path_of(name)
    executed = nbformat.read(path, as_version=4)
    metadata = deepcopy(executed.metadata)
    # A slow kernel sends its output in several messages.
    quiet = {"record_timing": False, "coalesce_streams": True, "extra_arguments": QUIET}
    NotebookClient(executed, resources={"metadata": {"path": path.parent}}, **quiet).execute()
    # The execution's metadata hold versions.
    executed.metadata = metadata
    nbformat.write(executed, path)
    if name in FIGURES:
        folder = REFERENCE / planning.own_parameters(name)["profile"] / "figures"
        write_bytes(folder / f"{name}.png", first_figure(path))


def write_page(notebook: Path, page: Path, name: str, pages: Mapping[str, Path]) -> None:
    """Write a notebook's page: its text and outputs, without code.

    Args:
        notebook: with outputs; committed, or an executed copy.
        page: the page's path.
        name: the notebook's name, relative to whose folder its links are.
        pages: the pages that links to other notebooks lead to, by name.

    Raises:
        Exception: latex2mathml does not understand an equation.
    """
    shown = nbformat.read(notebook, as_version=4)
    evidence = [cell for cell in shown.cells if "evidence" in cell.metadata.get("tags", ())]
    if evidence:
        # The anchor that the top of the page links to.
        evidence[-1].source = f'<a id="conclusion"></a>\n\n{evidence[-1].source}'
    exporter = _exporter()
    exporter.register_filter("markdown2html", partial(_html, path_of(name).parent, page, pages))
    body, _ = exporter.from_notebook_node(shown)
    # Wide parts scroll on their own, with the keyboard as well.
    body = body.replace("<pre>", '<pre tabindex="0">')
    body = body.replace('<div class="output_html', '<div tabindex="0" class="output_html')
    root = next(folder for folder in page.parents if folder.name == "report")
    up = "../" * len(page.parent.relative_to(root).parts)
    links = {"notebook": notebook}
    if notebook == path_of(name):
        # The numbers of a committed notebook are of the reference.
        records = REFERENCE / planning.own_parameters(name)["profile"]
        links |= {"runs": records / "runs.csv", "metrics": records / "metrics.csv"}
    _write(
        page,
        "page.html",
        title=title(notebook),
        body=body,
        concludes=bool(evidence),
        links={kind: os.path.relpath(path, page.parent) for kind, path in links.items()},
        root=up,
    )


def write_evidence(names: Sequence[str], report: Path) -> dict[str, str]:
    """Write the pages of the committed notebooks, as they are, and return their titles by name."""
    pages = _pages(names, report / "evidence")
    for name, page in pages.items():
        write_page(path_of(name), page, name, pages)
    return titles(names)


def titles(names: Iterable[str]) -> dict[str, str]:
    """Return the titles of committed notebooks, by name."""
    return {name: title(path_of(name)) for name in names}


def write_index(
    report: Path,
    evidence: Mapping[str, str],
    executed: Sequence[str],
    failures: Sequence[tuple[str, str]],
    heading: str,
    reproduced: str,
) -> Path:
    """Write the index of a report, and its style sheet.

    Args:
        report: the folder of pages.
        evidence: titles of the committed notebooks' pages, by name.
        executed: the notebooks that this run executed.
        failures: what failed and why, listed at the top.
        heading: profile and data of this run.
        reproduced: how far this run reproduced the reference; may be empty.

    Returns:
        The index's path.
    """
    page = report / "index.html"
    write_bytes(report / "style.css", (PAGES / "style.css").read_bytes())
    question, answer = question_and_answer()
    # What README shows is in the answer.
    further = [name for name in FIGURES if name in evidence and f"figures/{name}.png" not in answer]
    figures = {name: first_figure(path_of(name)) for name in further}
    for name, picture in figures.items():
        write_bytes(report / "figures" / f"{name}.png", picture)
    _write(
        page,
        "index.html",
        title=question,
        answer=_html(ROOT, page, _pages(evidence, report / "evidence"), answer),
        parts=PARTS,
        evidence=evidence,
        figures={name: FIGURES[name] for name in figures},
        sizes={name: planning.own_parameters(name)["profile"] for name in evidence},
        order=sorted(evidence, key=lambda name: ("/table" not in name, "/figure" not in name, name)),
        executed=[name for name in executed if (report / f"{name}.html").exists()],
        failures=failures,
        heading=heading,
        reproduced=reproduced,
        root="",
    )
    return page


def question_and_answer() -> tuple[str, str]:
    """Return README's title, and as Markdown what follows it up to the next heading."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    title, _, rest = readme.partition("\n")
    return title.removeprefix("# "), rest.partition("\n## ")[0]


def first_figure(notebook: Path) -> bytes:
    """Return the first figure among a notebook's stored outputs, as PNG.

    Raises:
        ValueError: it has none.
    """
    for cell in nbformat.read(notebook, as_version=4).cells:
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):
                return b64decode(output["data"]["image/png"])
    raise ValueError(f"{notebook.name} has no figure")


def title(notebook: Path) -> str:
    """Return a notebook's first heading."""
    cells = nbformat.read(notebook, as_version=4).cells
    # A failed notebook has a cell by papermill above the heading.
    texts = (cell.source for cell in cells if cell.cell_type == "markdown")
    return next(text.partition("\n")[0][2:] for text in texts if text.startswith("# "))


def mathml(latex: str, display: str = "inline") -> str:
    """Return an equation as MathML, which browsers typeset themselves.

    Args:
        latex: the equation without delimiters.
        display: "inline" or "block".
    """
    # HTML needs no namespace. A norm's closing bar with an exponent would be stretched on its own.
    typeset = convert(latex, display=display).replace(' xmlns="http://www.w3.org/1998/Math/MathML"', "")
    return typeset.replace("<mo>&#x02016;", '<mo stretchy="false">&#x02016;')


@cache
def _exporter() -> HTMLExporter:
    """Return one exporter for all notebooks, because it compiles its templates."""
    return HTMLExporter(
        template_name="basic",
        embed_images=True,
        exclude_input=True,
        exclude_input_prompt=True,
        exclude_output_prompt=True,
    )


def _html(folder: Path, page: Path, pages: Mapping[str, Path], markdown: str) -> str:
    """Convert Markdown to HTML with MathML equations, and links to pages or else to repository files.

    Args:
        folder: the folder that links are relative to.
        page: the page that will hold the text.
        pages: pages of notebooks, by name.
        markdown: the text.
    """
    targets = {path_of(name): own for name, own in pages.items()}

    class Renderer(IPythonRenderer):
        def block_math(self, body: str) -> str:
            return mathml(body.strip(), "block")

        def inline_math(self, body: str) -> str:
            return mathml(body.strip())

        def link(self, text: str, url: str, title: str | None = None) -> str:
            file, mark, part = url.partition("#")
            if file and "://" not in file:
                target = Path(os.path.normpath(folder / file))
                url = os.path.relpath(targets.get(target, target), page.parent) + mark + part
            return super().link(text, url, title)

    renderer = Renderer(escape=False, embed_images=True, exclude_anchor_links=True, path=str(folder))
    return MarkdownWithMath(renderer=renderer).render(markdown)


def _write(page: Path, template: str, **shown: object) -> None:
    layout = Environment(
        loader=FileSystemLoader(PAGES), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    write_bytes(page, layout.get_template(template).render(shown).encode())


def missing_files(results: Path, reference: Path, names: Iterable[str]) -> list[str]:
    """Return the tables and figures of notebooks that the reference has and the results lack."""
    missing = []
    for name in names:
        for kind, suffix in SAVED.items():
            made = {path.name for path in saved(results, kind, name, suffix)}
            for path in saved(reference, kind, name, suffix):
                if path.name not in made:
                    missing.append(f"{kind}/{path.parent.name}/{path.name}")
    return missing
