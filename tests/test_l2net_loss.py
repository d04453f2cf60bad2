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

from lib.descriptions import Descriptions, Triplets
from lib.losses import l2net

Rows = list[list[float]]
seeds = st.integers(0, 2**31)


def random(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def triplets(raw: Tensor, *maps: Tensor) -> Triplets:
    """Of raw descriptors and maps (2, n, …); what is mined plays no part."""
    nothing = torch.zeros(raw.shape[1])
    return Triplets(
        Descriptions(raw, F.normalize(raw, dim=-1), maps=maps), nothing, nothing, None, nothing
    )


def losses(raw: Tensor, *maps: Tensor) -> Tensor:
    return l2net.build()(triplets(raw, *maps))


def unlikely(scores: Rows, i: int) -> float:
    """−½ (log of the softmax over columns + over rows) at ii."""
    n = len(scores)
    columns = sum(math.exp(scores[i][j]) for j in range(n))
    rows = sum(math.exp(scores[j][i]) for j in range(n))
    own = math.exp(scores[i][i])
    return -0.5 * (math.log(own / columns) + math.log(own / rows))


def correlation(x: list[float], y: list[float]) -> float:
    n = len(x)
    mean_x, mean_y = sum(x) / n, sum(y) / n
    covariance = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    of_x = sum((a - mean_x) ** 2 for a in x)
    of_y = sum((b - mean_y) ** 2 for b in y)
    return covariance / math.sqrt(of_x * of_y)


def literal(raw: Tensor, *maps: Tensor) -> tuple[float, float, float]:
    """E1, E2 and E3."""
    n, k = raw.shape[1:]
    first, second = ([oracles.unit(row) for row in side.tolist()] for side in raw)
    similarity = [[2 - oracles.euclidean(x, y, epsilon=1e-6) for y in second] for x in first]
    e1 = sum(unlikely(similarity, i) for i in range(n))
    e2 = 0.0
    for side in raw.tolist():
        columns = [[row[d] for row in side] for d in range(k)]
        for p in range(k):
            for q in range(k):
                if p != q:
                    e2 += 0.5 * correlation(columns[p], columns[q]) ** 2
    e3 = 0.0
    for each in maps:
        one, other = (side.flatten(1).tolist() for side in each)
        products = [[oracles.inner(x, y) for y in other] for x in one]
        e3 += sum(unlikely(products, i) for i in range(n))
    return e1, e2, e3


@given(seed=seeds, n=st.integers(3, 6), k=st.integers(2, 5))
def test_the_losses_of_the_pairs_sum_to_the_papers(seed: int, n: int, k: int) -> None:
    raw, first = random(seed, 2, n, k), random(seed + 1, 2, n, 2, 3, 3) / 3
    loss = l2net.build()
    found = loss(triplets(raw, first, raw[..., None, None]))
    e1, e2, e3 = literal(raw, first, raw)
    assert found.shape == (n,)
    assert found.sum().item() == pytest.approx(e1 + e2 + e3, abs=1e-8)
    seen = [loss.seen[name].item() for name in ("e1", "e2", "e3")]
    assert seen == pytest.approx([e1 / n, e2 / n, e3 / n], abs=1e-8)


def test_a_pair_has_its_own_terms_and_an_nth_of_what_the_batch_shares() -> None:
    raw, n = random(0, 2, 4, 3), 4
    order = torch.tensor([2, 0, 3, 1])
    torch.testing.assert_close(losses(raw, raw)[order], losses(raw[:, order], raw[:, order]))
    _, e2, _ = literal(raw, raw)
    anchors, positives = raw.tolist()
    one, other = ([oracles.unit(x) for x in side] for side in (anchors, positives))
    similarity = [[2 - oracles.euclidean(x, y, 1e-6) for y in other] for x in one]
    products = [[oracles.inner(x, y) for y in positives] for x in anchors]
    for i in range(n):
        expected = unlikely(similarity, i) + unlikely(products, i) + e2 / n
        assert losses(raw, raw)[i].item() == pytest.approx(expected, abs=1e-8)


def test_it_passes_gradcheck() -> None:
    raw = random(3, 2, 4, 3).requires_grad_()
    first = (random(4, 2, 4, 2, 2, 2) / 2).requires_grad_()
    assert torch.autograd.gradcheck(losses, (raw, first))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("n", [2, 4])
def test_identical_descriptors_and_maps_leave_loss_and_gradient_finite(n: int, dtype) -> None:
    raw = torch.ones(2, n, 8, dtype=dtype, requires_grad=True)
    # 300 · 300 · 16 overflows float16.
    maps = torch.full((2, n, 1, 4, 4), 300.0, dtype=dtype, requires_grad=True)
    found = losses(raw, maps)
    found.sum().backward()
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.sum(), torch.tensor(2 * n * math.log(n)))
    assert torch.isfinite(raw.grad).all()
    assert torch.isfinite(maps.grad).all()
