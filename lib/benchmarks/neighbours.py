"""Nearest descriptors and counts of closer descriptors, as exact as if all pairs were measured.

Squared Euclidean distances are ‖x‖² + ‖y‖² − 2 x·y by a matrix product, in blocks that bound memory.
Nearest neighbours use a float32 product; candidates that its rounding leaves open are measured in
float64. Counts use a float64 product; distances that differ by no more than its rounding count as equal.
Hamming distances of binary descriptors are squared Euclidean distances of their bits: integers, exact
in both precisions.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

# Most numbers in a temporary matrix: what fits a core's cache, and what fills a GPU.
BLOCK = {"cpu": 2**21, "cuda": 2**23}
# The same for pairs that are measured one by one.
PAIRS_BLOCK = {"cpu": 2**18, "cuda": 2**21}
# Columns in a fold; at first only the nearest of each fold is looked at.
FOLD = 20
# Share of the squares compared, above the rounding of a float64 product of 512 numbers or fewer.
ROUNDING = 2.0**-42


def distances(first: Tensor, second: Tensor, pairs: Tensor) -> Tensor:
    """Return the distances of pairs, (m,) float64.

    Pairs, (m, 2) int64, are of rows of ``first`` (p, k) and rows of ``second`` (q, k). The order of
    additions is fixed, so on a CPU equal pairs have equal distances to the last bit.
    """
    measured, step = [], max(1, PAIRS_BLOCK[first.device.type] // first.shape[1])
    for one, other in zip(*(rows.split(step) for rows in pairs.T.contiguous()), strict=True):
        terms = first.index_select(0, one).double()
        terms -= second.index_select(0, other)
        measured.append(torch.linalg.vecdot(terms, terms))
    return torch.cat(measured).sqrt()


def nearest(queries: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
    """Find the nearest column of each query.

    Args:
        queries: (m, k).
        columns: (n, k), n at least 1; the squares of neither overflow float32.

    Returns:
        (m,) float64 distances and (m,) int64 columns, the first of equally near ones.
    """
    # A sum of n products in any order is off by at most n u / (1 − n u) times the sum of their absolute
    # values, u = 2⁻²⁴ (Higham, Accuracy and Stability of Numerical Algorithms, 2002, Sec. 3.1). So ‖y‖²
    # is off by about n u ‖y‖², and ‖y‖² − 2 x·y by as much again plus 2 n u ‖x‖ ‖y‖. The 8 added to n
    # covers the other rounding, and the last term products that underflow. The nearest column may seem
    # too far by that much, and another too near by that much.
    table, n = columns.float(), columns.shape[1]
    squares = torch.linalg.vecdot(table, table)
    longest = squares.max().sqrt()
    nearness, first = [], []
    for some in queries.float().split(max(1, BLOCK[queries.device.type] // len(columns))):
        sizes = longest * (longest + some.norm(dim=1, keepdim=True))
        slack = 4 * (n + 8) * (2.0**-24 * sizes + 2.0**-120)
        scores = F.linear(2 * some, table, -squares)
        folds = F.max_pool1d(scores, FOLD, ceil_mode=True)
        reach = folds.amax(1, keepdim=True) - slack
        row, fold = (folds >= reach).nonzero()[:, :, None].unbind(1)
        # The last fold may be shorter: the last column is then repeated.
        column = (fold * FOLD + torch.arange(FOLD, device=row.device)).clamp(max=len(columns) - 1)
        near = scores[row, column] >= reach[row, 0]
        row, column = row.expand_as(column)[near], column[near]
        measured = distances(some, columns, torch.stack([row, column], 1))
        least = measured.new_full((len(some),), torch.inf).scatter_reduce(0, row, measured, "amin")
        tied = measured == least[row]
        last = column.new_full((len(some),), len(columns))
        nearness.append(least)
        first.append(last.scatter_reduce(0, row[tied], column[tied], "amin"))
    return torch.cat(nearness), torch.cat(first)


def columns_closer(
    queries: Tensor,
    views: Tensor,
    columns: Tensor,
    squares: Tensor,
    ends: Sequence[int],
    views_first: bool = True,
) -> Tensor:
    """Count the columns that come before each view of a query by distance, by prefix of columns.

    Args:
        queries: (m, k).
        views: (m, v, k).
        columns: (n, k) float64.
        squares: (n,) float64, the columns' squared lengths; infinite for columns left out.
        ends: E ascending numbers at which prefixes end; one more prefix has all columns.
        views_first: whether views come before equally distant columns, or after.

    Returns:
        (m, E + 1, v) int64.
    """
    counts = []
    step = max(1, BLOCK[queries.device.type] // max(1, len(columns)))
    for some, own in zip(queries.double().split(step), views.double().split(step), strict=True):
        scores = torch.addmm(squares, some, columns.T, alpha=-2)
        lengths = own.square().sum(2)
        rounding = ROUNDING * (some.square().sum(1, keepdim=True) + lengths)
        limits = lengths - 2 * (own @ some[:, :, None])[:, :, 0]
        limits += -rounding if views_first else rounding
        limits, order = limits.sort(1)
        # A column's place is how many views come before it; each query has its own bins of places.
        place = torch.searchsorted(limits, scores, right=True, out_int32=True)
        bins = limits.shape[1] + 1
        place += bins * torch.arange(len(place), dtype=place.dtype, device=place.device)[:, None]
        by_place = [
            torch.bincount(part.flatten(), minlength=bins * len(place)).view(-1, bins)
            for part in place.tensor_split(ends, 1)
        ]
        closer = torch.stack(by_place, 1).cumsum(1).cumsum(2)[:, :, :-1]
        counts.append(closer.gather(2, order.argsort(1)[:, None].expand_as(closer)))
    return torch.cat(counts)
