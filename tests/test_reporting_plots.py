"""Plots: the numbers that are drawn, looks that differ, and bytes that repeat."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
from matplotlib import rcParams
from matplotlib.image import imread

from lib.study.report.plots import distance_histograms, intervals
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


def chart():
    with panels(COLUMN_WIDTH, 2, note="a note", legend=1) as (figure, [[axes]]):
        axes.plot([1, 2], [4.0, 2.0], label="A")
    return figure


def probe(shift: float = 0.5) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    edges = np.linspace(0, 2, 41)
    return {
        "edges": edges,
        "matching": np.histogram(rng.normal(shift, 0.1, 2000), edges)[0],
        "non_matching": np.histogram(rng.normal(1.3, 0.1, 2000), edges)[0],
    }


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


def test_intervals_stand_top_down_with_their_ends_and_one_without_an_end_is_a_dot():
    ends = {"from": [0.5, -np.inf], "to": [1.2, np.inf]}
    frame = pd.DataFrame({"x": [1.0, 2.0], **ends}, index=["p", "q"])
    with panels(COLUMN_WIDTH, 2) as (_, [[axes]]):
        intervals(axes, frame, "x", "C0")
    [drawn] = axes.containers
    assert drawn.lines[0].get_xydata().tolist() == [[1.0, 1], [2.0, 0]]
    first, second = drawn.lines[2][0].get_segments()
    assert first.tolist() == [[0.5, 1], [1.2, 1]]
    assert not len(second)
    assert axes.get_yticklabels()[0].get_text() == "p"


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
