"""AdaSample's theory as its notebook shows it: tables under readers' names, figures that draw them."""

from __future__ import annotations

import math
from functools import cache
from importlib import import_module

import numpy as np
import pandas as pd
import pytest

from lib.study.report.papers import adasample_theory as theory
from lib.study.report.style import png

QUICK = {
    "unbiasedness": {"draws": 2000, "problems": 2, "exponents": (1, 8, 10)},
    "variance": {"exponents": (1, 3, 10), "samples": (3, 12), "starts": 1},
}


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
    table = theory.cosine_table(arrays, (1, 10))
    assert table.loc["Z per class, 1/d (raw)", ("cosine at 2a-1 =", "10")] == arrays["cosine_raw"][2]
    assert table.loc["Z per class, Z/d (class)", ("at 10", "of batch")] == arrays["effective_class"][2]
    assert table.loc["Z per class, Z/d", ("length", "first")] == arrays["length_class, raw"][0]
    by_class = theory.classes_table(arrays, 10)
    assert list(by_class["mean d"]) == sorted(arrays["class_distance"])
    assert by_class["Z/d"].to_numpy() == pytest.approx(1)
    spread = theory.problems_table(numbers)
    row = next(r for r in numbers["problems"] if (r["scheme"], r["exponent"]) == ("raw", 10))
    assert list(spread.loc["Z per class, 1/d (raw)", "2a-1 = 10"]) == [
        row["lowest"],
        row["median"],
        row["highest"],
    ]
    unequal = theory.unequal_table(numbers, (1, 8))
    assert list(unequal.columns) == ["2a-1 = 1", "2a-1 = 8"]
    assert unequal.loc["Z per class, k Z/d"].to_numpy() == pytest.approx(1)


def test_the_variance_is_compared_by_exponent_and_number_of_samples():
    numbers, _ = computed("variance")
    table = theory.variance_table(numbers, (1, 10))
    assert list(table.index) == [1, 10]
    assert list(table["", "alpha"]) == [1, 5.5]
    at = list(zip(numbers["samples"], numbers["exponent"], strict=True)).index((12, 10))
    assert table.loc[10, ("uniform / stated", "K = 12")] == numbers["gain"][at]
    assert (table["", "search"] == "same p").all()


def curve(label: str, exponents: list[float]) -> pd.DataFrame:
    return pd.DataFrame({"label": label, "step": range(len(exponents)), "exponent": exponents})


def test_the_exponents_shown_are_those_that_training_passed_and_of_converged_losses():
    steps = pd.concat([curve("A", [math.nan, 8.4, 7.1, 9.0]), curve("blind", [math.nan] * 4)])
    passed = theory.exponents_passed(steps)
    assert passed.loc["A"].tolist() == [8.4, 7.1, 9.0, 9.0]
    assert list(passed.index) == ["A"], "no exponent without AdaSample"
    assert theory.exponents_shown(passed) == (1, 6, 8, 10, 20, 50, 100)
    further = theory.exponents_passed(curve("B", [10.0, 16.0]))
    assert theory.exponents_shown(further, converged=(0.1,)) == (1, 10, 12, 14, 17, 100)


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
    for axes, exponent in zip(figure.axes, (1, 3, 10), strict=False):
        stated = next(line for line in axes.lines if line.get_label().startswith("stated"))
        np.testing.assert_allclose(stated.get_xydata()[0], arrays[f"stated_{exponent}"] @ corners)


def test_an_exponent_that_the_record_lacks_is_refused():
    with pytest.raises(ValueError, match="5 is not in list"):
        theory.unbiasedness_figure(computed("unbiasedness")[1], 5, (7, 9))


def test_the_exponents_of_training_are_shaded():
    left, _ = theory.unbiasedness_figure(computed("unbiasedness")[1], 8, (7, 9.5)).axes
    (shaded,) = left.patches
    assert shaded.get_extents().transformed(left.transData.inverted()).intervalx == pytest.approx(
        [7, 9.5]
    )


def test_figures_are_pictures_that_repeat():
    draw = {
        "batch_scaling_figure": computed("unbiasedness"),
        "output_gradient_figure": computed("output_gradient")[1:],
    }
    for name, content in draw.items():
        first, second = (png(getattr(theory, name)(*content)) for _ in range(2))
        assert first.startswith(b"\x89PNG")
        assert first == second


def test_the_curves_of_the_gradient_are_drawn_along_the_distance():
    left, _ = theory.output_gradient_figure(computed("output_gradient")[1]).axes
    eq24 = next(line for line in left.lines if "Eq. 24" in line.get_label())
    np.testing.assert_allclose(eq24.get_ydata(), 2 * eq24.get_xdata(), atol=3e-3)
