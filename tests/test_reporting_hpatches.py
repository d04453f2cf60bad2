"""HPatches' tables and figures: each number under its own head, claims' cells, and what is drawn."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import reporting_records
from reporting_records import outcomes, verdicts
from scipy import stats

from lib.study.artefacts.adasample import LAMBDAS, TRIPLET_LOSSES, lambda_name
from lib.study.claims import read_claims, verdict
from lib.study.open import Found, open_study
from lib.study.report import hpatches as tables
from lib.study.report.hpatches import LEVELS
from lib.study.report.hpatches_figures import LEVEL_COLOURS, tasks_figure
from lib.study.report.papers import adasample
from lib.study.report.style import png
from lib.study.report.text import as_text

TEST, HP_TRAIN = "some-hp-a", "some-hp-a-train"
SEQUENCES = ("v_wall", "i_wall", "v_dome", "i_shop")


def metrics(level: float, sequences: tuple[str, ...] = SEQUENCES) -> dict[str, float]:
    """Numbers under the evaluation's keys, all told apart: easy is 3 above hard, hard 3 above tough."""
    found = {}
    for place, name in enumerate(LEVELS):
        of_level = level + 3 * (1 - place)
        found |= {
            f"verification.{name}.intra.ap": of_level - 1,
            f"verification.{name}.inter.ap": of_level,
        }
        for number, sequence in enumerate(sequences):
            found[f"matching.{name}.{sequence}"] = of_level - 10 - number
            found[f"retrieval.{name}.{sequence}"] = of_level - 20 - 2 * number
        for kind in ("viewpoint", "illumination"):
            if any(sequence[0] == kind[0] for sequence in sequences):
                found[f"matching.{name}.{kind}"] = of_level - 10
                found[f"matching.success.{name}.{kind}"] = 99.0
        found |= {f"retrieval.{name}.{pool}": of_level - 20 for pool in ("100", "all", "pools")}
    whole = {"verification": 0, "verification.auc": 5, "matching": -10, "retrieval": -20}
    return found | {key: level + shift for key, shift in whole.items()} | {"retrieval.pools": level - 30}


def run(key: str, level: float, seed: int | None = 0, train_set: str | None = "some-a", **kind) -> Found:
    return reporting_records.found(
        key, train_set, seed, metrics={TEST: {"hpatches": metrics(level, **kind)}}
    )


@pytest.fixture(scope="module")
def one_seed() -> pd.DataFrame:
    runs = [run("sift", 40, None, None), run("net", 60), run("net", 70, train_set=HP_TRAIN)]
    return tables.numbers(runs, TEST, HP_TRAIN)


@pytest.fixture(scope="module")
def three_seeds() -> pd.DataFrame:
    runs = [run("sift", 40, None, None), *(run("net", 60 + 2 * seed, seed) for seed in range(3))]
    return tables.numbers(runs, TEST)


def test_left_and_right_of_a_photograph_are_one_thing():
    halves = ("v_dome_left", "i_dome_right", "v_wall", "i_wall", "v_dome")
    frame = tables.numbers([run("hardnet_aug_gen", 60, sequences=halves)], TEST)
    assert adasample.figure2_intervals(frame, "matching")["subjects"].tolist() == [2]


def lambda_runs(levels: dict[tuple[float, str], float], seeds: int = 1) -> pd.DataFrame:
    """Seeds differ by 1 around a cell's level."""
    runs = [
        run(lambda_name(*cell), level + seed - (seeds - 1) / 2, seed)
        for cell, level in levels.items()
        for seed in range(seeds)
    ]
    return adasample.table2_runs([*runs, run("another", 99)], TEST)


def all_lambdas() -> dict[tuple[float, str], float]:
    """AHT is best at λ = 5, HT at ∞; AHT is above HT but at ∞."""
    aht = dict(zip(LAMBDAS, (50, 51, 52, 60, 58, 55, 54), strict=True))
    ht = dict(zip(LAMBDAS, (40, 41, 42, 43, 44, 45, 56), strict=True))
    of_loss = {"AHT": aht, "HT": ht}
    return {(lam, loss): of_loss[loss][lam] for loss in TRIPLET_LOSSES for lam in LAMBDAS}


# Numbers


