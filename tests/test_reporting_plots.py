"""Plots: the numbers that are drawn, bytes that repeat, and values that cannot be drawn."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
from matplotlib import rcParams
from matplotlib.image import imread

from lib.reporting.plots import beside, curves, curves_figure, distance_histograms, intervals
from lib.reporting.style import COLUMN_WIDTH, DOUBLE_WIDTH, LINES, PALETTE, look, panels, png, style

VALUE = "mean FPR95 (%)"
PAPER = {"SIFT": [26.55], "HardNet*": [1.65], "MatchNet": [8.05]}
OURS = {"SIFT": [22.0], "HardNet*": [9.0, 11.0, 10.0], "RootSIFT": [21.0]}


def both(paper: dict, ours: dict) -> pd.DataFrame:
    rows = [
        (label, whose, value)
        for whose, of in (("paper", paper), ("ours", ours))
        for label, values in of.items()
        for value in values
    ]
    return pd.DataFrame(rows, columns=["label", "whose", VALUE])


def dots(paper: dict = PAPER, ours: dict = OURS):
    return beside(both(paper, ours), VALUE, "label", "whose")


def epochs(of: dict[str, list[list[float]]]) -> pd.DataFrame:
    rows = [
        (label, seed, epoch, value)
        for label, by_seed in of.items()
        for seed, values in enumerate(by_seed)
        for epoch, value in enumerate(values, 1)
    ]
    return pd.DataFrame(rows, columns=["label", "seed", "epoch", "FPR95 (%)"])


def learning(of: dict[str, list[list[float]]]):
    return curves_figure(epochs(of), "epoch", "FPR95 (%)", "label", log="y")


def probe(shift: float = 0.5) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    edges = np.linspace(0, 2, 41)
    return {
        "edges": edges,
        "matching": np.histogram(rng.normal(shift, 0.1, 2000), edges)[0],
        "non_matching": np.histogram(rng.normal(1.3, 0.1, 2000), edges)[0],
    }


def test_dots_stand_at_the_papers_value_and_at_our_mean_and_the_bar_spans_the_seeds():
    axes = dots().axes[0]
    lines = {line.get_label(): line for line in axes.lines}
    rows = {
        label.get_text(): y for label, y in zip(axes.get_yticklabels(), axes.get_yticks(), strict=True)
    }
    paper = lines["paper"]
    assert dict(zip(paper.get_ydata(), paper.get_xdata(), strict=True)) == {
        rows[label]: value for label, (value,) in PAPER.items()
    }
    ours = lines["ours, bar: range over seeds"]
    assert dict(zip(ours.get_ydata(), ours.get_xdata(), strict=True)) == {
        rows["SIFT"]: 22.0,
        rows["HardNet*"]: 10.0,
        rows["RootSIFT"]: 21.0,
    }
    bars = np.concatenate([of.get_segments() for of in axes.collections if len(of.get_segments())])
    assert bars.tolist() == [[[9.0, rows["HardNet*"]], [11.0, rows["HardNet*"]]]]
    assert paper.get_markerfacecolor() == "white"
    assert axes.get_xscale() == "log"
    assert axes.get_xlabel() == VALUE
    assert rows["SIFT"] > rows["HardNet*"] > rows["RootSIFT"]


def test_one_seed_is_called_one_seed():
    figure = dots({"A": [1.0]}, {"A": [2.0]})
    assert "ours, one seed" in [line.get_label() for line in figure.axes[0].lines]


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_a_value_that_cannot_stand_on_a_log_axis_is_refused(bad):
    with pytest.raises(ValueError, match="cannot stand on a log axis"):
        dots({"A": [1.0]}, {"A": [bad]})
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


def test_counts_that_do_not_fit_are_refused_by_the_panels_title():
    with pytest.raises(ValueError, match="panel 'A'"):
        distance_histograms({"A": {**probe(), "matching": [1, 2, 3]}})
    with pytest.raises(ValueError, match="panel 'A'"):
        distance_histograms({"A": {**probe(), "non_matching": np.zeros(40)}})
    with pytest.raises(ValueError, match="no panel"):
        distance_histograms({})


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


def test_a_value_on_the_horizontal_axis_may_be_marked():
    frame = pd.DataFrame({"rate": [0.1, 1.0], "y": [1.0, 2.0], "by": ["a", "a"]})
    _, mark = curves_figure(frame, "rate", "y", "by", log="x", marked=0.5).axes[0].lines
    assert list(mark.get_xdata()) == [0.5, 0.5]


def test_intervals_stand_top_down_with_their_error_either_way():
    frame = pd.DataFrame({"x": [1.0, 2.0], "e": [0.5, np.nan], "name": ["p", "q"], "by": ["a", "b"]})
    with panels(COLUMN_WIDTH, 2) as (_, [[axes]]):
        intervals(axes, frame, "x", "e", "name", "by")
    first, second = axes.containers
    assert (first.lines[0].get_xdata()[0], first.lines[0].get_ydata()[0]) == (1.0, 1)
    assert (second.lines[0].get_xdata()[0], second.lines[0].get_ydata()[0]) == (2.0, 0)
    assert first.lines[2][0].get_segments()[0].tolist() == [[0.5, 1], [1.5, 1]]
    assert axes.get_yticklabels()[0].get_text() == "p"


def test_curves_keep_the_grid_that_their_panels_have():
    frame = pd.DataFrame({"x": [0, 1], "y": [0.1, 0.2], "by": "one"})
    with panels(COLUMN_WIDTH, 2, grid="both") as (_, [[axes]]):
        curves(axes, frame, "x", "y", "by")
    lines = axes.xaxis.get_gridlines() + axes.yaxis.get_gridlines()
    assert all(line.get_visible() for line in lines)


def test_more_methods_than_colours_still_look_different():
    looks = [tuple(look(place).values()) for place in range(2 * len(PALETTE))]
    assert len(set(looks)) == len(looks)
    assert len(LINES) == len(PALETTE)


def test_the_same_figure_gives_the_same_bytes_at_200_dots_an_inch():
    content = png(dots())
    assert imread(io.BytesIO(content)).shape[1] == round(dots().get_figwidth() * 200)
    for name in (b"Software", b"tEXt", b"tIME", b"matplotlib"):
        assert name not in content
    assert png(dots()) == content


def test_figures_do_not_depend_on_the_users_settings_and_leave_them_alone():
    plain = png(dots())
    before = rcParams["font.size"]
    try:
        rcParams["font.size"] = 23
        rcParams["savefig.facecolor"] = "black"
        assert png(dots()) == plain
        assert rcParams["font.size"] == 23
    finally:
        rcParams["font.size"] = before
        rcParams["savefig.facecolor"] = "auto"
    with style():
        assert rcParams["font.size"] == 8
