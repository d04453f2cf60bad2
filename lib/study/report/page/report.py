"""The report: one self-contained HTML page with every notebook's outputs, verdicts and runs.

Notebooks are rendered by `lib.study.report.page.notebook`; the page needs no network. Its layout is
`page.html`, made of `macros.html`, its typography `page.css`, and `page.js` sorts and searches the runs.
"""

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from lib.files import write_bytes
from lib.study.open import ROOT
from lib.study.report.page import verdicts as judged
from lib.study.report.page.notebook import anchor_of, name_of, render_document, render_notebook
from lib.study.report.page.parts import PARTS, Part, in_order

TITLE = "AdaSample, DSM, TCDesc and HyNet under one protocol"
DOCUMENT, RECIPES = ROOT / "docs" / "paper_vs_code.md", ROOT / "lib" / "recipes.py"
RUN_HEADS = {
    **{"kind": "kind", "label": "method", "older_code": "older code", "train_set": "train set"},
    **{name: name for name in ("data", "profile", "seed", "seconds", "device", "threads")},
}


@dataclass(frozen=True)
class Failure:
    """A notebook that did not run through: its name, and the error with the cell's number from 1."""

    notebook: str
    error: str


def build_report(
    folder: Path,
    notebooks: Sequence[Path],
    records: Sequence[Mapping],
    verdicts: pd.DataFrame | None = None,
    **shown: object,
) -> Path:
    """Write `folder/report.html`, atomically.

    Args:
        folder: the results folder, e.g. `results/quick`.
        notebooks: executed notebooks, which are shown as `lib.study.report.page.parts` orders them.
        records: records of runs and computations; one with a true `older_code` is marked, and one with
            a `path` leads there; `artefacts` are the names of those that show it, and `equations` the
            files below lib that they are linked to for it.
        verdicts: as the notebooks save them, with the column `notebook`, the artefact's name; None
            where there are none.
        shown: what else `page.html` shows: `profile` and `data_name`, what the study ran under; unless
            they are `paper` and `ubc`, the head says what these numbers do not decide; `comparison` with
            the reference, or None where there is none; `failures`, named at the head; `absent`, the
            names of artefacts that are not on the page.

    Returns:
        The report's path.

    Raises:
        ValueError: an equation in a notebook cannot be typeset.
        OSError: the folder cannot be written.
    """
    from jinja2 import Environment, FileSystemLoader

    runs, same = _runs(records)
    rows = None if verdicts is None else judged.read_verdicts(verdicts)
    named = {name_of(Path(path)): path for path in notebooks}
    places = {name: os.path.relpath(path, folder) for name, path in named.items()}
    order = in_order(places)
    of_records = [record.get("path") for record in records]
    layout = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, trim_blocks=True
    ).get_template("page.html")
    anchors = {f"notebooks/{name}.ipynb": anchor_of(name) for name in named}
    anchors[DOCUMENT.relative_to(ROOT).as_posix()] = "document"
    title, body = render_document(DOCUMENT, "document", anchors)
    page = layout.render(
        **shown,
        title=TITLE,
        judged=judged,
        verdicts=rows,
        parts={key: PARTS.get(key, Part(key)) for key in (*PARTS, *order)},
        order=order,
        places=places,
        notebooks={name: render_notebook(path, anchors) for name, path in named.items()},
        document={"title": title, "body": body},
        recipes=os.path.relpath(RECIPES, folder),
        equations=_equations(records, folder),
        counts=Counter(name for record in records for name in record.get("artefacts", ())),
        made_by=_made_by(records),
        links={row: os.path.relpath(path, folder) for row, path in enumerate(of_records) if path},
        runs=runs,
        same=same,
        run_decimals={
            **{head: 2 for head in runs if head.startswith("FPR95 ")},
            **{"seed": 0, "seconds": 1, "threads": 0},
        },
    )
    path = Path(folder, "report.html")
    write_bytes(path, page.encode("utf-8"))
    return path


def _made_by(records: Iterable[Mapping]) -> dict[str, list[str]]:
    """Devices, and versions of Python and of libraries, of all records, each value once."""
    told = pd.DataFrame(
        {"device": of.get("device"), "Python": of.get("python"), **of.get("libraries", {})}
        for of in records
    )
    return {name: sorted(of.dropna().unique()) for name, of in told.items() if of.notna().any()}


def _equations(records: Iterable[Mapping], folder: Path) -> dict[str, dict[str, str]]:
    """By artefact, the files of its runs' equations, each with where it lies from a folder."""
    found: dict[str, dict[str, str]] = {}
    for record in records:
        for name in record.get("artefacts", ()):
            files = record.get("equations", ())
            at = {file: os.path.relpath(ROOT / "lib" / file, folder) for file in files}
            found.setdefault(name, {}).update(at)
    return found


def _runs(records: Sequence[Mapping]) -> tuple[pd.DataFrame, dict[str, object]]:
    """The table of runs, one column of FPR95 a test set, and what is the same in all of its rows."""
    measured = pd.DataFrame(
        {f"FPR95 {test}": of["fpr95"]["expected"] for test, of in sets.items() if "fpr95" in of}
        for sets in (record["metrics"] for record in records)
    )
    runs = pd.DataFrame(records, columns=["name", *RUN_HEADS]).rename(columns=RUN_HEADS)
    runs["method"] = runs["method"].fillna(runs.pop("name"))
    runs["older code"] = runs["older code"].eq(True)
    if not runs["older code"].any():
        del runs["older code"]
    # Last, since it is the longest.
    runs["artefacts"] = [", ".join(record.get("artefacts", ())) or None for record in records]
    before = runs.columns.get_loc("seconds")
    parts = [runs.iloc[:, :before], measured.sort_index(axis=1), runs.iloc[:, before:]]
    runs = pd.concat(parts, axis=1).dropna(axis=1, how="all")
    alike = [name for name in ("data", "profile", "device", "threads") if name in runs]
    same = {name: runs[name].dropna().iloc[0] for name in alike if runs[name].nunique() == 1}
    return runs.drop(columns=list(same)), same