def test_a_method_trained_on_hpatches_is_a_method_of_its_own(one_seed):
    levels = [one_seed.index.get_level_values(name).tolist() for name in ("key", "label", "seed")]
    assert levels[:2] == [["sift", "net", "net_hp"], ["SIFT", "NET", "NET-HP"]]
    assert levels[2][1:] == [0, 0]
    assert pd.isna(levels[2][0])
    assert one_seed["retrieval.hard.pools"].tolist() == [20, 40, 50]


def test_without_a_name_of_the_train_set_nothing_is_marked():
    frame = tables.numbers([run("net", 70, train_set=HP_TRAIN)], TEST)
    assert frame.index.unique("key").tolist() == ["net"]


def test_records_without_the_numbers_and_repeated_ones_are_refused_by_name():
    with pytest.raises(ValueError, match=r"NET.*no hpatches on elsewhere"):
        tables.numbers([run("net", 60)], "elsewhere")
    with pytest.raises(ValueError, match="duplicate entries"):
        tables.numbers([run("net", 60), run("net", 61)], TEST)
    with pytest.raises(ValueError, match="no such number"):
        tables.numbers([], TEST)


def test_each_task_stands_under_its_protocol_and_one_seed_has_no_deviation(one_seed):
    table = tables.by_task(one_seed)
    assert table.index.tolist() == ["SIFT", "NET", "NET-HP"]
    assert "sd" not in table.columns.get_level_values(1)
    row = table.loc["NET"]
    assert row["retrieval: mAP, whole pool", "mean"] == 40
    assert row["retrieval: mAP, pool sizes", "mean"] == 30
    assert row["verification: AP, 1 to 5", "mean"] == 60
    assert row["matching: mAP", "mean"] == 50


def test_several_seeds_give_mean_and_deviation_and_a_method_without_seeds_none(three_seeds):
    table = tables.by_task(three_seeds)
    assert table["matching: mAP", "mean"].tolist() == [30, 52]
    assert table["matching: mAP", "sd"].tolist() == pytest.approx([np.nan, 2], nan_ok=True)
    assert table["", "n"].tolist() == [1, 3]
    assert "retrieval: mAP, whole pool" in as_text(table)


# Intervals over seeds and sequences


def figure2_runs(seeds: int = 3) -> pd.DataFrame:
    """SIFT, 20 points below a network whose seeds are 2 apart."""
    ours = [run("hardnet_aug_gen", 60 + 2 * seed, seed) for seed in range(seeds)]
    return tables.numbers([run("sift", 40, None, None), *ours], TEST)


def test_sequences_shift_both_methods_alike_so_that_their_difference_has_its_seeds_part_alone():
    table = adasample.figure2_intervals(figure2_runs(), "matching")
    assert table["mean"].tolist() == [30, 52]
    assert (table["to"] - table["from"] > 1).all()
    half = stats.t.ppf(0.975, 2) * 2 / 3**0.5
    gain = table.loc["SIFT", ["gain", "gain from", "gain to"]].tolist()
    assert gain == pytest.approx([-22, -22 - half, -22 + half])
    assert table["subjects"].tolist() == [3, 3]


def test_verification_is_over_pairs_of_all_sequences_and_has_its_seeds_part_alone():
    table = adasample.figure2_intervals(figure2_runs(), "verification")
    assert table.loc["SIFT", ["mean", "from", "to"]].tolist() == [40, 40, 40]


# Table 2


def test_ours_stand_beside_the_papers_and_the_default_recipes_at_ten():
    table = adasample.table2(lambda_runs(all_lambdas()))
    assert table.index.tolist() == ["0", "1", "2", "5", "10", "20", "∞"]
    assert table["matching HT", "paper"].tolist()[1:] == [62.64, 65.92, 65.68, 65.37, 64.84, 64.02]
    assert np.isnan(table["matching HT", "paper"].iloc[0])
    assert table["matching HT", "ours"].tolist() == [30, 31, 32, 33, 34, 35, 46]
    assert table.loc["10", ("verification AHT", "ours")] == 58
    assert "sd" not in table.columns.get_level_values(1)


