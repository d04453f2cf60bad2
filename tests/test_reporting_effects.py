"""Effects of options: differences from the default, and the document that shows them."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest
from scipy import stats

from lib.recipes import RECIPES
from lib.statistics.intervals import Measured
from lib.study.artefacts import adasample, dsm, hynet, tcdesc
from lib.study.report import changes, reference

ROOT = Path(__file__).resolve().parents[1]
# Two test sets. Their means are paired by seed.
RUNS = {
    "AdaSample+*": {
        "default": Measured([[9.0, 11.0], [11.0, 13.0], [13.0, 15.0]]),
        "w_i = 1": Measured([[13.0, 13.0], [14.0, 14.0], [15.0, 15.0]]),
    },
    "HardNet+*": {"default": Measured([[1.0, 1.0]] * 3)},
}


def test_a_change_is_paired_by_seed_with_student_s_interval() -> None:
    table = changes.effects(RUNS)
    assert table["mean"].tolist() == [12, 14, 1]
    assert table["sd"].tolist() == [2, 1, 0]
    # The seeds' differences are 3, 2 and 1.
    half = stats.t.ppf(0.975, 2) * 1 / 3**0.5
    assert table.loc[1, ["change", "from", "to"]].tolist() == pytest.approx([2, 2 - half, 2 + half])
    assert table["change"].isna().tolist() == [True, False, True]


def test_a_marked_cell_is_filled_in_and_refilled() -> None:
    text = "| w | <!-- effect: AdaSample+*, w_i = 1 --> |\n| x | untouched |\n"
    filled = reference.with_effects(text, changes.effects(RUNS), "quick, mini-a")
    cell = "<!-- effect: AdaSample+*, w_i = 1 --> +2.00 (-0.48 to +4.48; quick, mini-a, 3 seeds) |"
    assert filled == f"| w | {cell}\n| x | untouched |\n"
    assert reference.with_effects(filled, changes.effects(RUNS), "quick, mini-a") == filled


def test_the_effect_of_another_profile_stays() -> None:
    cell = "<!-- effect: AdaSample+*, w_i = 1 --> +7.00 (+6.90 to +7.10; quick, mini-a, 5 seeds) |"
    table = changes.effects(RUNS)
    assert reference.with_effects(cell, table, "evening, photos-a") == cell
    assert "; quick, mini-a, 3 seeds)" in reference.with_effects(cell, table, "quick, mini-a")


def test_the_marks_of_the_document_name_the_options_that_the_study_changes() -> None:
    document = (ROOT / "docs/choices.md").read_text(encoding="utf-8")
    named = {
        (RECIPES[name].label, option)
        for options in (adasample.OPTIONS, dsm.OPTIONS, hynet.OPTIONS, tcdesc.OPTIONS)
        for name, choices in options.items()
        for option in choices
    }
    marks = re.findall(r"<!-- effect: ([^,]+), ([^>]+?) -->", document)
    assert set(marks) == named
    assert len(marks) == len(named)


def test_the_document_shows_the_effects_of_the_reference() -> None:
    document = (ROOT / "docs/choices.md").read_text(encoding="utf-8")
    tables = (ROOT / "results/reference/quick/mini/tables").glob("*/options.csv")
    table = pd.concat(pd.read_csv(file) for file in tables)
    assert document.count("<!-- effect:") >= 10
    assert reference.with_effects(document, table, "quick, mini-a") == document
