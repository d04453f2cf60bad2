"""What the shared figures draw, and the lengths and corners of grey pictures."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from lib.study import figures
from lib.study.tables import LEVELS, METHOD

METHODS = [("sift", "SIFT", None), ("dsm_aug", "DSM+", 0), ("dsm_aug", "DSM+", 1)]


def hpatches(verification: float) -> dict[str, float]:
    """Return numbers under the keys of `lib.benchmarks.hpatches`, some of which are not drawn."""
    numbers = {"verification": verification, "matching": 40.0, "retrieval": 50.0}
    for level in LEVELS:
        numbers[f"verification.{level}.intra.ap"] = verification - 1
        numbers[f"verification.{level}.inter.ap"] = verification + 1
        numbers[f"matching.{level}.viewpoint"] = 39.0
        numbers[f"matching.{level}.illumination"] = 41.0
        numbers[f"retrieval.{level}.all"] = 50.0
        numbers[f"matching.{level}.v_page"] = 10.0
        numbers[f"retrieval.{level}.100"] = 90.0
    return numbers


@pytest.fixture
def drawn():
    index = pd.MultiIndex.from_tuples(METHODS, names=[*METHOD, "seed"])
    table = pd.DataFrame([hpatches(v) for v in (70.0, 80.0, 90.0)], index)
    figure = figures.tasks_figure(table)
    yield figure
    plt.close(figure)


def test_bars_are_the_tasks_numbers_and_the_first_method_is_on_top(drawn):
    verification = drawn.axes[0]
    assert [bar.get_width() for bar in verification.patches] == [70.0, 85.0]
    assert verification.get_ylim()[0] > verification.get_ylim()[1]
    assert [text.get_text() for text in verification.texts] == ["70.0", "85.0"]


def test_markers_are_the_numbers_that_a_task_averages(drawn):
    for axes, expected in zip(drawn.axes, ({69, 71, 84, 86}, {39, 41}, {50}), strict=True):
        points = np.concatenate([np.asarray(c.get_offsets()) for c in axes.collections])
        assert {*points[:, 0]} == expected


def test_a_picture_keeps_its_pixel_coordinates_when_it_is_reduced():
    _, axes = plt.subplots()
    figures.show(axes, np.zeros((400, 800)), width=2.0, first=(10, 20))
    assert axes.images[0].get_extent() == [9.5, 809.5, 419.5, 19.5]
    assert axes.images[0].get_array().shape == (100, 200)
    plt.close()


def test_an_outline_is_the_image_of_the_unit_circle():
    _, axes = plt.subplots()
    figures.outline(axes, np.array([[2.0, 0.0, 5.0], [0.0, 3.0, 7.0]]), "red")
    x, y = axes.lines[1].get_data()
    assert (x[0], y[0]) == (5, 7)
    assert (x[1:].min(), x[1:].max(), y[1:].min(), y[1:].max()) == pytest.approx((3, 7, 4, 10))
    plt.close()


def test_a_mosaic_puts_patches_in_rows_with_white_gaps():
    _, axes = plt.subplots()
    patches = np.arange(6, dtype=np.uint8).reshape(2, 3, 1, 1) * np.ones((8, 8), np.uint8)
    lefts = figures.mosaic(axes, patches, ["first", "second"])
    canvas = axes.images[0].get_array()
    step = 8 + figures.GAP
    assert lefts.tolist() == [0, step, 2 * step]
    assert canvas.shape == (2 * step - figures.GAP, 3 * step - figures.GAP)
    assert [canvas[step, left] for left in lefts] == [3, 4, 5]
    assert (canvas[8:step] == 255).all()
    plt.close()


def test_a_forest_has_a_row_an_effect_from_the_top_with_its_interval_and_its_replicates() -> None:
    index = ["first", "second"]
    effects = pd.DataFrame({"effect": [0.9, 1.2], "from": [0.8, 1.0], "to": [1.0, 1.5]}, index)
    figure, axes = plt.subplots()
    figures.forest(axes, effects, {"first": [0.85, 0.95], "second": [1.2]}, 1, "one place")
    *replicates, lows, highs, means, _ = axes.lines
    drawn = [value for line in replicates for value in line.get_xdata()]
    assert drawn == [0.85, 0.95, 1.2]
    assert [line.get_label() for line in replicates].count("one place") == 1
    assert list(means.get_xdata()) == [0.9, 1.2]
    assert (list(lows.get_xdata()), list(highs.get_xdata())) == ([0.8, 1.0], [1.0, 1.5])
    ends = [segment[:, 0].tolist() for segment in axes.collections[0].get_segments()]
    assert ends == [[0.8, 1.0], [1.0, 1.5]]
    assert [label.get_text() for label in axes.get_yticklabels()] == index
    assert axes.yaxis_inverted()
    plt.close(figure)


def test_a_forest_marks_an_effect_of_a_single_run_and_lowers_indices() -> None:
    effects = pd.DataFrame(
        {"effect": [0.9, 1.2], "from": [0.8, np.nan], "to": [1.0, np.nan]}, ["w_i = 1", "one_place"]
    )
    _, axes = plt.subplots()
    figures.forest(axes, effects, {"w_i = 1": [0.85, 0.95], "one_place": [1.2]}, 1, "one seed")
    handles, labels = axes.get_legend_handles_labels()
    drawn = {label: handle.get_xdata() for label, handle in zip(labels, handles, strict=True)}
    np.testing.assert_array_equal(drawn["mean, with 95% interval"], [0.9, np.nan])
    np.testing.assert_array_equal(drawn["single run, no interval"], [np.nan, 1.2])
    assert [label.get_text() for label in axes.get_yticklabels()] == ["w$_{i}$ = 1", "one_place"]


@pytest.mark.parametrize(
    ("limits", "labels"),
    [((0.78, 1.55), ["0.8", "0.9", "1", "1.2", "1.5"]), ((0.05, 20), ["0.1", "0.3", "1", "3", "10"])],
)
def test_an_axis_of_ratios_is_labelled_within_its_limits_alone(limits, labels):
    figure, axes = plt.subplots()
    axes.set(xscale="log", xlim=limits)
    figures.ratio_ticks(axes.xaxis)
    figure.canvas.draw()
    assert [label.get_text() for label in axes.get_xticklabels()] == labels
    assert not len(axes.xaxis.get_minorticklocs())
    assert axes.get_xlim() == pytest.approx(limits)
    plt.close(figure)
