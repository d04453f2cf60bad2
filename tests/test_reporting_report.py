"""The report: self-contained, honest at its head, with every notebook's outputs and no code."""

from __future__ import annotations

import base64
import io
import re
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pandas as pd
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from PIL import Image, ImageChops

from lib.study.report.page import verdicts
from lib.study.report.page.compare import compare
from lib.study.report.page.notebook import mathml, render_notebook
from lib.study.report.page.parts import in_order
from lib.study.report.page.report import Failure, build_report
from lib.study.report.style import panels, png

ROOT = Path(__file__).resolve().parents[1]
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
        new_markdown_cell(
            f"# {title}\n\nWhat it claims.\n\n## Verdict\n\n[up](#Verdict) [Three](table3.ipynb)\n"
            r"$$p_i \propto \lVert d\rVert^2$$ and $w_i$, not `$x`."
        ),
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
    assert {"adasample-table1", "adasample-table3-Verdict", "runs"} <= set(page.ids)
    assert page.links
    for link in page.links:
        if link.startswith("#"):
            assert link[1:] in page.ids
        else:
            assert (tmp_path / "quick" / link).exists(), "a file beside the report"


def test_the_page_needs_nothing_from_the_net(tmp_path):
    text = build(tmp_path)
    page = Page(text)
    assert len(page.sources) == 2
    assert all(source.startswith("data:image/webp;base64,") for source in page.sources)
    assert text.count("<script") == text.count("<script>") == 1, "what sorts and searches, in the page"
    outside = re.sub(r'<section id="document">.*?</section>', "", text, flags=re.DOTALL)
    assert not re.search(r"https?://|@import|url\(", outside)


def test_pictures_are_those_of_the_notebook_pixel_for_pixel(tmp_path):
    with panels(1, 1) as (figure, _):
        drawn = Image.open(io.BytesIO(png(figure))).convert("RGB")
    for source in Page(build(tmp_path)).sources:
        shown = Image.open(io.BytesIO(base64.b64decode(source.partition(",")[2])))
        assert shown.format == "WEBP"
        assert ImageChops.difference(shown.convert("RGB"), drawn).getbbox() is None


def test_notebooks_show_text_and_outputs_and_no_code(tmp_path):
    text = build(tmp_path)
    assert "secret_code" not in text
    assert text.count("SIFT &lt;b&gt; 26.55") == 2
    assert text.count("<h1") == 1
    assert "<h3>Table 1 &amp; more</h3>" in text
    assert '<h4 id="adasample-table1-Verdict">Verdict' in text
    assert '<a href="#adasample-table1">Table 1 &amp; more</a>' in text
    assert text.count("What it claims.") == 2


def test_printed_claims_wrap_and_printed_tables_do_not(tmp_path):
    path = write_notebook(tmp_path / "executed" / "dsm" / "table1.ipynb", "One")
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[1].outputs.append(new_output("stream", name="stderr", text="Claim: A is lower.\n"))
    nbformat.write(notebook, path)
    body = render_notebook(path).body
    assert '<pre class="sentences">Claim: A is lower.' in body
    assert re.search("<pre (?!class)[^>]*>SIFT", body)


def test_printed_tables_are_reached_with_a_keyboard_and_named_by_the_heading_above(tmp_path):
    path = write_notebook(tmp_path / "executed" / "dsm" / "table1.ipynb", "One")
    told = 'aria-label="{}" role="region" tabindex="0"'
    assert f"<pre {told.format('Verdict')}>SIFT" in render_notebook(path).body
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[0].source = "# One"
    nbformat.write(notebook, path)
    assert f"<pre {told.format('One')}>SIFT" in render_notebook(path).body


def test_whatever_scrolls_is_reached_with_a_keyboard_and_has_a_name(tmp_path):
    text = build(tmp_path, verdicts=VERDICTS)
    scrolling = re.findall('<div class="scroll".*?>', text)
    assert len(scrolling) == 4, "tally, matrix, the claims of one notebook, runs"
    assert all(re.search('tabindex="0" role="region" aria-label="[^"]+"', of) for of in scrolling)


