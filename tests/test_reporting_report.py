"""The report's pages, complete and without code or network access; and its index."""

from __future__ import annotations

import base64
import re
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pandas as pd
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from lib.recipes import RECIPES
from lib.study.jobs import Job, Record
from lib.study.report import execution

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*/*.ipynb"))
VOID = {"meta", "img", "br", "hr", "link", "input"}
PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
TEXT = (
    "# DSM, Table 1 & more\n\nWhat it claims: $w_i$, not `$x`.\n\n"
    "$$p_i \\propto \\lVert d\\rVert^2$$\n\n"
    "[there](table3.ipynb#Part) [absent](table9.ipynb) [choices](../../docs/code.md) [w](https://w.org)"
)


class Page(HTMLParser):
    """A parser that checks that tags close in order, and collects ids and attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def values(self, *names: str) -> list[str]:
        return [value for name, value in self.attributes if name in names]


def write_notebook(folder: Path, name: str, *cells: dict) -> Path:
    path = folder / "executed" / f"{name}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(new_notebook(cells=[new_markdown_cell(TEXT), *cells]), path)
    return path


def write_page(folder: Path) -> str:
    """Write the page of a notebook with printed text, a table and a picture."""
    picture = {"image/png": PIXEL, "text/plain": "<Image>"}
    table = "<table><thead><tr><th>m</th></tr></thead></table>"
    outputs = [
        new_output("stream", name="stdout", text="SIFT <b> 26.55\n"),
        new_output("display_data", data={"text/html": table, "text/plain": "m"}),
        new_output("display_data", data=picture, metadata={"image/png": {"alt": "A & B", "width": 7}}),
    ]
    path = write_notebook(folder, "dsm/table1", new_code_cell("secret = 1", outputs=outputs))
    execution.write_page(path, folder / "report", ("dsm/table1", "dsm/table3"))
    return (folder / "report/dsm/table1.html").read_text(encoding="utf-8")


def test_a_page_shows_text_and_outputs_and_no_code(tmp_path):
    text = write_page(tmp_path)
    Page(text)
    assert "secret" not in text
    assert "<title>DSM, Table 1 &amp; more</title>" in text
    assert '<pre tabindex="0">SIFT &lt;b&gt; 26.55' in text
    assert re.search(r'tabindex="0" class="output_html[^>]*>\s*<table>', text)
    assert 'alt="A &amp; B"' in text


def test_links_lead_to_pages_or_else_to_files_of_the_repository(tmp_path):
    links = Page(write_page(tmp_path)).values("href")
    assert {"table3.html#Part", "https://w.org", "../style.css", "../index.html"} <= set(links)
    files = {(tmp_path / "report/dsm" / link).resolve() for link in links if "://" not in link}
    inside = ("notebooks/dsm/table9.ipynb", "docs/code.md")
    assert {ROOT / file for file in inside} | {tmp_path / "executed/dsm/table1.ipynb"} <= files


def outside(text: str) -> list[str]:
    """List what a browser would fetch by itself from elsewhere."""
    fetched = Page(re.sub("<a [^>]*>", "<a>", text)).values("src", "href", "srcset")
    return [value for value in fetched if not value.startswith(("data:", "style.css", "../style.css"))]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_committed_notebooks_page_needs_no_net_and_typesets_every_equation(path, tmp_path):
    execution.write_page(path, tmp_path, ())
    text = (tmp_path / path.parent.name / f"{path.stem}.html").read_text(encoding="utf-8")
    assert outside(text) == []
    assert "<img" not in re.sub('<img alt="[^"]+"', "", text), "a picture without words for it"
    prose = re.sub(r"<(pre|code)\b.*?</\1>|base64,[^\"]*", "", text, flags=re.DOTALL)
    assert not re.search(r"\$|\\", prose)


def verdict(claim: str, word: str, **more: object) -> dict:
    return {
        **{"claim": claim, "paper": "dsm", "sentence": f"{claim} is lower.", "verdict": word},
        **{"notebook": "dsm/table1", "artefact": "Table 1", "observed": -4.536, "unit": "points"},
        **more,
    }


VERDICTS = pd.DataFrame(
    [
        verdict("A", "held", low=-5.1, high=-3.0, printed=-0.13, rival="B"),
        verdict("B", "did not hold", paper="tcdesc", notebook="tcdesc/figure4"),
        verdict("C", "held", kind="finding"),
        verdict("D", "not judged", observed="", why="no run decides it"),
    ]
)


def write_index(folder: Path, **changes: object) -> str:
    write_page(folder)
    job = Job("hardnet", "HardNet", RECIPES["hardnet"], "mini-a", 3)
    content = {"seconds": 6.04, "device": "a GPU"}
    record = Record(job, folder / "records/hardnet.json", content, "older code")
    runs = {"dsm/table1": [record], "dsm/table3": [record]}
    texts = {"heading": "profile quick", "reproduced": "Of 3 means 2 are."}
    settings = {"verdicts": VERDICTS, "runs": runs, "failures": [], **texts, **changes}
    path = execution.write_index(folder / "report", folder / "executed", **settings)
    return path.read_text(encoding="utf-8")


def test_the_index_is_complete_and_its_links_have_targets(tmp_path):
    (tmp_path / "records").mkdir()
    (tmp_path / "records/hardnet.json").touch()
    text = write_index(tmp_path)
    page = Page(text)
    assert outside(text) == []
    ids = page.values("id")
    assert len(set(ids)) == len(ids)
    for link in page.values("href"):
        assert link[1:] in ids if link[0] == "#" else (tmp_path / "report" / link).exists()


def test_the_scoreboard_counts_claims_by_paper_and_verdict_and_leads_to_them(tmp_path):
    text = write_index(tmp_path)
    cells = re.findall('data-paper="(.*?)" data-verdict="(.*?)">(\\d+)</a>', text)
    assert cells == [("dsm", "held", "2"), ("dsm", "not judged", "1"), ("tcdesc", "did not hold", "1")]
    rows = re.findall('<tr data-paper="(.*?)" data-verdict="(.*?)">', text)
    assert rows == [("dsm", "held"), ("dsm", "held"), ("dsm", "not judged"), ("tcdesc", "did not hold")]


def test_the_index_names_failures_runs_and_how_far_the_reference_was_reproduced(tmp_path):
    text = write_index(tmp_path, failures=[("dsm/table3", "cell 4, ValueError: no <seeds>")])
    assert "dsm/table3: <code>cell 4, ValueError: no &lt;seeds&gt;</code>" in text
    assert "Of 3 means 2 are." in text
    run = text[text.index('<section id="runs"') :]
    assert run.count("HardNet on mini-a, seed 3") == 1, "one record, shown by two"
    for cell in ("older code", "6.0", "a GPU", '<a href="dsm/table1.html">dsm/table1</a>, dsm/table3'):
        assert cell in run
    assert 'class="failures"' not in write_index(tmp_path)
