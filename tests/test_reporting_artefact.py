"""An artefact as its notebook shows, saves and judges it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from lib.study.claims import read_claims
from lib.study.open import open_study
from lib.study.report import artefact
from lib.study.report.artefact import Artefact, Refused, open_artefact


@pytest.fixture
def displayed(monkeypatch: pytest.MonkeyPatch) -> list:
    objects: list = []
    monkeypatch.setattr(artefact, "display", objects.append)
    return objects


@pytest.fixture
def shown(tmp_path: Path, displayed: list) -> Artefact:
    study = open_study(results=str(tmp_path))
    return Artefact("adasample/table1", study, [])


def saved_path(shown: Artefact, kind: str, name: str) -> Path:
    return shown.study.saving / kind / name


def test_a_table_is_shown_rounded_and_saved_with_six_digits(shown: Artefact, displayed: list) -> None:
    frame = pd.DataFrame({"x": [1.23456], "n": [3]}, pd.Index(["a < b"], name="Method"))
    shown.table(frame, "pairs", decimals=3, caption="a & b")
    html = displayed[0].data
    assert "1.235" in html
    assert "a &lt; b" in html
    assert "<caption>a &amp; b</caption>" in html
    assert (
        saved_path(shown, "tables", "adasample/table1_pairs.csv").read_text()
        == "Method,x,n\na < b,1.23456,3\n"
    )


def test_a_figure_is_saved_as_the_cell_shows_it_together_with_its_table(
    shown: Artefact, displayed: list
) -> None:
    shown.figure(Figure(figsize=(2, 1)), "A square", pd.DataFrame({"x": [1]}), "site")
    [image] = displayed
    assert (image.width, image.alt) == (200, "A square")
    assert saved_path(shown, "figures", "adasample/table1_site.png").read_bytes() == image.data
    assert saved_path(shown, "tables", "adasample/table1_site_figure.csv").read_text() == "x\n1\n"


def test_nothing_is_saved_while_the_reference_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, displayed: list
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = Artefact("adasample/table1", open_study(), [])
    assert shown.study.saving is None
    shown.table(pd.DataFrame({"x": [1]}))
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(("value", "text"), [(-0.001, "0.00"), (-1.5, "−1.50"), (np.nan, "·")])
def test_numbers_have_a_true_minus_and_no_negative_zero(value: float, text: str) -> None:
    assert f"<td>{text}</td>" in artefact.as_html(pd.DataFrame({"x": [value]}))


def test_verdicts_are_those_on_the_artefacts_claims(shown: Artefact, displayed: list) -> None:
    replace(shown, name="adasample/table3").judge({"p_value": [0.01] * 6})
    table = pd.read_csv(saved_path(shown, "tables", "adasample/table3_verdicts.csv"))
    claims = read_claims("adasample", "Table 3")
    assert table["claim"].tolist() == [claim.id for claim in claims]
    html = displayed[-1].data
    assert all(artefact.escape(claim.sentence) in html for claim in claims)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        *(("seeds", seeds) for seeds in ([0, 0], [2**70], [0.5], [True], "0", 3)),
        ("profile", "quik"),
        ("data", "photos"),
        ("results", ""),
    ],
)
def test_a_wrong_parameter_is_refused_in_one_line(parameter: str, value: object) -> None:
    parameters = {"profile": "quick", "data": "mini", "results": "reference", "seeds": None}
    with pytest.raises(Refused) as refused:
        open_artefact("dsm/table3", **{**parameters, parameter: value})
    [line] = refused.value._render_traceback_()
    assert "\n" not in line
    assert "Errno" not in line
    assert parameter in line or str(value) in line
