"""Nearest descriptors, and how many are closer than a given one, as if all distances were in float64.

A float32 matrix product decides what is clear; what its rounding error leaves open is measured in
float64. So orders and ties are those of measuring every pair, at a fraction of the time, and memory
is bounded by blocks. Hamming distances of binary descriptors are squared Euclidean ones of their bits:
integers that the product has exactly, which leaves nothing open.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

# Numbers that a matrix held for a moment may have: what a core's cache bears, and what fills a GPU.
BLOCK = {"cpu": 2**21, "cuda": 2**23}
# The same where pairs are measured one by one.
PAIRS_BLOCK = {"cpu": 2**18, "cuda": 2**21}
# Columns whose least is looked at first.
FOLD = 20


@dataclass(frozen=True)
class Side:
    """Descriptors along one side of a matrix of distances.

    Attributes:
        rows: (n,) int64, their rows in the table.
        values: (n, k) float32.
        squares: (n,) float64 squared lengths of these; infinite for one that is left out.
        longest: the largest length.
    """

    rows: Tensor
    values: Tensor
    squares: Tensor
    longest: float

    def __len__(self) -> int:
        return len(self.rows)

    def only(self, kept: Tensor) -> Side:
        """The same with those infinitely far that ``kept``, (n,) bool, is false for."""
        return replace(self, squares=self.squares.where(kept, torch.inf))


@dataclass(frozen=True)
class Table:
    """Descriptors on a device.

    Attributes:
        values: (P, k) finite; float32 whose squares do not overflow, or uint8 of 0 and 1 for bits.
    """

    values: Tensor

    @classmethod
    def on(cls, device: str, values: np.ndarray) -> Table:
        """(P, k) descriptors copied to a device; none is made where they are there already."""
        return cls(torch.from_numpy(np.require(values, requirements=["C", "W"])).to(device))

    @property
    def binary(self) -> bool:
        """Whether these are bits."""
        return self.values.dtype == torch.uint8

    @property
    def pairs_at_once(self) -> int:
        """Pairs of descriptors measured together."""
        return max(1, PAIRS_BLOCK[self.values.device.type] // self.values.shape[1])

    def side(self, rows: Tensor) -> Side:
        """Rows, (n,) int64, as a side of a matrix of distances."""
        values = self.values.index_select(0, rows).float()
        squares = torch.cat([some.double().square().sum(1) for some in values.split(self.pairs_at_once)])
        return Side(rows, values, squares, math.sqrt(squares.max().item()) if len(rows) else 0.0)

    def squares(self, first: Tensor, second: Tensor) -> Tensor:
        """Squared distances of pairs of rows, (m,) float64.

        The order of additions is fixed, so equal pairs have equal distances to the last bit. On a CPU
        a row's does not depend on the rows around it; on a GPU it may depend on how many there are, so
        that there every block is filled up to one size.
        """
        measured = first.new_empty(len(first), dtype=torch.float64)
        step = self.pairs_at_once
        for start in range(0, len(first), step):
            one, other = first[start : start + step], second[start : start + step]
            count = len(one)
            if self.values.device.type != "cpu":
                one, other = (F.pad(rows, (0, step - count)) for rows in (one, other))
            terms = self.values.index_select(0, one).double()
            terms -= self.values.index_select(0, other)
            measured[start : start + count] = torch.linalg.vecdot(terms, terms)[:count]
        return measured

    def slack(self, squares: Tensor, columns: Side) -> Tensor:
        """Bound on the error of ‖y‖² − 2 x·y in float32, for (m,) float64 ‖x‖² and the y of columns.

        A sum of n products in any order is off by at most n u / (1 − n u) times the sum of their
        sizes, u = 2⁻²⁴ (Higham, Accuracy and Stability of Numerical Algorithms, 2002, Sec. 3.1), and
        that is at most ‖y‖² + 2 ‖x‖ ‖y‖. A few more n are for the rounding on the way there, also of
        what the result is compared with: that is either no larger, or clear. The last term is for
        products that vanish. Of bits all are integers, and exact.
        """
        if self.binary:
            return torch.zeros_like(squares)
        n = self.values.shape[1] + 8
        sizes = columns.longest**2 + 2 * columns.longest * squares.sqrt()
        return n * (2.0**-24 * sizes + 2.0**-120)


def nearest(table: Table, queries: Side, columns: Side) -> tuple[Tensor, Tensor]:
    """The nearest column of each query.

    Args:
        table: the descriptors.
        queries: m of them.
        columns: n of them, 1 at least.

    Returns:
        (m,) float64 distances and (m,) int64 columns, the first of equally near ones.
    """
    n = len(columns)
    distances = queries.squares.new_full((len(queries),), torch.inf)
    first = torch.full_like(queries.rows, n)
    # Of each few columns the least is looked at, and of the few only where that is low enough.
    folds = math.ceil(n / FOLD)
    width = math.ceil(n / folds)
    padded = F.pad(columns.values, (0, 0, 0, folds * width - n))
    bias = F.pad(columns.squares, (0, folds * width - n), value=torch.inf).float()
    slack = table.slack(queries.squares, columns)[:, None]
    step = max(1, BLOCK[table.values.device.type] // n)
    for start in range(0, len(queries), step):
        part = slice(start, start + step)
        scores = _scores(queries.values[part], padded, bias).view(-1, width, folds)
        leasts = scores.amin(1)
        reach = (leasts.amin(1, keepdim=True) + 2 * slack[part]).float()
        row, fold = (leasts <= reach).nonzero(as_tuple=True)
        of_fold, column = (scores[row, :, fold] <= reach[row]).nonzero(as_tuple=True)
        row, column = row[of_fold] + start, column * folds + fold[of_fold]
        far = table.squares(queries.rows[row], columns.rows[column]).sqrt()
        distances.scatter_reduce_(0, row, far, "amin")
        ties = far == distances[row]
        first.scatter_reduce_(0, row[ties], column[ties], "amin")
    return distances, first


def columns_closer(
    table: Table, queries: Side, views: Tensor, columns: Side, segments: Tensor, prefixes: int
) -> Tensor:
    """How many columns are strictly closer to a query than each of its views, by prefix of columns.

    Args:
        table: the descriptors.
        queries: m of them, 1 at least.
        views: (m, v) rows of the table.
        columns: n of them.
        segments: (n,) int64, 0 to ``prefixes`` − 1, not descending: prefix s is the columns of
            segments 0 to s.
        prefixes: how many.

    Returns:
        (m, prefixes, v) int64.
    """
    m, v = views.shape
    repeated = queries.rows[:, None].expand(m, v).flatten()
    squares, order = table.squares(repeated, views.flatten()).view(m, v).sort(1)
    distances = squares.sqrt()
    limits = squares - queries.squares[:, None]
    slack = table.slack(queries.squares, columns)[:, None]
    # A column's place is the number of views that are no farther: it is closer than those after.
    bins = prefixes * (v + 1)
    offsets = (segments * (v + 1)).int()
    bias = columns.squares.float()
    counts = []
    step = max(1, BLOCK[table.values.device.type] // max(bins, len(columns)))
    for start in range(0, m, step):
        part = slice(start, start + step)
        scores = _scores(queries.values[part], columns.values, bias)
        place = _places(limits[part] + slack[part], scores)
        unclear = (place != _places(limits[part] - slack[part], scores)).nonzero()
        for row, column in (some.unbind(1) for some in unclear.split(table.pairs_at_once)):
            far = table.squares(queries.rows[row + start], columns.rows[column]).sqrt()
            closer_views = distances[row + start] <= far[:, None]
            place[row, column] = closer_views.sum(1, dtype=place.dtype)
        place += offsets
        place += bins * torch.arange(len(place), dtype=place.dtype, device=place.device)[:, None]
        histogram = torch.bincount(place.flatten(), minlength=len(place) * bins)
        counts.append(histogram.view(-1, prefixes, v + 1).cumsum(1).cumsum(2)[:, :, :v])
    by_distance = torch.cat(counts)
    return torch.empty_like(by_distance).scatter_(2, order[:, None].expand_as(by_distance), by_distance)


def _scores(queries: Tensor, columns: Tensor, squares: Tensor) -> Tensor:
    """‖y‖² − 2 x·y, (m, n) float32, as `Table.slack` bounds it."""
    if torch.get_float32_matmul_precision() != "highest":
        raise RuntimeError('call torch.set_float32_matmul_precision("highest"): else float32 is coarse')
    if queries.device.type != "cpu" or len(columns) == 0:
        return F.linear(-2 * queries, columns, squares)
    # On a CPU as a convolution of pixels: torch leaves one of 16 images to oneDNN, whose products are
    # up to twice as fast as those of the library that torch multiplies matrices with.
    k = queries.shape[1]
    images = F.pad(-2 * queries, (0, 0, 0, -len(queries) % 16)).view(16, -1, 1, k).permute(0, 3, 1, 2)
    scores = F.conv2d(images, columns.view(-1, 1, 1, k).permute(0, 3, 1, 2), squares)
    return scores.permute(0, 2, 3, 1).reshape(-1, len(columns))[: len(queries)]


def _places(limits: Tensor, scores: Tensor) -> Tensor:
    """For each score how many of its row's limits, which ascend, are not above it."""
    return torch.searchsorted(limits.float(), scores, right=True, out_int32=True)
