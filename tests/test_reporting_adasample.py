"""AdaSample's Table 1 as pictures and an order, and Figure 1 from data small enough to see through."""

from __future__ import annotations

import numpy as np
import pytest
from reporting_records import found, with_fpr95
from scipy import stats

from lib.recipes import RECIPES
from lib.study.artefacts.adasample import TABLE1_RECIPES
from lib.study.open import open_study
from lib.study.report import phototour, phototour_figures
from lib.study.report.papers import adasample
from lib.study.report.papers import adasample_triplets as triplets
from lib.study.report.style import PALETTE

SETS = ("mini-a", "mini-b", "mini-c")


def one_scene(levels: dict[str, float], seeds: int) -> list:
    """Runs on the first scene, seeds one apart around a recipe's level, and SIFT."""
    runs = [
        with_fpr95(name, "mini-a", seed, label=RECIPES[name].label, **{"mini-b": value, "mini-c": value})
        for name, level in levels.items()
        for seed in range(seeds)
        for value in [level + seed - (seeds - 1) / 2]
    ]
    return [*runs, with_fpr95("sift", None, None, label="SIFT", **dict.fromkeys(SETS, 30.0))]


def runs(seeds: int = 1, order: int = 1):
    """Rows as far apart as they stand in the paper's table: in its order, or against it."""
    levels = {name: 10.0 - order * place for place, name in enumerate(TABLE1_RECIPES)}
    return adasample.table1_values(one_scene(levels, seeds), open_study())


def test_the_paper_is_compared_over_the_columns_that_ours_has():
    common = adasample.table1_common(runs()).droplevel("label")
    assert runs()["hardnet"].cells == ("Lib>Ntr", "Lib>Yos")
    assert common.loc["adasample_aug_gen", "paper"] == pytest.approx((0.40 + 1.40) / 2)
    assert common.loc["sift"].tolist()[:2] == pytest.approx([(22.53 + 27.29) / 2, 30.0])
    assert common["paper"].is_monotonic_decreasing
    assert len(common) == len(TABLE1_RECIPES) + 1


def test_ours_comes_with_the_interval_over_its_seeds():
    three = adasample.table1_common(runs(3)).droplevel("label").loc["hardnet"]
    assert three["ours"] == 10
    assert three["to"] - 10 == pytest.approx(stats.t.ppf(0.975, 2) / 3**0.5)
    assert adasample.table1_common(runs(1)).droplevel("label").loc["hardnet", "to"] == np.inf


def test_the_rank_correlation_is_of_the_two_orders_of_trained_rows():
    common = adasample.table1_common(runs())
    same, opposite = common.assign(ours=common["paper"]), common.assign(ours=-common["paper"])
    assert phototour_figures.orders(same)["Spearman"].tolist() == pytest.approx([1, 1])
    assert phototour_figures.orders(opposite)["Spearman"].tolist() == pytest.approx([-1, -1])
    assert phototour_figures.orders(same)["n"].tolist() == [9, 8]
    # SIFT last in both is no agreement among the others.
    trained = common["ours"].where(common["ours"] == 30, -common["paper"])
    orders = phototour_figures.orders(common.assign(ours=trained))["Spearman"]
    assert orders["trained"] == pytest.approx(-1)
    assert orders["all"] > -1


def test_both_tables_stand_row_by_row_and_the_picture_says_how_they_agree():
    of = runs(3)
    figure = phototour_figures.common_figure(adasample.table1_common(of), of, "quick, mini")
    common = adasample.table1_common(of)
    rho = phototour_figures.orders(common).loc["trained", "Spearman"]
    assert f"{rho:.2f}".replace("-", "−") in figure.get_suptitle()
    for axes, whose in zip(figure.axes, ("paper", "ours"), strict=True):
        dots = [line for line in axes.lines if line.get_marker() == "o"]
        drawn = {float(dot.get_ydata()[0]): float(dot.get_xdata()[0]) for dot in dots}
        drawn = {height: value for height, value in drawn.items() if np.isfinite(value)}
        values = common[whose].tolist()
        places = {len(values) - 1 - place: value for place, value in enumerate(values)}
        assert drawn.items() <= places.items()
        # SIFT's value is written.
        assert len(drawn) == len(values) - 1
        (text,) = axes.texts
        assert text.get_text() == f"{values[0]:.1f} →"
    seeds = [line.get_xdata().tolist() for line in figure.axes[1].lines if line.get_marker() == "|"]
    assert [9.0, 10.0, 11.0] in seeds


def test_one_method_has_one_colour():
    figure = phototour_figures.common_figure(adasample.table1_common(runs()), runs(), "quick, mini")
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    drawn = [line for line in figure.axes[1].lines if line.get_marker() == "o"]
    colours = {names[len(names) - 1 - int(dot.get_ydata()[0])]: dot.get_color() for dot in drawn}
    assert {colours[name] for name in names if name.startswith("AdaSample")} == {PALETTE[1]}
    assert colours["HardNet"] == colours["HardNet+*"] == PALETTE[0]
    assert colours["HardNet-GOR"] == colours["HardNet-GOR+"] not in PALETTE[:2]


