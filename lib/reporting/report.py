"""The report: one self-contained HTML page with every notebook's outputs, verdicts and runs.

Notebooks are rendered by nbconvert without their code; the page needs no network, so mathematics
in a notebook's text stands as written there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from lib.files import write_bytes
from lib.reporting.compare import Comparison
from lib.reporting.report_page import CSS, PAGE

if TYPE_CHECKING:
    from nbformat import NotebookNode

TITLE = "AdaSample, DSM, TCDesc and HyNet under one protocol"
MOST_DIFFERENCES = 200


@dataclass(frozen=True)
class Failure:
    """A notebook that did not run through: its name, the cell's number from 1, and the error."""

    notebook: str
    cell: int | None
    error: str


@dataclass(frozen=True)
class RenderedNotebook:
    """A notebook as the report shows it; `body` is HTML, `anchor` its id on the page."""

    anchor: str
    title: str
    name: str
    body: str


def build_report(
    folder: Path,
    *,
    profile: str,
    data_name: str,
    notebooks: Sequence[Path],
    records: Sequence[Mapping],
    comparison: Comparison | None,
    failures: Sequence[Failure] = (),
    verdicts: pd.DataFrame | None = None,
) -> Path:
    """Write `folder/report.html`, atomically.

    Args:
        folder: the results folder, e.g. `results/quick`.
        profile, data_name: what the study ran under; unless they are `paper` and `ubc`, the head
            says what these numbers do not decide.
        notebooks: executed notebooks, in the order in which they are shown.
        records: records of runs and computations; one with a true `older_code` is marked.
        comparison: with the reference, or None where there is none.
        failures: what went wrong, named at the head.
        verdicts: from `claims.verdict_table`; None gathers those that the notebooks saved.

    Returns:
        The report's path.

    Raises:
        FileNotFoundError: a notebook is missing.
        ValueError: a notebook is not one.
        OSError: the folder cannot be written.
    """
    from jinja2 import Environment
    from markupsafe import Markup

    verdicts = gather_verdicts(folder) if verdicts is None else verdicts
    rendered = [render_notebook(path, f"notebook-{n}") for n, path in enumerate(notebooks, 1)]
    run_heads, run_rows = _runs(records)
    differences = None if comparison is None else comparison.differences.head(MOST_DIFFERENCES)
    contents = [(notebook.anchor, notebook.title) for notebook in rendered]
    if not verdicts.empty:
        contents.insert(0, ("claims", "Claims and verdicts"))
    if comparison is not None:
        contents.append(("comparison", "Comparison with the reference"))
    contents.append(("runs", "Runs"))
    environment = Environment(autoescape=True, trim_blocks=True)
    page = environment.from_string(PAGE).render(
        title=TITLE,
        css=Markup(CSS),
        profile=profile,
        data_name=data_name,
        caveat=caveat(profile, data_name),
        failures=failures,
        contents=contents,
        verdict_heads=VERDICT_HEADS,
        verdict_rows=_verdicts(verdicts),
        notebooks=[
            {"anchor": n.anchor, "title": n.title, "name": n.name, "body": Markup(n.body)}
            for n in rendered
        ],
        comparison=None if comparison is None else comparison.text(most=0),
        difference_heads=DIFFERENCE_HEADS,
        difference_rows=[] if differences is None else _differences(differences),
        run_heads=run_heads,
        run_rows=run_rows,
        any_older=any(record.get("older_code") for record in records),
    )
    path = Path(folder, "report.html")
    write_bytes(path, page.encode("utf-8"))
    return path


def caveat(profile: str, data_name: str) -> str:
    """Say what numbers of this profile and data do not decide; empty for a paper's own setting."""
    reasons = []
    if profile != "paper":
        sizes = "small networks trained briefly" if profile == "quick" else "its own schedules"
        reasons.append(f"the {profile} profile ({sizes})")
    if data_name == "mini":
        reasons.append("embedded data made from a few photographs")
    elif data_name.split("+")[0] != "ubc":
        reasons.append(f"the data source {data_name}")
    if not reasons:
        return ""
    return (
        f"These numbers come from {' and '.join(reasons)}. They decide no paper's claim: they show "
        "whether a claim held here, and that the code does what the papers describe. Only the "
        "paper profile on a paper's own data reproduces a claim or fails to."
    )


