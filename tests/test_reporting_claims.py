"""Claims: fixed rows, and the rule that turns values into a verdict."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.statistics.intervals import Measured
from lib.study.claims import Claim, read_claims, show_verdicts, verdict, verdict_table
from lib.study.claims.rows import COUNT_BELOW, DIRECTIONS, NONE, PAIRED, SINGLE
from lib.study.printed import printed
from lib.study.report.phototour import COLUMN_NAMES, printed_by_column

SEEDS = (0, 1, 2, 3, 4)


def claim(**changes: object) -> Claim:
    basis = Claim(
        id="x",
        paper="adasample",
        artefact="Table 1",
        kind="claim",
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
        own_data="ubc",
        printed="",
        counts_against="A not lower.",
        why="",
    )
    return replace(basis, **changes)


def judge(which: Claim, values: dict, profile: str = "quick", data: str = "mini", seeds=SEEDS):
    return verdict(which, values, seeds, profile, data)


def runs(mean: float, spread: float, cells: int = 1, seed: int = 0) -> np.ndarray:
    """Five seeds with exactly this mean and standard deviation in every cell."""
    drawn = np.random.default_rng(seed).normal(size=(5, cells))
    drawn = (drawn - drawn.mean(axis=0)) / drawn.std(axis=0, ddof=1)
    return mean + spread * drawn


@pytest.mark.parametrize(
    ("gap", "outcome"),
    [(-1.0, "held"), (-0.3, "too close to call"), (0.0, "too close to call"), (0.4, "did not hold")],
)
def test_a_difference_counts_when_its_interval_excludes_the_margin(gap, outcome):
    # Half an interval is 2.776 × 0.3 / √5 = 0.372.
    result = judge(claim(), {"a": runs(gap, 0.3), "b": np.zeros(1)})
    assert result.outcome == outcome
    assert result.observed == pytest.approx(gap)
    assert (result.low, result.high) == pytest.approx((gap - 0.3725, gap + 0.3725), abs=1e-3)


def test_too_close_names_the_seeds_that_would_tell():
    result = judge(claim(), {"a": runs(-0.3, 0.3), "b": np.zeros(1)})
    # t of 11 seeds: 2.228 × 0.3 / √11 = 0.2015; of 12: 2.201 × 0.3 / √12 = 0.1906.
    assert result.seeds_needed == "12"
    assert "too close to call: 12 seeds would tell" in result.text()
    hardly = judge(claim(), {"a": runs(-0.1001, 0.3), "b": np.zeros(1)})
    assert hardly.seeds_needed == "more than 200"


def test_where_test_points_alone_hold_the_margin_seeds_do_not_tell():
    draws = np.random.default_rng(0).normal(0, 0.5, (1, 5, 1, 400))
    points = {"a": Measured(runs(-0.3, 0.01), draws), "b": Measured(np.zeros(1), np.zeros((1, 1, 400)))}
    result = judge(claim(), points)
    assert result.outcome == "too close to call"
    assert result.seeds_needed == "more test points, not seeds"
    assert "over seeds and tests" in result.observation()
    without = {"a": runs(-0.3, 0.01), "b": np.zeros(1)}
    assert judge(claim(), without).outcome == "held"


def test_seeds_that_are_shared_are_paired():
    common = runs(5.0, 3.0)
    paired = {"a": common + runs(-1.0, 0.1, seed=1), "b": common}
    assert judge(claim(), paired).outcome == "held"
    assert judge(claim(), {**paired, "b": common[::-1]}).outcome == "too close to call"


def test_one_seed_is_too_close_to_call_whatever_its_values():
    for gap in (-5.0, 5.0):
        result = judge(claim(), {"a": [[1.0 + gap]], "b": [[1.0]]}, "paper", "ubc", seeds=(0,))
        assert result.outcome == "too close to call"
        assert result.observed == pytest.approx(gap)
        assert (result.low, result.high) == (None, None)
        assert result.seeds_needed == "2 or more"
        assert "one seed" in result.text()


@pytest.mark.parametrize(
    ("profile", "data", "gap", "outcome"),
    [
        ("paper", "ubc", -0.2, "reproduced"),
        ("paper", "ubc", -0.05, "not reproduced"),
        ("paper", "ubc", 0.2, "not reproduced"),
        ("paper", "mini", -0.2, "held"),
        ("quick", "ubc", -0.2, "held"),
        ("quick", "mini", -0.2, "held"),
        ("quick", "mini", 0.2, "did not hold"),
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
    assert judge(on_hpatches, values, "paper", "ubc").outcome == "held"
    assert judge(on_hpatches, values, "paper", "ubc+hpatches").outcome == "reproduced"


def test_a_difference_equal_to_the_margin_does_not_hold():
    at = {"a": np.zeros((5, 1)), "b": np.full((5, 1), 0.5)}
    assert judge(claim(margin=0.5), at).outcome == "did not hold"
    assert judge(claim(margin=0.499), at).outcome == "held"


def test_of_several_rivals_the_one_that_stands_in_the_way_decides():
    values = {"a": runs(1.0, 0.1), "b": runs(9.0, 0.1, seed=1), "c": runs(2.0, 5.0, seed=2)}
    both = claim(b=("b", "c"))
    result = judge(both, {**values, "d": runs(1.5, 0.1)})
    assert (result.outcome, result.rival) == ("too close to call", "c")
    surer = judge(both, {**values, "c": runs(2.0, 0.1, seed=2)})
    assert (surer.outcome, surer.rival) == ("held", "c")
    ahead = judge(both, {**values, "c": runs(-1.0, 0.1, seed=2)})
    assert (ahead.outcome, ahead.rival) == ("did not hold", "c")
    # Two methods of the claim: the worse of them, and its name.
    labelled = {**values, "c": Measured(runs(2.0, 0.1, seed=2), label="C"), "d": runs(1.5, 0.1, seed=3)}
    assert judge(claim(a=("a", "d"), b=("b", "c")), labelled).rival == "C of d"


def test_a_difference_in_each_cell_is_decided_by_the_cell_that_fares_worst():
    each = claim(statistic="each_difference", margin=0.0)
    b = np.zeros(3)

    def a(*means: float) -> Measured:
        return Measured(
            np.hstack([runs(m, 0.1, seed=i) for i, m in enumerate(means)]), None, 1, tuple("xyz")
        )

    result = judge(each, {"a": a(-3.0, -1.0, -2.0), "b": b})
    assert (result.outcome, result.rival) == ("held", "b in y")
    assert result.observed == pytest.approx(-1.0)
    lost = judge(each, {"a": a(-3.0, 1.0, -2.0), "b": b})
    assert (lost.outcome, lost.rival) == ("did not hold", "b in y")
    assert "3 intervals that hold together" in lost.why
    # Half an interval is 0.124 of one cell, and 0.178 of three that hold together.
    unsure = judge(each, {"a": a(-3.0, 0.15, -2.0), "b": b})
    # So the interval that is shown is one that holds 0.
    assert unsure.outcome == "too close to call"
    assert (unsure.low, unsure.high) == pytest.approx((0.15 - 0.178, 0.15 + 0.178), abs=1e-3)
    assert "3 intervals that hold together" in unsure.why
    alone = judge(each, {"a": a(-3.0, 0.1, -2.0), "b": b})
    assert alone.low == pytest.approx(0.1 - 0.124, abs=1e-3)
    assert "together" not in alone.why
    assert judge(each, {"a": a(-3.0, -0.15, -2.0), "b": b}).outcome == "held"


def test_a_largest_gain_needs_one_cell_that_reaches_it():
    gain = claim(statistic="largest_relative_gain", direction="at_least", margin=8)
    b = np.full((5, 2), 4.0)
    reached = judge(gain, {"a": np.hstack([runs(3.0, 0.01), runs(4.0, 0.01)]), "b": b})
    assert (reached.outcome, reached.observed) == ("held", pytest.approx(25.0))
    missed = judge(gain, {"a": np.hstack([runs(3.9, 0.01), runs(4.0, 0.01)]), "b": b})
    assert (missed.outcome, missed.observed) == ("did not hold", pytest.approx(2.5))
    unsure = judge(gain, {"a": np.hstack([runs(3.8, 0.01), runs(4.5, 1.0)]), "b": b})
    # 5% for sure in one cell; what is not decided is the other, at -12.5% by far fewer sure points.
    assert (unsure.outcome, unsure.observed) == ("too close to call", pytest.approx(-12.5))


def test_a_share_lies_between_the_cells_that_are_surely_won_and_not_surely_lost():
    share = claim(statistic="share_better", better="higher", direction="greater", margin=0.5)
    b = np.zeros(4)

    def shown(*means: float):
        a = np.hstack([runs(m, 0.1, seed=i) for i, m in enumerate(means)])
        return judge(share, {"a": a, "b": b})

    assert shown(1.0, 1.0, 1.0, -1.0).outcome == "held"
    assert shown(1.0, 1.0, -1.0, -1.0).outcome == "did not hold"
    unsure = shown(1.0, 1.0, 0.05, -1.0)
    assert (unsure.low, unsure.observed, unsure.high) == (0.5, 0.75, 0.75)
    assert unsure.outcome == "too close to call"
    # One more cell has to be decided, at 98.75%: 0.05 > 2.669 × 0.1 / √29 = 0.0496, but not √28.
    assert unsure.seeds_needed == "29"
    lower = replace(share, better="lower")
    assert judge(lower, {"a": runs(1.0, 0.1, cells=4), "b": b}).outcome == "did not hold"


def test_a_share_is_of_the_cells_in_which_every_rival_is_beaten():
    share = claim(statistic="share_better", better="higher", direction="greater", margin=0.5)
    three = replace(share, b=("b", "c"))
    values = {"a": [9.0, 9.0, 9.0, 1.0], "b": [1.0, 9.0, 2.0, 5.0], "c": [2.0, 1.0, 8.0, 0.0]}
    result = judge(three, values)
    assert (result.observed, result.outcome, result.rival) == (0.5, "did not hold", "b")


def test_a_sum_is_of_all_its_methods_and_paired_by_seed():
    gains = claim(statistic="sum_difference", a=("a", "d"), b=("b", "c"))
    noise = runs(0.0, 5.0)
    values = {"a": 1 + noise, "d": runs(2.0, 0.1), "b": 4 + noise, "c": runs(3.0, 0.1, seed=1)}
    result = judge(gains, values)
    assert (result.observed, result.outcome) == (pytest.approx(-4.0), "held")
    twice = claim(statistic="sum_difference", a=("a", "d"), b=("b", "b"))
    assert judge(twice, values).observed == pytest.approx(1 + 2 - 8)


def test_a_share_of_a_gain_has_no_verdict_where_there_is_no_gain():
    [half] = [c for c in read_claims() if c.id == "adasample-s52-squared-half"]
    hardnet = runs(20.0, 0.1)
    squared = {"hardnet_aug_gen": hardnet, "rung_squared": hardnet - 3}
    # All that AdaSample changes makes it worse, or no better for sure.
    for ours in (hardnet + 4, runs(19.99, 0.5, seed=1)):
        result = judge(half, {**squared, "adasample_aug_gen": ours})
        assert result.outcome == "no verdict"
        assert result.observed is None
        assert "no sure gain: adasample_aug_gen gains" in result.text()
    held = judge(half, {**squared, "adasample_aug_gen": hardnet - 4})
    assert held.outcome == "held"
    assert held.text().endswith("5 seeds; written down when the evening's ladder had been seen)")
    one = {key: np.array([[value]]) for key, value in zip("abc", (1.0, 2.0, 3.0), strict=True)}
    unknown = claim(statistic="sum_difference", a=("a",), b=("b",), given=("a", "c"))
    assert "one seed gives no interval" in judge(unknown, one, seeds=(0,)).why


def test_a_computation_names_neither_profile_nor_data_nor_seeds():
    most = claim(statistic="maximum", direction="at_most", margin=1.0, b=())
    computed = judge(most, {"a": np.array([0.5])}, seeds=())
    assert computed.text() == "held (computed, no seeds)"
    # What was trained says its seeds all the same.
    trained = judge(most, {"a": np.full((2, 1), 0.5)}, seeds=())
    assert trained.text() == "held (quick profile, mini data, 2 seeds)"


def test_every_claim_that_compares_gains_names_the_gain_it_needs():
    for c in read_claims():
        assert bool(c.given) == (c.statistic == "sum_difference"), c.id


def test_a_given_gain_is_in_the_sense_of_better():
    gains = claim(statistic="sum_difference", given=("a", "b"), better="higher", direction="greater")
    assert judge(gains, {"a": runs(2.0, 0.1), "b": np.zeros(1)}).outcome == "held"
    assert judge(gains, {"a": runs(-2.0, 0.1), "b": np.zeros(1)}).outcome == "no verdict"
    assert judge(replace(gains, better="lower"), {"a": runs(2.0, 0.1), "b": [0.0]}).observed is None


def test_fewer_cells_than_are_printed_are_said():
    [each] = [c for c in read_claims() if c.id == "adasample-t1-plus-star-each"]
    values = {"adasample_aug_gen": runs(1.0, 0.01, 2), "hardnet_aug_gen": runs(2.0, 0.01, 2)}
    some = {key: Measured(of, cells=COLUMN_NAMES[:2]) for key, of in values.items()}
    result = judge(each, some)
    assert (result.outcome, result.part) == ("held", "2 of 6 columns")
    assert "held: 2 of 6 columns" in result.text()
    whole = {key: np.tile(of, 3) for key, of in values.items()}
    assert judge(each, whole).part == ""
    assert "columns" not in judge(each, whole).text()


def test_cells_without_a_spread_over_what_was_tested_are_named():
    draws = np.random.default_rng(0).normal(0, 0.01, (1, 5, 2, 400)) * np.array([[0.0], [1.0]])

    def measured(mean: float, cells: slice = slice(0, 2)) -> Measured:
        names = ("verification", "matching")[cells]
        return Measured(runs(mean, 0.1, 2)[:, cells], draws[:, :, cells], cells=names)

    mean = judge(claim(), {"a": measured(-1.0), "b": measured(1.0)})
    assert mean.why == "verification over seeds alone"
    first, second = slice(0, 1), slice(1, 2)
    assert judge(claim(), {"a": measured(-1, first), "b": measured(1, first)}).why == "over seeds alone"
    assert judge(claim(), {"a": measured(-1, second), "b": measured(1, second)}).why == ""
    # A share is over what any of its cells is over.
    share = claim(statistic="share_better", direction="greater", margin=0.5)
    sure = Measured(np.zeros(2), np.zeros((1, 2, 400)))
    shown = judge(share, {"a": replace(measured(0), values=runs(-0.05, 0.1, 2)), "b": sure})
    assert shown.over == "seeds and tests"


def test_the_cells_of_a_share_hold_together():
    share = claim(statistic="share_better", better="higher", direction="greater", margin=0.5)
    # Of one cell half an interval is 0.124 at 95%, and 0.208 at 98.75%, one of four.
    for mean, low, high in ((0.3, 1.0, 1.0), (0.15, 0.0, 1.0), (-0.15, 0.0, 1.0), (-0.3, 0.0, 0.0)):
        result = judge(share, {"a": runs(mean, 0.1, 4), "b": np.zeros(4)})
        ends = (result.observed,) * 2 if result.low is None else (result.low, result.high)
        assert ends == (low, high)


def test_a_relative_difference_is_in_percent_of_the_second():
    same = claim(statistic="relative_difference", direction="within", margin=2.9, unit="percent")
    near = judge(same, {"a": runs(25.3, 0.2), "b": np.full(1, 25.0)})
    assert (near.outcome, near.observed) == ("held", pytest.approx(1.2))
    far = judge(same, {"a": runs(22.0, 0.2), "b": np.full(1, 25.0)})
    assert (far.outcome, far.observed) == ("did not hold", pytest.approx(-12.0))


def test_the_margin_at_lambda_0_is_half_of_the_printed_gain():
    [same] = [c for c in read_claims() if c.id == "adasample-s54-lambda-0"]
    table = printed_by_column(printed("adasample", "table1")).droplevel("label")[list(COLUMN_NAMES)]
    ours, theirs = (table.loc[key].mean() for key in ("adasample_aug_gen", "hardnet_aug_gen"))
    assert same.margin == pytest.approx(50 * (theirs - ours) / theirs, abs=0.05)


def test_within_a_margin_is_held_only_by_an_interval_that_lies_inside():
    within = claim(direction="within", margin=0.5)
    for mean, spread, outcome in (
        (0.1, 0.1, "held"),
        (-0.1, 2.0, "too close to call"),
        (2.0, 0.1, "did not hold"),
        (-2.0, 0.1, "did not hold"),
    ):
        assert judge(within, {"a": runs(mean, spread), "b": np.zeros(1)}).outcome == outcome


def test_a_ratio_of_deviations_is_judged_by_fishers_interval():
    ratio = claim(statistic="deviation_ratio", direction="at_most", margin=1, unit="times")
    few = judge(ratio, {"a": runs(1.0, 1.0), "b": runs(2.0, 2.0, seed=1)})
    assert (few.outcome, few.observed) == ("too close to call", pytest.approx(0.5))
    assert int(few.seeds_needed) > 5
    clear = judge(ratio, {"a": runs(1.0, 0.1), "b": runs(2.0, 2.0, seed=1)})
    assert clear.outcome == "held"
    one = judge(ratio, {"a": [[1.0]], "b": [[2.0]]}, seeds=(0,))
    assert (one.outcome, one.observed, one.seeds_needed) == ("too close to call", None, "2 or more")


def test_minima_and_counts_are_about_the_very_runs():
    count = claim(statistic="count_below_0.05", b=(), direction="at_least", margin=2)
    assert judge(count, {"a": [0.01, 0.05, 0.04]}).observed == 2
    assert judge(count, {"a": [0.01, 0.05, 0.04]}).outcome == "held"
    assert judge(replace(count, margin=3), {"a": [0.01, 0.05, 0.04]}).outcome == "did not hold"
    never = claim(statistic="maximum", b=(), direction="at_most", margin=0.0)
    assert judge(never, {"a": [[0.0, 0.0]]}, seeds=(0,)).outcome == "held"
    lost = judge(never, {"a": [[0.0, 0.01]]}, seeds=(0,))
    assert (lost.outcome, lost.observed) == ("did not hold", 0.01)


def test_a_minimum_with_resamples_is_judged_by_each_runs_own_interval():
    above = claim(statistic="minimum", b=(), direction="greater", margin=0.8)
    values = np.array([[0.9, 0.85]])

    def spread(deviation: float) -> dict:
        draws = np.random.default_rng(0).normal(0, deviation, (1, 1, 2, 400))
        return {"a": Measured(values, values[None, ..., None] + draws)}

    assert judge(above, spread(0.01), seeds=(0,)).outcome == "held"
    unsure = judge(above, spread(0.04), seeds=(0,))
    assert (unsure.outcome, unsure.observed) == ("too close to call", 0.85)
    assert unsure.seeds_needed == "more test points, not seeds"


@given(
    st.lists(st.lists(st.floats(0, 50), min_size=4, max_size=4), min_size=5, max_size=5),
    st.lists(st.lists(st.floats(0, 50), min_size=4, max_size=4), min_size=5, max_size=5),
)
@settings(deadline=None, max_examples=30)
def test_statistics_equal_their_definition_written_as_loops(a, b):
    mean = lambda rows, cell: sum(row[cell] for row in rows) / len(rows)  # noqa: E731
    gaps = [mean(a, cell) - mean(b, cell) for cell in range(4)]
    values = {"a": a, "b": b}
    assert judge(claim(), values).observed == pytest.approx(sum(gaps) / 4, abs=1e-9)
    each = judge(claim(statistic="each_difference"), values).observed
    assert any(each == pytest.approx(gap, abs=1e-9) for gap in gaps)
    low = judge(claim(statistic="minimum", b=(), direction="greater"), values).observed
    assert low == min(min(row) for row in a)


def test_a_method_that_was_not_asked_for_leaves_the_claim_without_a_verdict():
    result = judge(claim(), {"a": [1.0]})
    assert (result.outcome, result.observed) == ("no verdict", None)
    assert "no values of b" in result.text()
    assert result.observation() == ""


def test_a_claim_that_no_run_can_decide_says_why():
    result = judge(claim(statistic="none", direction="", a=(), b=(), why="it is algebra"), {})
    assert result.text() == "no verdict: it is algebra"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"a": [np.nan], "b": [1.0]}, "values hold one that is not finite"),
        ({"a": [1.0, 2.0], "b": [1.0]}, "differ in their number of cells"),
    ],
)
def test_values_that_do_not_fit_are_refused(values, message):
    with pytest.raises(ValueError, match=message):
        judge(claim(), values)


def test_a_verdict_counts_the_seeds_of_the_method_that_has_the_fewest():
    result = judge(claim(), {"a": runs(0.0, 1.0), "b": runs(1.0, 1.0)[:3]})
    assert result.seeds == 3


def test_a_rival_with_one_seed_is_judged_by_the_same_seed_of_the_method():
    three, one = [[1.0], [2.0], [9.0]], [[3.0]]
    for values in (
        {"a": three, "b": one},
        {"a": Measured(three, seeds=(4, 5, 6)), "b": Measured(one, seeds=(4,))},
    ):
        result = judge(claim(), values, seeds=SEEDS[:3])
        assert (result.observed, result.seeds, result.low) == (-2.0, 1, None)
        assert result.why == "one seed gives no interval; over seeds alone"
    last = {"a": Measured(three, seeds=(4, 5, 6)), "b": Measured(one, seeds=(6,))}
    assert judge(claim(), last).observed == 6.0
    share = claim(statistic="share_better", direction="greater", margin=0.5)
    assert judge(share, {"a": three, "b": one}).observed == 1.0


def test_claims_are_unique_and_say_what_counts_against_them():
    claims = read_claims()
    assert len({c.id for c in claims}) == len(claims)
    for c in claims:
        assert c.sentence.endswith(".")
        assert c.quote
        if c.why:
            assert c.needed() == c.counts_against == ""
        else:
            assert c.counts_against.endswith(".")
            assert c.needed().split()[0] in ("below", "above", "at", "within")


def test_every_table_and_figure_of_results_in_adasample_has_claims():
    artefacts = {c.artefact for c in read_claims("adasample")}
    assert {"Table 1", "Table 2", "Table 3", "Figure 2", "Figure 3"} <= artefacts


def test_an_artefact_without_claims_is_refused_and_those_there_are_named():
    with pytest.raises(ValueError, match="no claim of adasample, Table 9; there are: adasample, F"):
        read_claims("adasample", "Table 9")


@pytest.mark.parametrize("c", read_claims(), ids=lambda c: c.id)
def test_a_claim_has_a_rule_that_fits_or_says_why_there_is_none(c):
    compared = c.statistic in (*PAIRED, "sum_difference", "relative_difference", "deviation_ratio")
    alone = c.statistic in SINGLE or c.statistic.startswith(COUNT_BELOW)
    assert c.kind in ("claim", "reading")
    assert c.better in ("lower", "higher")
    assert c.margin >= 0
    assert len(c.given) in (0, 2)
    assert bool(c.why) == (c.statistic == NONE)
    assert compared or alone or c.why
    assert c.why or c.direction in DIRECTIONS
    assert bool(c.a) == (not c.why)
    assert bool(c.b) == compared
    assert c.statistic != "share_better" or len(c.a) == 1


def test_the_papers_own_numbers_bear_out_its_claims_on_generation_and_sampling():
    table = printed_by_column(printed("adasample", "table1"))
    rows = table.droplevel("label")[list(COLUMN_NAMES)]
    values = {key: Measured(row.to_numpy(), cells=COLUMN_NAMES) for key, row in rows.iterrows()}
    found = [
        verdict(c, values, SEEDS, "paper", "ubc")
        for c in read_claims("adasample", "Table 1")
        if all(key in values for key in (*c.a, *c.b))
    ]
    assert len(found) == 10
    assert {v.outcome for v in found} == {"reproduced"}
    # What is printed of them is what they say themselves.
    assert [v.printed for v in found] == pytest.approx([v.observed for v in found])


def test_table_2_as_printed_does_not_bear_out_that_lambda_10_is_best_in_most_cases():
    table = printed("adasample", "table2")
    values = {key: rows["value"].to_numpy() for key, rows in table.groupby("key")}
    values |= {loss: rows["value"].to_numpy() for loss, rows in table.groupby("loss")}
    found = {
        c.id.removeprefix("adasample-t2-"): verdict(c, values, SEEDS, "paper", "ubc+hpatches")
        for c in read_claims("adasample", "Table 2")
    }
    assert {key: v.outcome for key, v in found.items()} == {
        "lambda-10-aht": "not reproduced",
        "lambda-10-ht": "not reproduced",
        "hardest-aht": "reproduced",
        "hardest-ht": "reproduced",
        "angular": "reproduced",
    }
    assert found["lambda-10-aht"].observed == pytest.approx(1 / 3)
    assert found["lambda-10-ht"].observed == 0
    assert found["angular"].observed == pytest.approx(13 / 18)
    assert [v.printed for v in found.values()] == pytest.approx([v.observed for v in found.values()])


def test_the_printed_value_is_of_the_rival_and_the_columns_that_ours_is_of():
    c = next(c for c in read_claims() if c.id == "adasample-t1-best")
    random = np.random.default_rng(0)
    values = {key: random.normal(9.0, 0.1, (5, 6)) for key in c.b}
    values |= {"hardnet_aug": random.normal(3.0, 0.1, (5, 6)), "adasample_aug_gen": np.ones((5, 6))}
    result = judge(c, values)
    assert result.rival == "hardnet_aug"
    assert result.printed == pytest.approx(7.03 / 6 - 9.11 / 6)
    unprinted = judge(c, {**values, "rootsift": np.full(6, 2.0)})
    assert (unprinted.rival, unprinted.printed) == ("rootsift", None)
    some = {key: Measured(of[:, :2], cells=COLUMN_NAMES[2:4]) for key, of in values.items()}
    assert judge(c, some).printed == pytest.approx((0.40 + 0.63 - 0.53 - 0.78) / 2)


def test_verdicts_print_as_two_or_three_paragraphs_within_the_width(capsys):
    claims = read_claims("adasample")
    results = [judge(c, {}) for c in claims]
    show_verdicts(results, width=90)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 90
    assert sum(line.startswith(("Claim: ", "Reading: ")) for line in lines) == len(results)
    assert sum(line.startswith("   no verdict: ") for line in lines) == len(results)
    rounded = judge(claim(b=("b", "c")), {"a": runs(-1.0, 0.1), "b": [0.0], "c": [0.5]})
    show_verdicts([replace(rounded, printed=-0.07)])
    assert capsys.readouterr().out.splitlines() == [
        "Claim: A is lower than B.",
        "   -1 points (95% over seeds: -1.124 to -0.876) against b; printed: -0.07; to hold: below -0.1",
        "   points",
        "   held: over seeds alone (quick profile, mini data, 5 seeds)",
    ]


def test_a_table_of_verdicts_holds_a_row_a_claim_with_numbers_or_nothing():
    values = {"a": np.zeros((5, 2)), "b": np.ones((5, 2))}
    table = verdict_table([judge(claim(), values), judge(claim(), {})])
    assert table["observed"].isna().tolist() == [False, True]
    assert table["verdict"].tolist() == ["held", "no verdict"]
    assert table["kind"].tolist() == ["claim", "claim"]
    assert " ".join(table.columns) == (
        "claim paper artefact sentence kind needed observed low high printed rival unit profile data "
        "seeds part seeds_needed verdict why seen"
    )
