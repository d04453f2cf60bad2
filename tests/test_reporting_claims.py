"""Claims: fixed rows, and the rule that turns values into a verdict."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.reporting import claims as module
from lib.reporting.claims import Claim, read_claims, show_verdicts, verdict, verdict_table
from lib.reporting.phototour import COLUMN_NAMES, printed_by_column
from lib.reporting.printed import printed

SEEDS = (0, 1, 2, 3, 4)


def claim(**changes: object) -> Claim:
    basis = Claim(
        id="x",
        paper="p",
        artefact="Table 1",
        sentence="A is lower than B.",
        quote="lower",
        statistic="mean_difference",
        metric="fpr95",
        unit="points",
        better="lower",
        a=("a",),
        b=("b",),
        direction="less",
        margin=0.1,
        fewest_seeds=5,
        own_data="ubc",
        counts_against="A not lower.",
    )
    return replace(basis, **changes)


def judge(which: Claim, values: dict, profile: str = "quick", data: str = "mini", seeds=SEEDS):
    return verdict(which, values, seeds, profile, data)


def test_below_the_fewest_seeds_a_claim_is_undecided_whatever_its_values():
    for gap in (-5.0, 5.0):
        result = judge(claim(), {"a": [[1.0 + gap]], "b": [[1.0]]}, "paper", "ubc", seeds=(0,))
        assert result.outcome == "undecided"
        assert result.observed == pytest.approx(gap)
        assert "needs 5 seeds" in result.text()


@pytest.mark.parametrize(
    ("profile", "data", "gap", "outcome"),
    [
        ("paper", "ubc", -0.2, "reproduced"),
        ("paper", "ubc", -0.05, "not reproduced"),
        ("paper", "ubc", 0.2, "not reproduced"),
        ("paper", "mini", -0.2, "held there"),
        ("quick", "ubc", -0.2, "held there"),
        ("quick", "mini", -0.2, "held there"),
        ("quick", "mini", 0.2, "did not hold there"),
    ],
)
def test_only_the_paper_profile_on_the_papers_data_reproduces(profile, data, gap, outcome):
    values = {"a": np.full((5, 6), 1.0 + gap), "b": np.full((5, 6), 1.0)}
    result = judge(claim(), values, profile, data)
    assert result.outcome == outcome
    for named in (profile, data, "5 seeds"):
        assert named in result.text()


def test_a_claim_about_hpatches_is_not_decided_by_training_data_alone():
    values = {"a": np.zeros((5, 3)), "b": np.ones((5, 3))}
    on_hpatches = claim(own_data="ubc+hpatches")
    assert judge(on_hpatches, values, "paper", "ubc").outcome == "held there"
    assert judge(on_hpatches, values, "paper", "ubc+hpatches").outcome == "reproduced"


def test_a_difference_equal_to_the_margin_does_not_hold():
    at = {"a": np.zeros((5, 1)), "b": np.full((5, 1), 0.5)}
    assert judge(claim(margin=0.5), at).outcome == "did not hold there"
    assert judge(claim(margin=0.499), at).outcome == "held there"


@given(
    st.lists(st.lists(st.floats(0, 50), min_size=4, max_size=4), min_size=5, max_size=5),
    st.lists(st.lists(st.floats(0, 50), min_size=4, max_size=4), min_size=5, max_size=5),
)
def test_statistics_equal_their_definition_written_as_loops(a, b):
    mean = lambda rows, cell: sum(row[cell] for row in rows) / len(rows)  # noqa: E731
    gaps = [mean(a, cell) - mean(b, cell) for cell in range(4)]
    values = {"a": a, "b": b}
    worst = judge(claim(statistic="each_difference"), values).observed
    assert worst == pytest.approx(max(gaps), abs=1e-9)
    assert judge(claim(), values).observed == pytest.approx(sum(gaps) / 4, abs=1e-9)
    greater = claim(statistic="each_difference", direction="greater")
    assert judge(greater, values).observed == pytest.approx(min(gaps), abs=1e-9)
    low = judge(claim(statistic="minimum", b=()), values).observed
    assert low == min(min(row) for row in a)


def test_with_several_methods_the_worst_pairing_counts():
    values = {"a": [1.0], "c": [3.0], "b": [5.0], "d": [4.0]}
    both = claim(a=("a", "c"), b=("b", "d"), fewest_seeds=1)
    assert judge(both, values, seeds=(0,)).observed == pytest.approx(3.0 - 4.0)


def test_share_better_counts_strict_wins_over_the_best_rival():
    share = claim(
        statistic="share_better", better="higher", direction="greater", margin=0.5, b=("b", "c")
    )
    values = {"a": [9.0, 9.0, 9.0, 1.0], "b": [1.0, 9.0, 2.0, 5.0], "c": [2.0, 1.0, 8.0, 0.0]}
    assert judge(share, values).observed == 0.5
    assert judge(share, values).outcome == "did not hold there"
    lower = replace(share, better="lower")
    assert judge(lower, values).observed == 0.0


def test_counts_and_relative_gains_follow_their_definitions():
    count = claim(statistic="count_below_0.05", b=(), direction="at_least", margin=2)
    assert judge(count, {"a": [0.01, 0.05, 0.04]}).observed == 2
    assert judge(count, {"a": [0.01, 0.05, 0.04]}).outcome == "held there"
    gain = claim(statistic="largest_relative_gain", direction="at_least", margin=25)
    assert judge(gain, {"a": [3.0, 9.0], "b": [4.0, 10.0]}).observed == pytest.approx(25.0)
    never = claim(statistic="maximum", b=(), direction="at_most", margin=0.0)
    assert judge(never, {"a": [0.0, 0.0]}).outcome == "held there"
    assert judge(never, {"a": [0.0, 0.01]}).outcome == "did not hold there"


def test_the_standard_error_is_welchs_over_the_seeds_means():
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(5, 6)), rng.normal(size=(5, 6))
    expected = np.sqrt(sum(np.var([row.mean() for row in x], ddof=1) / 5 for x in (a, b)))
    assert judge(claim(), {"a": a, "b": b}).standard_error == pytest.approx(expected)
    single = judge(claim(fewest_seeds=1), {"a": a[:1], "b": b[:1]}, seeds=(0,))
    assert single.standard_error is None


def test_a_method_that_was_not_asked_for_leaves_the_claim_undecided_by_name():
    result = judge(claim(), {"a": [1.0]})
    assert (result.outcome, result.observed) == ("undecided", None)
    assert "no values of b" in result.text()
    assert result.observation() == "not computed"


@pytest.mark.parametrize(
    ("values", "seeds", "message"),
    [
        ({"a": [[1.0], [2.0]], "b": [1.0]}, SEEDS, "values of a have shape"),
        ({"a": [np.nan], "b": [1.0]}, SEEDS, "values of a hold one that is not finite"),
        ({"a": [1.0, 2.0], "b": [1.0]}, SEEDS, "differ in their number of cells"),
        ({"a": [1.0], "b": [1.0]}, (1, 1), "hold one twice"),
    ],
)
def test_values_that_do_not_fit_are_refused_by_name(values, seeds, message):
    with pytest.raises(ValueError, match=message):
        judge(claim(), values, seeds=seeds)


def test_claims_are_unique_and_say_what_counts_against_them():
    claims = read_claims()
    assert len({c.id for c in claims}) == len(claims)
    for c in claims:
        assert c.sentence.endswith(".")
        assert c.counts_against.endswith(".")
        assert c.quote
        assert c.needed().split()[0] in ("below", "above", "at")


def test_every_table_and_figure_of_results_in_adasample_has_claims():
    artefacts = {c.artefact for c in read_claims("adasample")}
    assert {"Table 1", "Table 2", "Table 3", "Figure 2", "Figure 3"} <= artefacts


def test_an_artefact_without_claims_is_refused_and_those_there_are_named():
    with pytest.raises(ValueError, match="no claim of adasample, Table 9; there are: adasample, F"):
        read_claims("adasample", "Table 9")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("mean_difference", "median_difference", "unknown statistic 'median_difference'"),
        (",less,", ",fewer,", "unknown direction"),
        (",0.02,5,", ",much,5,", "could not convert string to float: 'much'"),
        (",0.02,5,", ",-1,5,", "margin below 0"),
        ("hardnet_gen,less", ",less", "a or b does not fit"),
    ],
)
def test_a_malformed_claim_is_refused_by_its_id(tmp_path, monkeypatch, old, new, message):
    text = (module.CLAIMS / "adasample.csv").read_text(encoding="utf-8")
    assert old in text
    changed = tmp_path / "adasample.csv"
    changed.write_text(text.replace(old, new, 1), encoding="utf-8")
    monkeypatch.setattr(module, "CLAIMS", tmp_path)
    with pytest.raises(ValueError, match=f"adasample-t1-star-mean'.*{message}"):
        read_claims()


def test_the_papers_own_numbers_bear_out_its_claims_on_generation_and_sampling():
    table = printed_by_column(printed("adasample", "table1"))
    rows = table.droplevel("label")[list(COLUMN_NAMES)]
    values = {key: np.tile(row, (5, 1)) for key, row in rows.iterrows()}
    outcomes = {
        c.id: verdict(c, values, SEEDS, "paper", "ubc").outcome
        for c in read_claims("adasample", "Table 1")
        if all(key in values for key in (*c.a, *c.b))
    }
    assert len(outcomes) == 10
    assert set(outcomes.values()) == {"reproduced"}


def test_table_2_as_printed_does_not_bear_out_that_lambda_10_is_best_in_most_cases():
    table = printed("adasample", "table2")
    values = {key: rows["value"].to_numpy() for key, rows in table.groupby("key")}
    values |= {loss: rows["value"].to_numpy() for loss, rows in table.groupby("loss")}
    outcomes = {
        c.id.removeprefix("adasample-t2-"): verdict(c, values, SEEDS, "paper", "ubc+hpatches")
        for c in read_claims("adasample", "Table 2")
    }
    assert {key: v.outcome for key, v in outcomes.items()} == {
        "lambda-10-aht": "not reproduced",
        "lambda-10-ht": "not reproduced",
        "hardest-aht": "reproduced",
        "hardest-ht": "reproduced",
        "angular": "reproduced",
    }
    assert outcomes["lambda-10-aht"].observed == pytest.approx(1 / 3)
    assert outcomes["lambda-10-ht"].observed == 0
    assert outcomes["angular"].observed == pytest.approx(13 / 18)


def test_verdicts_print_as_plain_text_within_the_width(capsys):
    results = [judge(c, {}) for c in read_claims("adasample")]
    show_verdicts(results, width=90)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 90
    assert sum(line.startswith("Claim: ") for line in lines) == len(results)
    assert sum(line.startswith("   verdict:") for line in lines) == len(results)


def test_a_table_of_verdicts_holds_a_row_a_claim_with_numbers_or_nothing():
    values = {"a": np.zeros((5, 2)), "b": np.ones((5, 2))}
    table = verdict_table([judge(claim(), values), judge(claim(), {})])
    assert table["observed"].isna().tolist() == [False, True]
    assert table["verdict"].tolist() == ["held there", "undecided"]
