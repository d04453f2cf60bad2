"""README's numbers are those of the reference."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lib.study.claims import read_claims
from lib.study.open import REFERENCE, ROOT
from lib.study.report import reference

DOCUMENTS = sorted([*ROOT.glob("[!.]*/README.md"), ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
# A paragraph written by hand, and the tables of the reference that hold its numbers.
WRITTEN = re.compile(r"((?:[^\n]+\n)+)<!-- numbers of (.+?) -->")
NUMBER = re.compile(r"(?<![\d.])[+−]?\d+\.\d+")


def test_tables_are_filled_in_between_their_comments(tmp_path: Path) -> None:
    text = "a\n<!-- scoreboard -->\nold\n<!-- end of scoreboard -->\n"
    text += "<!-- equal footing -->\nold\n<!-- end of equal footing -->\nb"
    table = tmp_path / reference.EQUAL_FOOTING
    table.parent.mkdir(parents=True)
    matching = reference.PHOTOGRAPHS
    levels = {
        f"{name} {optimiser}": [2.0] for name in ("FPR95", matching) for optimiser in ("SGD", "Adam")
    }
    pd.DataFrame({"method": ["A"]} | levels).to_csv(table, index=False)
    columns = {"optimiser": ["Adam", ""], "FPR95 mean": 2.0, f"{matching} mean": 3.0}
    pd.DataFrame({"method": ["A", "S"]} | columns).to_csv(table.with_name("equal_footing.csv"))
    lines = reference.with_tables(text, tmp_path).splitlines()
    assert "old" not in lines
    assert "| A | 2.00 | **2.00** | 2.0 | **2.0** |" in lines
    assert ": S 2.00, 3.0." in "\n".join(lines)
    assert (lines[0], lines[-1]) == ("a", "b")


def test_a_sentence_holds_if_all_its_comparisons_do_and_the_longer_size_decides(tmp_path: Path) -> None:
    quoted: dict[tuple[str, str], list[str]] = {}
    for claim in read_claims():
        if claim.kind == "claim":
            quoted.setdefault((claim.paper, claim.quote), []).append(claim.id)
    first, (second, *_), *_ = sorted((ids for ids in quoted.values() if len(ids) > 1), key=len)
    evening = {first[0]: "held", second: "held"}
    quick = {first[0]: "not judged", **dict.fromkeys(first[1:], "held"), second: "did not hold"}
    # Without any verdict no sentence is judged.
    assert reference.scoreboard(tmp_path).count("| 0 | 0 | 0 |") == len(reference.PAPERS)
    for size, verdicts in zip(reference.JUDGED[1:], (evening, quick), strict=True):
        table = tmp_path / size / "tables" / "dsm" / "table1_verdicts.csv"
        table.parent.mkdir(parents=True)
        columns = {"claim": verdicts.keys(), "verdict": verdicts.values(), "low": 0.0}
        pd.DataFrame(columns).to_csv(table, index=False)
    *table, _, chance = reference.scoreboard(tmp_path).splitlines()
    rows = [line.split(" | ")[1:] for line in table[2:]]
    counts = np.array([[int(number.strip(" |")) for number in row] for row in rows]).sum(axis=0)
    assert counts.tolist() == [1, 0, 1, len(quoted) - 2]
    grounds = "0 by calculation (), 1 on planes, 0 on real places"
    decided = f"Of {len(quoted)} sentences, 1 are decided: {grounds}."
    rest = rf"95% intervals decide \d+ of their {len(first) + 1} comparisons "
    assert re.match(rf"{re.escape(decided)} {rest}", chance)


def test_outcomes_of_a_sentence() -> None:
    assert reference.outcome(pd.Series(["held", "did not hold", "open"])) == "did not hold"
    assert reference.outcome(pd.Series(["held", "not judged"])) == "open"
    assert reference.outcome(pd.Series(["not judged", "not judged"])) == "not judged"


def test_the_readme_shows_the_tables_of_the_reference() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text.count("<!-- end of scoreboard -->") == text.count("<!-- end of equal footing -->") == 1
    assert reference.with_tables(text, REFERENCE) == text


def strays(document: str) -> list[str]:
    """Return the decimals that are in none of the tables that their paragraph names."""
    missing = []
    for paragraph, names in WRITTEN.findall(document):
        tables = [pd.read_csv(REFERENCE / name) for name in names.split(", ")]
        values = np.concatenate([table.select_dtypes("number").to_numpy().ravel() for table in tables])
        for number in NUMBER.findall(paragraph):
            digits = len(number.partition(".")[2])
            candidates = np.abs(values) if number[0].isdigit() else values
            written = float(number.replace("−", "-"))
            if not np.isclose(candidates, written, atol=0.5001 * 10**-digits, rtol=0).any():
                missing.append(number)
    return missing


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
def test_every_number_of_results_is_in_the_tables_its_paragraph_names(path: Path) -> None:
    assert strays(path.read_text(encoding="utf-8")) == []


def test_a_number_of_no_table_is_reported() -> None:
    written = WRITTEN.search((ROOT / "README.md").read_text(encoding="utf-8"))
    assert strays(NUMBER.sub("9.87", written[0], count=1)) == ["9.87"]
