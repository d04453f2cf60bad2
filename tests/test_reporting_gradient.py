"""AdaSample's Figure 3, Eq. 10 to 13 and footnote 5, on probes small enough to check by hand."""

from __future__ import annotations

import numpy as np
import pytest
from reporting_records import verdict

from lib.statistics import correlation
from lib.statistics.correlation import Reading
from lib.study.claims import read_claims
from lib.study.report import adasample as gradients


def probe(
    full: np.ndarray, distance: np.ndarray, originals: tuple[int, ...] = ()
) -> dict[str, np.ndarray]:
    """Return a probe with the same (C, c) norms and distances at both of its stages."""
    both = {"full": np.stack([full, full]), "distance": np.stack([distance, distance])}
    return {
        "stage": np.array([0.0, 1.0]),
        **both,
        "loss": np.ones_like(both["full"]),
        "output": np.full_like(both["full"], np.sqrt(3)),
        "squared": both["distance"] ** 2,
        "near_anchor": np.ones_like(both["full"]),
        "differences": 2 * both["distance"],
        "sphere": np.ones_like(both["full"]),
        "originals": np.array(originals or (full.shape[1],) * len(full)),
    }


NORMS = np.array([[np.nan, 1.0, 3.0], [np.nan, 10.0, 10.0]])
DISTANCES = np.array([[np.nan, 1.0, 1.0], [np.nan, 1.0, 3.0]])


