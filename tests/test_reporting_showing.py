"""What a notebook shows: one call prints, saves under the artefact's name, and judges."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from lib.study.claims import read_claims
from lib.study.open import Study
from lib.study.report.showing import Showing

TASKS_KEYS = ("sift", "rootsift", "hardnet", "hardnet_aug", "hardnet_aug_gen", "adasample_aug_gen")


def study(saving: Path | None, profile: str = "quick", source: str = "mini", embedded: bool = True):
    """What `Showing` asks of a study, and no more."""
    place = SimpleNamespace(
        profile=SimpleNamespace(name=profile),
        source=SimpleNamespace(name=source, embedded=embedded),
    )
    made = SimpleNamespace(place=place, saving=saving, table_seeds=tuple(range(5)))
    made.data_name = partial(Study.data_name, made)
    return made


@pytest.fixture
def frame() -> pd.DataFrame:
    return pd.DataFrame({"x": [1.23456]}, index=pd.Index(["a"], name="Method"))


def drawing():
    from matplotlib.figure import Figure

    return Figure(figsize=(2, 1))


def test_a_table_is_printed_rounded_and_saved_whole_under_the_artefacts_name(tmp_path, capsys, frame):
    shown = Showing("adasample/table1", study(tmp_path))
    shown.table(frame)
    shown.table(frame, "pairs", decimals=3, as_shown=frame * 2)
    assert capsys.readouterr().out.split("\n")[1::2] == ["a      1.23", "a      2.469"]
    for name in ("table1", "table1_pairs"):
        saved = tmp_path / "tables" / "adasample" / f"{name}.csv"
        assert saved.read_text() == "Method,x\na,1.23456\n"


def test_what_is_shown_beside_a_study_is_saved_with_it_under_its_own_profile(tmp_path, frame):
    beside = Showing("adasample/table1", study(None, "evening", "photos"), (), study(tmp_path))
    beside.table(frame)
    beside.table(frame, "pairs")
    names = {path.name for path in (tmp_path / "tables" / "adasample").iterdir()}
    assert names == {"table1_evening.csv", "table1_pairs_evening.csv"}
    reading = Showing("adasample/table1", study(tmp_path / "x", "evening"), (), study(None))
    reading.table(frame)
    assert not (tmp_path / "x").exists()


def test_heads_of_two_levels_are_joined_and_saving_twice_gives_the_same_bytes(tmp_path):
    columns = pd.MultiIndex.from_tuples([("", "dim"), ("Mean", "paper")])
    table = pd.DataFrame([[128, np.nan], [64, 1 / 3]], ["a", "b"], columns).rename_axis("Method")
    shown, saved = Showing("adasample/table1", study(tmp_path)), tmp_path / "tables" / "adasample"
    shown.table(table)
    first = (saved / "table1.csv").read_bytes()
    assert first == b"Method,dim,Mean paper\na,128,\nb,64,0.333333\n"
    shown.table(table)
    assert (saved / "table1.csv").read_bytes() == first
    assert [path.name for path in saved.iterdir()] == ["table1.csv"]


def test_a_figure_is_saved_as_the_very_picture_that_the_cell_shows(tmp_path):
    image = Showing("data/embedded", study(tmp_path)).figure(drawing(), "A square", "site")
    saved = tmp_path / "figures" / "data" / "embedded_site.png"
    assert saved.read_bytes() == image.data
    assert (image.width, image.alt) == (200, "A square")


def test_while_the_reference_is_read_nothing_is_saved(tmp_path, monkeypatch, frame):
    monkeypatch.chdir(tmp_path)
    shown = Showing("adasample/table1", study(None))
    shown.table(frame)
    shown.figure(drawing(), "A square")
    shown.verdicts({})
    assert not any(tmp_path.iterdir())


def test_claims_are_those_of_the_papers_artefact_and_their_verdicts_are_saved(tmp_path, capsys):
    Showing("adasample/table3", study(tmp_path)).verdicts({"p_value": [0.01] * 6})
    table = pd.read_csv(tmp_path / "tables" / "adasample" / "table3_verdicts.csv")
    assert table["claim"].tolist() == [claim.id for claim in read_claims("adasample", "Table 3")]
    assert table["verdict"].tolist() == ["not judged"] * 4
    assert "AdaSample" in capsys.readouterr().out


def test_an_artefact_may_be_named_as_its_claims_are_and_seeds_be_others(tmp_path):
    Showing("adasample/theory", study(tmp_path)).verdicts(
        {"adasample_aug_gen_ht": [[0.0]]}, (7,), ("Footnote 5", "Sec. 6")
    )
    table = pd.read_csv(tmp_path / "tables" / "adasample" / "theory_verdicts.csv")
    assert table[["claim", "seeds", "verdict"]].to_numpy().tolist() == [
        ["adasample-footnote-5", 1, "not judged"],
        *(
            [f"adasample-s6-{task}", 1, "not judged"]
            for task in ("verification", "matching", "retrieval")
        ),
    ]


def test_an_artefact_without_claims_is_refused(tmp_path):
    with pytest.raises(ValueError, match="no claim of adasample on Options"):
        Showing("adasample/options", study(tmp_path)).verdicts({})


@pytest.mark.parametrize(
    ("profile", "source", "embedded", "outcome", "data"),
    [
        ("paper", "ubc", False, "reproduced", "ubc+hpatches"),
        ("evening", "ubc", False, "held", "ubc+hpatches"),
        ("paper", "mini", True, "held", "mini"),
    ],
)
def test_a_claim_on_hpatches_is_reproduced_on_the_release_by_the_paper_profile_alone(
    tmp_path, profile, source, embedded, outcome, data
):
    values = {key: np.full((5, 1), float(place)) for place, key in enumerate(TASKS_KEYS)}
    Showing("adasample/figure2", study(tmp_path, profile, source, embedded)).verdicts(values)
    table = pd.read_csv(tmp_path / "tables" / "adasample" / "figure2_verdicts.csv")
    assert table["verdict"].tolist() == [outcome] * 3
    assert table["data"].tolist() == [data] * 3


def test_values_may_be_given_claim_by_claim(tmp_path):
    asked = []

    def values(claim):
        asked.append(claim.id)
        return {}

    Showing("adasample/figure2", study(tmp_path)).verdicts(values)
    assert asked == [claim.id for claim in read_claims("adasample", "Figure 2")]
