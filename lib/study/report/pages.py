"""The report: a page for each executed notebook, and an index of claims, pages and runs.

It needs no network: pictures lie in the pages, equations are MathML, and there is one style sheet.
"""

import json
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

import pandas as pd

from lib.files import write_bytes
from lib.parts import modules
from lib.study.jobs import Job, RecordStatus
from lib.study.open import ROOT

TITLE = "AdaSample, DSM, TCDesc and HyNet under one protocol"
# By verdict, the sign that tells it apart without colour.
SIGNS = {
    **{"reproduced": "✓", "not reproduced": "✗", "held": "✓", "did not hold": "✗"},
    **{"open": "≈", "not judged": "–"},
}
# By the folder of its notebooks, what a part of the report is called and, of a paper, what it claims.
PARTS = {
    "adasample": (
        "AdaSample",
        "Positives drawn by their distance, the harder the likelier, train better descriptors of "
        "patches than positives drawn at random (Zhang et al.).",
    ),
    "dsm": (
        "DSM",
        "Triplets weighted by how hard they are among recent ones train better descriptors, real-valued "
        "and binary, than a margin that is set by hand (Zhang and Rusinkiewicz, ICCV 2019).",
    ),
    "hynet": (
        "HyNet",
        "A similarity between inner product and distance, a bound on how the lengths of a pair differ, "
        "and filter response normalisation train better descriptors than either similarity alone "
        "(Tian et al., NeurIPS 2020).",
    ),
    "tcdesc": (
        "TCDesc",
        "Matching descriptors that have the same neighbours, at the same weights, are better than those "
        "that are near each other alone (Pan et al.).",
    ),
    "together": ("The four together", ""),
    "audit": ("What the papers print", ""),
    "study": ("The study itself", ""),
    "data": ("Data", ""),
    "use": ("For use", ""),
}
_PRINTED = re.compile(r"(table|figure)(\d+)")
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
    import nbformat

    name = "/".join(notebook.with_suffix("").parts[-2:])
    page = report / f"{name}.html"
    executed = nbformat.read(notebook, as_version=4)
    context = {"path": str(ROOT / "notebooks" / Path(name).parent), "page": page, "report": report}
    body, _ = _exporter().from_notebook_node(executed, {"metadata": {**context, "names": names}})
    # What is too wide scrolls by itself, by the keyboard as well.
    body = re.sub(r"<pre>|(?<=<div )(?=class=\"output_html)", _focusable, body)
    _write(
        page,
        "page.html",
        title=title(notebook),
        body=body,
        notebook=os.path.relpath(notebook, page.parent),
        equations={file: os.path.relpath(ROOT / "lib" / file, page.parent) for file in equations},
    )


def _focusable(found: re.Match) -> str:
    return '<pre tabindex="0">' if found[0] else 'tabindex="0" '


def write_index(
    report: Path,
    notebooks: Mapping[str, Path],
    verdicts: pd.DataFrame,
    runs: Mapping[str, Sequence[tuple[Job, RecordStatus]]],
    failures: Sequence[tuple[str, str]],
    **shown: str,
) -> Path:
    """Write the index of the pages that a report's folder holds, and the style sheet.

    Args:
        report: the folder of pages.
        notebooks: the executed copies by artefact's name; those without a page are left out.
        verdicts: of `lib.study.report.reproduced.saved_verdicts`.
        runs: by artefact's name its jobs, and how their records stand.
        failures: what failed, and why; named at the head.
        shown: the texts `heading`, which names profile and data, and `reproduced`, how far the reference
            was; the latter may be empty.

    Returns:
        The index's path.
    """
    page = report / "index.html"
    there = {name: path for name, path in notebooks.items() if (report / f"{name}.html").exists()}
    parts = {
        part: sorted((name for name in there if name.startswith(f"{part}/")), key=_order)
        for part in dict.fromkeys((*PARTS, *(name.partition("/")[0] for name in there)))
    }
    titles = {name: _short_title(title(path), name) for name, path in there.items()}
    rows = verdicts.reindex(columns=list(dict.fromkeys((*verdicts, *_OPTIONAL))))
    rows = rows.astype(object).fillna("")
    rows = rows.sort_values("paper", kind="stable")
    words = [word for word in SIGNS if word in set(rows["verdict"])]
    findings = _FINDINGS.search((ROOT / "README.md").read_text(encoding="utf-8"))
    context = {"path": str(ROOT), "page": page, "report": report, "names": there}
    write_bytes(report / "style.css", Path(__file__).with_name("style.css").read_bytes())
    _write(
        page,
        "index.html",
        title=TITLE,
        parts={part: names for part, names in parts.items() if names},
        names=PARTS,
        titles=titles,
        tally=pd.crosstab(rows["paper"], rows["verdict"]).reindex(columns=words),
        claims=rows.to_dict("records"),
        estimate=estimate,
        number=number,
        signs=SIGNS,
        findings=_html(findings[1], context) if findings else "",
        runs=_runs(runs, report),
        failures=failures,
        **shown,
    )
    return page