def paired_values(
    reading: Reading, arrays: dict[str, np.ndarray], draws: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    return correlation.paired(arrays, 0, reading, np.random.default_rng(0), draws)


def r(name: str, arrays: dict[str, np.ndarray]) -> float:
    return correlation.pearson(arrays, 0, gradients.READINGS[name], np.random.default_rng(0))[0]


def random_probe(classes: int, candidates: int, originals: tuple[int, ...] = ()) -> dict:
    """Return a probe of independent norms and distances; each class has its anchor first."""
    values = np.random.default_rng(0).uniform(0.5, 1.5, size=(2, classes, candidates + 1))
    values[:, :, 0] = np.nan
    return probe(*values, originals)


def test_probabilities_sum_to_one_within_each_class() -> None:
    distance, norm = paired_values(Reading(), probe(NORMS, DISTANCES))
    assert norm[0, 0, 1:].tolist() == [0.25, 0.75]
    assert distance[0, 1, 1:].tolist() == [0.25, 0.75]
    assert np.isnan(norm[0, :, 0]).all(), "the anchor is no candidate"


def test_a_class_without_any_gradient_has_no_probabilities() -> None:
    distance, norm = paired_values(Reading(), probe(np.array([[0.0, 0.0], [1.0, 2.0]]), np.ones((2, 2))))
    assert np.isnan(distance[0, 0]).all()
    assert np.isnan(norm[0, 0]).all()
    assert np.isfinite(norm[0, 1]).all()


def test_norms_proportional_to_distances_correlate_perfectly_unless_shuffled() -> None:
    distance = np.array([[np.nan, 1.0, 2.0, 4.0], [np.nan, 0.5, 0.7, 1.9]])
    arrays = probe(3 * distance, distance, (4, 3))
    for name, reading in gradients.READINGS.items():
        if name != "classes of 2" and not reading.shuffled:
            assert r(name, arrays) == pytest.approx(1), name
    assert r("per class, shuffled", arrays) < 0.5


def test_correlations_are_those_of_numpy() -> None:
    arrays = random_probe(classes=6, candidates=4)
    distance, norm = arrays["distance"][0, :, 1:], arrays["full"][0, :, 1:]
    by_class = [values / values.sum(axis=1, keepdims=True) for values in (distance, norm)]
    assert r("per class", arrays) == pytest.approx(np.corrcoef(*map(np.ravel, by_class))[0, 1])
    assert r("not normalised", arrays) == pytest.approx(
        np.corrcoef(distance.ravel(), norm.ravel())[0, 1]
    )
    within = [np.corrcoef(*pair)[0, 1] for pair in zip(distance, norm, strict=True)]
    assert r("mean within a class", arrays) == pytest.approx(np.mean(within))


def test_the_sizes_of_classes_alone_correlate_the_probabilities() -> None:
    sizes = (2, 3, 4, 5) * 8
    arrays = random_probe(classes=32, candidates=14, originals=sizes)
    assert abs(r("per class", arrays)) < 0.15, "nothing to find"
    assert r("the set's class sizes, shuffled", arrays) > 0.8
    assert r("the set's class sizes", arrays) > 0.8


def test_shuffling_deals_out_the_norms_of_a_class_among_its_candidates() -> None:
    arrays = random_probe(classes=3, candidates=5, originals=(2, 4, 6))
    distance, norm = paired_values(Reading("none", "own", shuffled=True), arrays, draws=20)
    for drawn in norm:
        assert np.isfinite(drawn).sum(axis=1).tolist() == [1, 3, 5]
        for row, (dealt, norms) in enumerate(zip(drawn, arrays["full"][0], strict=True)):
            expected = norms[1 : arrays["originals"][row]]
            assert sorted(dealt[np.isfinite(dealt)]) == sorted(expected)
    assert len(np.unique(norm[:, 2, 1])) > 1, "not the same each time"
    assert (np.isfinite(distance) == np.isfinite(norm)).all()


def test_a_class_of_two_patches_has_one_candidate_and_no_correlation() -> None:
    arrays = random_probe(classes=6, candidates=4)
    probability, _ = paired_values(gradients.READINGS["classes of 2"], arrays, draws=5)
    assert (np.isfinite(probability).sum(axis=2) == 1).all()
    assert np.nanmin(probability) == 1
    assert np.isnan(r("classes of 2", arrays))


def test_the_sets_own_patches_are_its_classes_first_candidates() -> None:
    arrays = random_probe(classes=2, candidates=4, originals=(3, 2))
    distance, _ = paired_values(Reading("none", "own"), arrays)
    assert np.isfinite(distance[0]).tolist() == [
        [False, True, True, False, False],
        [False, True, False, False, False],
    ]


def test_the_interval_is_over_classes() -> None:
    identical = probe(np.tile(NORMS[:1], (4, 1)), np.tile([[np.nan, 1.0, 2.0]], (4, 1)))
    low, high = np.quantile(
        correlation.pearson(identical, 0, Reading(), np.random.default_rng(0))[1:], (0, 1)
    )
    assert (low, high) == pytest.approx((1, 1)), "classes that are alike leave nothing open"
    table = gradients.correlations({"run": random_probe(classes=8, candidates=4)})
    rows = table[(table["reading"] == "per class") & (table["run"] == "run")]
    assert (rows["low"] < rows["r"]).all()
    assert (rows["high"] > rows["r"]).all()


def test_values_for_claims_are_ordered_by_seed() -> None:
    seeds = [random_probe(classes=8, candidates=seed + 3) for seed in (0, 1)]
    runs = {"a0": seeds[0], "a1": seeds[1], "b0": seeds[0], "b1": seeds[1]}
    values = gradients.pearson_values(runs, 2)
    first, second = values.values
    assert first == pytest.approx([r("per class", seeds[0])] * 4)
    assert second == pytest.approx([r("per class", seeds[1])] * 4)
    assert gradients.approximation_errors(runs, 2).shape == (2, 4)
    assert values.freedom == 7
    assert values.resampled.shape == (1, 2, 4, 1000)
    # A run's resamples are at its own index, around its own value.
    assert values.resampled[0].mean(axis=-1) == pytest.approx(values.values, abs=0.1)
    assert values.resampled[0, 0].mean() != pytest.approx(values.resampled[0, 1].mean(), abs=0.02)


def test_a_correlation_above_the_claimed_one_is_held_only_by_its_interval() -> None:
    [claim] = read_claims("adasample", "Figure 3")

    def judged(noise: float, classes: int):
        rng = np.random.default_rng(0)
        distance = rng.uniform(0.5, 1.5, size=(classes, 9))
        arrays = probe(distance + noise * rng.normal(size=distance.shape), distance)
        return verdict(
            claim, {"pearson": gradients.pearson_values({"run": arrays}, 1)}, (0,), "evening", "mini"
        )

    result = judged(0.19, 20)
    assert result.observed > 0.8
    assert (result.outcome, result.over) == ("open", "classes")
    assert judged(0.02, 20).outcome == "held"


def test_the_error_of_one_m_is_the_median_distance_from_it() -> None:
    norms = np.array([[np.nan, 1.0, 2.0, 2.0, 3.0, 4.0]])
    errors = gradients.approximation_errors({"run": probe(norms, np.ones_like(norms))}, 1)
    assert errors == pytest.approx(np.full((1, 2), 50)), "off by 50, 0, 0, 50 and 100 percent"


def test_m_is_the_full_norm_over_that_of_all_three_outputs() -> None:
    constants = gradients.constants({"run": probe(NORMS, DISTANCES)})
    assert sorted(constants.loc[constants["stage"] == 0, "M"]) == pytest.approx(
        sorted(np.array([1, 3, 10, 10]) / np.sqrt(3))
    )


SQUARED = np.array([[np.nan, 0.1, 0.4, 0.9], [np.nan, 0.5, 0.6, 1.2]])


def hinges(negative: np.ndarray):
    """Return Eq. 12's table at margin 1, of squared distances and those of the negatives."""
    losses = np.where(np.isfinite(SQUARED), np.maximum(1 + SQUARED - negative, 0), np.nan)
    both = {"distance": np.stack([np.sqrt(SQUARED)] * 2), "loss": np.stack([losses] * 2)}
    both["squared"] = both["distance"] ** 2
    return gradients.hinge_table({"run": {"stage": np.array([0.0, 1.0]), **both}})


def test_the_loss_is_the_squared_distance_with_the_negative_at_the_margin() -> None:
    table = hinges(np.ones_like(SQUARED))
    assert list(table.index) == ["0", "1"]
    assert table[[("r, all classes", "r"), ("r, within a class", "r")]].to_numpy() == pytest.approx(1)
    assert table["power"].to_numpy() == pytest.approx(1)
    assert (table["fraction", "zero"] == 0).all()


def test_negatives_that_differ_between_classes_lower_the_correlation_only_between_them() -> None:
    row = hinges(np.array([[0.2], [1.0]]) * np.ones_like(SQUARED)).loc["1"]
    assert row["r, within a class", "r"] == pytest.approx(1)
    assert row["r, all classes", "r"] < 0.9
    assert row["power", "median"] < 1, "the loss is more than the squared distance"


def test_hinges_that_are_zero_are_counted_and_have_no_power() -> None:
    table = hinges(np.full_like(SQUARED, 1.55))
    assert table["fraction", "zero"].to_numpy() == pytest.approx(3 / 6)
    assert (table["power", "5%"] > 1).all()