def rendered(tmp_path: Path, text: str, beside: dict[str, str]) -> str:
    path = tmp_path / "notebooks" / "adasample" / "table1.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(new_notebook(cells=[new_markdown_cell(text)]), path)
    return render_notebook(path, beside).body


def test_links_between_notebooks_lead_inside_the_page_and_others_name_the_file(tmp_path):
    text = rendered(
        tmp_path,
        "[rates](../study/rates.ipynb#Found) [two](table2.ipynb) [all](../../docs/code.md) [w](https://w.org)",
        {"notebooks/study/rates.ipynb": "study-rates", "notebooks/adasample/table3.ipynb": "three"},
    )
    assert '<a href="#study-rates-Found">rates</a>' in text
    assert "two (notebooks/adasample/table2.ipynb)" in text
    assert "all (docs/code.md)" in text
    assert '<a href="https://w.org">w</a>' in text
    assert text.count("<a ") == 2


def test_what_papers_leave_open_is_linked_to_on_the_page_itself(tmp_path):
    path = write_notebook(tmp_path / "executed" / "dsm" / "options.ipynb", "Options")
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[0].source += "\n\n[all](../../docs/paper_vs_code.md) [more](../../docs/more.md)"
    nbformat.write(notebook, path)
    text = build(tmp_path, notebooks=[path])
    assert '<a href="#document">all</a> more (docs/more.md)' in text


def test_equations_become_mathml_and_code_stays_as_it_is(tmp_path):
    text = build(tmp_path)
    assert text.count("<math") == 2 * text.count('<math display="block"') == 4
    assert "<msub><mi>w</mi><mi>i</mi></msub>" in text
    assert "<code>$x</code>" in text
    assert "propto" not in text


@pytest.mark.parametrize("latex", [r"\nosuchcommand{x}", r"\frac{1}{", "x_"])
def test_an_equation_that_is_not_understood_is_refused(latex):
    with pytest.raises(ValueError, match="is not understood"):
        mathml(latex)


@pytest.mark.parametrize(
    "path", sorted((ROOT / "notebooks").glob("*/*.ipynb")), ids=lambda path: path.stem
)
def test_every_equation_of_the_committed_notebooks_is_typeset(path):
    body = re.sub(r"<(pre|code)\b.*?</\1>", "", render_notebook(path).body, flags=re.DOTALL)
    assert "$" not in body
    assert "\\" not in body


def test_the_head_says_what_is_evidence_and_that_embedded_data_refutes_nothing(tmp_path):
    text = build(tmp_path)
    head = text[: text.index("<nav")]
    assert "never says that a paper is refuted" in " ".join(head.split())


@pytest.mark.parametrize(
    ("profile", "data_name", "stands"),
    [
        ("paper", "ubc", False),
        ("paper", "ubc+hpatches", False),
        ("paper", "mini", True),
        ("quick", "ubc", True),
    ],
)
def test_the_caveat_stands_unless_profile_and_data_are_the_papers(tmp_path, profile, data_name, stands):
    page = build(tmp_path, notebooks=[], profile=profile, data_name=data_name)
    assert ("What is evidence" in page) is stands


def test_failures_are_named_at_the_head_by_notebook_and_cell(tmp_path):
    failures = [Failure("adasample/table3", "cell 4, ValueError: no <seeds>")]
    text = build(tmp_path, failures=failures)
    head = text[: text.index("<nav")]
    assert "adasample/table3: <code>cell 4, ValueError: no &lt;seeds&gt;</code>" in head
    assert 'class="alarm"' not in build(tmp_path)


