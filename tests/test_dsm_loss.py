"""DSM's loss (Eq. 4, 5): its weights, its histogram, its gradient and its edge cases."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from literal_dsm import MovingHistogram
from resumed_training import resumed

from lib import objective, parts, profiles
from lib.data.patchset import PatchSet
from lib.losses import cdf
from lib.losses.descriptions import Descriptions, Triplets, drawn
from lib.recipes import Budget, find, part, replace_options
from lib.training import part_state, train

TINY = replace(
    profiles.find("quick"),
    width=1 / 16,
    budget=Budget(batch_pairs=8, epoch_pairs=40, epochs=2),
    stages=(0.0, 0.5, 1.0),
)
FORMS = pytest.mark.parametrize("form", ["histogram", "gaussian"])
LOOKUPS = pytest.mark.parametrize("lookup", ["floor", "interpolated"])
EACH_OF = pytest.mark.parametrize("of", ["difference", "positive", "negative"])
# Multiples of 1/1024 hit every node exactly, in float32 as in float64.
values = st.integers(-2600, 2600).map(lambda step: step / 1024)
# A batch that repeats the one before it counts once (`test_any_loop.py`), which the papers do not know.
batches = st.lists(st.lists(values, min_size=1, max_size=6), min_size=1, max_size=4).filter(
    lambda series: all(batch != after for batch, after in pairwise(series))
)


def triplets_with(*differences: float) -> Triplets:
    """Return triplets with given d_pos − d_neg."""
    d = torch.tensor(differences, dtype=torch.float64)
    return drawn(d.clamp(min=0), (-d).clamp(min=0))


def weights_after(loss: cdf.Weighted, *differences: float) -> list[float]:
    """Count triplets with given d_pos − d_neg, and return their weights."""
    loss(triplets_with(*differences))
    return loss.weights(torch.tensor(differences)).tolist()


@LOOKUPS
@given(series=batches, bins=st.sampled_from([2, 5, 33, 512]), momentum=st.sampled_from([0.01, 0.1, 1.0]))
def test_losses_and_histogram_are_the_literal_ones_batch_after_batch(lookup, series, bins, momentum):
    loss = cdf.dynamic_soft_margin(bins=bins, momentum=momentum, lookup=lookup)
    literal = MovingHistogram(bins, momentum, lookup)
    for batch in series:
        losses = loss(triplets_with(*batch))
        literal.update(batch)
        assert losses.tolist() == pytest.approx([literal.cdf(d) * d for d in batch], abs=3e-6)
        assert loss.histogram.tolist() == pytest.approx(literal.state(), abs=3e-6)


def test_the_first_batch_sets_the_histogram_and_later_ones_move_it_before_their_lookup():
    loss = cdf.dynamic_soft_margin(bins=5, momentum=0.25)
    assert not loss.started
    assert weights_after(loss, -2.0, -2.0) == [1.0, 1.0]
    assert loss.histogram.tolist() == [1, 0, 0, 0, 0]
    assert loss.started
    assert weights_after(loss, -1.0, 1.0) == pytest.approx([0.875, 1.0])
    assert loss.histogram.tolist() == pytest.approx([0.75, 0.125, 0, 0.125, 0])


@LOOKUPS
@pytest.mark.parametrize("magnitude", [2.0, 2.5, 1e30])
def test_values_at_and_beyond_the_ends_of_the_range_count_at_the_ends(lookup, magnitude):
    loss = cdf.dynamic_soft_margin(bins=9, lookup=lookup)
    assert weights_after(loss, -magnitude, -magnitude, magnitude, 0.5) == [0.5, 0.5, 1.0, 0.75]
    assert loss.histogram[[0, -1]].tolist() == [0.5, 0.25]
    assert loss.seen["beyond_share"].item() == (0.75 if magnitude > 2 else 0)


def test_the_range_is_that_of_the_distance():
    bits = cdf.dynamic_soft_margin(bins=9, extent=256.0)
    unit = cdf.dynamic_soft_margin(bins=9)
    assert weights_after(bits, -96.0, 32.0) == weights_after(unit, -0.75, 0.25)


@pytest.mark.parametrize("value", [-1.9, -1 / 3, 0.0, 0.7])
@pytest.mark.parametrize("n", [2, 7, 1024])
def test_the_gaussian_weights_identical_triplets_by_one_half(value, n):
    loss = cdf.dynamic_soft_margin(form="gaussian")
    loss(drawn(torch.zeros(n), torch.full((n,), -value)))
    assert torch.allclose(loss.weights(torch.full((n,), value)), torch.tensor(0.5), atol=2e-3)


@FORMS
@EACH_OF
@LOOKUPS
def test_the_weight_is_a_constant_for_the_gradient(form, of, lookup):
    loss = cdf.dynamic_soft_margin(of=of, form=form, lookup=lookup)
    draw = torch.Generator().manual_seed(3)
    d_pos, d_neg = (torch.rand(16, generator=draw).requires_grad_() for _ in range(2))
    losses = loss(drawn(d_pos, d_neg))
    losses.mean().backward()
    quantity = {"difference": d_pos - d_neg, "positive": d_pos, "negative": d_neg}[of]
    weights = loss.weights(quantity.detach())
    torch.testing.assert_close(d_pos.grad, weights / 16)
    torch.testing.assert_close(d_neg.grad, -weights / 16)
    torch.testing.assert_close(losses, weights * (d_pos - d_neg))
    torch.testing.assert_close(loss.seen["mean_weight"], weights.mean())
    assert weights.unique().numel() > 8


def described(name: str, n: int, seed: int = 0) -> Descriptions:
    """Descriptors of n pairs as from a recipe's network, positives near their anchors."""
    draw = torch.Generator().manual_seed(seed)
    binary = name == "dsm_binary_aug"
    anchors = torch.randn(n, 256 if binary else 128, generator=draw)
    raw = torch.stack([anchors, anchors + 0.5 * torch.randn(anchors.shape, generator=draw)])
    raw.requires_grad_()
    if not binary:
        return Descriptions(raw, torch.nn.functional.normalize(raw, dim=-1))
    return Descriptions(raw, raw.tanh(), torch.where(raw > 0, 1.0, -1.0))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@FORMS
