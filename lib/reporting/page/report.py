"""The report: one self-contained HTML page with every notebook's outputs, verdicts and runs.

Notebooks are rendered by nbconvert without their code; the page needs no network, so mathematics
in a notebook's text stands as written there. Its layout is `page.html`, its typography `page.css`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from lib.files import write_bytes
from lib.reporting.page.compare import Comparison

TITLE = "AdaSample, DSM, TCDesc and HyNet under one protocol"
RUN_HEADS = {
    **{"kind": "kind", "label": "method", "older_code": "older code", "train_set": "train set"},
    **{name: name for name in ("data", "profile", "seed", "seconds", "device", "threads")},
}
DISPLAY_ORDER = ["text/html", "image/png", "image/svg+xml", "image/jpeg", "text/plain"]


@dataclass(frozen=True)
class Failure:
    """A notebook that did not run through: its name, and the error with the cell's number from 1."""

    notebook: str
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
        verdicts: as the notebooks save them, or None where there are none.

    Returns:
        The report's path.

    Raises:
        FileNotFoundError: a notebook is missing.
        ValueError: a notebook is not one.
        OSError: the folder cannot be written.
    """
    from jinja2 import Environment, FileSystemLoader

    runs = _runs(records)
    layout = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, trim_blocks=True
    ).get_template("page.html")
    page = layout.render(
        title=TITLE,
        profile=profile,
        data_name=data_name,
        caveat=caveat(profile, data_name),
        failures=failures,
        verdicts=pd.DataFrame() if verdicts is None else _verdicts(verdicts),
        notebooks=[render_notebook(path, f"notebook-{n}") for n, path in enumerate(notebooks, 1)],
        comparison=comparison,
        runs=runs,
        run_decimals={
            **{head: 2 for head in runs if head.startswith("FPR95 ")},
            **{"seed": 0, "seconds": 1, "threads": 0},
        },
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
    _add_alternative_texts(notebook.cells)
    body, _ = exporter.from_notebook_node(notebook, resources)
    title, body = _as_section(body, anchor)
    return RenderedNotebook(anchor, title or path.stem, "/".join(path.parts[-2:]), body)


def _add_alternative_texts(cells: Sequence) -> None:
    """Give each picture without one an alternative text: the heading that it stands under."""
    heading = "the notebook's beginning"
    for cell in cells:
        if cell.cell_type == "markdown":
            heading = (re.findall(r"^#+ +(.+)$", cell.source, flags=re.MULTILINE) or [heading])[-1]
        for output in cell.get("outputs", []):
            for kind in output.get("data", {}):
                if kind.startswith("image/"):
                    about = output.metadata.setdefault(kind, {})
                    about.setdefault("alt", f"Figure under: {heading}")


def _as_section(body: str, anchor: str) -> tuple[str, str]:
    """Take the title out of a notebook's HTML, and make the rest fit into a page of several."""
    from bs4 import BeautifulSoup

    soup = BeautifulSoup(body, features="html.parser")
    for element in soup.select("script, style, a.anchor-link"):
        element.decompose()
    title = soup.h1.extract().get_text().strip() if soup.h1 is not None else ""
    for heading in soup.find_all(re.compile("^h[1-5]$")):
        heading.name = f"h{int(heading.name[1]) + 1}"
    for element in soup.select("[id]"):
        element["id"] = f"{anchor}-{element['id']}"
    for link in soup.select('a[href^="#"]'):
        link["href"] = f"#{anchor}-{link['href'][1:]}"
    return title, str(soup)


def _verdicts(verdicts: pd.DataFrame) -> pd.DataFrame:
    why = verdicts["why"].where(verdicts["why"] == "", ": " + verdicts["why"])
    return pd.DataFrame(
        {
            "paper's claim": verdicts["sentence"],
            "verdict": verdicts["verdict"] + why,
            "observed": pd.to_numeric(verdicts["observed"]),
            "s.e.": pd.to_numeric(verdicts["standard_error"]),
            "to hold": verdicts["needed"],
            "seeds": verdicts["seeds"],
            "where": verdicts["profile"] + ", " + verdicts["data"],
            "artefact": verdicts["paper"] + ", " + verdicts["artefact"],
        }
    )


def _runs(records: Sequence[Mapping]) -> pd.DataFrame:
    """The table of runs, one column of FPR95 a test set."""
    measured = pd.DataFrame(
        {f"FPR95 {test}": of["fpr95"]["expected"] for test, of in sets.items() if "fpr95" in of}
        for sets in (record["metrics"] for record in records)
    )
    runs = pd.DataFrame(records, columns=["name", *RUN_HEADS]).rename(columns=RUN_HEADS)
    runs["method"] = runs["method"].fillna(runs.pop("name"))
    runs["older code"] = runs["older code"].eq(True)
    if not runs["older code"].any():
        del runs["older code"]
    before = runs.columns.get_loc("seconds")
    return pd.concat([runs.iloc[:, :before], measured.sort_index(axis=1), runs.iloc[:, before:]], axis=1)
