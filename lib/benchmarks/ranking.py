"""Average precision and ROC AUC as in the HPatches benchmark (Balntas et al., CVPR 2017).

Both are areas under a polygon by the trapezoid rule. Pairs are ranked by distance, closest first, and
equally distant pairs keep the order in which they are given: the caller decides how ties go. Precision
starts at 1 for recall 0. Other definitions of average precision (VOC's, scikit-learn's step sum) give
other numbers.
"""

import torch
from torch import Tensor

# Replaces a count of zero in a ratio: precision is then 1 before anything is retrieved, and almost 0
# while only negatives are retrieved.
SMALL = 1e-10


def average_precision(distances: Tensor, match: Tensor, positives: int | None = None) -> Tensor:
    """Compute the area under precision over recall for each of a batch of rankings.

    Args:
        distances: (…, n), none NaN. One that is infinite is never retrieved.
        match: (…, n) bool, true for positives.
        positives: how many there are to retrieve, among the n or not; by default those among the n.

    Returns:
        (…) float64, 0 to 1; 0 where there is no positive.

    Raises:
        ValueError: `match` is not of bool.
    """
    hits, retrieved = _ranked(distances, match)
    total = match.sum(-1)
    if positives is not None:
        total = torch.full_like(total, positives)
    rank = torch.arange(1, hits.shape[-1] + 1, device=hits.device)
    areas = _trapezoids(hits.cumsum(-1), rank)
    return areas.where(hits & retrieved, 0.0).sum(-1) / total.double().clamp(min=SMALL)


def average_precision_by_negatives(closer: Tensor) -> Tensor:
    """Compute average precision from counts alone, for few positives among very many negatives.

    Args:
        closer: (…, P) integers, ascending: the number of negatives ranked before each positive.

    Returns:
        (…) float64, 0 to 1: what `average_precision` gives for such a ranking.
    """
    true = torch.arange(1, closer.shape[-1] + 1, device=closer.device)
    return _trapezoids(true, closer + true).mean(-1)


def roc_auc(distances: Tensor, match: Tensor) -> Tensor:
    """Compute the area under true over false positive rate for each of a batch of rankings.

    Args:
        distances: (…, n), none NaN. One that is infinite is never retrieved.
        match: (…, n) bool, true for positives.

    Returns:
        (…) float64, 0 to 1; 0 where one kind is missing.

    Raises:
        ValueError: `match` is not of bool.
    """
    hits, retrieved = _ranked(distances, match)
    before = hits.cumsum(-1).where(~hits & retrieved, 0).sum(-1).double()
    positives = match.sum(-1).double().clamp(min=SMALL)
    negatives = (~match).sum(-1).double().clamp(min=SMALL)
    return before / positives / negatives


def _ranked(distances: Tensor, match: Tensor) -> tuple[Tensor, Tensor]:
    """Return two (…, n) bool in order of rank: which are positives, and which are retrieved at all."""
    # The complement of a number 0 or 1 is not its opposite.
    if match.dtype != torch.bool:
        raise ValueError(f"match is of bool, got {match.dtype}: give labels of 0 and 1 as labels == 1")
    ordered, order = torch.sort(distances, dim=-1, stable=True)
    return match.gather(-1, order), ordered < torch.inf


def _trapezoids(true: Tensor, rank: Tensor) -> Tensor:
    """Average the precisions at the ``true``-th positive and just before it, in float64."""
    at = true.double().clamp(min=SMALL) / rank.double().clamp(min=SMALL)
    before = (true - 1).double().clamp(min=SMALL) / (rank - 1).double().clamp(min=SMALL)
    return (at + before) / 2