def test_half_precision_distances_are_weighted_in_float32(form, dtype):
    draw = torch.Generator().manual_seed(4)
    d_pos, d_neg = (torch.rand(32, generator=draw).to(dtype).requires_grad_() for _ in range(2))
    half, full = cdf.dynamic_soft_margin(form=form), cdf.dynamic_soft_margin(form=form)
    mined = (d_pos.float() - d_neg.float()).detach()
    with torch.autocast("cpu", torch.bfloat16):
        losses = half(Triplets(None, d_pos, d_neg, None, mined))
    assert losses.dtype == torch.float32
    expected = full(drawn(d_pos.float(), d_neg.float()))
    torch.testing.assert_close(losses, expected, rtol=0, atol=0)
    losses.mean().backward()
    assert d_pos.grad.dtype == dtype
    for name, buffer in half.state_dict().items():
        assert torch.equal(buffer, full.state_dict()[name])
        assert buffer.dtype == (torch.bool if name == "started" else torch.float32)


@FORMS
def test_a_batch_of_two_and_ties_have_weights(form):
    loss = cdf.dynamic_soft_margin(form=form)
    two = weights_after(loss, -0.5, -0.25)
    assert 0 < two[0] < two[1] <= 1
    tied = weights_after(loss, -0.5, -0.25, -0.5, -0.25)
    assert tied[0] == tied[2] < tied[1] == tied[3]


@pytest.mark.parametrize("name", ["dsm_aug", "dsm_binary_aug"])
def test_identical_descriptors_leave_loss_and_gradient_finite(name):
    built, pair = objective.build(find(name)), described(name, n=1)
    raw = pair.raw.detach()[:1].repeat(2, 4, 1).requires_grad_()
    binary = None if pair.binary is None else torch.where(raw > 0, 1.0, -1.0)
    value = torch.nn.functional.normalize(raw, dim=-1) if binary is None else raw.tanh()
    descriptions = Descriptions(raw, value, binary)
    losses = built.loss(built.triplets(descriptions))
    losses.mean().backward()
    assert torch.isfinite(losses).all()
    assert torch.isfinite(raw.grad).all()
    # All other patches count as false negatives, and the largest distance replaces theirs.
    assert built.loss.seen["beyond_share"] == 0


