"""What DSM compares its loss with (Sec. 2, Table 3): softplus, the hardest fraction, no truncation."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from lib import objective
from lib.descriptions import Descriptions, Triplets, drawn
from lib.losses import hardest_fraction, hinge, softplus
from lib.recipes import find

differences = st.lists(st.floats(-2, 2), min_size=1, max_size=9)


def of_differences(*of: float) -> tuple[torch.Tensor, Triplets]:
    """d_pos, with a gradient, and the triplets of it and of distances to negatives of zero."""
    d_pos = torch.tensor(of, dtype=torch.float64, requires_grad=True)
    return d_pos, drawn(d_pos, torch.zeros(len(of), dtype=torch.float64))


@given(of=differences, beta=st.sampled_from([0.1, 1.0, 10.0]))
@settings(deadline=None, max_examples=40)
def test_softplus_is_the_papers_formula_and_its_slope_lies_between_zero_and_one(of, beta):
    d_pos, triplets = of_differences(*of)
    loss = softplus.build(beta)
    losses = loss(triplets)
    literal = [math.log(1 + math.exp(beta * x)) / beta for x in of]
    assert losses.tolist() == pytest.approx(literal, abs=1e-8)
    losses.sum().backward()
    slopes = [1 / (1 + math.exp(-beta * x)) for x in of]
    assert d_pos.grad.tolist() == pytest.approx(slopes, abs=1e-8)
    assert loss.seen["mean_weight"].item() == pytest.approx(sum(slopes) / len(of), abs=1e-6)


@pytest.mark.parametrize("difference", [-256.0, 256.0])
def test_softplus_of_bits_neither_overflows_nor_loses_its_gradient_where_it_has_one(difference):
    d_pos, triplets = of_differences(difference)
    losses = softplus.build()(triplets)
    losses.sum().backward()
    assert losses.item() == pytest.approx(max(difference, 0))
    assert d_pos.grad.item() == pytest.approx(float(difference > 0))


@given(of=differences, fraction=st.sampled_from([1 / 8, 1 / 4, 1 / 3, 1.0]))
@settings(deadline=None, max_examples=40)
def test_the_mean_is_that_of_the_hardest_and_the_others_have_no_gradient(of, fraction):
    d_pos, triplets = of_differences(*of)
    loss = hardest_fraction.build(fraction)
    losses = loss(triplets)
    losses.mean().backward()
    kept = max(1, round(fraction * len(of)))
    hardest = sorted(of, reverse=True)[:kept]
    assert losses.mean().item() == pytest.approx(sum(hardest) / kept, abs=1e-9)
    slopes = sorted(d_pos.grad.tolist())
    assert slopes == pytest.approx([0.0] * (len(of) - kept) + [1 / kept] * kept)
    assert loss.seen["margin"].item() == -hardest[-1]


def test_the_whole_batch_is_the_hinge_that_never_truncates():
    """Sec. 3.1: a margin of 2 is at least as large as any difference of unit descriptors."""
    raw = torch.randn(2, 6, 16, generator=torch.Generator().manual_seed(0))
    of, made = Descriptions(raw, F.normalize(raw, dim=-1)), objective.build(find("dsm_aug"))
    triplets = made.triplets(of)
    losses = hardest_fraction.build(1.0)(triplets)
    torch.testing.assert_close(hinge.build(margin=2.0)(triplets), 2 + losses)


def test_of_equally_hard_triplets_the_first_are_kept():
    _, triplets = of_differences(0.5, 0.5, 0.5, 0.5, -1.0, 0.5, 0.5, 0.5)
    assert hardest_fraction.build(1 / 4)(triplets).tolist() == [2.0, 2.0, *[0.0] * 6]


def test_hard_is_what_is_hard_by_the_codes():
    triplets = Triplets(
        None, torch.tensor([0.1, 0.9]), torch.zeros(2), None, mined=torch.tensor([0.5, 0.25])
    )
    assert hardest_fraction.build(1 / 2)(triplets).tolist() == pytest.approx([0.2, 0.0])
