"""Figure 3 in numbers and Figure 1 as a picture, on probes small enough to reckon by hand."""

from __future__ import annotations

import numpy as np
import pytest
from reporting_records import found

from lib.reporting.papers import adasample
from lib.reporting.papers import adasample_gradients as gradients


def probe(full: np.ndarray, distance: np.ndarray) -> dict[str, np.ndarray]:
    """Two stages of the given (C, c) norms and distances, the same at both."""
    both = {"full": np.stack([full, full]), "distance": np.stack([distance, distance])}
    return {
        "stage": np.array([0.0, 1.0]),
        **both,
        "loss": np.ones_like(both["full"]),
        "raw": np.ones((*both["full"].shape, 3)),
        "near_anchor": np.ones_like(both["full"]),
        "differences": 2 * both["distance"],
        "sphere": np.ones((*both["full"].shape, 3)),
    }


NORMS = np.array([[np.nan, 1.0, 3.0], [np.nan, 10.0, 10.0]])
DISTANCES = np.array([[np.nan, 1.0, 1.0], [np.nan, 1.0, 3.0]])


def test_probabilities_sum_to_one_within_each_class_or_over_the_batch() -> None:
    by_class = gradients.probabilities(NORMS, "per class")
    assert by_class[0, 1:].tolist() == [0.25, 0.75]
    assert np.nansum(by_class, axis=1).tolist() == [1, 1]
    by_batch = gradients.probabilities(NORMS, "per batch")
    assert by_batch[1, 1] == pytest.approx(10 / 24)
    assert np.nansum(by_batch) == pytest.approx(1)
    assert np.isnan(by_batch[:, 0]).all(), "the anchor is no candidate"


def test_a_class_without_any_gradient_has_no_probabilities() -> None:
    assert np.isnan(gradients.probabilities(np.zeros((1, 3)), "per class")).all()


def test_an_unknown_way_is_refused() -> None:
    with pytest.raises(ValueError, match="per class, per batch, got 'per epoch'"):
        gradients.probabilities(NORMS, "per epoch")


def test_norms_proportional_to_distances_correlate_perfectly() -> None:
    distance = np.array([[np.nan, 1.0, 2.0, 4.0], [np.nan, 0.5, 0.7, 1.9]])
    table = gradients.correlations({"run": probe(3 * distance, distance)})
    assert len(table) == 4
    assert table[["pearson", "spearman"]].to_numpy() == pytest.approx(1)
    assert gradients.pearson_values(table, 1)["pearson"].tolist() == [pytest.approx([1, 1])]
    assert gradients.mean_correlations(table).to_numpy() == pytest.approx(1)


def test_correlations_are_those_of_numpy() -> None:
    table = gradients.correlations({"run": probe(NORMS, DISTANCES)})
    by_class = table[table["way"] == "per class"]["pearson"].iloc[0]
    by_hand = np.corrcoef([0.25, 0.75, 0.5, 0.5], [0.5, 0.5, 0.25, 0.75])[0, 1]
    assert by_class == pytest.approx(by_hand)


def test_m_is_the_full_norm_over_that_of_all_three_outputs() -> None:
    (first, _) = gradients.constants(probe(NORMS, DISTANCES))
    assert sorted(first) == pytest.approx(sorted(np.array([1, 3, 10, 10]) / np.sqrt(3)))
    table = gradients.constants_table({"run": probe(NORMS, DISTANCES)})
    values = np.array([1, 3, 10, 10])
    assert table["CV"].iloc[0] == pytest.approx(values.std() / values.mean())
    assert table["zero hinge (%)"].tolist() == [0, 0]


def test_eq_24_holds_where_the_norm_is_twice_the_distance() -> None:
    table = gradients.output_norms_table({"HT": probe(NORMS, DISTANCES)})
    printed = table[(table["gradient"] == "through ‖x − y‖") & (table["negative at"] == "anchor")]
    assert printed[["median", "5%", "95%"]].to_numpy() == pytest.approx(1)
    assert table[table["negative at"] == "positive"]["samples"].tolist() == [0, 0]


def test_figure_3_draws_a_panel_a_stage_and_both_ways() -> None:
    of = {"run": probe(NORMS, DISTANCES)}
    assert len(gradients.probabilities_figure(of["run"], (0, 1), "per class", "").axes) == 2
    assert len(gradients.correlations_figure(gradients.correlations(of), 0.8, "").axes) == 2
    assert len(gradients.constants_figure(of, "").axes) == 1


def drawn() -> dict[str, np.ndarray]:
    """One class of an anchor and three candidates, at three moments."""
    distance = np.array([[np.nan, 0.3, 0.1, 0.2]])
    return {
        "stage": np.array([0.0, 0.5, 1.0]),
        "exponent": np.array([0.0, 5.0, 9.0]),
        "images": np.arange(4, dtype=np.uint8)[None, :, None, None] * np.ones((1, 1, 32, 32), np.uint8),
        "anchor": np.array([0]),
        "distance": np.stack([distance] * 3),
        "probability": np.stack([distance / 0.6] * 3),
        "positive": np.array([[1], [2], [3]]),
        "negative": np.full((3, 1, 32, 32), 9, dtype=np.uint8),
    }


def test_figure_1_shows_anchor_candidates_by_distance_and_negative() -> None:
    above, below = adasample.figure1(drawn()).axes
    assert [int(image.get_array()[0, 0]) for image in above.images] == [0, 2, 3, 1, 9]
    heights = [bar.get_height() for bar in below.patches]
    assert heights[:3] == pytest.approx([0.1 / 0.6, 0.2 / 0.6, 0.3 / 0.6])
    marked = [line for line in below.lines if line.get_marker() == "v"]
    assert len(marked) == 3, "one drawn positive a moment"


def test_the_pace_shows_shares_in_percent() -> None:
    curves = {"step": [1, 2, 3], "two_share": [0.5, 0.4, 0.0]}
    runs = [found("ada", "a", 0, curve={**curves, "exponent": [3.0, 4.0]})]
    runs.append(found("hard", "a", 0, curve=curves))
    left, right = adasample.figure1_pace(runs, "").axes
    assert [line.get_label() for line in left.lines] == ["ADA"]
    assert left.lines[0].get_xdata().tolist() == [2, 3]
    assert right.lines[1].get_ydata().tolist() == pytest.approx([50, 40, 0])
