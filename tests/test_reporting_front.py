"""README's findings are those of the quick reference, filled in between two marks."""

from __future__ import annotations

import pandas as pd
import pytest

from lib.experiments.artefacts import ARTEFACTS
from lib.reporting.page import front, rendering
from lib.reporting.page.verdicts import read_verdicts
from lib.study.open import REFERENCE, ROOT

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


def test_a_document_without_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="no marks"):
        front.filled_in("text", read_verdicts(pd.DataFrame([ROW])))


def test_the_readme_shows_what_the_reference_holds() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = read_verdicts(rendering.saved_verdicts(REFERENCE / "quick", ARTEFACTS))
    assert front.filled_in(text, rows) == text