def test_lambdas_that_were_not_run_are_missing_and_seeds_give_deviations():
    levels = {cell: level for cell, level in all_lambdas().items() if cell != (2.0, "AHT")}
    table = adasample.table2(lambda_runs(levels, seeds=3))
    assert np.isnan(table.loc["2", ("retrieval AHT", "ours")])
    assert table.loc["1", ("retrieval AHT", "sd")] == pytest.approx(1)
    with pytest.raises(ValueError, match="no such number in these records"):
        adasample.table2_runs([run("net", 1)], TEST)


def test_the_best_lambda_is_found_in_both_and_shared_tops_are_named_with_no_gap():
    best = adasample.table2_best(adasample.table2(lambda_runs(all_lambdas())))
    assert best["paper", "best λ"].tolist() == ["5, 10", "5", "2", "2", "10", "20"]
    assert best["paper", "gap"].tolist() == pytest.approx([0, 0.07, 0.15, 0.24, 0.18, 0.07])
    assert best["ours", "best λ"].tolist() == ["5", "∞"] * 3
    assert best["ours", "gap"].tolist() == [2, 11] * 3


def test_the_printed_table_supports_one_of_its_two_sentences():
    check = adasample.table2_printed()
    assert check.loc["λ = 10 is best"].tolist() == [6, 1, 1, 4, False]
    assert check.loc["… with HT"].tolist() == [3, 0, 0, 3, False]
    assert check.loc["AHT is above HT"].tolist() == [18, 13, 0, 5, True]


# Claims


def test_claims_on_table_2_get_three_tasks_a_lambda_and_the_18_pairs():
    values = adasample.table2_values(lambda_runs(all_lambdas(), seeds=5))
    assert values["lambda_10_aht"].values.shape == values["lambda_0_ht"].values.shape == (5, 3)
    assert values["lambda_10_aht"].values.mean(axis=0).tolist() == [58, 48, 38]
    assert values["aht"].values.shape == values["ht"].values.shape == (5, 18)
    found = verdicts("adasample", "Table 2", values, range(5))
    assert found["t2-lambda-10-aht"].observed == 0
    assert found["t2-hardest-aht"].observed == pytest.approx(4)
    assert found["t2-hardest-ht"].observed == pytest.approx(-12)
    assert found["t2-angular"].observed == pytest.approx(15 / 18)
    assert all(v.outcome != "not judged" for v in found.values())


def test_a_lambda_without_runs_leaves_the_claims_that_name_it_without_a_verdict():
    levels = {cell: level for cell, level in all_lambdas().items() if cell != (math.inf, "HT")}
    values = adasample.table2_values(lambda_runs(levels, seeds=5))
    assert "ht" not in values
    found = outcomes("adasample", "Table 2", values, range(5))
    assert found["t2-angular"] == found["t2-hardest-ht"] == "not judged"
    assert found["t2-hardest-aht"] == "held"


def test_a_claim_on_figure_2_is_judged_on_its_own_task_alone():
    rivals = ("rootsift", "hardnet", "hardnet_aug", "hardnet_aug_gen")
    runs = [run("sift", 40, None, None)]
    runs += [run(key, 50 + seed, seed) for key in rivals for seed in range(5)]
    runs += [run("adasample_aug_gen", 53 + seed, seed) for seed in range(5)]
    frame = tables.numbers(runs, TEST)
    frame.loc[frame.index.get_level_values("key") == "adasample_aug_gen", "matching"] -= 10
    values, observed = adasample.figure2_values(frame), {}
    for claim in read_claims("adasample", "Figure 2"):
        assert values(claim)["sift"].values.shape == (1,)
        judged = verdict(claim, values(claim), range(5), "evening", "mini")
        observed[claim.id.rpartition("-")[2]] = judged.observed
    assert observed == pytest.approx({"verification": 3, "matching": -7, "retrieval": 3})


# Figures


def bars(axes) -> list[float]:
    return [bar.get_width() for bar in axes.patches]


def markers(axes) -> dict[tuple[str, str], list[float]]:
    return {
        (line.get_color(), line.get_marker()): list(line.get_xdata())
        for line in axes.lines
        if line.get_marker() != "None"
    }


