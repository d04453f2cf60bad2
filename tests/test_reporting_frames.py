"""Records as frames: every number with its run, laid out without losing or mixing any."""

from __future__ import annotations

import pytest
from reporting_records import found, with_fpr95

from lib.study.report import frames


def three_records() -> list:
    return [
        with_fpr95("sift", None, None, a=30.0, b=20.0),
        with_fpr95("net", "a", 1, b=5.0, c=7.0),
        with_fpr95("net", "a", 0, b=4.0, c=6.0),
    ]


def test_every_number_keeps_its_record_test_set_and_key():
    frame = frames.tidy(three_records(), "fpr95")
    assert len(frame) == 2 * 6
    row = frame.query("key == 'net' and seed == 1 and test_set == 'c' and metric == 'expected'")
    assert row[["label", "train_set", "value"]].to_numpy().tolist() == [["NET", "a", 7.0]]
    assert frame.query("key == 'sift'")["seed"].isna().all()


def test_a_curve_that_begins_later_ends_with_the_others():
    frame = frames.steps([found("net", "a", 0, curve={"step": [1, 2, 3], "exponent": [5.0, 6.0]})])
    assert frame["step"].tolist() == [1, 2, 3]
    assert frame["exponent"].isna().tolist() == [True, False, False]
    assert frame["exponent"].tolist()[1:] == [5.0, 6.0]


def test_each_run_is_a_row_with_methods_in_order_and_seeds_ascending():
    table = frames.wide(frames.fpr95(three_records()), "test_set")
    assert table.index.get_level_values("key").tolist() == ["sift", "net", "net"]
    assert table["b"].tolist() == [20.0, 4.0, 5.0]
    assert table["a"].isna().tolist() == [False, True, True]


def test_means_and_deviations_are_over_seeds():
    table = frames.wide(frames.fpr95(three_records()), "test_set")
    assert frames.means(table)["b"].tolist() == [20.0, 4.5]
    deviations = frames.summary(table)["sd"]
    assert deviations.loc[("net", "NET"), "c"] == pytest.approx(0.5**0.5)
    assert deviations.loc[("sift", "SIFT")].isna().all()
