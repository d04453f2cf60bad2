"""README's findings are those of the quick reference, filled in between two marks."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lib.study.catalogue import ARTEFACTS
from lib.study.open import REFERENCE, ROOT
from lib.study.report.page import front, rendering
from lib.study.report.page.verdicts import read_verdicts

ROW = {
    **{"claim": "x", "paper": "adasample", "artefact": "Table 3", "notebook": "adasample/table3"},
    **{"sentence": "A is lower.", "kind": "claim", "verdict": "held", "observed": -1.5, "low": -2.0},
    **{"high": -1.0, "unit": "points", "profile": "quick", "data": "mini", "seeds": 5},
}


def test_a_finding_names_its_verdict_interval_profile_data_and_notebook() -> None:
    text = "a\n<!-- findings -->\nold\n<!-- end of findings -->\nb"
    found = front.filled_in(text, read_verdicts(pd.DataFrame([ROW])))
    assert found == (
        "a\n<!-- findings -->\n- **Held**: A is lower. (−1.5 points (−2 to −1); quick, mini, 5 seeds; "
        "[Table 3](notebooks/adasample/table3.ipynb))\n<!-- end of findings -->\nb"
    )


def test_methods_stand_with_either_optimiser_the_lowest_fpr95_first(tmp_path: Path) -> None:
    assert front.equal_footing(tmp_path) == ""
    (tmp_path / "together").mkdir()
    levels = {"method": ["A", "B"], "FPR95 SGD": [3.04, 2.0], "FPR95 Adam": [1.0, 4.0]}
    levels |= {"matching SGD": [70.0, 71.0], "matching Adam": [72.0, 73.0]}
    pd.DataFrame(levels).to_csv(tmp_path / "together/optimisers_evening.csv", index=False)
    assert front.equal_footing(tmp_path) == (
        "| method | FPR95, SGD | FPR95, Adam | matching, SGD | matching, Adam |\n"
        "| --- | --- | --- | --- | --- |\n"
        "| A | 3.04 | 1.00 | 70.0 | 72.0 |\n"
        "| B | 2.00 | 4.00 | 71.0 | 73.0 |\n"
    )


def test_what_was_filled_in_before_gives_way() -> None:
    text = "<!-- equal footing -->\nold\n<!-- end of equal footing -->\n<!-- findings -->\n"
    text += "<!-- end of findings -->"
    assert "\nnew\n<!-- end" in front.filled_in(text, read_verdicts(pd.DataFrame([ROW])), "new\n")


def test_a_document_without_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="no marks"):
        front.filled_in("text", read_verdicts(pd.DataFrame([ROW])))


def test_the_readme_shows_what_the_reference_holds() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = read_verdicts(rendering.saved_verdicts(REFERENCE / "quick/mini", ARTEFACTS))
    assert front.filled_in(text, rows, front.equal_footing(REFERENCE / "quick/mini/tables")) == text


# A paragraph that was written by hand, and the tables that its numbers are of.
WRITTEN = re.compile(r"((?:[^\n]+\n)+)<!-- numbers of (.+?) -->")
NUMBER = re.compile(r"(?<![\d.])[+−]?\d+\.\d+")


def test_every_number_that_the_readme_tells_of_results_stands_in_the_tables_it_names() -> None:
    paragraphs = WRITTEN.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    assert paragraphs
    for paragraph, names in paragraphs:
        folder = REFERENCE / "quick/mini/tables"
        tables = [pd.read_csv(folder / f"{name}.csv") for name in names.split(", ")]
        values = np.concatenate([of.select_dtypes("number").to_numpy().ravel() for of in tables])
        for told in NUMBER.findall(paragraph):
            digits = len(told.partition(".")[2])
            number = float(told.replace("−", "-"))
            near = np.abs(values) if told[0].isdigit() else values
            assert np.isclose(near, number, atol=0.5001 * 10**-digits, rtol=0).any(), (told, names)
