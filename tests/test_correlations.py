"""Correlations over candidates of classes (AdaSample, Fig. 3), on probes that hands can check."""

from __future__ import annotations

import numpy as np
import pytest

from lib.analysis import correlations
from lib.analysis.correlations import MEAN, Reading

NORMS = np.array([[np.nan, 1.0, 3.0], [np.nan, 10.0, 10.0]])
DISTANCES = np.array([[np.nan, 1.0, 1.0], [np.nan, 1.0, 3.0]])


def probe(
    full: np.ndarray, distance: np.ndarray, originals: tuple[int, ...] = ()
) -> dict[str, np.ndarray]:
    """Return a probe with the same (C, c) norms and distances at both of its stages."""
    return {
        "stage": np.array([0.0, 1.0]),
        "full": np.stack([full, full]),
        "distance": np.stack([distance, distance]),
        "originals": np.array(originals or (full.shape[1],) * len(full)),
    }


def random_probe(classes: int, candidates: int, originals: tuple[int, ...] = ()) -> dict:
    """Return a probe of independent norms and distances; each class has its anchor first."""
    values = np.random.default_rng(0).uniform(0.5, 1.5, size=(2, classes, candidates + 1))
    values[:, :, 0] = np.nan
    return probe(*values, originals)


def paired(
    reading: Reading, arrays: dict[str, np.ndarray], draws: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    return correlations.paired(arrays, 0, reading, np.random.default_rng(0), draws)


def r(reading: Reading, arrays: dict[str, np.ndarray]) -> float:
    return correlations.pearson(arrays, 0, reading, np.random.default_rng(0))[0]


def test_probabilities_sum_to_one_within_each_class() -> None:
    distance, norm = paired(Reading(), probe(NORMS, DISTANCES))
    assert norm[0, 0, 1:].tolist() == [0.25, 0.75]
    assert distance[0, 1, 1:].tolist() == [0.25, 0.75]
    assert np.isnan(norm[0, :, 0]).all(), "the anchor is no candidate"


def test_a_class_without_any_gradient_has_no_probabilities() -> None:
    distance, norm = paired(Reading(), probe(np.array([[0.0, 0.0], [1.0, 2.0]]), np.ones((2, 2))))
    assert np.isnan(distance[0, 0]).all()
    assert np.isnan(norm[0, 0]).all()
    assert np.isfinite(norm[0, 1]).all()


@pytest.mark.parametrize("scale", ["class", "none", "within"])
@pytest.mark.parametrize("size", [None, 3, "own"])
def test_norms_proportional_to_distances_correlate_perfectly_unless_shuffled(scale, size) -> None:
    distance = np.array([[np.nan, 1.0, 2.0, 4.0], [np.nan, 0.5, 0.7, 1.9]])
    arrays = probe(3 * distance, distance, (4, 3))
    assert r(Reading(scale, size), arrays) == pytest.approx(1)
    assert r(Reading(shuffled=True), arrays) < 0.5


def test_correlations_are_those_of_numpy() -> None:
    arrays = random_probe(classes=6, candidates=4)
    distance, norm = arrays["distance"][0, :, 1:], arrays["full"][0, :, 1:]
    by_class = [values / values.sum(axis=1, keepdims=True) for values in (distance, norm)]
    assert r(Reading(), arrays) == pytest.approx(np.corrcoef(*map(np.ravel, by_class))[0, 1])
    assert r(Reading("none"), arrays) == pytest.approx(np.corrcoef(distance.ravel(), norm.ravel())[0, 1])
    within = [np.corrcoef(*pair)[0, 1] for pair in zip(distance, norm, strict=True)]
    assert r(Reading("within"), arrays) == pytest.approx(np.mean(within))


def test_the_sizes_of_classes_alone_correlate_the_probabilities() -> None:
    arrays = random_probe(classes=32, candidates=14, originals=(2, 3, 4, 5) * 8)
    assert abs(r(Reading(), arrays)) < 0.15, "nothing to find"
    assert r(Reading(size="own", shuffled=True), arrays) > 0.8
    assert r(Reading(size="own"), arrays) > 0.8


def test_shuffling_deals_out_the_norms_of_a_class_among_its_candidates() -> None:
    arrays = random_probe(classes=3, candidates=5, originals=(2, 4, 6))
    distance, norm = paired(Reading("none", "own", shuffled=True), arrays, draws=20)
    for drawn in norm:
        assert np.isfinite(drawn).sum(axis=1).tolist() == [1, 3, 5]
        for row, (dealt, norms) in enumerate(zip(drawn, arrays["full"][0], strict=True)):
            expected = norms[1 : arrays["originals"][row]]
            assert sorted(dealt[np.isfinite(dealt)]) == sorted(expected)
    assert len(np.unique(norm[:, 2, 1])) > 1, "not the same each time"
    assert (np.isfinite(distance) == np.isfinite(norm)).all()


def test_a_class_of_two_patches_has_one_candidate_and_no_correlation() -> None:
    arrays = random_probe(classes=6, candidates=4)
    probability, _ = paired(Reading(size=2), arrays, draws=5)
    assert (np.isfinite(probability).sum(axis=2) == 1).all()
    assert np.nanmin(probability) == 1
    assert np.isnan(r(Reading(size=2), arrays))


def test_the_sets_own_patches_are_its_classes_first_candidates() -> None:
    arrays = random_probe(classes=2, candidates=4, originals=(3, 2))
    distance, _ = paired(Reading("none", "own"), arrays)
    assert np.isfinite(distance[0]).tolist() == [
        [False, True, True, False, False],
        [False, True, False, False, False],
    ]


def test_the_quantities_are_those_named() -> None:
    arrays = random_probe(classes=4, candidates=3)
    arrays["squared"] = arrays["distance"] ** 2
    first, second = paired(Reading("none", between=("squared", "full")), arrays)
    assert first[0, :, 1:] == pytest.approx(arrays["distance"][0, :, 1:] ** 2)
    assert second[0, :, 1:] == pytest.approx(arrays["full"][0, :, 1:])


def test_the_interval_is_over_classes() -> None:
    identical = probe(np.tile(NORMS[:1], (4, 1)), np.tile([[np.nan, 1.0, 2.0]], (4, 1)))
    resampled = correlations.pearson(identical, 0, Reading(), np.random.default_rng(0))[1:]
    low, high = np.quantile(resampled, (0, 1))
    assert (low, high) == pytest.approx((1, 1)), "classes that are alike leave nothing open"
    probes = {"run": random_probe(classes=8, candidates=4)}
    table = correlations.correlations(probes, {"per class": Reading()})
    rows = table[table["run"] == "run"]
    assert (rows["low"] < rows["r"]).all()
    assert (rows["high"] > rows["r"]).all()


def test_the_mean_is_over_runs_and_its_interval_is_narrower() -> None:
    probes = {"a": random_probe(8, 4), "b": random_probe(9, 5)}
    readings = {"per class": Reading(), "raw": Reading("none")}
    table = correlations.correlations(probes, readings).set_index(["reading", "stage", "run"])
    assert len(table) == 2 * 2 * 3
    for reading in readings:
        own = table.loc[reading, 1.0]
        assert own.loc["a", "r"] == pytest.approx(r(readings[reading], probes["a"]))
        assert own.loc[MEAN, "r"] == pytest.approx(own.loc[["a", "b"], "r"].mean())
        width = own["high"] - own["low"]
        assert width[MEAN] < width[["a", "b"]].max()
