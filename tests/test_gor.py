"""Global orthogonal regularisation against its definition, and what it asks for."""

from __future__ import annotations

import pytest
import torch

from lib.descriptions import Descriptions
from lib.regularizers import gor


def unit(n: int, k: int, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.nn.functional.normalize(
        torch.randn(n, k, generator=generator, dtype=torch.float64), dim=1
    )


def penalty(anchors: torch.Tensor, positives: torch.Tensor, weight: float = 1.0) -> torch.Tensor:
    both = torch.stack([anchors, positives])
    return gor.build(weight)(Descriptions(both, both))


def literal(anchors: torch.Tensor, positives: torch.Tensor) -> float:
    n, k = anchors.shape
    products = [
        sum(float(anchors[i, c]) * float(positives[j, c]) for c in range(k))
        for i in range(n)
        for j in range(n)
        if i != j
    ]
    first = sum(products) / len(products)
    second = sum(product**2 for product in products) / len(products)
    return first**2 + max(0.0, second - 1 / k)


@pytest.mark.parametrize(("n", "k"), [(2, 3), (5, 4), (9, 16)])
def test_it_is_the_paper_s_formula_over_all_non_matching_pairs(n: int, k: int) -> None:
    anchors, positives = unit(n, k, 0), unit(n, k, 1)
    expected = literal(anchors, positives)
    assert float(penalty(anchors, positives)) == pytest.approx(expected, rel=1e-12)
    assert float(penalty(anchors, positives, 3.0)) == pytest.approx(3 * expected, rel=1e-12)


def test_over_one_negative_each_it_is_the_formula_over_the_next_classes() -> None:
    anchors, positives = unit(7, 5, 0), unit(7, 5, 1)
    products = [float(anchors[i] @ positives[(i - 1) % 7]) for i in range(7)]
    first, second = sum(products) / 7, sum(product**2 for product in products) / 7
    both = torch.stack([anchors, positives])
    found = gor.build(pairs="one")(Descriptions(both, both))
    assert float(found) == pytest.approx(first**2 + max(0.0, second - 1 / 5), rel=1e-12)


def test_a_collapsed_batch_costs_most() -> None:
    same = unit(1, 8, 0).expand(5, 8)
    assert float(penalty(same, same)) == pytest.approx(1 + (1 - 1 / 8))


def test_its_gradient_is_right_also_for_a_batch_of_two() -> None:
    for n in (2, 5):
        anchors, positives = (unit(n, 6, seed).requires_grad_() for seed in (4, 5))
        assert torch.autograd.gradcheck(penalty, (anchors, positives))
