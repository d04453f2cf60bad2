"""L2-Net's loss against its three terms written out, one index at a time."""

from __future__ import annotations

import math

import oracles
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from lib.losses import l2net
from lib.losses.descriptions import Descriptions, Triplets

Rows = list[list[float]]
seeds = st.integers(0, 2**31)


def random(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def triplets(raw: Tensor, *maps: Tensor) -> Triplets:
    """Triplets of raw descriptors and maps (2, n, …); mining plays no part."""
    zeros = torch.zeros(raw.shape[1])
    return Triplets(Descriptions(raw, F.normalize(raw, dim=-1), maps=maps), zeros, zeros, None, zeros)


def losses(raw: Tensor, *maps: Tensor) -> Tensor:
    return l2net.L2NetLoss()(triplets(raw, *maps))


def pair_term(scores: Rows, i: int) -> float:
    """−½ (log of the softmax over columns + over rows) at ii."""
    n = len(scores)
    columns = sum(math.exp(scores[i][j]) for j in range(n))
    rows = sum(math.exp(scores[j][i]) for j in range(n))
    diagonal = math.exp(scores[i][i])
    return -0.5 * (math.log(diagonal / columns) + math.log(diagonal / rows))


def correlation(x: list[float], y: list[float]) -> float:
    n = len(x)
    mean_x, mean_y = sum(x) / n, sum(y) / n
    covariance = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    squares_x = sum((a - mean_x) ** 2 for a in x)
    squares_y = sum((b - mean_y) ** 2 for b in y)
    return covariance / math.sqrt(squares_x * squares_y)


def literal(raw: Tensor, *maps: Tensor) -> tuple[float, float, float]:
    """The terms E1, E2 and E3."""
    n, k = raw.shape[1:]
    first, second = ([oracles.unit(row) for row in side.tolist()] for side in raw)
    similarity = [[2 - oracles.euclidean(x, y, epsilon=1e-6) for y in second] for x in first]
    e1 = sum(pair_term(similarity, i) for i in range(n))
    e2 = 0.0
    for side in raw.tolist():
        columns = [[row[d] for row in side] for d in range(k)]
        for p in range(k):
            for q in range(k):
                if p != q:
                    e2 += 0.5 * correlation(columns[p], columns[q]) ** 2
    e3 = 0.0
    for pair in maps:
        anchors, positives = (side.flatten(1).tolist() for side in pair)
        products = [[oracles.inner(x, y) for y in positives] for x in anchors]
        e3 += sum(pair_term(products, i) for i in range(n))
    return e1, e2, e3


@given(seed=seeds, n=st.integers(3, 6), k=st.integers(2, 5))
def test_the_losses_of_the_pairs_sum_to_the_papers_loss(seed: int, n: int, k: int) -> None:
    raw, first = random(seed, 2, n, k), random(seed + 1, 2, n, 2, 3, 3) / 3
    loss = l2net.L2NetLoss()
    values = loss(triplets(raw, first, raw[..., None, None]))
    e1, e2, e3 = literal(raw, first, raw)
    assert values.shape == (n,)
    assert values.sum().item() == pytest.approx(e1 + e2 + e3, abs=1e-8)
    terms = [loss.seen[name].item() for name in ("e1", "e2", "e3")]
    assert terms == pytest.approx([e1 / n, e2 / n, e3 / n], abs=1e-8)


def test_a_pair_has_its_own_terms_and_an_nth_of_the_shared_term() -> None:
    raw, n = random(0, 2, 4, 3), 4
    order = torch.tensor([2, 0, 3, 1])
    torch.testing.assert_close(losses(raw, raw)[order], losses(raw[:, order], raw[:, order]))
    _, e2, _ = literal(raw, raw)
    anchors, positives = raw.tolist()
    unit_anchors, unit_positives = ([oracles.unit(x) for x in side] for side in (anchors, positives))
    similarity = [[2 - oracles.euclidean(x, y, 1e-6) for y in unit_positives] for x in unit_anchors]
    products = [[oracles.inner(x, y) for y in positives] for x in anchors]
    for i in range(n):
        expected = pair_term(similarity, i) + pair_term(products, i) + e2 / n
        assert losses(raw, raw)[i].item() == pytest.approx(expected, abs=1e-8)


def test_the_loss_passes_gradcheck() -> None:
    raw = random(3, 2, 4, 3).requires_grad_()
    first = (random(4, 2, 4, 2, 2, 2) / 2).requires_grad_()
    assert torch.autograd.gradcheck(losses, (raw, first))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("n", [2, 4])
def test_identical_descriptors_and_maps_leave_loss_and_gradient_finite(n: int, dtype) -> None:
    raw = torch.ones(2, n, 8, dtype=dtype, requires_grad=True)
    # 300 · 300 · 16 overflows float16.
    maps = torch.full((2, n, 1, 4, 4), 300.0, dtype=dtype, requires_grad=True)
    values = losses(raw, maps)
    values.sum().backward()
    assert values.dtype == torch.float32
    torch.testing.assert_close(values.sum(), torch.tensor(2 * n * math.log(n)))
    assert torch.isfinite(raw.grad).all()
    assert torch.isfinite(maps.grad).all()