def test_bars_are_the_tasks_numbers_and_markers_their_parts_in_colour_and_shape(one_seed):
    figure = tasks_figure(one_seed, "quick, mini")
    verification, matching, retrieval = figure.axes
    assert [bars(axes) for axes in figure.axes] == [[40, 60, 70], [30, 50, 60], [20, 40, 50]]
    assert len(markers(verification)) == len(markers(matching)) == 6
    assert len(markers(retrieval)) == 3
    assert markers(verification)[LEVEL_COLOURS["easy"], "o"] == [42, 62, 72]
    assert markers(verification)[LEVEL_COLOURS["tough"], "s"] == [37, 57, 67]
    assert [text.get_text() for text in verification.texts] == ["40.0", "60.0", "70.0"]
    names = [label.get_text() for label in verification.get_yticklabels()]
    rows = dict(zip(names, verification.get_yticks(), strict=True))
    assert rows["SIFT"] > rows["NET"] > rows["NET-HP"]
    borders = [line.get_ydata()[0] for line in matching.lines if line.get_marker() == "None"]
    assert borders == [(rows["NET"] + rows["NET-HP"]) / 2]
    assert png(figure).startswith(b"\x89PNG")


def test_a_kind_that_no_sequence_is_of_has_no_markers():
    frame = tables.numbers([run("net", 60, sequences=("v_wall", "v_dome"))], TEST)
    matching = tasks_figure(frame, "").axes[1]
    assert {marker for _, marker in markers(matching)} == {"^"}
    assert bars(matching) == [50]


def drawn(seeds: int, levels: dict[tuple[float, str], float] | None = None):
    of = lambda_runs(levels or all_lambdas(), seeds=seeds)
    study = open_study(seeds=range(seeds))
    return adasample.table2(of), adasample.table2_figure(of, study, "some-a to other")


def ends(axes) -> list[np.ndarray]:
    """The heights of the ends of all bars that are drawn."""
    segments = [segment for of in axes.collections for segment in of.get_segments() if len(segment)]
    return [segment[:, 1] for segment in segments if np.isfinite(segment).all()]


def test_both_tables_stand_against_lambda_and_zero_is_ours_alone():
    table, figure = drawn(1)
    ours, papers = figure.axes[0], figure.axes[3]
    assert [label.get_text() for label in papers.get_xticklabels()] == table.index.tolist()
    for axes, whose, known in ((ours, "ours", range(7)), (papers, "paper", range(1, 7))):
        line = axes.lines[0]
        assert np.round(line.get_xdata()).tolist() == [*known]
        assert line.get_ydata().tolist() == table["verification AHT", whose].dropna().tolist()
        # Of one seed there is no interval, and the paper prints none.
        assert not ends(axes)
    assert "one seed" in figure.get_suptitle()


def test_ours_has_the_interval_over_its_seeds_and_a_loss_without_runs_no_line():
    levels = {cell: level for cell, level in all_lambdas().items() if cell[1] == "AHT"}
    _, figure = drawn(3, levels)
    axes = figure.axes[0]
    # Seeds one apart: the standard deviation is 1, and t at 2 degrees of freedom 4.303.
    assert len(ends(axes)) == 7
    assert ends(axes)[3] - 60 == pytest.approx([-4.303 / 3**0.5, 4.303 / 3**0.5], abs=1e-3)
    names = [text.get_text() for text in figure.axes[2].texts]
    assert names == ["AHT"]
    assert "3 seeds" in figure.get_suptitle()


def test_levels_of_one_method_are_the_parts_of_its_tasks():
    levels = tables.by_level(tables.numbers([run("net", 60, sequences=("v_wall",))], TEST))
    assert levels["verification intra"].to_dict() == {"easy": 62, "hard": 59, "tough": 56}
    assert levels["retrieval whole pool"].to_dict() == {"easy": 43, "hard": 40, "tough": 37}
    assert "matching viewpoint" in levels
    assert "matching illumination" not in levels


def test_levels_of_several_methods_at_once_are_refused(three_seeds: pd.DataFrame):
    with pytest.raises(ValueError, match="one method expected, got sift, net"):
        tables.by_level(three_seeds)


def test_printed_levels_say_whether_a_paper_names_retrievals_pool():
    levels = adasample.table2_levels()
    assert levels.loc["DSM, Table 3"].tolist() == [89.06, 53.25, 61.72, "the whole pool"]
    assert levels["retrieval over"].tolist()[::2] == ["not stated", "not stated"]