def gather_verdicts(folder: Path) -> pd.DataFrame:
    """Read every `tables/**/*verdicts.csv` that the notebooks saved, one below the other."""
    paths = sorted(Path(folder, "tables").rglob("*verdicts.csv"))
    frames = [pd.read_csv(path, keep_default_na=False) for path in paths]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def render_notebook(path: Path, anchor: str) -> RenderedNotebook:
    """Render an executed notebook's text and outputs, without code, as part of a page.

    Headings go one level down and ids get the anchor in front, so that notebooks can follow one
    another. The first heading becomes the title and is taken out of the body.

    Raises:
        FileNotFoundError: no such notebook.
        ValueError: the file is no notebook.
    """
    import nbformat
    from nbconvert import HTMLExporter

    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no executed notebook {path}; run the study first")
    try:
        notebook = nbformat.read(path, as_version=4)
    except Exception as error:  # nbformat raises its own, json's and attribute errors
        raise ValueError(f"{path} is no notebook: {error}; execute it anew") from error
    exporter = HTMLExporter(
        template_name="basic",
        exclude_input=True,
        exclude_input_prompt=True,
        exclude_output_prompt=True,
        embed_images=True,
    )
    exporter.config.NbConvertBase.display_data_priority = DISPLAY_ORDER
    resources = {"metadata": {"path": str(path.parent)}}
    body, _ = exporter.from_notebook_node(_with_alternative_texts(notebook), resources)
    title, body = _as_section(body, anchor)
    return RenderedNotebook(anchor, title or path.stem, "/".join(path.parts[-2:]), body)


DISPLAY_ORDER = ["text/html", "image/png", "image/svg+xml", "image/jpeg", "text/plain"]
VERDICT_HEADS = (
    ("paper's claim", "text"),
    ("verdict", ""),
    ("observed", "number"),
    ("s.e.", "number"),
    ("to hold", "keep"),
    ("seeds", "number"),
    ("where", "keep"),
    ("artefact", "keep"),
)
DIFFERENCE_HEADS = (
    ("table", ""),
    ("row", ""),
    ("column", ""),
    ("reference", "number"),
    ("results", "number"),
    ("difference", "number"),
)


def _with_alternative_texts(notebook: NotebookNode) -> NotebookNode:
    """Give each picture without one an alternative text: the heading that it stands under."""
    heading = "the notebook's beginning"
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            heading = (re.findall(r"^#+ +(.+)$", cell.source, flags=re.MULTILINE) or [heading])[-1]
        for output in cell.get("outputs", []):
            for kind in output.get("data", {}):
                if kind.startswith("image/"):
                    about = output.metadata.setdefault(kind, {})
                    about.setdefault("alt", f"Figure under: {heading}")
    return notebook


def _as_section(body: str, anchor: str) -> tuple[str, str]:
    """Take the title out of a notebook's HTML, and make the rest fit into a page of several."""
    from bs4 import BeautifulSoup

    soup = BeautifulSoup(body, features="html.parser")
    for element in soup.select("script, style, a.anchor-link"):
        element.decompose()
    title = ""
    if soup.h1 is not None:
        title = soup.h1.extract().get_text().strip()
    for level in range(5, 0, -1):
        for heading in soup.find_all(f"h{level}"):
            heading.name = f"h{level + 1}"
    for element in soup.select("[id]"):
        element["id"] = f"{anchor}-{element['id']}"
    for link in soup.select('a[href^="#"]'):
        link["href"] = f"#{anchor}-{link['href'][1:]}"
    return title, str(soup)


def _verdicts(verdicts: pd.DataFrame) -> list[tuple[str, ...]]:
    return [
        (
            row.sentence,
            f"{row.verdict}: {row.why}" if row.why else row.verdict,
            _number(row.observed, 3),
            _number(row.standard_error, 3),
            row.needed,
            str(row.seeds),
            f"{row.profile}, {row.data}",
            f"{row.paper}, {row.artefact}",
        )
        for row in verdicts.itertuples()
    ]


def _differences(differences: pd.DataFrame) -> list[tuple[str, ...]]:
    return [
        (
            row.table,
            str(row.row),
            row.column,
            str(row.reference),
            str(row.results),
            _number(row.difference, 4),
        )
        for row in differences.itertuples()
    ]


def _runs(records: Sequence[Mapping]) -> tuple[tuple[tuple[str, str], ...], list[tuple]]:
    """Heads and rows of the table of runs, one column of FPR95 a test set."""
    from markupsafe import Markup

    tests = sorted({test for record in records for test in record.get("metrics") or {}})
    heads = (
        ("kind", ""),
        ("method", ""),
        ("train set", ""),
        ("data", ""),
        ("profile", ""),
        ("seed", "number"),
        *((f"FPR95 {test}", "number") for test in tests),
        ("seconds", "number"),
        ("device", ""),
        ("threads", "number"),
        ("", ""),
    )
    rows = [
        (
            record.get("kind", ""),
            record.get("label") or record.get("name", ""),
            record.get("train_set") or "",
            record.get("data") or "",
            record.get("profile") or "",
            "" if record.get("seed") is None else str(record["seed"]),
            *(_fpr95(record, test) for test in tests),
            _number(record.get("seconds"), 1),
            record.get("device") or "",
            "" if record.get("threads") is None else str(record["threads"]),
            Markup('<span class="badge">older code</span>') if record.get("older_code") else "",
        )
        for record in records
    ]
    return heads, rows


def _fpr95(record: Mapping, test: str) -> str:
    metrics = (record.get("metrics") or {}).get(test) or {}
    return _number((metrics.get("fpr95") or {}).get("expected"), 2)


def _number(value: object, digits: int) -> str:
    if value is None or value == "" or pd.isna(value):
        return ""
    return f"{float(value):.{digits}f}"