_OPTIONAL = ("artefact", "kind", "observed", "low", "high", "unit", "printed", "rival", "why")


def title(notebook: Path) -> str:
    """A notebook's first heading."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    texts = ("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    headings = (text.partition("\n")[0][2:] for text in texts if text.startswith("# "))
    return next(headings, notebook.stem)


def _short_title(title: str, name: str) -> str:
    """A title without the part's, below which it stands."""
    part, *_ = PARTS.get(name.partition("/")[0], ("", ""))
    short = title.removeprefix(f"{part}, ")
    return short[:1].upper() + short[1:]


def _order(name: str) -> tuple[int, int]:
    """Tables by their numbers, figures by theirs, then what no paper prints."""
    printed = _PRINTED.fullmatch(name.partition("/")[2])
    return (("table", "figure").index(printed[1]), int(printed[2])) if printed else (2, 0)


def estimate(row: Mapping[str, object]) -> str:
    """A claim's observed statistic and its interval, e.g. "−0.47 points (−3.1 to 2.16)"."""
    observed, low, high = (number(row[name]) for name in ("observed", "low", "high"))
    return f"{observed} {row['unit']}" + (f" ({low} to {high})" if low and high else "")


def number(value: object) -> str:
    """Three digits, with a minus sign that a line is not broken at; "" of a missing one."""
    return "" if value == "" else f"{float(value):.3g}".replace("-", "−")


def _runs(
    runs: Mapping[str, Sequence[tuple[Job, RecordStatus]]], report: Path
) -> list[dict[str, object]]:
    """The records, each once, and the artefacts that show it."""
    by_path: dict[Path, dict] = {}
    for name, records in runs.items():
        for job, record in records:
            content = record.content or {}
            row = {
                "title": job.title,
                "state": record.state,
                "seconds": content.get("seconds"),
                "device": content.get("device", ""),
                "link": os.path.relpath(record.path, report) if content else "",
                "artefacts": [],
            }
            by_path.setdefault(record.path, row)["artefacts"].append(name)
    return list(by_path.values())


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
    from latex2mathml.converter import convert

    # HTML needs no namespace. A norm's closing bar, base of an exponent, would be stretched alone.
    typeset = convert(latex, display=display).replace(' xmlns="http://www.w3.org/1998/Math/MathML"', "")
    return typeset.replace("<mo>&#x02016;", '<mo stretchy="false">&#x02016;')


@cache
def _exporter():
    """One for all notebooks, since it compiles its templates."""
    from jinja2 import pass_context
    from nbconvert import HTMLExporter

    @pass_context
    def markdown(context: Mapping, source: str) -> str:
        return _html(source, context["resources"]["metadata"])

    hidden = {f"exclude_{part}": True for part in ("input", "input_prompt", "output_prompt")}
    exporter = HTMLExporter(template_name="basic", embed_images=True, **hidden)
    exporter.register_filter("markdown2html", markdown)
    return exporter


def _html(markdown: str, context: Mapping) -> str:
    """Markdown with equations as MathML and with links to pages, or else to files of the repository.

    Args:
        markdown: the text.
        context: `path`, the folder that links start from; `page`, where the text will stand; `report`,
            the folder of pages; `names`, the artefacts that have one.
    """
    from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

    folder, page = context["path"], context["page"]

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
                target = Path(os.path.normpath(os.path.join(folder, file)))
                name = "/".join(target.with_suffix("").parts[-2:])
                if target.suffix == ".ipynb" and name in context["names"]:
                    target = context["report"] / f"{name}.html"
                url = os.path.relpath(target, page.parent) + mark + part
            return super().link(text, url, title)

    renderer = Renderer(escape=False, embed_images=True, exclude_anchor_links=True, path=folder)
    return MarkdownWithMath(renderer=renderer).render(markdown)


def _write(page: Path, template: str, **shown: object) -> None:
    from jinja2 import Environment, FileSystemLoader

    folder = FileSystemLoader(Path(__file__).parent)
    layout = Environment(loader=folder, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    write_bytes(page, layout.get_template(template).render(shown).encode())
