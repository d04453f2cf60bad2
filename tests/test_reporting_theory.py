"""AdaSample's theory as its notebook shows it: tables under readers' names, figures that draw them."""

from __future__ import annotations

import math
from functools import cache
from importlib import import_module

import numpy as np
import pandas as pd
import pytest

from lib.reporting.papers import adasample_theory as theory
from lib.reporting.style import png

QUICK = {"unbiasedness": {"draws": 2000, "problems": 2}}


@cache
def computed(name: str) -> tuple[dict, dict]:
    return import_module(f"lib.theory.{name}").compute(**QUICK.get(name, {}))


def test_rounding_reads_the_same_above_and_below_a_power_of_ten():
    table = theory.three_digits(
        pd.DataFrame({"x": [1.0, 1 - 1e-16, 0.0, 12345.678, 0.02345, -0.73523, math.nan]})
    )
    assert list(table["x"][:6]) == ["1.00", "1.00", "0.00", "1.23e+04", "0.0234", "-0.735"]
    assert math.isnan(table["x"][6])


def test_agreement_is_told_without_the_rounding_itself():
    assert theory.agrees(4e-16, 1e-12) == "agree to 1e-12: yes"
    assert theory.agrees(4e-9, 1e-12) == "agree to 1e-12: NO"


def test_tables_hold_the_records_numbers_under_readers_names():
    numbers, arrays = computed("unbiasedness")
    rows = {(row["scheme"], row["exponent"]): row for row in numbers["table"]}
    table = theory.cosine_table(numbers)
    assert table.loc["Z per class, 1/d (raw)", "2a-1 = 7"] == rows["raw", 7]["cosine"]
    assert table.loc["Z per class, Z/d (class)", "share of batch"] == rows["class", 10]["effective"]
    by_class = theory.classes_table(numbers, arrays, 10)
    assert list(by_class["mean d"]) == sorted(arrays["class_distance"])
    assert by_class["Z/d"].to_numpy() == pytest.approx(1)
    spread = theory.problems_table(numbers)
    row = next(r for r in numbers["problems"] if (r["scheme"], r["exponent"]) == ("raw", 10))
    assert list(spread.loc["Z per class, 1/d (raw)", "2a-1 = 10"]) == [
        row["lowest"],
        row["median"],
        row["highest"],
    ]


def steps() -> pd.DataFrame:
    curve = {"step": [1, 2, 3], "d_pos": [1.0, 0.8, 0.5], "d_neg": [1.0, 1.0, 1.1]}
    return pd.concat(
        [
            pd.DataFrame({"key": "a", "label": "A", "seed": 0, **curve, "zero_share": [0.0, 0.25, 0.5]}),
            pd.DataFrame({"key": "b", "label": "B", "seed": 0, **curve, "zero_share": [0.0, 0.0, 0.0]}),
        ]
    )


def test_zero_hinges_are_counted_and_the_gap_is_negative_minus_positive():
    table = theory.zero_table(steps())
    assert list(table.index) == ["A", "B"]
    assert list(table["points with a zero"]) == [2, 0]
    assert list(table["largest zero share"]) == [0.5, 0]
    assert list(table["gap, last tenth"]) == pytest.approx([0.6, 0.6])
    assert theory.zero_shares(steps(), ["a"]) == [0, 0.25, 0.5]
    left, _ = theory.zero_hinge_figure(steps(), computed("hinge_against_distance")[1]).axes
    assert list(left.lines[1].get_ydata()) == pytest.approx([0, 0.2, 0.6])


def test_the_points_of_the_gain_lie_on_the_drawn_line():
    figure = theory.progress_figure(*computed("progress"))
    (axes,) = figure.axes
    line, *points = axes.lines
    for drawn in points:
        on_line = np.interp(drawn.get_xdata(), line.get_xdata(), line.get_ydata())
        inside = np.asarray(drawn.get_xdata()) <= line.get_xdata()[1]
        np.testing.assert_allclose(np.asarray(drawn.get_ydata())[inside], on_line[inside])


def test_on_the_simplex_the_stated_point_is_drawn_at_its_barycentre():
    numbers, arrays = computed("variance")
    figure = theory.variance_figure(numbers, arrays)
    corners = np.array([[0, 0], [1, 0], [0.5, math.sqrt(0.75)]])
    for axes, alpha in zip(figure.axes, (1, 2, 4), strict=False):
        stated = next(line for line in axes.lines if line.get_label().startswith("stated"))
        np.testing.assert_allclose(stated.get_xydata()[0], arrays[f"stated_{alpha}"] @ corners)


def test_an_exponent_that_the_record_lacks_is_refused():
    with pytest.raises(ValueError, match="no exponent 5"):
        theory.unbiasedness_figure(*computed("unbiasedness"), exponent=5)
    with pytest.raises(ValueError, match="no curve to draw"):
        theory.zero_hinge_figure(steps()[:0], computed("hinge_against_distance")[1])


def test_figures_are_pictures_that_repeat():
    draw = {
        "batch_scaling_figure": computed("unbiasedness"),
        "output_gradient_figure": computed("output_gradient")[1:],
        "hinge_figure": computed("hinge_against_distance"),
        "zero_hinge_figure": (steps(), computed("hinge_against_distance")[1]),
    }
    for name, content in draw.items():
        assert png(getattr(theory, name)(*content)).startswith(b"\x89PNG")
    first, second = (png(theory.hinge_figure(*draw["hinge_figure"])) for _ in range(2))
    assert first == second


def test_the_curves_of_the_gradient_are_drawn_along_the_distance():
    left, _ = theory.output_gradient_figure(computed("output_gradient")[1]).axes
    eq24 = next(line for line in left.lines if "Eq. 24" in line.get_label())
    np.testing.assert_allclose(eq24.get_ydata(), 2 * eq24.get_xdata(), atol=3e-3)
