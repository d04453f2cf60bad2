"""The report: a page for each executed notebook, and an index of claims, pages and runs.

It needs no network: pictures lie in the pages, equations are MathML, and there is one style sheet.
"""

import json
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path

import nbformat
import pandas as pd
from jinja2 import Environment, FileSystemLoader
from latex2mathml.converter import convert
from nbconvert import HTMLExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

from lib.files import write_bytes
from lib.parts import modules
from lib.study.jobs import Job, RecordStatus
from lib.study.open import ROOT

_FINDINGS = re.compile(r"<!-- findings -->\n(.*?)<!-- end of findings -->", re.DOTALL)


def write_page(notebook: Path, report: Path, names: Collection[str], equations: Sequence[str]) -> None:
    """Write an executed notebook's page, its text and outputs without code.

    Args:
        notebook: the executed copy, whose last folder and name are the artefact's.
        report: the folder of pages.
        names: of the artefacts that have a page, e.g. "adasample/table1", to which links lead.
        equations: files below lib, for the page's last line.

    Raises:
        Exception: of latex2mathml, an equation is not understood.
    """
    name = "/".join(notebook.with_suffix("").parts[-2:])
    page, exporter = report / f"{name}.html", _exporter()
    committed, pages = (ROOT / "notebooks" / name).parent, _pages(report, names)
    exporter.register_filter("markdown2html", partial(_html, folder=committed, page=page, pages=pages))
    body, _ = exporter.from_notebook_node(nbformat.read(notebook, as_version=4))
    # What is too wide scrolls by itself, by the keyboard as well.
    body = body.replace("<pre>", '<pre tabindex="0">')
    body = body.replace('<div class="output_html', '<div tabindex="0" class="output_html')
    link = partial(os.path.relpath, start=page.parent)
    equations = {file: link(ROOT / "lib" / file) for file in equations}
    shown = {"title": title(notebook), "body": body, "notebook": link(notebook), "equations": equations}
    _write(page, "page.html", **shown)


def write_index(
    report: Path,
    notebooks: Mapping[str, Path],
    verdicts: pd.DataFrame,
    runs: Mapping[str, Sequence[tuple[Job, RecordStatus]]],
    failures: Sequence[tuple[str, str]],
    **texts: str,
) -> Path:
    """Write the index of the pages that a report's folder holds, and the style sheet.

    Args:
        report: the folder of pages.
        notebooks: the executed copies by artefact's name; those without a page are left out.
        verdicts: of `lib.study.report.reference.saved_verdicts`.
        runs: by artefact's name its jobs, and how their records stand.
        failures: what failed, and why; named at the head.
        texts: `heading`, which names profile and data, and `reproduced`, how far the reference was; the
            latter may be empty.

    Returns:
        The index's path.
    """
    page = report / "index.html"
    titles = {
        name: title(path) for name, path in notebooks.items() if (report / f"{name}.html").exists()
    }
    rows = verdicts.astype(object).fillna("").sort_values("paper", kind="stable")
    findings = "".join(_FINDINGS.findall((ROOT / "README.md").read_text(encoding="utf-8")))
    write_bytes(report / "style.css", Path(__file__).with_name("style.css").read_bytes())
    _write(
        page,
        "index.html",
        title="AdaSample, DSM, TCDesc and HyNet under one protocol",
        titles=titles,
        # Tables by their numbers, figures by theirs, then what no paper prints.
        pages=sorted(titles, key=lambda name: ("/table" not in name, "/figure" not in name, name)),
        tally=pd.crosstab(rows["paper"], rows["verdict"]),
        claims=rows.to_dict("records"),
        # Three digits, with a minus sign that a line is not broken at.
        number=lambda value: f"{float(value):.3g}".replace("-", "−") if value != "" else "",
        findings=_html(findings, ROOT, page, _pages(report, titles)),
        runs=[(job, record, name) for name, records in runs.items() for job, record in records],
        link=partial(os.path.relpath, start=report),
        failures=failures,
        **texts,
    )
    return page


def title(notebook: Path) -> str:
    """A notebook's first heading."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    texts = ("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    headings = (text.partition("\n")[0][2:] for text in texts if text.startswith("# "))
    return next(headings, notebook.stem)


def equations(jobs: Iterable[Job]) -> list[str]:
    """The files of lib that state what jobs train by, or compute, e.g. "losses/cdf.py"."""
    named = set()
    for job in jobs:
        computed = [f"lib.theory.{job.computation.name}"] if job.computation else []
        named |= {*computed, *(modules(job.recipe) if job.recipe else ())}
    files = sorted(f"{name.removeprefix('lib.').replace('.', '/')}.py" for name in named)
    return [file for file in files if not file.startswith(("points/", "schedules/"))]


def mathml(latex: str, display: str = "inline") -> str:
    """An equation as MathML, which browsers typeset themselves.

    Args:
        latex: without delimiters.
        display: "inline" or "block".
    """
    # HTML needs no namespace. A norm's closing bar, base of an exponent, would be stretched alone.
    typeset = convert(latex, display=display).replace(' xmlns="http://www.w3.org/1998/Math/MathML"', "")
    return typeset.replace("<mo>&#x02016;", '<mo stretchy="false">&#x02016;')


@cache
def _exporter() -> HTMLExporter:
    """One for all notebooks, since it compiles its templates."""
    hidden = {f"exclude_{part}": True for part in ("input", "input_prompt", "output_prompt")}
    return HTMLExporter(template_name="basic", embed_images=True, **hidden)


def _pages(report: Path, names: Iterable[str]) -> dict[Path, Path]:
    """The pages of artefacts, by their committed notebooks."""
    return {ROOT / f"notebooks/{name}.ipynb": report / f"{name}.html" for name in names}


def _html(markdown: str, folder: Path, page: Path, pages: Mapping[Path, Path]) -> str:
    """Markdown with equations as MathML and with links to pages, or else to files of the repository.

    Args:
        markdown: the text.
        folder: that links start from.
        page: where the text will stand.
        pages: by notebook.
    """

    class Renderer(IPythonRenderer):
        def block_math(self, body: str) -> str:
            return mathml(body.strip(), "block")

        def inline_math(self, body: str) -> str:
            return mathml(body.strip())

        def latex_environment(self, name: str, body: str) -> str:
            return mathml(rf"\begin{{{name}}}{body}\end{{{name}}}", "block")

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
