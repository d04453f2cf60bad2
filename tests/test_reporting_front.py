"""README's numbers are those of the reference."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lib.study.open import REFERENCE, ROOT
from lib.study.report import front

DOCUMENTS = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
# A paragraph that was written by hand, and the tables below the reference that its numbers are of.
WRITTEN = re.compile(r"((?:[^\n]+\n)+)<!-- numbers of (.+?) -->")
NUMBER = re.compile(r"(?<![\d.])[+−]?\d+\.\d+")


def test_methods_stand_with_either_optimiser_the_lowest_fpr95_first() -> None:
    levels = {"method": ["A", "B"], "FPR95 SGD": [3.04, 2.0], "FPR95 Adam": [1.0, 4.0]}
    levels |= {"matching SGD": [70.0, 71.0], "matching Adam": [72.0, 73.0]}
    assert front.equal_footing(pd.DataFrame(levels)) == (
        "| method | FPR95, SGD | FPR95, Adam | matching, SGD | matching, Adam |\n"
        "| --- | --- | --- | --- | --- |\n"
        "| A | 3.04 | 1.00 | 70.0 | 72.0 |\n"
        "| B | 2.00 | 4.00 | 71.0 | 73.0 |\n"
    )


def test_the_readme_shows_what_the_reference_holds() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert front.filled_in(text, REFERENCE) == text
    assert front.filled_in(text.replace("| SOSNet+ |", "| older |"), REFERENCE) == text


def strays(document: str) -> list[str]:
    """The decimals of paragraphs that name tables which stand in none of these."""
    found = []
    for paragraph, names in WRITTEN.findall(document):
        tables = [pd.read_csv(REFERENCE / name) for name in names.split(", ")]
        values = np.concatenate([table.select_dtypes("number").to_numpy().ravel() for table in tables])
        for number in NUMBER.findall(paragraph):
            digits = len(number.partition(".")[2])
            near = np.abs(values) if number[0].isdigit() else values
            written = float(number.replace("−", "-"))
            if not np.isclose(near, written, atol=0.5001 * 10**-digits, rtol=0).any():
                found.append(number)
    return found


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
def test_every_number_of_results_stands_in_the_tables_that_its_paragraph_names(path: Path) -> None:
    assert strays(path.read_text(encoding="utf-8")) == []


def test_a_number_of_no_table_is_found_out() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert WRITTEN.search(text)
    assert strays(re.sub(r"0\.55%", "9.87%", text, count=1)) == ["9.87"]
