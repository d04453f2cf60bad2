"""What DSM compares its loss with (Sec. 2, Table 3): softplus, the hardest fraction, no truncation."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from lib import objective, parts, profiles
from lib.data.patchset import PatchSet
from lib.descriptions import Descriptions, Triplets, drawn
from lib.losses import hardest_fraction, hinge, softplus
from lib.recipes import Budget, at_rate, find, part
from lib.training import train

TINY = replace(
    profiles.find("quick"), width=1 / 16, budget=Budget(batch_pairs=8, epoch_pairs=24, epochs=1)
)
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


def test_a_sharp_softplus_is_the_hinge_without_margin():
    _, triplets = of_differences(-1.5, -0.2, 0.2, 1.5)
    torch.testing.assert_close(
        softplus.build(1e3)(triplets), hinge.build(margin=0.0)(triplets), atol=1e-3, rtol=0
    )


@pytest.mark.parametrize("difference", [-256.0, 256.0])
def test_softplus_of_bits_neither_overflows_nor_loses_its_gradient_where_it_has_one(difference):
    d_pos, triplets = of_differences(difference)
    losses = softplus.build()(triplets)
    losses.sum().backward()
    assert losses.item() == pytest.approx(max(difference, 0))
    assert d_pos.grad.item() == pytest.approx(float(difference > 0))


@pytest.mark.parametrize("beta", [0.0, -1.0, math.inf, math.nan])
def test_a_beta_without_meaning_is_refused(beta):
    with pytest.raises(ValueError, match="beta must be positive and finite"):
        softplus.build(beta)


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


def test_a_batch_of_two_keeps_one():
    _, triplets = of_differences(-0.5, -0.75)
    assert hardest_fraction.build(1 / 8)(triplets).tolist() == [-1.0, 0.0]


@pytest.mark.parametrize("fraction", [0.0, -0.5, 1.01, math.nan])
def test_a_fraction_that_keeps_nothing_or_too_much_is_refused(fraction):
    with pytest.raises(ValueError, match="above 0 and at most 1"):
        hardest_fraction.build(fraction)


LOSSES = {
    "softplus": part("softplus"),
    "eighth": part("hardest_fraction", fraction=1 / 8),
    "quarter": part("hardest_fraction", fraction=1 / 4),
}


@pytest.mark.parametrize("name", sorted(LOSSES))
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_gives_what_float32_gives_but_for_rounding(name, dtype):
    draw = torch.Generator().manual_seed(1)
    d_pos, d_neg = (torch.rand(16, generator=draw).to(dtype) for _ in range(2))
    loss = parts.build("loss", LOSSES[name])
    mined = d_pos.float() - d_neg.float()
    halved = loss(Triplets(None, d_pos, d_neg, None, mined))
    full = loss(Triplets(None, d_pos.float(), d_neg.float(), None, mined))
    torch.testing.assert_close(halved.float(), full, atol=0.1, rtol=0.02)


@pytest.mark.parametrize("name", sorted(LOSSES))
@pytest.mark.parametrize("recipe", ["dsm_aug", "dsm_binary_aug"])
def test_each_trains_real_and_binary_descriptors(name, recipe, small_set: PatchSet) -> None:
    chosen = replace(find(recipe), loss=LOSSES[name])
    trained = train(chosen, TINY, small_set, 0)
    assert all(torch.isfinite(value).all() for value in trained.model.state_dict().values())


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_training_that_diverges_is_reported(name, small_set: PatchSet) -> None:
    chosen = at_rate(replace(find("dsm_aug"), loss=LOSSES[name]), 1e30)
    with pytest.raises(FloatingPointError, match="the loss is"):
        train(chosen, TINY, small_set, 0)