def test_runs_are_listed_and_those_of_older_code_are_marked(tmp_path):
    text = build(tmp_path)
    table = text[text.index('<section id="runs"') : text.index("<script")]
    for cell in ("HardNet*", "fountain", "9.88", "6.0", "21.50", "FPR95 wall", "FPR95 street"):
        assert cell in table
    # What all share is said once, and no column is empty.
    assert "data mini, profile quick, device cpu, threads 1" in table
    assert ">profile</th>" not in table
    assert "FPR95 wall" not in build(tmp_path, records=RECORDS[1:])
    assert table.count("older code</span></td>") == 1
    assert "older code</span>" not in build(tmp_path, records=RECORDS[1:])
    assert "No record." in build(tmp_path, records=[])


def judged(*rows: tuple) -> pd.DataFrame:
    """Verdicts as notebooks save them: (claim, artefact, profile, verdict) each, and what else."""
    return pd.DataFrame(
        {
            **{"claim": claim, "paper": "adasample", "artefact": artefact, "profile": profile},
            **{
                "sentence": f"{claim} is lower.",
                "verdict": word,
                "kind": "claim",
                "needed": "below -0.02",
            },
            **{"observed": -4.53667, "low": -5.1, "high": -3.0, "unit": "points", "seeds": 5},
            **{
                "data": "mini" if profile == "quick" else "photos",
                "printed": "",
                "rival": "",
                "why": "",
            },
            **{"notebook": "adasample/table1" if artefact == "Table 1" else "adasample/table9"},
            **dict(*also),
        }
        for claim, artefact, profile, word, *also in rows
    )


VERDICTS = judged(
    ("A", "Table 1", "quick", "held"),
    ("B", "Table 1", "quick", "did not hold"),
    ("C", "Table 9", "quick", "open", {"why": "9 seeds would tell"}),
    ("R", "Table 1", "quick", "held", {"kind": "reading"}),
    ("N", "Table 9", "quick", "not judged", {"observed": "", "low": "", "high": "", "seeds": ""}),
    ("A", "Table 1", "evening", "did not hold"),
)


def test_the_tally_keeps_papers_and_the_evening_apart_and_counts_every_claim_once():
    other = judged(("T", "Table 1", "quick", "held")).assign(paper="tcdesc", notebook="tcdesc/table1")
    rows = verdicts.read_verdicts(pd.concat([VERDICTS, other], ignore_index=True))
    evening, quick, of_other, readings = verdicts.tallies(rows)
    words = {"held": 0, "did not hold": 1, "open": 0, "not judged": 0}
    assert evening == {"paper": "adasample", "where": "evening, photos", "counts": words}
    assert (quick["paper"], quick["where"]) == ("adasample", "quick, mini")
    assert quick["counts"] == {**words, "open": 1, "not judged": 1}
    assert of_other["paper"] == "tcdesc"
    assert of_other["counts"] == {**words, "held": 1, "did not hold": 0}
    assert readings["paper"] == ""
    assert readings["counts"] == {**words, "held": 1, "did not hold": 0}


def test_the_matrix_counts_by_artefact_what_the_tally_counts_by_paper():
    rows = verdicts.read_verdicts(VERDICTS)
    counts = verdicts.matrix(rows)
    assert list(counts) == [
        ("evening, photos", "did not hold"),
        *(("quick, mini", word) for word in ("held", "did not hold", "open", "not judged")),
    ]
    assert counts.loc["adasample/table1"].tolist() == [1, 1, 1, 0, 0]
    assert counts.loc["adasample/table9"].tolist() == [0, 0, 0, 1, 1]
    assert counts.to_numpy().sum() == rows["counted"].sum()
    told = [sum(tally["counts"].values()) for tally in verdicts.tallies(rows)]
    assert counts.to_numpy().sum() == sum(told)


