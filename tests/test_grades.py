"""Grades of comparisons over places: the rule by cases with known intervals, and on frames of runs."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from lib.recipes import shared
from lib.statistics import effect_by_place, jackknife, places_needed
from lib.study.claims import named_for_claims, read
from lib.study.claims.grades import GRADES, answers, corrected, grade, graded, p_against

CONTRADICTED, EXCLUDED, NO_EFFECT, UNCERTAIN, OTHER_SIZE, AGREES = GRADES
PLACES = [f"place{number}" for number in range(8)]
ZIGZAG = np.resize([-1.0, 1.0], 8)


def at(mean: float, reach: float) -> pd.Series:
    """Return effects at eight places whose 95% interval is mean ± reach."""
    error = np.std(ZIGZAG, ddof=1) / math.sqrt(8)
    return pd.Series(mean + reach / (stats.t.ppf(0.975, 7) * error) * ZIGZAG, index=PLACES)


# Direction, mean, reach and the printed effect; 0.2 or less counts as the same.
CASES = [
    ("higher", 0.5, 0.1, 0.45, AGREES),
    ("higher", 0.5, 0.1, math.nan, AGREES),
    ("higher", 0.5, 0.1, 0.7, OTHER_SIZE),
    ("higher", 0.5, 0.1, -0.1, OTHER_SIZE),
    ("higher", 0.11, 0.1, 0.5, OTHER_SIZE),
    ("higher", -0.5, 0.1, 0.5, CONTRADICTED),
    ("higher", -0.5, 0.1, math.nan, CONTRADICTED),
    ("higher", 0.2, 0.3, 0.4, UNCERTAIN),
    ("higher", 0.2, 0.3, math.nan, UNCERTAIN),
    ("higher", 0.2, 0.3, 0.6, EXCLUDED),
    ("higher", 0.05, 0.1, 0.6, NO_EFFECT),
    ("higher", 0.05, 0.1, 0.1, UNCERTAIN),
    ("same", 0.05, 0.1, math.nan, NO_EFFECT),
    # The interval of 95% reaches beyond the bound, that of 90% does not.
    ("same", 0.11, 0.1, math.nan, NO_EFFECT),
    ("same", 0.15, 0.1, math.nan, UNCERTAIN),
    ("same", 0.25, 0.1, math.nan, UNCERTAIN),
    ("same", 0.35, 0.1, math.nan, CONTRADICTED),
    ("same", -0.35, 0.1, math.nan, CONTRADICTED),
    ("not lower", 0.5, 0.1, math.nan, AGREES),
    ("not lower", -0.05, 0.1, math.nan, AGREES),
    ("not lower", -0.15, 0.1, math.nan, UNCERTAIN),
    ("not lower", -0.35, 0.1, math.nan, CONTRADICTED),
]
MIRRORED = {"higher": "lower", "same": "same", "not lower": "not higher"}


@pytest.mark.parametrize(("direction", "mean", "reach", "printed", "expected"), CASES)
def test_a_grade_follows_from_the_interval_and_the_printed_effect(
    direction, mean, reach, printed, expected
):
    assert grade(at(mean, reach), direction, 0.2, printed) == expected
    assert grade(at(-mean, reach), MIRRORED[direction], 0.2, -printed) == expected


def test_a_printed_effect_of_single_runs_has_an_error_of_its_own():
    reach = stats.t.ppf(0.975, 7)
    # Our error is 0.03, theirs 0.04: together 0.05.
    ours = at(0.5, 0.03 * reach)
    inside, outside = 0.5 + 0.049 * reach, 0.5 + 0.051 * reach
    assert grade(ours, "higher", 0.2, inside, 0.04) == AGREES
    assert grade(ours, "higher", 0.2, outside, 0.04) == OTHER_SIZE
    assert grade(ours, "higher", 0.2, inside) == OTHER_SIZE


@given(
    st.sampled_from(["lower", "higher", "same", "not lower", "not higher"]),
    st.lists(st.integers(-40, 40), min_size=2, max_size=8),
)
def test_a_sentence_is_contradicted_where_its_p_is_below_a_fortieth(direction, values):
    effects = pd.Series(values) / 40
    contradicted = grade(effects, direction, 0.2) == CONTRADICTED
    assert contradicted == (p_against(effects, direction, 0.2) < 0.025)


def test_values_that_are_all_at_their_bound_are_not_beyond_it():
    exactly = pd.Series(0.0, index=PLACES)
    for direction in ("not lower", "not higher"):
        assert grade(exactly, direction, 0.0) == AGREES
        assert p_against(exactly, direction, 0.0) == 0.5
    assert grade(exactly, "higher", 0.2) == UNCERTAIN


# --- frames of runs


def claim(**columns: str) -> dict[str, str]:
    """A comparison, as `read` returns it."""
    default = dict.fromkeys(read().columns, "") | {"kind": "comparison", "measure": "fpr95"}
    own = {"id": "x", "sentence_id": "x-1", "method": "m", "rival": "r"}
    return default | {"direction": "lower", "over": "mean", "unit": "ratio"} | own | columns


def graded_one(runs: pd.DataFrame, **columns: str) -> dict[str, object]:
    [row] = graded(pd.DataFrame([claim(**columns)]), runs).to_dict("records")
    return row


def runs_with(ratio: float, spread: float, measure: str = "fpr95") -> pd.DataFrame:
    """Return runs of "m" and "r" on eight places, in which m's value is about `ratio` times r's."""
    draw = np.random.default_rng(2)
    rows = []
    for seed, train in enumerate(PLACES):
        gain = ratio * math.exp(draw.normal(0, spread))
        for test in [*PLACES, "further"]:
            if test != train:
                rate = draw.uniform(1, 9)
                noise = math.exp(draw.normal(0, spread))
                rows.append(("m", train, test, seed, rate * gain * noise))
                rows.append(("r", train, test, seed, rate))
    columns = ["method", "train", "test", "seed", "value"]
    return pd.DataFrame(rows, columns=columns).assign(measure=measure)


def literal_cells(runs: pd.DataFrame) -> pd.DataFrame:
    """Log ratios by train and test place, by loops."""
    cells = pd.DataFrame(index=PLACES, columns=[*PLACES, "further"], dtype=float)
    for train in cells.index:
        for test in cells.columns:
            own = runs[(runs["train"] == train) & (runs["test"] == test)].set_index("method")["value"]
            if len(own):
                cells.loc[train, test] = math.log(own["m"]) - math.log(own["r"])
    return cells


def test_the_graded_effect_is_the_mean_log_ratio_over_train_places():
    runs = runs_with(0.8, 0.05)
    row = graded_one(runs)
    cells = literal_cells(runs)
    by_place = cells.mean(axis=1)
    low, high = stats.ttest_1samp(by_place, 0).confidence_interval()
    assert row["places"] == 8
    assert [row[name] for name in ("effect", "low", "high")] == pytest.approx(
        [math.exp(value) for value in (by_place.mean(), low, high)]
    )
    others = [math.exp(end) for end in jackknife(cells)]
    assert [row["other_low"], row["other_high"]] == pytest.approx(others)
    assert row["share"] == pytest.approx((cells.stack().dropna() < 0).mean())
    assert row["grade"] == AGREES


def test_in_each_column_needs_five_sixths_of_the_cells_besides_the_mean():
    steady, uneven = runs_with(0.8, 0.05), runs_with(0.8, 0.3)
    assert graded_one(steady, over="each")["grade"] == AGREES
    row = graded_one(uneven, over="each")
    assert (graded_one(uneven)["grade"], row["grade"]) == (AGREES, UNCERTAIN)
    assert row["share"] < 5 / 6
    assert graded_one(uneven, over="most")["grade"] == AGREES


def test_in_both_tasks_needs_the_cells_of_each_task():
    """A loss in one task that is smaller than the gain in the other is not hidden in their mean."""
    tasks = [runs_with(0.5, 0.01, "imc.stereo"), runs_with(1.2, 0.01, "imc.multiview")]
    row = graded_one(pd.concat(tasks), measure="imc.stereo;imc.multiview", over="each")
    assert row["effect"] == pytest.approx(math.sqrt(0.5 * 1.2), rel=0.02)
    assert (row["share"], row["grade"]) == (0.5, UNCERTAIN)


def test_what_is_too_uncertain_says_how_many_places_would_find_the_printed_effect():
    # AdaSample's Table 3 prints HardNet+*'s and AdaSample+*'s six means.
    row = claim(method="a", rival="h", provenance="table3:seed_mean", paper="adasample")
    row |= {"method": "adasample_aug_gen", "rival": "hardnet_aug_gen", "printed_effect": "0.9444"}
    runs = runs_with(0.97, 0.3)
    names = {"m": "adasample_aug_gen", "r": "hardnet_aug_gen"}
    runs["method"] = runs["method"].map(names)
    [got] = graded(pd.DataFrame([row]), runs).to_dict("records")
    renamed = runs.replace({name: key for key, name in names.items()})
    spread = effect_by_place(literal_cells(renamed)).std()
    assert got["grade"] == UNCERTAIN
    assert got["needed"] == places_needed(math.log(0.9444), spread)


def test_where_the_printed_value_is_what_is_uncertain_no_number_of_places_is_said():
    row = claim(method="a", rival="h", provenance="table3:seed_mean", paper="adasample")
    row |= {"method": "adasample_aug_gen", "rival": "hardnet_aug_gen", "printed_effect": "0.9444"}
    runs = runs_with(1.0, 0.03)
    runs["method"] = runs["method"].map({"m": "adasample_aug_gen", "r": "hardnet_aug_gen"})
    [got] = graded(pd.DataFrame([row]), runs).to_dict("records")
    assert got["grade"] == UNCERTAIN
    assert got["places"] == len(PLACES)
    assert np.isnan(got["needed"])


def test_only_printed_fpr95_has_the_spread_of_single_runs():
    """HyNet's Table 2 prints 1.139 times SOSNet's points."""
    claims = read("hynet", "Table 2").query("id == 'hynet-t2-points'")
    runs = runs_with(1.08, 0.03, "sfm.sparse_points")
    rows = graded(claims, runs.replace({"method": {"m": "hynet_aug", "r": "sosnet_aug"}}))
    [row] = rows.query("rival == 'sosnet_aug'").to_dict("records")
    assert 1 < row["low"] < row["high"] < row["printed"]
    assert row["grade"] == OTHER_SIZE


def test_a_lead_of_some_points_is_graded_beyond_them():
    runs = runs_with(1.5, 0.01, "hpatches.matching")
    options = {"measure": "hpatches.matching", "direction": "higher", "unit": "points"}
    lead = graded_one(runs, **options)
    assert lead["grade"] == AGREES
    for bound, expected in ((lead["low"] - 0.1, AGREES), (lead["high"] + 0.1, CONTRADICTED)):
        row = graded_one(runs, **options, bound=str(bound))
        assert (row["grade"], row["effect"]) == (expected, lead["effect"])


def test_comparisons_that_cannot_be_graded_say_why_or_stay_empty():
    runs = runs_with(0.8, 0.05)
    assert graded_one(runs, rival="other")["missing"] == "other"
    one_place = graded_one(runs[runs["train"] == PLACES[0]])
    assert (one_place["grade"], one_place["places"]) == ("", 1)
    assert graded_one(runs, over="spread", direction="not higher")["grade"] == ""


def seeded(ratio: float, wider: float, seeds: int = 5, places: int = 8) -> pd.DataFrame:
    """Return runs of several seeds at each place: m's values are about `ratio` times r's, and vary
    `wider` times as much."""
    draw = np.random.default_rng(3)
    rows = []
    for train in PLACES[:places]:
        for test in ("one", "other"):
            for seed in range(seeds):
                rows.append(("r", train, test, seed, 5 + draw.normal(0, 0.2)))
                rows.append(("m", train, test, seed, 5 * ratio + draw.normal(0, 0.2 * wider)))
    columns = ["method", "train", "test", "seed", "value"]
    return pd.DataFrame(rows, columns=columns).assign(measure="fpr95")


@pytest.mark.parametrize(("wider", "expected"), [(0.4, AGREES), (1.0, UNCERTAIN), (3.0, CONTRADICTED)])
def test_spreads_over_seeds_are_compared_by_the_ratio_of_standard_deviations(
    wider: float, expected: str
) -> None:
    runs = seeded(1.0, wider)
    row = graded_one(runs, over="spread", direction="not higher")
    logarithms = []
    for train in PLACES:
        of_place = []
        for test in ("one", "other"):
            own = runs[(runs["train"] == train) & (runs["test"] == test)].groupby("method")["value"]
            of_place.append(math.log(own.std()["m"] / own.std()["r"]))
        logarithms.append(np.mean(of_place))
    assert row["effect"] == pytest.approx(math.exp(np.mean(logarithms)))
    low, high = stats.ttest_1samp(logarithms, 0).confidence_interval()
    assert [row["low"], row["high"]] == pytest.approx([math.exp(low), math.exp(high)])
    assert row["grade"] == expected


def test_a_largest_gain_is_that_of_the_best_test_place_at_each_train_place() -> None:
    runs = runs_with(0.9, 0.2)
    best = literal_cells(runs).min(axis=1)
    row = graded_one(runs, over="any")
    assert row["effect"] == pytest.approx(math.exp(best.mean()))
    assert row["effect"] < graded_one(runs)["effect"]


@pytest.mark.parametrize(("ratio", "expected"), [(0.8, AGREES), (1.0, UNCERTAIN), (1.25, CONTRADICTED)])
def test_the_papers_own_test_needs_five_sixths_of_the_cells_to_reject(
    ratio: float, expected: str
) -> None:
    runs = seeded(ratio, 1.0, places=3)
    row = graded_one(runs, over="significant")
    rejected = []
    for train in PLACES[:3]:
        for test in ("one", "other"):
            own = runs[(runs["train"] == train) & (runs["test"] == test)].set_index("method")["value"]
            p = stats.mannwhitneyu(own["m"], own["r"], alternative="less", method="exact").pvalue
            rejected.append(p <= 0.05)
    assert (row["grade"], row["share"], row["places"]) == (expected, np.mean(rejected), 3)


# --- sentences


def judged(*rows: tuple[str, str, float], direction: str = "lower", over: str = "mean") -> pd.DataFrame:
    """Rows as from `graded`: sentence, grade, p against it."""
    columns = ["sentence_id", "grade", "p_against"]
    frame = pd.DataFrame(rows, columns=columns).assign(direction=direction, over=over)
    return frame.assign(id=[f"row-{number}" for number in range(len(rows))])


def test_a_sentence_has_the_worst_grade_of_its_comparisons():
    rows = judged(("a-1", AGREES, 0.9), ("a-1", UNCERTAIN, 0.4), ("a-1", OTHER_SIZE, 0.99))
    rows = pd.concat([rows, judged(("a-2", AGREES, 0.9), ("a-3", "", np.nan), ("", EXCLUDED, 0.1))])
    answered = answers(rows)
    assert answered["grade"].to_dict() == {"a-1": UNCERTAIN, "a-2": AGREES}
    assert answered["comparisons"].to_dict() == {"a-1": 3, "a-2": 1}


@pytest.mark.parametrize("missing", [1, 2])
def test_a_sentence_agrees_only_if_all_its_comparisons_were_run(missing: int):
    lacks = [("a-1", "", np.nan)] * missing
    for good in (AGREES, OTHER_SIZE):
        assert answers(judged(("a-1", good, 0.9), *lacks)).empty
    answered = answers(judged(("a-1", UNCERTAIN, 0.4), ("a-1", AGREES, 0.9), *lacks))
    assert answered.loc["a-1"].tolist() == [UNCERTAIN, 2, 2 + missing]


@pytest.mark.parametrize(
    ("grades", "expected"),
    [
        ([CONTRADICTED, AGREES, AGREES], AGREES),
        ([CONTRADICTED, OTHER_SIZE, AGREES], OTHER_SIZE),
        ([CONTRADICTED, UNCERTAIN, AGREES], UNCERTAIN),
        ([CONTRADICTED, CONTRADICTED, AGREES], CONTRADICTED),
        # Half are not most.
        ([AGREES, CONTRADICTED], CONTRADICTED),
        # One that was not run may go either way.
        ([CONTRADICTED, "", ""], UNCERTAIN),
        ([CONTRADICTED, CONTRADICTED, ""], CONTRADICTED),
        ([AGREES, AGREES, ""], None),
    ],
)
def test_a_sentence_about_most_rivals_has_the_grade_that_more_than_half_reach(grades, expected):
    rows = judged(*[("a-1", grade, 0.001 if grade else np.nan) for grade in grades], over="most")
    answered = answers(rows)
    if expected is None:
        assert answered.empty
    else:
        assert answered["grade"].to_dict() == {"a-1": expected}
        assert answered["of"].item() == len(grades)


def test_contradictions_within_a_sentence_are_corrected_for_their_number():
    alone = judged(("a-1", CONTRADICTED, 0.02))
    among = judged(("a-1", CONTRADICTED, 0.02), ("a-1", AGREES, 0.9))
    certain = judged(("a-1", CONTRADICTED, 0.012), ("a-1", AGREES, 0.9))
    found = [answers(rows)["grade"].item() for rows in (alone, among, certain)]
    assert found == [CONTRADICTED, UNCERTAIN, CONTRADICTED]


def test_a_comparison_of_no_sentence_is_corrected_for_itself_alone():
    rows = judged(("", CONTRADICTED, 0.02), ("", CONTRADICTED, 0.02), ("a-1", "", np.nan))
    assert corrected(rows).tolist() == [CONTRADICTED, CONTRADICTED, ""]


def test_no_effect_is_what_a_sentence_with_same_says():
    rows = judged(("a-1", NO_EFFECT, 0.5), ("a-1", UNCERTAIN, 0.5))
    assert answers(rows)["grade"].item() == NO_EFFECT
    assert answers(rows.assign(direction="same"))["grade"].item() == UNCERTAIN


# --- the shared setting


def in_setting(ratios: dict[str, float]) -> pd.DataFrame:
    """Return runs of SOSNet+ and HardNet+ in the shared setting: by optimiser, their ratio of FPR95."""
    frames = []
    for number, (optimizer, ratio) in enumerate(ratios.items()):
        names = {
            "m": next(iter(shared(["sosnet_aug"], optimizer))),
            "r": next(iter(shared(["hardnet_aug"], optimizer))),
        }
        # One optimiser's errors are a hundred times the other's.
        frame = runs_with(ratio, 0.01)
        frame["value"] *= 100.0**number
        frames.append(frame.replace({"method": names}))
    return pd.concat(frames)


def test_methods_are_compared_by_optimiser_and_their_effects_averaged():
    ratios = {"SGD": 0.5, "Adam": 0.8, "damped SGD": 3.0}
    runs = named_for_claims(in_setting(ratios))
    row = graded_one(runs, method="sosnet_aug", rival="hardnet_aug")
    assert row["effect"] == pytest.approx(math.sqrt(0.5 * 0.8), rel=0.02)
    assert row["places"] == 8
    row = graded_one(
        named_for_claims(in_setting({"Adam": 0.8})), method="sosnet_aug", rival="hardnet_aug"
    )
    assert row["effect"] == pytest.approx(0.8, rel=0.02)


def test_a_variant_of_a_method_keeps_its_words_and_is_compared_by_optimiser():
    runs = in_setting({"SGD": 0.5, "Adam": 0.8}).reset_index(drop=True)
    # TCDesc-DSM+ with SGD is in the shared setting by itself.
    names = {
        "sosnet_aug, shared, SGD": "tcdesc_dsm_aug, no topology",
        "sosnet_aug, shared, Adam": "tcdesc_dsm_aug, shared, Adam, no topology",
        "hardnet_aug, shared, SGD": "tcdesc_dsm_aug",
        "hardnet_aug, shared, Adam": "tcdesc_dsm_aug, shared, Adam",
    }
    runs = named_for_claims(runs.replace({"method": names}))
    assert set(runs["method"]) == {"tcdesc_dsm_aug", "tcdesc_dsm_aug, no topology"}
    row = graded_one(runs, method="tcdesc_dsm_aug, no topology", rival="tcdesc_dsm_aug")
    assert row["effect"] == pytest.approx(math.sqrt(0.5 * 0.8), rel=0.02)


def test_wide_pairs_are_no_part_of_fpr95():
    random = in_setting({"SGD": 0.5})
    wide = in_setting({"SGD": 2.0})
    wide["test"] += "-wide"
    both = named_for_claims(pd.concat([random, wide]))
    row = graded_one(both, method="sosnet_aug", rival="hardnet_aug")
    assert row["effect"] == pytest.approx(0.5, rel=0.02)


def test_the_papers_names_for_one_configuration_of_the_shared_setting_have_its_runs():
    runs = named_for_claims(in_setting({"SGD": 0.5, "Adam": 0.8}))
    expected = graded_one(runs, method="sosnet_aug", rival="hardnet_aug")["effect"]
    for rival in ("dsm_aug, margin 1", "hardnet_aug, TCDesc's setting"):
        assert graded_one(runs, method="sosnet_aug", rival=rival)["effect"] == expected


@pytest.mark.parametrize(
    ("method", "rival"),
    [
        ("hardnet_aug", "dsm_aug, margin 1"),
        ("sosnet_aug", "dsm_aug, margin 1 over hardnet_aug"),
    ],
)
def test_what_is_one_method_in_the_shared_setting_is_not_compared(method: str, rival: str):
    runs = named_for_claims(in_setting({"SGD": 0.5, "Adam": 0.8}))
    row = graded_one(runs, method=method, rival=rival)
    assert row["grade"] == ""
    assert row["missing"].endswith("one method in the shared setting")


def test_a_spread_over_seeds_is_none_over_optimisers():
    runs = named_for_claims(in_setting({"SGD": 0.5, "Adam": 0.8}))
    row = graded_one(runs, method="sosnet_aug", rival="hardnet_aug", over="spread")
    assert row["grade"] == ""


def test_rates_below_the_floor_are_taken_as_they_are():
    runs = runs_with(0.5, 0.01)
    runs["value"] /= 1e5
    assert graded_one(runs)["effect"] == pytest.approx(0.5, rel=0.02)
