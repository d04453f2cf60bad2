"""The report: notebooks executed by papermill, several at once, a page for each, and an index.

The pages work offline: pictures are embedded, equations are MathML, and there is one style sheet.
"""

import ast
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import deepcopy
from functools import cache, partial
from pathlib import Path

import nbformat
import pandas as pd
import papermill
from jinja2 import Environment, FileSystemLoader
from jupyter_client import AsyncKernelManager
from jupyter_client.utils import run_sync
from latex2mathml.converter import convert
from nbclient import NotebookClient
from nbconvert import HTMLExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

from lib.files import write_bytes
from lib.processes import Task, printed, run
from lib.study.open import ROOT, Runs, Study
from lib.study.report.reference import saved_files

# The first part of README, from its scope to the end of its findings.
_FINDINGS = re.compile(r"(\*\*Scope\.\*\*.*?)<!-- end of findings -->", re.DOTALL)

# Values that the report passes for notebooks' parameters other than profile, data and results, so that a
# value changed by hand in a saved notebook does not get into the report.
PARAMETERS: Mapping[str, object] = {
    **dict.fromkeys(("seeds", "real", "scenes", "train_set", "images")),
    **{"also": [], "checkpoints": [], "descriptor": "tcdesc_dsm_aug"},
    **{"one_camera": True, "longest_side": 1024},
}

# Local kernels need no encryption, but each would log that it has none, and some log an interrupt when
# they are shut down. Papermill reports the errors of cells.
QUIET = ["--log-level=CRITICAL"]
# Artefact's name -> records of its jobs, in their current state.
RunsByArtefact = Mapping[str, Runs]


def execute(study: Study, runs: RunsByArtefact, results: str, report: Path) -> list[tuple[str, str]]:
    """Execute copies of the notebooks in the study's folder, as many at once as runs; write their pages.

    Files that earlier executions saved for these artefacts are removed first.

    Args:
        study: its profile and data become the notebooks' parameters.
        runs: the artefacts' records, in their state in the folder that is read first.
        results: the notebooks' parameter of that name.
        report: the folder of the pages.

    Returns:
        The notebooks that failed, each with the cell and the error.
    """
    parameters = {"profile": study.profile.name, "data": study.data, "results": results}
    for name in saved_files(study.saving, runs) if study.saving else ():
        (study.saving / name).unlink()
    failures = []
    tasks = []
    for name, records in runs.items():
        notebook = f"notebooks/{name}.ipynb"
        copy = study.folder / notebook
        for earlier in (copy, report / f"{name}.html"):
            earlier.unlink(missing_ok=True)
        missing = [f"{r.job.title}, {r.state}: {r.path}" for r in records if not r.readable]
        if missing:
            # The notebook would train the missing runs itself, one notebook after the other.
            why = f"not executed: {len(missing)} of its records are not whole, e.g. {missing[0]}"
            failures.append((notebook, why))
            continue
        page = partial(write_page, copy, report, tuple(runs))
        tasks.append(Task(notebook, partial(_execute, ROOT / notebook, copy, parameters, page)))
    # A notebook gets as many threads as a run, because as many notebooks as runs execute at once.
    outcomes = run(tasks, study.at_once, printed(len(tasks)), study.profile.threads)
    return failures + [
        (task.title, outcome.failure.removeprefix("RuntimeError: "))
        for task, outcome in zip(tasks, outcomes, strict=True)
        if outcome.failure
    ]


def _execute(notebook: Path, copy: Path, parameters: Mapping, write_page: Callable) -> None:
    own = own_parameters(notebook)
    source = nbformat.read(notebook, as_version=4)
    if (own.get("profile"), own.get("data")) != (parameters["profile"], parameters["data"]):
        # Cells that interpret the committed notebook's numbers do not apply to other numbers.
        source.cells = [c for c in source.cells if "evidence" not in c.metadata.get("tags", ())]
    copy.parent.mkdir(parents=True, exist_ok=True)
    kernel = _kernel()
    try:
        if kernel.has_kernel:
            _clear(kernel, notebook.parent)
        papermill.execute_notebook(
            source,
            str(copy),
            parameters={n: value for n, value in {**PARAMETERS, **parameters}.items() if n in own},
            cwd=notebook.parent,
            km=kernel,
            progress_bar=False,
            extra_arguments=QUIET,
            # Files that a notebook saves are complete when its cell is done.
            shutdown_kernel="immediate",
        )
    except Exception as error:
        _kernel.cache_clear()
        run_sync(kernel.shutdown_kernel)(now=True)
        if isinstance(error, papermill.PapermillExecutionError):
            # The index counts from 0 and includes the parameter cell that papermill added. For the
            # committed cells below that one it therefore counts from 1.
            raise RuntimeError(f"cell {error.cell_index}, {error.ename}: {error.evalue}") from error
        raise
    finally:
        if copy.exists():
            write_page()


def own_parameters(notebook: Path) -> dict[str, object]:
    """Return a notebook's parameters with the values written in it."""
    parameters = papermill.inspect_notebook(str(notebook))
    return {name: ast.literal_eval(parameter["default"]) for name, parameter in parameters.items()}


@cache
def _kernel() -> AsyncKernelManager:
    """Return the kernel of this process, which executes its notebooks one after the other.

    Most notebooks take less time than importing pandas, seaborn and torch anew.
    """
    return AsyncKernelManager(kernel_name="python3")


