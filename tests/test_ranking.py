"""Average precision and ROC AUC against walking down the ranking by hand."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from lib.benchmarks.ranking import average_precision, average_precision_by_negatives, roc_auc

# Few distances, so that most tie, one of them infinite.
rankings = st.lists(
    st.tuples(st.sampled_from([0.0, 0.5, 1.0, 2.0, float("inf")]), st.booleans()),
    min_size=1,
    max_size=12,
)


def as_tensors(pairs) -> tuple[torch.Tensor, torch.Tensor]:
    distances, match = zip(*pairs, strict=True)
    return torch.tensor(distances, dtype=torch.float64), torch.tensor(match)


def walked_down(pairs) -> list[tuple[int, int]]:
    """List true and false positives so far, from none to all that are retrieved."""
    counts = [(0, 0)]
    for distance, match in sorted(pairs, key=lambda pair: pair[0]):
        if distance < float("inf"):
            true, false = counts[-1]
            counts.append((true + match, false + (not match)))
    return counts


def polygon(points) -> float:
    return sum((x2 - x1) * (y1 + y2) / 2 for (x1, y1), (x2, y2) in pairwise(points))


def walked_precision(pairs, positives: int) -> float:
    return polygon(
        [
            (true / max(positives, 1e-10), max(true, 1e-10) / max(true + false, 1e-10))
            for true, false in walked_down(pairs)
        ]
    )


@given(pairs=rankings)
def test_average_precision_is_the_area_under_the_walk_down_the_ranking(pairs):
    expected = walked_precision(pairs, sum(match for _, match in pairs))
    assert average_precision(*as_tensors(pairs)).item() == pytest.approx(expected, abs=1e-12)


@given(pairs=rankings, missed=st.integers(0, 5))
def test_positives_that_are_not_ranked_count_as_never_retrieved(pairs, missed):
    positives = sum(match for _, match in pairs) + missed
    precision = average_precision(*as_tensors(pairs), positives).item()
    assert precision == pytest.approx(walked_precision(pairs, positives), abs=1e-12)


@given(pairs=rankings)
def test_roc_auc_is_the_area_under_the_walk_down_the_ranking(pairs):
    positives = sum(match for _, match in pairs)
    negatives = len(pairs) - positives
    rates = [
        (false / max(negatives, 1e-10), true / max(positives, 1e-10))
        for true, false in walked_down(pairs)
    ]
    assert roc_auc(*as_tensors(pairs)).item() == pytest.approx(polygon(rates), abs=1e-12)


@pytest.mark.parametrize("kind", [torch.uint8, torch.int64, torch.float32])
def test_labels_of_numbers_are_refused(kind: torch.dtype):
    distances, labels = torch.tensor([0.1, 0.2, 0.3]), torch.tensor([1, 0, 1], dtype=kind)
    for area in (average_precision, roc_auc):
        with pytest.raises(ValueError, match="give labels of 0 and 1 as labels == 1"):
            area(distances, labels)


def test_roc_auc_without_ties_is_that_of_scikit_learn():
    random = np.random.default_rng(0)
    distances, match = random.permutation(500) / 7, random.random(500) < 0.3
    area = roc_auc(torch.tensor(distances), torch.tensor(match)).item()
    assert area == pytest.approx(roc_auc_score(match, -distances), abs=1e-12)


@pytest.mark.parametrize(
    ("match", "precision", "area"), [((True, False), 1, 1), ((False, True), 0.25, 0)]
)
def test_the_first_of_equally_distant_pairs_is_ranked_first(match, precision, area):
    # A negative first: precision falls from 1 to almost 0 at recall 0, then rises to 1/2 at recall 1.
    tied = torch.ones(2), torch.tensor(match)
    assert average_precision(*tied).item() == pytest.approx(precision, abs=1e-9)
    assert roc_auc(*tied).item() == area


@given(seed=st.integers(0, 2**31))
def test_each_ranking_of_a_batch_is_measured(seed):
    random = torch.Generator().manual_seed(seed)
    distances = torch.randint(0, 6, (2, 3, 20), generator=random).double()
    match = torch.rand(2, 3, 20, generator=random) < 0.4
    for metric in (average_precision, roc_auc, lambda d, m: average_precision(d, m, 20)):
        batched = metric(distances, match)
        assert batched.shape == (2, 3)
        for index in np.ndindex(2, 3):
            assert batched[index] == metric(distances[index], match[index])


@given(closer=st.lists(st.lists(st.integers(0, 30), min_size=5, max_size=5).map(sorted), min_size=1))
def test_average_precision_from_counts_is_that_of_the_ranking_they_describe(closer):
    precisions = average_precision_by_negatives(torch.tensor(closer))
    for counts, precision in zip(closer, precisions, strict=True):
        ranked = [(float(rank), False) for rank in range(30)]
        ranked += [(count - 0.5, True) for count in counts]
        assert precision.item() == pytest.approx(
            average_precision(*as_tensors(ranked)).item(), abs=1e-12
        )
