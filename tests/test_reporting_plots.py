"""Plots: the numbers that are drawn, bytes that repeat, and values that cannot be drawn."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
from matplotlib import rcParams
from matplotlib.image import imread

from lib.study.report.plots import (
    bars,
    curves,
    curves_figure,
    distance_histograms,
    intervals,
    label_ends,
)
from lib.study.report.style import (
    COLUMN_WIDTH,
    DOUBLE_WIDTH,
    LINES,
    PALETTE,
    look,
    looks,
    panels,
    png,
    style,
)


def epochs(of: dict[str, list[list[float]]]) -> pd.DataFrame:
    rows = [
        (label, seed, epoch, value)
        for label, by_seed in of.items()
        for seed, values in enumerate(by_seed)
        for epoch, value in enumerate(values, 1)
    ]
    return pd.DataFrame(rows, columns=["label", "seed", "epoch", "FPR95 (%)"])


def learning(of: dict[str, list[list[float]]]):
    return curves_figure(epochs(of), "epoch", "FPR95 (%)", "label")


def chart():
    return learning({"A": [[4.0, 2.0], [6.0, 4.0]], "B": [[3.0, 3.0]]})


def probe(shift: float = 0.5) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    edges = np.linspace(0, 2, 41)
    return {
        "edges": edges,
        "matching": np.histogram(rng.normal(shift, 0.1, 2000), edges)[0],
        "non_matching": np.histogram(rng.normal(1.3, 0.1, 2000), edges)[0],
    }


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_a_value_that_cannot_stand_on_a_log_axis_is_refused(bad):
    with pytest.raises(ValueError, match="cannot stand on a log axis"):
        learning({"A": [[1.0, bad]]})


def test_densities_integrate_to_one_and_the_line_stands_at_95_percent_recall():
    figure = distance_histograms({"A": probe(), "B": probe(0.8)})
    assert figure.get_figwidth() == DOUBLE_WIDTH
    for axes, shift in zip(figure.axes, (0.5, 0.8), strict=True):
        for patch in axes.patches:
            data = patch.get_data()
            assert np.sum(data.values * np.diff(data.edges)) == pytest.approx(1.0)
        (line,) = axes.lines
        assert line.get_xdata()[0] == pytest.approx(shift + 1.645 * 0.1, abs=0.02)


def test_the_line_stands_as_far_into_its_bin_as_pairs_of_it_are_needed():
    for counts, place in (([95, 5], 1.0), ([90, 10], 1.5), ([0, 100], 1.95)):
        binned = {"edges": [0, 1, 2], "matching": counts, "non_matching": [1, 1]}
        (line,) = distance_histograms({"A": binned}).axes[0].lines
        assert line.get_xdata()[0] == pytest.approx(place)


def test_curves_are_means_over_seeds_in_a_band_of_their_range():
    axes = learning({"A": [[4.0, 2.0], [6.0, 4.0]], "B": [[3.0, 3.0]]}).axes[0]
    first, second = axes.lines
    assert list(first.get_xdata()) == [1, 2]
    assert list(first.get_ydata()) == [5.0, 3.0]
    assert list(second.get_ydata()) == [3.0, 3.0]
    (band,) = axes.collections
    assert {tuple(corner) for corner in band.get_paths()[0].vertices} >= {
        (1, 4.0),
        (1, 6.0),
        (2, 2.0),
        (2, 4.0),
    }
    assert first.get_linestyle() != second.get_linestyle()
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("epoch", "FPR95 (%)")


def test_seeds_of_unequal_length_are_refused_by_the_methods_label():
    with pytest.raises(ValueError, match="curve of A: more values at one epoch"):
        learning({"A": [[1.0], [1.0, 2.0]]})
    with pytest.raises(ValueError, match="no curve"):
        curves_figure(epochs({"A": [[1.0]]}).iloc[:0], "epoch", "FPR95 (%)", "label")


def test_names_stand_at_the_ends_in_their_order_and_colour_and_not_on_each_other():
    with panels(COLUMN_WIDTH, 2) as (_, [[axes]]):
        for label, end in (("low", 0.0), ("high", 10.0), ("middle", 9.9), ("unknown", np.nan)):
            axes.plot([0, 1], [end, end], label=label)
        axes.plot([0, 1], [1, 1])
        label_ends(axes)
    placed = {text.get_text(): text.xyann[1] for text in axes.texts}
    assert sorted(placed, key=placed.get) == ["low", "middle", "high"]
    heights = sorted(placed.values())
    assert min(np.diff(heights)) > 0.05
    assert heights[-1] <= 1
    assert [text.get_color() for text in axes.texts] == [line.get_color() for line in axes.lines[:3]]
    assert dict(zip(placed, [text.xy for text in axes.texts], strict=True))["low"] == pytest.approx(
        (1, 0)
    )


def test_intervals_stand_top_down_with_their_ends_and_one_without_an_end_is_a_dot():
    ends = {"from": [0.5, -np.inf], "to": [1.2, np.inf]}
    frame = pd.DataFrame({"x": [1.0, 2.0], **ends, "by": ["a", "b"]}, index=["p", "q"])
    with panels(COLUMN_WIDTH, 2) as (_, [[axes]]):
        intervals(axes, frame, "x", "by")
    first, second = axes.containers
    assert (first.lines[0].get_xdata()[0], first.lines[0].get_ydata()[0]) == (1.0, 1)
    assert (second.lines[0].get_xdata()[0], second.lines[0].get_ydata()[0]) == (2.0, 0)
    assert first.lines[2][0].get_segments()[0].tolist() == [[0.5, 1], [1.2, 1]]
    assert np.isnan(bars(frame, "x")[:, 1]).all()
    assert np.isnan(bars(frame[["x"]], "x")).all()
    assert axes.get_yticklabels()[0].get_text() == "p"


def test_rows_of_one_kind_look_alike_and_methods_have_their_colours():
    frame = pd.DataFrame({"x": [1.0, 2.0], "by": ["AdaSample+*", "HardNet"]})
    with panels(COLUMN_WIDTH, 2, 2) as (_, [[plain, coloured]]):
        intervals(plain, frame, "x")
        intervals(coloured, frame, "x", "by")
    (alike,) = plain.containers
    assert alike.lines[0].get_xdata().tolist() == [1, 2]
    assert [of.lines[0].get_color() for of in coloured.containers] == [PALETTE[1], PALETTE[0]]


def test_curves_keep_the_grid_that_their_panels_have():
    frame = pd.DataFrame({"x": [0, 1], "y": [0.1, 0.2], "by": "one"})
    with panels(COLUMN_WIDTH, 2, grid="both") as (_, [[axes]]):
        curves(axes, frame, "x", "y", "by")
    lines = axes.xaxis.get_gridlines() + axes.yaxis.get_gridlines()
    assert all(line.get_visible() for line in lines)


def test_more_methods_than_colours_still_look_different():
    seen = [tuple(look(place).values()) for place in range(2 * len(PALETTE))]
    assert len(set(seen)) == len(seen)
    assert len(LINES) == len(PALETTE)


METHODS = [f"{name}{marks}" for name in ("HardNet", "AdaSample") for marks in ("", "*", "+", "+*")]


def test_colour_tells_the_method_and_dash_its_marks_wherever_it_is_drawn():
    found = looks(METHODS)
    assert {of["color"] for name, of in found.items() if name.startswith("AdaSample")} == {PALETTE[1]}
    assert len({of["color"] for of in found.values()}) == 2
    assert len({of["ls"] for of in found.values()}) == 4
    assert looks(["HardNet-GOR+", "AdaSample+*"])["AdaSample+*"] == found["AdaSample+*"]


def test_no_two_labels_look_alike_and_those_of_no_method_go_by_place():
    many = [*METHODS, "HardNet-GOR", *(f"rung {number}" for number in range(20))]
    seen = [tuple(of.values()) for of in looks(many).values()]
    assert len(set(seen)) == len(many)
    assert looks(["float32", "bfloat16"])["bfloat16"] == look(1)


def test_the_same_figure_gives_the_same_bytes_at_200_dots_an_inch():
    content = png(chart())
    assert imread(io.BytesIO(content)).shape[1] == round(chart().get_figwidth() * 200)
    for name in (b"Software", b"tEXt", b"tIME", b"matplotlib"):
        assert name not in content
    assert png(chart()) == content


def test_figures_do_not_depend_on_the_users_settings_and_leave_them_alone():
    plain = png(chart())
    before = rcParams["font.size"]
    try:
        rcParams["font.size"] = 23
        rcParams["savefig.facecolor"] = "black"
        assert png(chart()) == plain
        assert rcParams["font.size"] == 23
    finally:
        rcParams["font.size"] = before
        rcParams["savefig.facecolor"] = "auto"
    with style():
        assert rcParams["font.size"] == 8