def test_artefacts_stand_by_paper_tables_and_figures_by_number():
    names = ["use/model", "dsm/figure2", "dsm/table10", "dsm/softness", "dsm/table9", "adasample/ladder"]
    assert in_order(names) == {
        "adasample": ["adasample/ladder"],
        "dsm": ["dsm/table9", "dsm/table10", "dsm/figure2", "dsm/softness"],
        "use": ["use/model"],
    }
    assert in_order(["new/one"]) == {"new": ["new/one"]}


def test_an_evening_of_a_part_of_the_columns_does_not_take_the_place_of_a_whole_verdict():
    part = {"part": "2 of 6 columns"}
    rows = verdicts.read_verdicts(
        judged(
            ("A", "Table 1", "quick", "open", {"part": ""}),
            ("A", "Table 1", "evening", "held", part),
            ("B", "Table 1", "quick", "held", part),
            ("B", "Table 1", "evening", "did not hold", part),
            ("C", "Table 1", "quick", "not judged", {"part": ""}),
            ("C", "Table 1", "evening", "held", part),
        )
    )
    counted = rows[rows["counted"]]
    assert dict(zip(counted["claim"], counted["profile"], strict=True)) == {
        "A": "quick",
        "B": "evening",
        "C": "evening",
    }
    assert rows["counted"].tolist() == [True, False] * 3, "what counts stands first"
    assert "2 of 6 columns" in verdicts.facts(rows.to_dict("records")[2])


def test_findings_are_claims_that_count_decided_ones_first_and_each_artefacts_first():
    rows = verdicts.read_verdicts(VERDICTS)
    found = verdicts.findings(rows)
    assert list(zip(found["claim"], found["profile"], strict=True)) == [
        ("A", "evening"),
        ("B", "quick"),
        ("C", "quick"),
    ]
    assert verdicts.findings(rows, most=1)["claim"].tolist() == ["A"]
    more = judged(
        *((name, "Table 1", "quick", "held") for name in "AB"), ("C", "Table 9", "quick", "held")
    )
    assert verdicts.findings(verdicts.read_verdicts(more))["claim"].tolist() == ["A", "C", "B"]


def test_a_reading_is_a_finding_where_an_evening_decides_it_and_says_that_it_is_one():
    long, short = (
        judged(("A", "Sec. 5.2", profile, "held")).assign(kind="reading")
        for profile in ("evening", "quick")
    )
    [found] = verdicts.findings(verdicts.read_verdicts(long)).to_dict("records")
    assert verdicts.facts(found)[0] == "a reading"
    assert verdicts.facts(found)[-1] == f"{found['profile']}, {found['data']}, 5 seeds"
    assert verdicts.facts({**found, "seeds": 0})[-1] == "computed, no seeds"
    assert verdicts.findings(verdicts.read_verdicts(short)).empty


def test_a_finding_names_value_interval_profile_data_and_seeds_and_leads_to_its_notebook(tmp_path):
    text = " ".join(build(tmp_path, verdicts=VERDICTS).split())
    head = text[: text.index("<nav")]
    fact = "−4.54 points (−5.1 to −3); to hold: below −0.02; evening, photos, 5 seeds."
    assert f'{fact} <a href="#adasample-table1">Table 1</a>' in head
    # This notebook is not on the page.
    assert "seeds. Table 9" in head
    assert '<span class="verdict did-not-hold">✗ did not hold</span> A is lower.' in head


def test_an_artefacts_claims_stand_with_it_and_no_column_is_empty(tmp_path):
    assert "Claims of" not in build(tmp_path)
    text = build(tmp_path, verdicts=VERDICTS)
    of_table = text[text.index('<section id="adasample-table1"') : text.index('id="adasample-table3"')]
    section = of_table[of_table.index('id="adasample-table1-claims"') :]
    heads = ["claim", "verdict", "observed", "to hold", "seeds", "where"]
    assert re.findall('<th scope="col">(.*?)</th>', section) == heads
    assert section.count('<tr class="uncounted">') == 1
    assert "Grey rows are not counted" in section
    assert "R is lower. (a reading)" in section
    assert "C is lower." not in section, "of another artefact"