def test_binary_descriptors_without_a_distance_of_signs_are_refused():
    built = objective.build(find("dsm_binary_aug"))
    triplets = built.triplets(described("dsm_binary_aug", n=3))
    with pytest.raises(ValueError, match="the distance of signs"):
        cdf.dynamic_soft_margin(of="positive")(triplets)


@FORMS
@pytest.mark.parametrize("bad", [math.nan, -math.inf])
@pytest.mark.parametrize("attribute", ["positive", "negative", "mined"])
def test_a_distance_that_is_not_finite_raises_and_leaves_the_state_unchanged(form, bad, attribute):
    loss = cdf.dynamic_soft_margin(form=form)
    loss(triplets_with(-0.5, 0.25))
    before = {name: buffer.clone() for name, buffer in loss.state_dict().items()}
    triplets = triplets_with(-0.5, 0.25, 0.1)
    distances = getattr(triplets, attribute).clone()
    distances[1] = bad
    with pytest.raises(FloatingPointError, match="distances of 1 triplets are not finite"):
        loss(replace(triplets, **{attribute: distances}))
    assert all(torch.equal(buffer, before[name]) for name, buffer in loss.state_dict().items())


@pytest.mark.parametrize("options", [{"bins": 1}, {"momentum": math.nan}, {"extent": math.inf}])
def test_options_without_a_distribution_are_refused(options):
    with pytest.raises(ValueError, match="got"):
        cdf.dynamic_soft_margin(**options)


@pytest.mark.parametrize("name", ["dsm_aug", "dsm_binary_aug"])
@FORMS
def test_a_killed_run_resumes_to_the_same_bits_of_weights_and_loss_state(
    name: str, form: str, small_set: PatchSet, tmp_path: Path
) -> None:
    recipe = find(name)
    recipe = replace(recipe, loss=replace_options(recipe.loss, form=form))
    arguments = (recipe, TINY, small_set, 0)
    continued, straight = resumed(4, *arguments, checkpoint=tmp_path / "run.pt"), train(*arguments)
    assert continued.curve == straight.curve
    assert continued.stages.keys() == straight.stages.keys() == {"0.0", "0.5", "1.0"}
    for stage, weights in straight.stages.items():
        assert weights.keys() == continued.stages[stage].keys()
        assert all(torch.equal(continued.stages[stage][name], value) for name, value in weights.items())
    names = {"histogram", "started"} if form == "histogram" else {"mean", "variance", "started"}
    states = [part_state(straight.stages[stage], "loss") for stage in ("0.0", "0.5", "1.0")]
    assert all(state.keys() == names for state in states)
    assert [bool(state["started"]) for state in states] == [False, True, True]
    buffer = "histogram" if form == "histogram" else "mean"
    assert not torch.equal(states[1][buffer], states[2][buffer])


@pytest.mark.parametrize("name", ["dsm_aug", "dsm_binary_aug"])
def test_training_in_bfloat16_keeps_the_histogram_in_float32(name: str, small_set: PatchSet) -> None:
    trained = train(find(name), replace(TINY, precision="bfloat16"), small_set, 0)
    state = part_state(trained.stages["1.0"], "loss")
    assert state["histogram"].dtype == torch.float32
    assert state["histogram"].sum().item() == pytest.approx(1, abs=1e-5)
    assert all(0 < weight < 1 for weight in trained.curve["mean_weight"])
    assert set(trained.curve["beyond_share"]) == {0.0}


def test_a_loss_may_be_nested_in_another():
    dsm = find("dsm_aug")
    unmixed = part("unmixed", loss=dsm.loss, distance=dsm.distance)
    assert isinstance(parts.build("loss", unmixed).loss, cdf.Histogram)


@pytest.mark.parametrize("node", [100, 257, 301, 511])
def test_a_cast_of_the_loss_to_bfloat16_loses_no_bin(node: int) -> None:
    # bfloat16 has no 257, 301 and 511.
    loss = cdf.Histogram(512, "floor", of="difference", momentum=1.0, extent=2.0, distance=None)
    loss.bfloat16()(triplets_with(-2 + node * 4 / 511))
    assert loss.histogram.float().argmax() == node
    assert float(loss.histogram.sum()) == pytest.approx(1, abs=1e-3)
