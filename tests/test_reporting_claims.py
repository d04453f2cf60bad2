"""Claims: fixed rows and the rule that turns values into a verdict."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reporting_records import verdict

from lib.statistics.intervals import Measured
from lib.study import claims
from lib.study.claims import NONE, SINGLE, Claim, read_claims
from lib.study.printed import printed
from lib.study.report.frames import COLUMN_NAMES, printed_by_column

SEEDS = (0, 1, 2, 3, 4)


def claim(**changes: object) -> Claim:
    texts = dict.fromkeys(("quote", "printed", "counts_against", "why"), "")
    basis = Claim(
        **{"id": "x", "paper": "adasample", "artefact": "Table 1", "kind": "claim"},
        **{"sentence": "A is lower than B.", "statistic": "mean_difference", "metric": "fpr95"},
        **{"unit": "points", "better": "lower", "a": ("a",), "b": ("b",), "direction": "less"},
        **{"margin": 0.1, "own_data": "ubc", **texts},
    )
    return replace(basis, **changes)


def ratio_claim(**changes: object) -> Claim:
    return claim(**{"unit": "ratio", "margin": 1.0135} | changes)


def judge(row: Claim, values: dict, profile: str = "evening", data: str = "mini", seeds=SEEDS):
    return verdict(row, values, seeds, profile, data)


def claim_by_id(claim_id: str) -> Claim:
    return next(c for c in read_claims() if c.id == claim_id)


def runs(mean: float, spread: float, cells: int = 1, seed: int = 0) -> np.ndarray:
    """Return five seeds with exactly this mean and standard deviation in every cell."""
    values = np.random.default_rng(seed).normal(size=(5, cells))
    values = (values - values.mean(axis=0)) / values.std(axis=0, ddof=1)
    return mean + spread * values


def by_cell(*means: float, spread: float = 0.1) -> np.ndarray:
    return np.hstack([runs(mean, spread, seed=seed) for seed, mean in enumerate(means)])


@pytest.mark.parametrize(
    ("gap", "outcome"), [(-1.0, "held"), (-0.3, "open"), (0.0, "open"), (0.4, "did not hold")]
)
def test_a_difference_counts_when_its_interval_excludes_the_margin(gap, outcome):
    # Half an interval is 2.776 × 0.3 / √5 = 0.372.
    result = judge(claim(), {"a": runs(gap, 0.3), "b": np.zeros(1)})
    assert (result.outcome, result.observed) == (outcome, pytest.approx(gap))
    assert (result.low, result.high) == pytest.approx((gap - 0.3725, gap + 0.3725), abs=1e-3)


def test_test_points_may_leave_open_a_claim_that_seeds_decide():
    draws = np.random.default_rng(0).normal(0, 0.5, (1, 5, 1, 400))
    points = {"a": Measured(runs(-0.3, 0.01), draws), "b": Measured(np.zeros(1), np.zeros((1, 1, 400)))}
    result = judge(claim(), points)
    assert (result.outcome, result.over) == ("open", "seeds and tests")
    seeds_only = judge(claim(), {"a": runs(-0.3, 0.01), "b": np.zeros(1)})
    assert (seeds_only.outcome, seeds_only.over) == ("held", "seeds")


def test_seeds_that_are_shared_are_paired():
    common = runs(5.0, 3.0)
    paired = {"a": common + runs(-1.0, 0.1, seed=1), "b": common}
    assert judge(claim(), paired).outcome == "held"
    assert judge(claim(), {**paired, "b": common[::-1]}).outcome == "open"


def test_one_seed_leaves_a_claim_open_whatever_its_values():
    for gap in (-5.0, 5.0):
        result = judge(claim(), {"a": [[1.0 + gap]], "b": [[1.0]]}, "paper", "ubc", seeds=(0,))
        assert (result.outcome, result.why) == ("open", "one seed gives no interval")
        assert (result.observed, result.low, result.high) == (pytest.approx(gap), None, None)


@pytest.mark.parametrize(
    ("profile", "data", "gap", "outcome"),
    [
        ("paper", "ubc", -0.2, "reproduced"),
        ("paper", "ubc", 0.05, "not reproduced"),
        ("paper", "mini", -0.2, "held"),
        ("evening", "ubc", -0.2, "held"),
        ("standard", "mini", 0.2, "did not hold"),
        ("quick", "ubc", -0.2, "not judged"),
        ("quick", "mini", 0.2, "not judged"),
    ],
)
def test_a_verdict_depends_on_the_size_of_runs_and_their_data(profile, data, gap, outcome):
    values = {"a": np.full((5, 6), 1.0 + gap), "b": np.full((5, 6), 1.0)}
    result = judge(claim(), values, profile, data)
    assert (result.outcome, result.observed) == (outcome, pytest.approx(gap))
    assert (result.profile, result.data, result.seeds) == (profile, data, 5)
    assert ("shows numbers, not verdicts" in result.why) == (profile == "quick")


def test_a_claim_about_hpatches_is_not_decided_by_training_data_alone():
    values = {"a": np.zeros((5, 3)), "b": np.ones((5, 3))}
    on_hpatches = claim(own_data="ubc+hpatches")
    assert judge(on_hpatches, values, "paper", "ubc").outcome == "held"
    assert judge(on_hpatches, values, "paper", "ubc+hpatches").outcome == "reproduced"


def test_values_computed_without_training_are_judged_at_any_size():
    maximum = claim(statistic="maximum", direction="at_most", margin=1.0, b=())
    computed = judge(maximum, {"a": np.array([0.5])}, "quick", seeds=())
    assert (computed.outcome, computed.seeds) == ("held", 0)
    # Runs count as runs even if no seeds are named, and so does a test of runs.
    assert judge(maximum, {"a": np.full((2, 1), 0.5)}, "quick", seeds=()).outcome == "not judged"
    assert judge(maximum, {"a": np.array([0.5])}, "quick").outcome == "not judged"


def test_a_difference_equal_to_the_margin_does_not_hold():
    at = {"a": np.zeros((5, 1)), "b": np.full((5, 1), 0.5)}
    assert judge(claim(margin=0.5), at).outcome == "did not hold"
    assert judge(claim(margin=0.499), at).outcome == "held"
    assert judge(claim(margin=0.0), {**at, "b": at["a"]}).outcome == "did not hold"


def test_the_rival_that_is_hardest_to_beat_decides():
    values = {"a": runs(1.0, 0.1), "b": runs(9.0, 0.1, seed=1), "d": runs(1.5, 0.1, seed=3)}
    two_rivals = claim(b=("b", "c"))
    for mean, spread, outcome in ((2.0, 5.0, "open"), (2.0, 0.1, "held"), (-1.0, 0.1, "did not hold")):
        result = judge(two_rivals, {**values, "c": runs(mean, spread, seed=2)})
        assert (result.outcome, result.rival) == (outcome, "c")
    # Of two methods of the claim, the worse decides and is named.
    labelled = {**values, "c": Measured(runs(2.0, 0.1, seed=2), label="C")}
    assert judge(claim(a=("a", "d"), b=("b", "c")), labelled).rival == "C against d"


def test_a_difference_in_each_cell_is_decided_by_the_cell_that_fares_worst():
    cellwise = claim(statistic="each_difference", margin=0.0)

    def judged(*means: float):
        return judge(cellwise, {"a": Measured(by_cell(*means), cells=tuple("xyz")), "b": np.zeros(3)})

    result = judged(-3.0, -1.0, -2.0)
    assert (result.outcome, result.rival, result.observed) == ("held", "b in y", pytest.approx(-1.0))
    lost = judged(-3.0, 1.0, -2.0)
    assert (lost.outcome, lost.rival) == ("did not hold", "b in y")
    assert lost.why == "one of 3 simultaneous intervals"
    # Half an interval is 0.124 for one cell and 0.178 for three simultaneous ones. The interval shown
    # is one that holds 0.
    undecided = judged(-3.0, 0.15, -2.0)
    assert (undecided.outcome, undecided.low) == ("open", pytest.approx(0.15 - 0.178, abs=1e-3))
    narrow = judged(-3.0, 0.1, -2.0)
    assert (narrow.outcome, narrow.low) == ("open", pytest.approx(0.1 - 0.124, abs=1e-3))
    assert judged(-3.0, -0.15, -2.0).outcome == "held"


def test_any_one_cell_is_enough():
    gain = ratio_claim(statistic="any_difference", direction="at_most", margin=0.92)
    for first, second, spread, outcome, observed in (
        (3.0, 4.0, 0.01, "held", 0.75),
        (3.9, 4.0, 0.01, "did not hold", 0.975),
        # 5% for sure in one cell; the other, with far fewer sure points, is undecided.
        (3.8, 4.5, 1.0, "open", 1.1),
    ):
        a = np.hstack([runs(first, 0.01), runs(second, spread)])
        result = judge(gain, {"a": a, "b": np.full((5, 2), 4.0)})
        assert (result.outcome, result.observed) == (outcome, pytest.approx(observed, abs=0.03))


def test_most_cells_means_more_than_half_and_each_against_every_rival():
    most = claim(statistic="most_difference", direction="greater", margin=0)

    def judged(*means: float):
        return judge(most, {"a": by_cell(*means), "b": np.zeros(4)})

    assert judged(1.0, 1.0, 1.0, -1.0).outcome == "held"
    assert judged(1.0, 1.0, -1.0, -1.0).outcome == "did not hold"
    assert judged(1.0, 1.0, 0.05, -1.0).outcome == "open"
    # Half an interval of one cell is 0.124 at 95%, and 0.208 at 98.75%, as one of four.
    for mean, outcome in ((0.3, "held"), (0.15, "open"), (-0.15, "open"), (-0.3, "did not hold")):
        assert judged(*[mean] * 4).outcome == outcome
    values = {"a": [9.0, 9.0, 9.0, 1.0], "b": [1.0, 9.0, 2.0, 5.0], "c": [2.0, 1.0, 8.0, 0.0]}
    result = judge(replace(most, b=("c", "b")), values)
    assert (result.outcome, result.observed, result.rival) == ("did not hold", 0.0, "b")


def test_a_sum_is_of_all_its_methods_and_paired_by_seed():
    gains = claim(statistic="sum_difference", a=("a", "d"), b=("b", "c"))
    noise = runs(0.0, 5.0)
    values = {"a": 1 + noise, "d": runs(2.0, 0.1), "b": 4 + noise, "c": runs(3.0, 0.1, seed=1)}
    result = judge(gains, values)
    assert (result.observed, result.outcome) == (pytest.approx(-4.0), "held")
    assert judge(replace(gains, b=("b", "b")), values).observed == pytest.approx(1 + 2 - 8)


def test_a_share_of_a_gain_is_not_judged_where_there_is_no_gain():
    half, hardnet = claim_by_id("adasample-s52-squared-half"), runs(20.0, 0.1)
    squared = {"hardnet_aug_gen": hardnet, "rung_squared": hardnet - 3}
    # All changes of AdaSample together make it worse, or not certainly better.
    for ours, profile in product((hardnet + 4, runs(19.99, 0.5, seed=1)), ("evening", "quick")):
        result = judge(half, {**squared, "adasample_aug_gen": ours}, profile)
        assert (result.outcome, result.observed) == ("not judged", None)
        assert "gain of adasample_aug_gen over hardnet_aug_gen" in result.why
    assert judge(half, {**squared, "adasample_aug_gen": hardnet - 4}).outcome == "held"
    single = {key: np.array([[value]]) for key, value in zip("abc", (1.0, 2.0, 3.0), strict=True)}
    unknown = claim(statistic="sum_difference", given=("a", "c"))
    assert judge(unknown, single, seeds=(0,)).outcome == "not judged"
    higher = claim(statistic="sum_difference", given=("a", "b"), better="higher", direction="greater")
    assert judge(higher, {"a": runs(2.0, 0.1), "b": np.zeros(1)}).outcome == "held"
    assert judge(higher, {"a": runs(-2.0, 0.1), "b": np.zeros(1)}).outcome == "not judged"


def test_fewer_cells_than_are_printed_are_counted():
    cellwise = claim_by_id("adasample-t1-plus-star-each")
    values = {"adasample_aug_gen": runs(1.0, 0.01, 2), "hardnet_aug_gen": runs(2.0, 0.01, 2)}
    partial = {key: Measured(rates, cells=COLUMN_NAMES[:2]) for key, rates in values.items()}
    assert judge(cellwise, partial).part == "2 of 6 columns"
    assert judge(cellwise, {key: np.tile(rates, 3) for key, rates in values.items()}).part == ""


def test_a_ratio_of_geometric_means_paired_by_seed_equals_that_of_loops():
    random = np.random.default_rng(0)
    a, b = np.exp(random.normal(0.0, 0.3, (5, 6))), np.exp(random.normal(1.0, 0.3, (5, 6)))
    logs = [sum(math.log(a[s, c]) - math.log(b[s, c]) for c in range(6)) / 6 for s in range(5)]
    mean = sum(logs) / 5
    error = math.sqrt(sum((log - mean) ** 2 for log in logs) / 4 / 5)
    # Student's quantile of four degrees of freedom.
    low, high = (math.exp(mean + sign * 2.7764451 * error) for sign in (-1, 1))
    result = judge(ratio_claim(), {"a": a, "b": b})
    assert (result.observed, result.low, result.high) == pytest.approx((math.exp(mean), low, high))
    points = sum(a[s, c] - b[s, c] for s in range(5) for c in range(6)) / 30
    assert (result.outcome, result.points) == ("held", pytest.approx(points))
    # Rates of harder tests, all times 7, change only the points.
    harder = judge(ratio_claim(), {"a": 7 * a, "b": 7 * b})
    assert (harder.observed, harder.low) == pytest.approx((result.observed, result.low))


def test_a_margin_of_a_ratio_is_a_factor():
    for margin, direction, mean, outcome in (
        *(
            (1.0135, "less", 0.98, "held"),
            (1.0135, "less", 0.99, "open"),
            (1.0135, "less", 1.01, "did not hold"),
        ),
        *(
            (1.0135, "greater", 1.02, "held"),
            (1.05, "within", 0.97, "held"),
            (1.05, "within", 0.9, "did not hold"),
        ),
        *(
            (1.15, "at_most", 1.1, "held"),
            (1.15, "at_most", 1.2, "did not hold"),
            (1.15, "at_most", 1.155, "open"),
        ),
    ):
        values = {"a": np.full((5, 1), 4 * mean), "b": np.full((5, 1), 4.0)}
        judged = judge(ratio_claim(direction=direction, margin=margin), values)
        assert (judged.outcome, judged.observed) == (outcome, pytest.approx(mean)), (margin, mean)
    assert ratio_claim().needed() == "below 0.9867 ratio"
    assert ratio_claim(direction="within", margin=1.05).needed() == "from 0.9524 to 1.05 ratio"


def test_a_verdict_by_the_margin_alone_is_open():
    # Half an interval is 0.124: from -0.114 to 0.010, below a margin of 0.02 but on both sides of 0.
    gain = claim(direction="greater", margin=0.02)
    result = judge(gain, {"a": runs(-0.104 - 0.01, 0.1), "b": np.zeros(1)})
    assert (result.outcome, result.why) == ("open", "the verdict would change if the margin were zero")
    assert judge(gain, {"a": runs(-0.13, 0.1), "b": np.zeros(1)}).outcome == "did not hold"
    highest = claim(statistic="maximum", b=(), direction="at_most", margin=1)
    assert judge(highest, {"a": [1]}).outcome == "held"
    lowest = claim(statistic="minimum", b=(), direction="greater", margin=0.05)
    for value, outcome in ((0.0473, "open"), (0.03, "did not hold"), (0.052, "open"), (0.07, "held")):
        assert judge(lowest, {"a": [value]}).outcome == outcome


def test_three_methods_of_few_seeds_share_one_residual():
    random = np.random.default_rng(1)
    logs = random.normal(np.array([[0.0], [0.5], [0.6]]), 0.1, (3, 3))
    values = {name: np.exp(row)[:, None] for name, row in zip("abc", logs, strict=True)}
    residuals = logs - logs.mean(axis=0) - logs.mean(axis=1, keepdims=True) + logs.mean()
    half = 2.7764451 * math.sqrt((residuals**2).sum() / 4 * 2 / 3)
    result = judge(ratio_claim(b=("b", "c")), values, seeds=(0, 1, 2))
    gaps = {name: logs[0].mean() - logs[i].mean() for i, name in enumerate("abc")}
    assert (result.rival, result.outcome) == ("b", "held")
    assert (result.low, result.high) == pytest.approx(
        (math.exp(gaps["b"] - half), math.exp(gaps["b"] + half))
    )
    pair = judge(ratio_claim(), values, seeds=(0, 1, 2))
    assert pair.high != pytest.approx(result.high), "two methods have the spread of their difference"


def test_cells_with_fewer_than_200_expected_false_positives_do_not_count():
    def method(rate: float, pairs: int, *others: float) -> Measured:
        values = np.array([rate, *others]) * np.linspace(0.99, 1.01, 5)[:, None]
        return Measured(values, cells=("x", "y")[: 1 + len(others)], pairs=(pairs,) * (1 + len(others)))

    # 0.5% of 50,000 pairs are 250, 0.4% just 200, 0.39% are 195.
    for rate, outcome in ((0.5, "held"), (0.4001, "held"), (0.39, "not judged")):
        result = judge(ratio_claim(), {"a": method(rate, 50_000), "b": method(4.0, 50_000)})
        assert (result.outcome, result.observed) == (outcome, pytest.approx(rate / 4))
    assert result.why == "fewer than 200 false positives are expected; average precision decides"
    # Of two cells the one with enough counts, whichever method lacks them in the other.
    partial = judge(ratio_claim(), {"a": method(0.1, 50_000, 2.0), "b": method(4.0, 50_000, 4.0)})
    assert (partial.outcome, partial.observed) == ("held", pytest.approx(0.5))
    assert judge(ratio_claim(), {"a": method(0.39, 10**6), "b": method(4.0, 10**6)}).outcome == "held"


def test_a_finding_is_shown_without_a_verdict():
    values = {"a": runs(-1.0, 0.1), "b": np.zeros(1)}
    row = claims.verdict(claim(kind="finding"), values, SEEDS, "evening", "mini")
    assert (row["verdict"], row["observed"]) == ("not judged", pytest.approx(-1.0))
    assert row["why"] == "our own comparison: no sentence of the paper states it"


def test_verdicts_wrong_by_chance_are_counted():
    table = pd.DataFrame(
        {
            "verdict": ["held"] * 10 + ["did not hold"] * 10 + ["open"] * 20 + ["not judged", "held"],
            "low": [0.1] * 41 + [np.nan],
        }
    )
    assert claims.wrong_by_chance(table) == (
        "95% intervals decide 20 of their 40 comparisons (at most 2.0 wrong by chance)."
    )


def test_within_a_margin_holds_only_for_an_interval_that_lies_inside():
    for mean, spread, outcome in (
        *((0.1, 0.1, "held"), (-0.1, 2.0, "open")),
        *((2.0, 0.1, "did not hold"), (-2.0, 0.1, "did not hold")),
    ):
        values = {"a": runs(mean, spread), "b": np.zeros(1)}
        assert judge(claim(direction="within", margin=0.5), values).outcome == outcome


def test_a_ratio_of_deviations_is_judged_by_fishers_interval():
    ratio = claim(statistic="deviation_ratio", direction="at_most", margin=1, unit="times")
    few = judge(ratio, {"a": runs(1.0, 1.0), "b": runs(2.0, 2.0, seed=1)})
    assert (few.outcome, few.observed, few.over) == ("open", pytest.approx(0.5), "seeds")
    assert judge(ratio, {"a": runs(1.0, 0.1), "b": runs(2.0, 2.0, seed=1)}).outcome == "held"
    single = judge(ratio, {"a": [[1.0]], "b": [[2.0]]}, seeds=(0,))
    assert (single.outcome, single.observed) == ("open", pytest.approx(math.nan, nan_ok=True))


def test_maxima_are_judged_on_the_runs():
    never = claim(statistic="maximum", b=(), direction="at_most", margin=0.0)
    assert judge(never, {"a": [[0.0, 0.0]]}, seeds=(0,)).outcome == "held"
    lost = judge(never, {"a": [[0.0, 0.01]]}, seeds=(0,))
    assert (lost.outcome, lost.observed) == ("did not hold", 0.01)


def test_a_minimum_with_resamples_is_judged_by_each_runs_own_interval():
    above = claim(statistic="minimum", b=(), direction="greater", margin=0.8)
    values = np.array([[0.9, 0.85]])
    for deviation, outcome in ((0.01, "held"), (0.04, "open")):
        draws = np.random.default_rng(0).normal(0, deviation, (1, 1, 2, 400))
        result = judge(above, {"a": Measured(values, values[None, ..., None] + draws)}, seeds=(0,))
        assert (result.outcome, result.observed) == (outcome, 0.85)


@given(*[st.lists(st.lists(st.floats(0, 50), min_size=4, max_size=4), min_size=5, max_size=5)] * 2)
@settings(deadline=None, max_examples=30)
def test_statistics_equal_their_definition_written_as_loops(a, b):
    gaps = [sum(run[cell] for run in a) / 5 - sum(run[cell] for run in b) / 5 for cell in range(4)]
    values = {"a": a, "b": b}
    assert judge(claim(), values).observed == pytest.approx(sum(gaps) / 4, abs=1e-9)
    cellwise = judge(claim(statistic="each_difference"), values).observed
    assert any(cellwise == pytest.approx(gap, abs=1e-9) for gap in gaps)
    low = judge(claim(statistic="minimum", b=(), direction="greater"), values).observed
    assert low == min(min(row) for row in a)


def test_a_claim_without_values_or_without_a_rule_is_not_judged():
    absent = judge(claim(b=("b", "c")), {"a": [1.0], "b": "b was not trained"})
    assert (absent.outcome, absent.observed) == ("not judged", None)
    assert absent.why == "b was not trained; no runs of c"
    algebra = judge(claim(statistic="none", a=(), b=(), why="it is algebra"), {})
    assert (algebra.outcome, algebra.why) == ("not judged", "it is algebra")


def test_a_rival_with_one_seed_is_judged_by_the_same_seed_of_the_method():
    three = Measured([[1.0], [2.0], [9.0]], seeds=(4, 5, 6))
    result = judge(claim(), {"a": three, "b": Measured([[3.0]], seeds=(4,))})
    assert (result.observed, result.seeds, result.low) == (-2.0, 1, None)
    assert judge(claim(), {"a": three, "b": Measured([[3.0]], seeds=(6,))}).observed == 6.0


def test_claims_have_a_fitting_rule_or_say_why_there_is_none():
    all_claims = read_claims()
    assert len({c.id for c in all_claims}) == len(all_claims) == 366
    for c in all_claims:
        single = c.statistic in SINGLE
        assert c.kind in ("claim", "finding"), c.id
        # A finding, which we read from a table and no sentence states, has no quote.
        assert bool(c.quote) == (c.kind == "claim"), c.id
        assert c.better in ("lower", "higher"), c.id
        assert bool(c.why) == (c.statistic == NONE) == (not c.a) == (not c.counts_against), c.id
        assert bool(c.b) == (not single and not c.why), c.id
        assert c.why or c.needed().split()[0] in ("below", "above", "at", "from"), c.id
        assert bool(c.given) == (c.statistic == "sum_difference"), c.id
        # FPR95 is judged on ratios, except for deviations, which papers print.
        if c.metric == "fpr95" and not c.why:
            assert c.unit == ("times" if c.statistic == "deviation_ratio" else "ratio"), c.id
        stated = re.search(r"Written as ([\d.]+) (points|percent)\.$", c.counts_against)
        assert bool(stated) == (c.is_ratio and c.margin != 1), c.id
        if stated:
            amount = float(stated[1])
            factor = 1.5 / (1.5 - amount) if stated[2] == "points" else 1 + amount / 100
            gain = c.statistic == "any_difference"
            assert c.margin == pytest.approx(1 - amount / 100 if gain else factor, abs=2e-5), c.id
    with pytest.raises(ValueError, match="no claim of adasample on Table 9"):
        read_claims("adasample", "Table 9")


def test_the_papers_own_numbers_bear_out_its_claims_on_generation_and_sampling():
    rows = printed_by_column(printed("adasample", "table1")).droplevel("label")[list(COLUMN_NAMES)]
    values = {key: Measured(row.to_numpy(), cells=COLUMN_NAMES) for key, row in rows.iterrows()}
    verdicts = [
        verdict(c, values, SEEDS, "paper", "ubc")
        for c in read_claims("adasample", "Table 1")
        if values.keys() >= {*c.a, *c.b}
    ]
    assert [v.outcome for v in verdicts] == ["reproduced"] * 10
    # The printed values are the values judged here.
    assert [v.printed for v in verdicts] == pytest.approx([v.observed for v in verdicts])


def test_table_2_as_printed_does_not_bear_out_that_lambda_10_is_best_in_most_cases():
    table = printed("adasample", "table2")
    values = {key: rows["value"].to_numpy() for key, rows in table.groupby("key")}
    values |= {loss: rows["value"].to_numpy() for loss, rows in table.groupby("loss")}
    verdicts = {
        c.id.removeprefix("adasample-t2-"): verdict(c, values, SEEDS, "paper", "ubc+hpatches")
        for c in read_claims("adasample", "Table 2")
    }
    failed = ["lambda-10-aht", "lambda-10-ht"]
    assert [key for key, v in verdicts.items() if v.outcome == "not reproduced"] == failed


def test_the_printed_value_is_of_the_rival_and_columns_of_ours():
    best = claim_by_id("adasample-t1-best")
    random = np.random.default_rng(0)
    values = {key: random.normal(9.0, 0.1, (5, 6)) for key in best.b}
    values |= {"hardnet_aug": random.normal(3.0, 0.1, (5, 6)), "adasample_aug_gen": np.ones((5, 6))}
    table = printed_by_column(printed("adasample", "table1")).droplevel("label")[list(COLUMN_NAMES)]
    ratio = (table.loc["adasample_aug_gen"] / table.loc["hardnet_aug"]).prod() ** (1 / 6)
    result = judge(best, values)
    assert (result.rival, result.printed) == ("hardnet_aug", pytest.approx(ratio))
    unprinted = judge(best, {**values, "rootsift": np.full(6, 2.0)})
    assert (unprinted.rival, unprinted.printed) == ("rootsift", pytest.approx(np.nan, nan_ok=True))
    partial = {key: Measured(rates[:, :2], cells=COLUMN_NAMES[2:4]) for key, rates in values.items()}
    assert judge(best, partial).printed == pytest.approx(math.sqrt(0.40 / 0.53 * 0.63 / 0.78))


def test_claims_are_judged_by_a_studys_values_into_one_table():
    source = SimpleNamespace(name="mini", embedded=True, tested=("mini-a", "mini-b", "mini-c"))
    profile = SimpleNamespace(name="evening")
    study = SimpleNamespace(table_seeds=SEEDS, profile=profile, source=source)
    by_metric = {"fpr95": {"a": np.zeros((5, 2)), "b": np.ones((5, 2))}, "map": {}}
    algebra = claim(id="z", statistic="none", a=(), b=(), why="it is algebra", metric="")
    table = claims.judge(
        [claim(), claim(id="y", metric="map"), algebra], lambda c: by_metric[c.metric], study
    )
    assert table["verdict"].tolist() == ["held", "not judged", "not judged"]
    assert table["observed"].isna().tolist() == [False, True, True]
    assert table["why"].tolist() == ["", "no runs of a; no runs of b", "it is algebra"]
    assert table["seeds"].tolist() == [5, 5, 5]