def test_baselines_on_fewer_sets_stand_in_the_table_and_take_no_column_from_the_others():
    study = open_study()
    found = [
        with_fpr95("hardnet", train, 0, label="HardNet", **{name: 9.0 for name in SETS if name != train})
        for train in SETS
    ]
    found.append(with_fpr95("l2net", "mini-a", 0, label="L2-Net", **{"mini-b": 8.0, "mini-c": 7.0}))
    found.append(with_fpr95("sift", None, None, label="SIFT", **dict.fromkeys(SETS, 30.0)))
    values = adasample.table1_values(found, study)
    assert list(values) == ["hardnet", "sift"]
    assert len(values["hardnet"].cells) == 6
    table = phototour.verification("adasample", "table1", found, study)
    assert table.loc["L2-Net", [("Lib>Ntr", "ours"), ("Lib>Yos", "ours")]].tolist() == [8, 7]
    assert np.isnan(table.loc["L2-Net", ("Mean", "ours")])
    # Of one train set all are comparable.
    assert list(adasample.table1_values(found[:1] + found[3:], study)) == ["hardnet", "l2net", "sift"]


def test_training_is_followed_without_and_with_augmentation():
    records = [
        found(
            name,
            "mini-a",
            0,
            label=RECIPES[name].label,
            epoch_fpr95={"mini-b": [30.0, 20.0 - place], "mini-c": [99.0, 99.0]},
            config={"profile": {"followed_pairs": 180}},
        )
        for place, name in enumerate(TABLE1_RECIPES)
    ]
    figure = adasample.table1_training(records, open_study())
    without, plus = ([line.get_label() for line in axes.lines] for axes in figure.axes)
    assert without == ["HardNet", "HardNet-GOR", "HardNet*", "AdaSample*"]
    assert plus == [f"{name.removesuffix('*')}+{'*' * name.endswith('*')}" for name in without]
    assert figure.axes[0].lines[0].get_ydata().tolist() == [30, 20]
    assert [text.get_text() for text in figure.axes[0].texts] == without
    assert "180 matching pairs" in figure.get_suptitle()


def drawn() -> dict[str, np.ndarray]:
    """One class of an anchor and three candidates, at three moments."""
    distance = np.array([[np.nan, 0.3, 0.1, 0.2]])
    return {
        "stage": np.array([0.0, 0.5, 1.0]),
        "exponent": np.array([0.0, 5.0, 9.0]),
        "images": np.arange(4, dtype=np.uint8)[None, :, None, None] * np.ones((1, 1, 32, 32), np.uint8),
        "anchor": np.array([0]),
        "generated": np.array([[False, True, False, True]]),
        "distance": np.stack([distance] * 3),
        "probability": np.stack([distance / 0.6] * 3),
        "positive": np.array([[1], [2], [3]]),
        "negative": np.full((3, 1, 32, 32), 9, dtype=np.uint8),
    }


def test_figure_1_shows_anchor_candidates_by_distance_and_negative() -> None:
    above, below = triplets.figure1(drawn()).axes
    assert [int(image.get_array()[0, 0]) for image in above.images] == [0, 2, 3, 1, 9]
    heights = [bar.get_height() for bar in below.patches]
    assert heights[:3] == pytest.approx([0.1 / 0.6, 0.2 / 0.6, 0.3 / 0.6])
    marked = [line for line in below.lines if line.get_marker() == "v"]
    assert len(marked) == 3, "one drawn positive a moment"
    # The anchor and the first candidate are not generated.
    assert [round(outline.get_x()) for outline in above.patches] == [0, 2]


def test_all_rows_of_figure_1_have_one_axis_of_probabilities() -> None:
    one, other = drawn(), drawn()
    other["probability"] = other["probability"] / 10
    by_class = {name: one[name] for name in ("stage", "exponent")}
    for name in ("distance", "probability", "positive", "negative"):
        by_class[name] = np.concatenate([one[name], other[name]], axis=1)
    for name in ("images", "anchor", "generated"):
        by_class[name] = np.concatenate([one[name], other[name]])
    _, first, _, second = triplets.figure1(by_class).axes
    assert first.get_ylim() == second.get_ylim()


def test_the_pace_shows_shares_in_percent() -> None:
    curves = {"step": [1, 2, 3], "two_share": [0.5, 0.4, 0.0]}
    runs = [found("ada", "a", 0, curve={**curves, "exponent": [3.0, 4.0]})]
    runs.append(found("hard", "a", 0, curve=curves))
    left, right = triplets.figure1_pace(runs, "").axes
    assert [line.get_label() for line in left.lines] == ["ADA"]
    assert left.lines[0].get_xdata().tolist() == [2, 3]
    assert right.lines[1].get_ydata().tolist() == pytest.approx([50, 40, 0])
