"""README's findings are those of the quick reference, filled in between two marks."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from lib.experiments.artefacts import ARTEFACTS
from lib.reporting.factorial import HALVED_WAY
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


def saved(
    folder: Path, of: str = "equal_footing", behind: str = "", best: str = "B+", base: str = "HardNet+"
) -> None:
    """The tables of equal footing of three methods, as a notebook of a size saves them."""
    (folder / "together").mkdir(parents=True, exist_ok=True)
    levels = {"method": [base, best, "C"], "FPR95 mean": [12.34, 9.0, 10.0]}
    levels |= {"FPR95 from": [10.0, 7.0, 8.0], "FPR95 to": [14.0, 11.0, 12.0], "FPR95 seeds": [3, 3, 3]}
    levels["matching mean"] = [60.0, 65.0, 67.25]
    orders = {
        "measure": ["FPR95", "matching"],
        "pairs": [3, 3],
        "significant": [1, 0],
        "rankings": [3, 6],
    }
    orders["of"] = [6, 6]
    pairs = {"better": [best, best, "C"], "worse": [base, "C", base], "Holm": [0.01, 0.2, 0.3]}
    pairs |= {"ahead": [3.34, 1.0, 2.34], "from": [2.0, -1.0, -0.1], "to": [4.6, 3.0, 4.8]}
    for part, content in (("", levels), ("_orders", orders), ("_pairs_fpr95", pairs)):
        pd.DataFrame(content).to_csv(folder / f"together/{of}{part}{behind}.csv", index=False)


def test_equal_footing_is_summed_up_in_a_sentence(tmp_path: Path) -> None:
    assert front.equal_footing(tmp_path) == ""
    saved(tmp_path)
    assert front.equal_footing(tmp_path) == (
        "On [equal footing](notebooks/together/equal_footing.ipynb) (quick size, one scene, 3 seeds): "
        "B+ has the lowest FPR95 of 3 methods, 9.0% (7.0 to 11.0), not significantly ahead of C; "
        "HardNet+ has 12.3% (10.0 to 14.0). Mean average precision on HPatches is highest for C in "
        "matching (67.2%). Of 3 pairs of methods the number that differ significantly is 1 by FPR95, 0 "
        "by matching; by FPR95 the data exclude 3 of 6 rankings.\n"
    )
    effects = {
        "effect": ["loss", "positive", "network", "loss × positive"],
        "points": [-1.0, 2.04, 0.1, -3.0],
    }
    effects |= {"Holm": [0.01, 0.02, 0.9, 0.01], "of": ["one axis"] * 3 + ["two axes"]}
    pd.DataFrame(effects).to_csv(tmp_path / "together" / "factorial_fpr95.csv", index=False)
    # What one choice does is not told without the one that turns it round.
    assert front.equal_footing(tmp_path).endswith(
        "these choices lower FPR95 significantly in the mean over all others, in points: DSM's CDF "
        "weight −1.0. These raise it, in points: TCDesc's topology +2.0. Undecided: HyNet's network. "
        "What a choice does depends on another: TCDesc's topology +5.0 without DSM's CDF weight and "
        "−1.0 with it.\n"
    )
    halved = {"effect": ["loss", "regulariser", "loss × regulariser"]}
    halved |= {f"{HALVED_WAY} {of}": [0.5, -1.0, 0.0] for of in ("points", "from", "to")}
    pd.DataFrame(halved).to_csv(tmp_path / "together" / "factorial_half_weight.csv", index=False)
    assert front.equal_footing(tmp_path).endswith(
        "with half its weight there: DSM's CDF weight +0.5 (0.5 to 0.5), HyNet's R_L2 −1.0 (−1.0 to "
        "−1.0), R_L2 × DSM's weight +0.0 (0.0 to 0.0).\n"
    )
    confirmed = {"effect": ["positive", "loss × positive", "best − papers' best", "best − HardNet"]}
    confirmed |= {"points": [-0.52, 0.2, 0.1, -1.0], "from": [-1.0, 0.1, -0.3, -2.0]}
    confirmed |= {"to": [-0.04, 0.3, 0.5, -0.5], "foreseen": [2.0, -1.0, -0.5, 0.0]}
    confirmed |= {"Holm": [0.04, 0.01, 0.6, 0.01], "confirmed": ["no", "no", "no", "yes"]}
    file = tmp_path / "together" / "factorial_confirmation_evening.csv"
    pd.DataFrame(confirmed).to_csv(file, index=False)
    told = front.equal_footing(tmp_path)
    assert (
        "Of the factorial's 2 largest effects and its best combination's 2 leads 1 could be confirmed"
        in told
    )
    assert told.endswith(
        "in the combination that is best by the quick effects, TCDesc's topology −0.52 (−1.00 to −0.04; "
        "+2.00 foreseen), DSM's CDF weight × TCDesc's topology +0.20 (0.10 to 0.30; −1.00 foreseen); "
        "that combination less the best of the papers' own +0.10 (−0.30 to 0.50; −0.50 foreseen; not "
        "significant), less HardNet's −1.00 (−2.00 to −0.50; +0.00 foreseen).\n"
    )


def test_what_is_known_at_two_sizes_stands_beside_the_factorial(tmp_path: Path) -> None:
    folder = tmp_path / "together"
    saved(tmp_path)
    effects = {"effect": ["loss"], "points": [1.0], "Holm": [0.01], "of": ["one axis"]}
    pd.DataFrame(effects).to_csv(folder / "factorial_fpr95.csv", index=False)
    for behind, pairs in (
        ("", [("DSM+", "HardNet+", 1.0, 0.5, 1.5), ("DSM+", "TCDesc-DSM+", 2.0, -1.0, 5.0)]),
        ("_evening", [("HardNet+", "DSM+", 0.1, -0.1, 0.3), ("TCDesc-DSM+", "DSM+", 0.6, 0.2, 1.0)]),
    ):
        frame = pd.DataFrame(pairs, columns=["better", "worse", "ahead", "from", "to"])
        frame.assign(Holm=1.0).to_csv(folder / f"equal_footing_pairs_fpr95{behind}.csv", index=False)
    assert front.equal_footing(tmp_path).endswith(
        "in points at the quick size and at the evening's, DSM+ less HardNet+ is −1.0 (−1.5 to −0.5) "
        "and +0.1 (−0.1 to 0.3), TCDesc-DSM+ less DSM+ is +2.0 (−1.0 to 5.0) and −0.6 (−1.0 to −0.2).\n"
    )


def test_what_the_optimiser_alone_is_worth_is_told_beside_equal_footing(tmp_path: Path) -> None:
    saved(tmp_path)
    (tmp_path / "hynet").mkdir()
    ladder = {
        "rung": ["SOSNet+", "… Adam"],
        "change points": [None, -0.82],
        "change from": [None, -0.91],
    }
    ladder |= {"change to": [None, -0.73]}
    pd.DataFrame(ladder).to_csv(tmp_path / "hynet/ladder_evening.csv", index=False)
    assert front.equal_footing(tmp_path).endswith(
        "Adam changes SOSNet+'s FPR95 by −0.8 points (−0.9 to −0.7) on [HyNet's "
        "ladder](notebooks/hynet/ladder.ipynb) (evening size).\n"
    )


def test_what_tells_more_stands_first_in_the_readme(tmp_path: Path) -> None:
    for of, behind, told in (
        ("equal_footing", "", "(quick size, one scene, "),
        ("scenes", "", "(quick size, three scenes, "),
        ("equal_footing", "_evening", "(evening size, one scene, "),
    ):
        saved(tmp_path, of, behind)
        assert told in front.equal_footing(tmp_path)


def test_a_method_stands_beside_hardnet_with_the_same_augmentation_and_positives(tmp_path: Path) -> None:
    saved(tmp_path, best="AdaSample+*", base="HardNet+*")
    assert "AdaSample+* has the lowest" in front.equal_footing(tmp_path)
    assert "HardNet+* has 12.3%" in front.equal_footing(tmp_path)


def test_what_was_filled_in_before_gives_way() -> None:
    text = "<!-- equal footing -->\nold\n<!-- end of equal footing -->\n<!-- findings -->\n"
    text += "<!-- end of findings -->"
    assert "\nnew\n<!-- end" in front.filled_in(text, read_verdicts(pd.DataFrame([ROW])), "new\n")


def test_a_document_without_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="no marks"):
        front.filled_in("text", read_verdicts(pd.DataFrame([ROW])))


def test_the_readme_shows_what_the_reference_holds() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = read_verdicts(rendering.saved_verdicts(REFERENCE / "quick", ARTEFACTS))
    assert front.filled_in(text, rows, front.equal_footing(REFERENCE / "quick" / "tables")) == text
