"""DOAP's binary row: average precision of tanh values by Hamming distance."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from lib import objective, parts, recipes
from lib.descriptions import Descriptions

ROW = recipes.find("doap_binary_aug")
BINS, LENGTH = 10, 256


def tanh(seed: int, n: int, gain: float = 1.0) -> Tensor:
    draw = torch.Generator().manual_seed(seed)
    return (gain * torch.randn(2, n, LENGTH, generator=draw, dtype=torch.float64)).tanh()


def losses(value: Tensor) -> Tensor:
    whole = objective.build(ROW)
    binary = torch.where(value.detach() > 0, 1.0, -1.0)
    return whole.loss(whole.triplets(Descriptions(value, value, binary)))


def literal(rows: list[list[float]], query: int, match: int) -> float:
    """AP by D = (k − x·y) / 2 in bits, at nodes k / bins apart."""
    width = LENGTH / BINS
    total, through, through_match = 0.0, 0.0, 0.0
    for node in range(BINS + 1):
        at, at_match = 0.0, 0.0
        for other, row in enumerate(rows):
            if other != query:
                bits = (LENGTH - sum(x * y for x, y in zip(rows[query], row, strict=True))) / 2
                pulse = max(0.0, 1 - abs(bits - node * width) / width)
                at, at_match = at + pulse, at_match + pulse * (other == match)
        total += at_match * (2 * through_match + at_match + 1) / (2 * through + at + 1)
        through, through_match = through + at, through_match + at_match
    return total


def test_each_pair_has_minus_the_mean_of_its_two_average_precisions() -> None:
    n = 4
    value = tanh(0, n)
    value[1] = (value[0] + 0.6 * value[1]) / 1.6
    rows = value.flatten(0, 1).tolist()
    found = losses(value)
    for i in range(n):
        expected = (literal(rows, i, n + i) + literal(rows, n + i, i)) / 2
        assert found[i].item() == pytest.approx(-expected, abs=1e-7)


def test_saturated_codes_that_match_are_ranked_perfectly_and_equal_ones_tie() -> None:
    signs = tanh(1, 5, gain=1e6)[0]
    torch.testing.assert_close(losses(torch.stack([signs, signs])), -torch.ones(5).double())
    same = signs[:1].expand(2, 5, LENGTH)
    torch.testing.assert_close(losses(same), torch.full((5,), -1 / 5).double())


def test_it_passes_gradcheck() -> None:
    # Four values a code, each 64 times: numerical slopes of all 256 would take long.
    few = tanh(2, 3)[:, :, :4].clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: losses(x.repeat(1, 1, LENGTH // 4)), (few,))


def test_what_is_ranked_is_compared_and_mined_in_bits() -> None:
    assert ROW.loss.options["distance"] == ROW.distance
    assert ROW.negatives.options["floor"] * LENGTH / 2 == 2
    network = parts.build("model", ROW.model, width=1 / 32).eval()
    bits = network(torch.rand(3, 1, 32, 32))
    assert bits.shape == (3, LENGTH)
    assert set(bits.unique().tolist()) <= {0.0, 1.0}