def test_a_cell_of_the_matrix_leads_to_its_claims(tmp_path):
    text = " ".join(build(tmp_path, verdicts=VERDICTS).split())
    section = text[text.index('<section id="verdicts"') : text.index('<div id="parts"')]
    assert '<th scope="colgroup" colspan="1">evening, photos</th>' in section
    assert '<td class="number held"><a href="#adasample-table1-claims">1</a></td>' in section


def test_devices_and_versions_of_all_records_are_at_the_head_each_once(tmp_path):
    records = [
        {**RECORDS[0], "libraries": {"torch": "2.13.0"}, "python": "3.11.7"},
        {**RECORDS[0], "libraries": {"torch": "2.12.0"}, "device": "an H200"},
    ]
    text = " ".join(build(tmp_path, records=records).split())
    head = text[: text.index("<nav")]
    assert "Made with device an H200 and cpu, Python 3.11.7, torch 2.12.0 and 2.13.0." in head


def test_a_longer_study_beside_is_in_the_table_and_at_the_head(tmp_path):
    longer = {**RECORDS[0], "profile": "evening", "device": "an H200"}
    text = " ".join(build(tmp_path, records=[*RECORDS, longer]).split())
    assert "3 records (1 of quick, 1 of evening)" in text
    assert "Made with device an H200 and cpu." in text
    table = text[text.index('<section id="runs"') :]
    assert '<th scope="col">profile</th>' in table
    assert "<td>evening</td>" in table
    alone = build(tmp_path)
    assert "(1 of quick" not in alone[: alone.index("<nav")], "where all are of one profile"


def test_an_artefact_leads_to_its_own_records_and_to_the_files_of_its_equations(tmp_path):
    run = {
        **RECORDS[0],
        "artefacts": ["adasample/table1", "dsm/table1"],
        "equations": ["losses/hinge.py", "distances/euclidean.py"],
    }
    text = build(tmp_path, records=[run, {**RECORDS[1], "artefacts": ["adasample/table1"]}])
    one, two = (
        text[text.index(f'<section id="adasample-{name}"') :].partition("</p>")[0]
        for name in ("table1", "table3")
    )
    assert 'its <a href="#runs" data-rows="adasample/table1">2 records</a>' in one
    files = re.findall('<a href="([^"]*)">((?:losses|distances)/[a-z]+.py)</a>', one)
    assert [name for _, name in files] == ["distances/euclidean.py", "losses/hinge.py"]
    assert [(tmp_path / "quick" / at).resolve() for at, _ in files] == [
        ROOT / "lib" / name for _, name in files
    ]
    assert "#runs" not in two, "it has none"
    assert "Equations" not in two
    # What the link puts into the search is found in the rows.
    table = text[text.index('<section id="runs"') :]
    assert "<td>adasample/table1, dsm/table1</td>" in table
    bare = build(tmp_path)
    assert "artefacts" not in bare[bare.index('<section id="runs"') : bare.index("<script>")]


def test_a_run_leads_to_its_record(tmp_path):
    record = tmp_path / "quick" / "records" / "a.json"
    text = build(tmp_path, records=[RECORDS[1], {**RECORDS[0], "path": record}])
    assert '<a href="records/a.json">HardNet*</a>' in text
    assert ">SIFT</a>" not in text


def test_what_papers_leave_open_and_what_is_not_there_is_told(tmp_path):
    text = " ".join(build(tmp_path, absent=["dsm/options"]).split())
    assert '<section id="document"><h2>Where the papers are silent' in text
    assert "Not on this page, since it was not asked for: dsm/options." in text


def test_verdicts_without_what_is_known_only_later_are_shown_too(tmp_path):
    bare = VERDICTS[["claim", "paper", "artefact", "sentence", "verdict", "profile", "data"]]
    assert "A is lower." in build(tmp_path, verdicts=bare)


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
