"""Measures of the claims that are derived from curves, arrays and several numbers of a run."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from lib.study.claims import derived, read
from lib.study.store import METRICS

RUN = {"method": "m", "train": "a", "seed": 0}


def curve(name: str, values: list[float], **about: object) -> list[dict[str, object]]:
    """Rows of a curve with a value a step."""
    return [
        {**RUN, **about, "curve": name, "step": step, "value": value}
        for step, value in enumerate(values, start=1)
    ]


def with_curves(*curves: list[dict[str, object]]) -> SimpleNamespace:
    return SimpleNamespace(curves=pd.DataFrame([row for rows in curves for row in rows]))


def with_arrays(probe: str, arrays: dict[str, np.ndarray]) -> SimpleNamespace:
    table = pd.DataFrame([{**RUN, "run": "0"}])
    return SimpleNamespace(table=table, arrays={probe: {"0": arrays}}.__getitem__)


def values(numbers: pd.DataFrame) -> dict[str, float]:
    return numbers.set_index("measure")["value"].to_dict()


def test_shares_without_loss_are_the_largest_and_the_mean_of_the_last_fifth_in_percent():
    shares = curve("zero_share", [0.9, 0, 0, 0, 0, 0, 0, 0, 0.1, 0.3])
    found = derived.without_loss(with_curves(shares, curve("loss", [1.0], method="without a margin")))
    assert found[["method", "test"]].drop_duplicates().values.tolist() == [["m", "a"]]
    assert values(found) == pytest.approx(
        {
            "curves: largest share of triplets with zero loss in a stretch of training": 90,
            "curves: share of triplets with zero loss, in the last fifth of training": 20,
        }
    )


def test_topology_rises_from_the_first_to_the_last_tenth_of_training():
    matched = curve("matched_share", [0.2, 0.3, *[0.9] * 16, 0.5, 0.6])
    lam = curve("mean_lambda", [0.1, 0.1, *[0.0] * 16, 0.2, 0.3])
    found = derived.topology_in_training(with_curves(matched, lam))
    early = "in the last tenth of the steps less"
    assert values(found) == pytest.approx(
        {
            f"curves: matched neighbours {early} those in the first": 30,
            f"curves: mean λ {early} that in the first": 0.15,
        }
    )


def test_triplets_are_those_of_a_batch_at_the_end_of_training():
    first = [9.0, 9.0, 9.0, 9.0]
    positive = np.array([first, [0.0, 0.5, 1.0, 0.5]])
    negative = np.array([first, [1.25, 1.0, 1.25, 0.5]])
    probe = {"positive": positive, "negative": negative, "negative_of_all": negative - 1}
    found = values(derived.triplets_in_batch(with_arrays("triplets_in_batch", probe)))
    assert found["triplets_in_batch: share excluded by a margin of 1"] == 25
    assert found["triplets_in_batch: share excluded by a margin of 0.375"] == 50
    spread = np.std(positive[-1], ddof=1) - np.std(negative[-1], ddof=1)
    name = "triplets_in_batch: standard deviation of d_pos less that of d_neg"
    assert found[name] == pytest.approx(spread)


def test_where_gradients_are_a_constant_times_the_distances_the_error_is_zero_and_the_correlation_one():
    draw = np.random.default_rng(0)
    output = draw.uniform(1, 2, (2, 6, 4))
    full = output * np.array([3.0, 7.0])[:, None, None]
    probe = {"stage": np.array([0.0, 0.5]), "full": full, "output": output, "distance": output}
    probe |= {"originals": np.full(6, 4), "loss": np.ones_like(output)}
    found = derived.gradient_norms(with_arrays("gradient_norms", probe))
    assert set(found["test"]) == {"0% of training", "50% of training"}
    error = found["measure"].str.contains("constant M")
    assert found.loc[error, "value"].tolist() == pytest.approx([0, 0])
    assert found.loc[~error, "value"].tolist() == pytest.approx([1] * 4)


def test_the_rise_under_exposure_is_the_mean_over_the_changes_on_each_test_set():
    rows = [
        (test, f"intensity_changes.{number}.{change}", value)
        for test, by_change in {
            "b": {"none": 1, "gain": 2, "gamma": 5},
            "c": {"none": 2, "gain": 2},
        }.items()
        for change, value in by_change.items()
        for number in ("fpr95", "norm_shift")
    ]
    runs = (
        pd.DataFrame(rows, columns=["test", "measure", "value"]).assign(**RUN).reindex(columns=METRICS)
    )
    found = derived.rise_under_exposure(runs)
    assert found.set_index("test")["value"].to_dict() == {"b": 2.5, "c": 0}


def test_every_measure_is_one_of_the_claims():
    """A misspelt measure would leave its sentence without a grade."""
    measures = set(read()["measure"])
    shares = curve("zero_share", [0.5] * 10)
    lam = curve("mean_lambda", [0.5] * 10) + curve("matched_share", [0.5] * 10)
    for found in (
        derived.without_loss(with_curves(shares)),
        derived.topology_in_training(with_curves(lam)),
    ):
        assert set(found["measure"]) <= measures