def _clear(kernel, folder: Path) -> None:
    """Make a kernel forget a notebook's variables, but not its modules, and work in another folder."""
    client = kernel.blocking_client()
    client.start_channels()
    client.execute(f"get_ipython().reset()\n__import__('os').chdir({str(folder)!r})", reply=True)
    client.stop_channels()


def store_outputs(notebook: Path) -> None:
    """Execute a notebook with its own parameters and store its outputs in it.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell failed; the notebook stays unchanged.
    """
    executed = nbformat.read(notebook, as_version=4)
    metadata = deepcopy(executed.metadata)
    # A slow kernel sends its output in several messages.
    quiet = {"record_timing": False, "coalesce_streams": True, "extra_arguments": QUIET}
    NotebookClient(executed, resources={"metadata": {"path": notebook.parent}}, **quiet).execute()
    # The execution's metadata hold versions.
    executed.metadata = metadata
    nbformat.write(executed, notebook)


def write_page(notebook: Path, report: Path, names: Collection[str]) -> None:
    """Write an executed notebook's page: its text and outputs, without code.

    Args:
        notebook: the executed copy; its last folder and its file name are those of the artefact.
        report: the folder of pages.
        names: names of the artefacts that have a page to link to, e.g. "adasample/table1".

    Raises:
        Exception: latex2mathml does not understand an equation.
    """
    name = "/".join(notebook.with_suffix("").parts[-2:])
    page = report / f"{name}.html"
    exporter = _exporter()
    text = partial(_html, (ROOT / "notebooks" / name).parent, page, report, names)
    exporter.register_filter("markdown2html", text)
    body, _ = exporter.from_notebook_node(nbformat.read(notebook, as_version=4))
    # Wide parts scroll on their own, with the keyboard as well.
    body = body.replace("<pre>", '<pre tabindex="0">')
    body = body.replace('<div class="output_html', '<div tabindex="0" class="output_html')
    link = os.path.relpath(notebook, page.parent)
    _write(page, "page.html", title=title(notebook), body=body, notebook=link)


def write_index(
    report: Path,
    copies: Path,
    verdicts: pd.DataFrame,
    runs: RunsByArtefact,
    failures: Sequence[tuple[str, str]],
    **texts: str,
) -> Path:
    """Write the index of the pages in a report's folder, and the style sheet.

    Args:
        report: the folder of pages.
        copies: the folder of the executed notebooks; those without a page are left out.
        verdicts: from `lib.study.report.reference.saved_verdicts`.
        runs: as for `execute`.
        failures: what failed and why, listed at the top.
        texts: `heading`, which names profile and data, and `reproduced`, which says how far the
            reference was reproduced and may be empty.

    Returns:
        The index's path.
    """
    page = report / "index.html"
    shown = [name for name in runs if (report / f"{name}.html").exists()]
    titles = {name: title(copies / f"{name}.ipynb") for name in shown}
    rows = verdicts.astype(object).fillna("").sort_values("paper", kind="stable")
    findings = "".join(_FINDINGS.findall((ROOT / "README.md").read_text(encoding="utf-8")))
    write_bytes(report / "style.css", Path(__file__).with_name("style.css").read_bytes())
    _write(
        page,
        "index.html",
        title="AdaSample, DSM, TCDesc and HyNet under one protocol",
        titles=titles,
        # Tables by number, then figures by number, then artefacts that no paper prints.
        pages=sorted(titles, key=lambda name: ("/table" not in name, "/figure" not in name, name)),
        tally=pd.crosstab(rows["paper"], rows["verdict"]),
        claims=rows.to_dict("records"),
        # Three digits, with a minus sign at which a line does not break.
        number=lambda value: f"{float(value):.3g}".replace("-", "−") if value != "" else "",
        findings=_html(ROOT, page, report, titles, findings),
        runs=[(record, name) for name, records in runs.items() for record in records],
        link=partial(os.path.relpath, start=report),
        failures=failures,
        **texts,
    )
    return page


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


def _html(folder: Path, page: Path, report: Path, names: Iterable[str], markdown: str) -> str:
    """Convert Markdown to HTML with MathML equations, and links to pages or else to repository files.

    Args:
        folder: the folder that links are relative to.
        page: the page that will hold the text.
        report: the folder of pages.
        names: names of the artefacts that have a page.
        markdown: the text.
    """
    pages = {ROOT / f"notebooks/{name}.ipynb": report / f"{name}.html" for name in names}

    class Renderer(IPythonRenderer):
        def block_math(self, body: str) -> str:
            return mathml(body.strip(), "block")

        def inline_math(self, body: str) -> str:
            return mathml(body.strip())

        def link(self, text: str, url: str, title: str | None = None) -> str:
            file, mark, part = url.partition("#")
            if file and "://" not in file:
                target = Path(os.path.normpath(folder / file))
                url = os.path.relpath(pages.get(target, target), page.parent) + mark + part
            return super().link(text, url, title)

    renderer = Renderer(escape=False, embed_images=True, exclude_anchor_links=True, path=str(folder))
    return MarkdownWithMath(renderer=renderer).render(markdown)


def _write(page: Path, template: str, **shown: object) -> None:
    folder = FileSystemLoader(Path(__file__).parent)
    layout = Environment(loader=folder, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    write_bytes(page, layout.get_template(template).render(shown).encode())
