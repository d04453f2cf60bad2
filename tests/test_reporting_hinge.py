"""AdaSample's hinge as the theory notebook shows it: against the squared distance, and at zero."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from reporting_records import found

from lib.study.report import frames
from lib.study.report.papers import adasample_hinge as hinge
from lib.theory import hinge_against_distance


def probe(squared: np.ndarray, negative: np.ndarray) -> dict[str, np.ndarray]:
    """Two stages of C classes and c candidates with the given squared distances, at margin 1."""
    distance, losses = np.sqrt(squared), np.maximum(1 + squared - negative, 0)
    losses = np.where(np.isfinite(squared), losses, np.nan)
    return {
        "stage": np.array([0.0, 1.0]),
        "distance": np.stack([distance, distance]),
        "loss": np.stack([losses, losses]),
    }


SQUARED = np.array([[np.nan, 0.1, 0.4, 0.9], [np.nan, 0.5, 0.6, 1.2]])


def test_with_the_negative_at_the_margin_the_loss_is_the_squared_distance():
    table = hinge.trained_table({"HT": {"run": probe(SQUARED, np.ones_like(SQUARED))}})
    assert list(table.index) == [("HT", "0"), ("HT", "1")]
    assert table[[("r, all classes", "r"), ("r, within a class", "r")]].to_numpy() == pytest.approx(1)
    assert table["power"].to_numpy() == pytest.approx(1)
    assert (table["fraction", "zero"] == 0).all()


def test_negatives_that_differ_between_classes_lower_the_correlation_only_between_them():
    negative = np.array([[0.2], [1.0]]) * np.ones_like(SQUARED)
    row = hinge.trained_table({"AHT": {"run": probe(SQUARED, negative)}}).loc["AHT", "1"]
    assert row["r, within a class", "r"] == pytest.approx(1)
    assert row["r, all classes", "r"] < 0.9
    assert row["power", "median"] < 1, "the loss is more than the squared distance"


def test_hinges_that_are_zero_are_counted_and_have_no_power():
    table = hinge.trained_table({"HT": {"run": probe(SQUARED, np.full_like(SQUARED, 1.55))}})
    assert table["fraction", "zero"].to_numpy() == pytest.approx(3 / 6)
    assert (table["power", "5%"] > 1).all()


def test_the_figure_draws_each_candidate_at_the_last_stage():
    left, right = hinge.hinge_figure({name: probe(SQUARED, SQUARED) for name in ("HT", "AHT")}).axes
    drawn = left.lines[0].get_xdata()
    assert drawn[np.isfinite(drawn)] == pytest.approx(SQUARED[np.isfinite(SQUARED)])
    assert "angle" in right.get_xlabel()


def test_random_descriptors_have_a_row_a_loss_and_batch():
    numbers, _ = hinge_against_distance.compute(batches=(64,))
    table = hinge.made_up_table(numbers)
    assert list(table["loss"]) == ["HT", "AHT"]
    assert table["r"].to_numpy() == pytest.approx(table["r by formula"].to_numpy(), abs=0.02)


CURVE = {"step": [1, 2, 3], "d_pos": [1.0, 0.8, 0.5], "d_neg": [1.0, 1.0, 1.1]}


def steps() -> pd.DataFrame:
    runs = [
        found("a", "mini", 0, curve={**CURVE, "zero_share": [0.0, 0.25, 0.5]}),
        found("b", "mini", 0, curve={**CURVE, "zero_share": [0.0, 0.0, 0.0]}),
    ]
    return frames.steps(runs)


def test_zero_hinges_are_counted_and_the_gap_is_negative_minus_positive():
    table = hinge.zero_table(steps())
    assert list(table.index) == ["A", "B"]
    assert list(table["points with a zero"]) == [2, 0]
    assert list(table["largest fraction"]) == [0.5, 0]
    assert list(table["gap, last tenth"]) == pytest.approx([0.6, 0.6])
    left, _ = hinge.zero_hinge_figure(steps(), hinge_against_distance.compute(batches=(64,))[1]).axes
    assert list(left.lines[1].get_ydata()) == pytest.approx([0, 0.2, 0.6])


def test_without_a_run_there_is_nothing_to_draw():
    with pytest.raises(ValueError, match="no curve to draw"):
        hinge.zero_hinge_figure(steps()[:0], hinge_against_distance.compute(batches=(64,))[1])
