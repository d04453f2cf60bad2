"""The report: self-contained, honest at its head, with every notebook's outputs and no code."""

from __future__ import annotations

import base64
import re
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path

import nbformat
import pandas as pd
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from lib.reporting.claims import read_claims, verdict, verdict_table
from lib.reporting.page.compare import compare
from lib.reporting.page.report import Failure, build_report, caveat
from lib.reporting.style import panels, png

VOID = {"meta", "img", "br", "hr", "link", "input"}


class Page(HTMLParser):
    """Checks that tags are closed in order, and collects ids, links and sources."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.sources: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.ids += [found["id"]] if "id" in found else []
        self.links += [found["href"]] if "href" in found else []
        self.sources += [found["src"]] if "src" in found else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag


def write_notebook(path: Path, title: str) -> Path:
    with panels(1, 1) as (figure, _):
        picture = png(figure)
    output = new_output(
        "display_data", data={"image/png": base64.b64encode(picture).decode(), "text/plain": "<I>"}
    )
    text = new_output("stream", name="stdout", text="SIFT <b> 26.55\n")
    cells = [
        new_markdown_cell(f"# {title}\n\nWhat it claims.\n\n## Verdict\n\n[up](#Verdict)"),
        new_code_cell("secret_code = 1", outputs=[text], execution_count=1),
        new_code_cell("draw()", outputs=[output], execution_count=2),
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(new_notebook(cells=cells), path)
    return path


RECORDS = [
    {
        "kind": "run",
        "name": "hardnet_gen",
        "label": "HardNet*",
        "train_set": "fountain",
        "profile": "quick",
        "seed": 3,
        "data": "mini",
        "device": "cpu",
        "threads": 1,
        "seconds": 6.04,
        "metrics": {"wall": {"fpr95": {"expected": 9.876}}},
        "older_code": True,
    },
    {
        "kind": "descriptor",
        "name": "sift",
        "label": "SIFT",
        "train_set": None,
        "seed": None,
        "metrics": {"street": {"fpr95": {"expected": 21.5}}},
    },
]


def build(tmp_path: Path, **changes: object) -> str:
    notebooks = [
        write_notebook(tmp_path / "executed" / "adasample" / "table1.ipynb", "Table 1 & more"),
        write_notebook(tmp_path / "executed" / "adasample" / "table3.ipynb", "Table 3"),
    ]
    settings = {
        "profile": "quick",
        "data_name": "mini",
        "notebooks": notebooks,
        "records": RECORDS,
        "comparison": None,
        "failures": (),
    } | changes
    folder = tmp_path / "quick"
    path = build_report(folder, **settings)
    assert path == folder / "report.html"
    assert [p.name for p in folder.iterdir() if p.is_file()] == ["report.html"]
    return path.read_text(encoding="utf-8")


def test_the_page_is_well_formed_and_its_ids_and_links_agree(tmp_path):
    page = Page(build(tmp_path))
    assert len(set(page.ids)) == len(page.ids)
    assert {"notebook-1", "notebook-2", "runs"} <= set(page.ids)
    assert {"notebook-1-Verdict", "notebook-2-Verdict"} <= set(page.ids)
    assert page.links
    for link in page.links:
        assert link.startswith("#")
        assert link[1:] in page.ids


def test_the_page_needs_nothing_from_the_net(tmp_path):
    text = build(tmp_path)
    page = Page(text)
    assert len(page.sources) == 2
    assert all(source.startswith("data:image/png;base64,") for source in page.sources)
    assert "<script" not in text
    assert not re.search(r"https?://|@import|url\(", text)


def test_notebooks_show_text_and_outputs_and_no_code(tmp_path):
    text = build(tmp_path)
    assert "secret_code" not in text
    assert text.count("SIFT &lt;b&gt; 26.55") == 2
    assert text.count("<h1") == 1
    assert "<h2>Table 1 &amp; more</h2>" in text
    assert '<a href="#notebook-1">Table 1 &amp; more</a>' in text
    assert text.count("What it claims.") == 2


def test_a_picture_without_a_text_gets_the_heading_it_stands_under(tmp_path):
    assert build(tmp_path).count('alt="Figure under: Verdict"') == 2


def test_the_head_says_that_quick_numbers_and_embedded_data_decide_nothing(tmp_path):
    text = build(tmp_path)
    head = text[: text.index("<nav")]
    assert "decide no paper" in head
    assert "quick profile" in head
    assert "embedded data" in head


def test_the_caveat_stands_unless_profile_and_data_are_the_papers():
    assert caveat("paper", "ubc") == ""
    assert caveat("paper", "ubc+hpatches") == ""
    assert "embedded data" in caveat("paper", "mini")
    assert "quick profile" in caveat("quick", "ubc")
    assert "standard profile" in caveat("standard", "ubc")
    assert "photos" in caveat("paper", "photos")


def test_failures_are_named_at_the_head_by_notebook_and_cell(tmp_path):
    failures = [Failure("adasample/table3", "cell 4, ValueError: no <seeds>")]
    text = build(tmp_path, failures=failures)
    head = text[: text.index("<nav")]
    assert "adasample/table3: <code>cell 4, ValueError: no &lt;seeds&gt;</code>" in head
    assert 'class="alarm"' not in build(tmp_path)


def test_runs_are_listed_and_those_of_older_code_are_marked(tmp_path):
    text = build(tmp_path)
    table = text[text.index('<section id="runs"') :]
    for cell in ("HardNet*", "fountain", "9.88", "6.0", "21.50", "FPR95 wall", "FPR95 street"):
        assert cell in table
    assert table.count("older code</span></td>") == 1
    assert "older code</span>" not in build(tmp_path, records=RECORDS[1:])
    assert "No record." in build(tmp_path, records=[])


def test_verdicts_stand_before_the_notebooks_by_the_claims_sentences(tmp_path):
    assert "Claims and verdicts" not in build(tmp_path)
    claims = read_claims("adasample", "Table 3")
    results = [verdict(claim, {}, (0,), "quick", "mini") for claim in claims]
    saved = StringIO(verdict_table(results).to_csv(index=False))
    given = pd.read_csv(saved, keep_default_na=False)
    text = build(tmp_path, verdicts=given)
    assert text.index('id="claims"') < text.index('id="notebook-1"')
    for claim in claims:
        assert claim.sentence in text
    assert claims[1].sentence not in build(tmp_path, verdicts=given[:1])


def test_the_comparison_and_its_differing_cells_stand_in_the_report(tmp_path):
    for name, value in (
        ("reference/tables/t1", 1),
        ("results/tables/t1", 2),
        ("reference/tables/t2", 1),
    ):
        path = tmp_path / f"{name}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"Method,Mean\nSIFT,{value}\n", encoding="utf-8")
    comparison = compare(tmp_path / "results", tmp_path / "reference")
    text = build(tmp_path, comparison=comparison)
    section = text[text.index('<section id="comparison"') : text.index('<section id="runs"')]
    assert "MISSING: tables/t2.csv" in section
    assert '<td class="number">1.0000</td>' in section


def test_a_file_that_is_no_notebook_is_named_and_leaves_no_report(tmp_path):
    broken = tmp_path / "broken.ipynb"
    broken.write_text("{", encoding="utf-8")
    with pytest.raises(ValueError, match=r"broken\.ipynb is no notebook"):
        build(tmp_path, notebooks=[broken])
    with pytest.raises(FileNotFoundError, match=r"absent\.ipynb"):
        build(tmp_path, notebooks=[tmp_path / "absent.ipynb"])
    assert not (tmp_path / "quick" / "report.html").exists()
