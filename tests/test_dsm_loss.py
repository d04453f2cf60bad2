"""DSM's loss (Eq. 4, 5): its weights, its histogram, its gradient, what it does at the edges."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from killed_run import resumed
from literal_dsm import MovingHistogram
from torch import Tensor

from lib import objective, profiles
from lib.data.patchset import PatchSet
from lib.descriptions import Descriptions, Triplets, drawn
from lib.distances import hamming
from lib.losses import cdf
from lib.recipes import Budget, at_rate, find, part, replace_options
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
# Multiples of 1/1024 reach every node exactly in float32 as in float64.
values = st.integers(-2600, 2600).map(lambda step: step / 1024)
batches = st.lists(st.lists(values, min_size=1, max_size=6), min_size=1, max_size=4)


def of_differences(*differences: float) -> Triplets:
    """Triplets of given d_pos − d_neg."""
    d = torch.tensor(differences, dtype=torch.float64)
    return drawn(d.clamp(min=0), (-d).clamp(min=0))


def weights_after(loss: cdf.Weighted, *differences: float) -> list[float]:
    """The weights of triplets of given d_pos − d_neg, once they are counted."""
    loss(of_differences(*differences))
    return loss.weights(torch.tensor(differences)).tolist()


@LOOKUPS
@given(many=batches, bins=st.sampled_from([2, 5, 33, 512]), momentum=st.sampled_from([0.01, 0.1, 1.0]))
@settings(deadline=None, max_examples=40)
def test_losses_and_histogram_are_the_literal_ones_batch_after_batch(lookup, many, bins, momentum):
    loss = cdf.build(bins=bins, momentum=momentum, lookup=lookup)
    literal = MovingHistogram(bins, momentum, lookup)
    for batch in many:
        losses = loss(of_differences(*batch))
        literal.update(batch)
        assert losses.tolist() == pytest.approx([literal.cdf(d) * d for d in batch], abs=3e-6)
        assert loss.histogram.tolist() == pytest.approx(literal.state(), abs=3e-6)


@given(many=batches, momentum=st.sampled_from([0.1, 1.0]))
@settings(deadline=None, max_examples=40)
def test_the_gaussian_s_weights_are_those_of_a_running_mean_and_variance(many, momentum):
    loss, kept = cdf.build(form="gaussian", momentum=momentum), None
    for batch in many:
        losses = loss(of_differences(*batch))
        mean = sum(batch) / len(batch)
        variance = sum((d - mean) ** 2 for d in batch) / len(batch)
        before, rate = kept or (mean, variance), momentum
        kept = tuple(
            (1 - rate) * old + rate * new for old, new in zip(before, (mean, variance), strict=True)
        )
        deviation = max(math.sqrt(kept[1]), 2e-4)
        weights = [0.5 * (1 + math.erf((d - kept[0]) / (deviation * math.sqrt(2)))) for d in batch]
        expected = [w * d for w, d in zip(weights, batch, strict=True)]
        # Where triplets are alike, a rounding error is a part of the least deviation.
        assert losses.tolist() == pytest.approx(expected, abs=2e-3)
        assert [float(loss.mean), float(loss.variance)] == pytest.approx(kept, abs=1e-5)


@FORMS
@EACH_OF
@given(many=batches)
@settings(deadline=None, max_examples=20)
def test_weights_lie_between_zero_and_one_and_rise_with_hardness(form, of, many):
    loss = cdf.build(of=of, form=form, bins=65)
    for batch in many:
        loss.update(torch.tensor(batch))
    ordered = torch.linspace(-2.2, 2.2, 301)
    weights = loss.weights(ordered)
    assert weights.min() >= 0
    assert weights.max() <= 1
    steps = weights.diff()
    # The closer the negative, the harder the triplet.
    assert (steps <= 1e-6 if of == "negative" else steps >= -1e-6).all()


@LOOKUPS
@given(many=batches, bins=st.sampled_from([2, 7, 512]))
@settings(deadline=None, max_examples=20)
def test_the_histogram_sums_to_one_however_many_batches_it_has_seen(lookup, many, bins):
    loss = cdf.build(bins=bins, lookup=lookup)
    for batch in many * 30:
        loss.update(torch.tensor(batch))
    assert loss.histogram.sum().item() == pytest.approx(1, abs=1e-5)
    assert loss.histogram.min() >= 0


@given(batch=st.lists(values.map(lambda value: max(-2, min(value, 2))), min_size=1, max_size=6))
@settings(deadline=None, max_examples=20)
def test_the_linear_allocation_keeps_the_mean(batch):
    loss = cdf.build(bins=17)
    loss.update(torch.tensor(batch, dtype=torch.float32))
    nodes = torch.linspace(-2, 2, 17)
    assert (loss.histogram @ nodes).item() == pytest.approx(sum(batch) / len(batch), abs=1e-6)


@FORMS
@LOOKUPS
def test_the_weight_is_the_share_of_recent_triplets_that_are_easier(form, lookup):
    """Sec. 4.2: of uniform differences the CDF is a straight line, of normal ones the normal CDF."""
    loss = cdf.build(form=form, lookup=lookup)
    if form == "histogram":
        spread = torch.linspace(-2, 2, 20000)
        expected = (spread + 2) / 4
    else:
        spread = -0.4 + 0.1 * torch.special.ndtri((torch.arange(20000) + 0.5) / 20000)
        expected = torch.special.ndtr((spread + 0.4) / 0.1)
    for batch in spread[torch.randperm(20000, generator=torch.Generator().manual_seed(0))].split(500):
        loss.update(batch)
    # A tenth of each batch of 500 is a sample of about 10,000.
    torch.testing.assert_close(loss.weights(spread), expected, atol=0.03, rtol=0)


def test_k_percent_of_triplets_are_easier_than_one_of_weight_k_percent():
    loss = cdf.build(momentum=1.0)
    batch = torch.randn(4000, generator=torch.Generator().manual_seed(1)) / 5 - 0.3
    loss.update(batch)
    for value in (-0.6, -0.3, 0.0):
        easier = (batch < value).float().mean().item()
        assert loss.weights(torch.tensor([value])).item() == pytest.approx(easier, abs=0.01)


@LOOKUPS
def test_the_hardest_triplet_can_get_less_than_one(lookup):
    # Bins of width 1: 0.25 gives a quarter of itself to the node above.
    loss = cdf.build(bins=5, lookup=lookup)
    weights = weights_after(loss, -1.0, 0.25)
    assert weights == pytest.approx([0.5, {"floor": 0.875, "interpolated": 0.90625}[lookup]])


def test_the_first_batch_replaces_later_ones_move_and_each_is_counted_before_it_is_looked_up():
    loss = cdf.build(bins=5, momentum=0.25)
    assert not loss.started
    assert weights_after(loss, -2.0, -2.0) == [1.0, 1.0]
    assert loss.histogram.tolist() == [1, 0, 0, 0, 0]
    assert loss.started
    assert weights_after(loss, -1.0, 1.0) == pytest.approx([0.875, 1.0])
    assert loss.histogram.tolist() == pytest.approx([0.75, 0.125, 0, 0.125, 0])


def test_with_a_momentum_of_one_nothing_is_kept_of_earlier_batches():
    kept, fresh = (cdf.build(momentum=1.0) for _ in range(2))
    kept(of_differences(-1.5, 0.3))
    for loss in (kept, fresh):
        loss(of_differences(-0.2, 0.1))
    assert torch.equal(kept.histogram, fresh.histogram)


@LOOKUPS
@pytest.mark.parametrize("beyond", [2.0, 2.5, 1e30])
def test_values_at_and_beyond_the_ends_of_the_range_count_at_the_ends(lookup, beyond):
    loss = cdf.build(bins=9, lookup=lookup)
    assert weights_after(loss, -beyond, -beyond, beyond, 0.5) == [0.5, 0.5, 1.0, 0.75]
    assert loss.histogram[[0, -1]].tolist() == [0.5, 0.25]
    assert loss.seen["beyond_share"].item() == (0.75 if beyond > 2 else 0)


def test_the_range_is_that_of_the_distance():
    bits = cdf.build(bins=9, extent=256.0)
    unit = cdf.build(bins=9)
    assert weights_after(bits, -96.0, 32.0) == weights_after(unit, -0.75, 0.25)


@LOOKUPS
@pytest.mark.parametrize("share", [0.0, 0.25, 0.75])
def test_triplets_that_are_all_alike_have_one_weight(lookup, share):
    """Sec. 4.2: the CDF is then a step function, and the optimisation continues."""
    loss = cdf.build(bins=5, lookup=lookup)
    weights = weights_after(loss, *[-1 + share] * 4)
    expected = 1 - share if lookup == "floor" else 1 - share + share**2
    assert weights == pytest.approx([expected] * 4)


def test_triplets_within_one_bin_have_one_weight():
    loss = cdf.build(bins=5)
    weights = weights_after(loss, -0.99, -0.5, -0.25, -0.01)
    assert len(set(weights)) == 1
    assert weights[0] > 0


@pytest.mark.parametrize("value", [-1.9, -1 / 3, 0.0, 0.7])
@pytest.mark.parametrize("n", [2, 7, 1024])
def test_the_gaussian_gives_triplets_that_are_all_alike_one_half(value, n):
    loss = cdf.build(form="gaussian")
    loss(drawn(torch.zeros(n), torch.full((n,), -value)))
    assert torch.allclose(loss.weights(torch.full((n,), value)), torch.tensor(0.5), atol=2e-3)


def test_a_small_variance_weights_triplets_nearly_equally_where_they_share_a_bin():
    differences = torch.randn(64, generator=torch.Generator().manual_seed(2)) * 1e-5 - 0.3
    weights = torch.tensor(weights_after(cdf.build(), *differences.tolist()))
    assert weights.max() - weights.min() < 1e-6
    assert weights.min() > 0


@FORMS
@EACH_OF
@LOOKUPS
def test_the_weight_is_a_constant_for_the_gradient(form, of, lookup):
    loss = cdf.build(of=of, form=form, lookup=lookup)
    draw = torch.Generator().manual_seed(3)
    d_pos, d_neg = (torch.rand(16, generator=draw).requires_grad_() for _ in range(2))
    losses = loss(drawn(d_pos, d_neg))
    losses.mean().backward()
    of_which = {"difference": d_pos - d_neg, "positive": d_pos, "negative": d_neg}[of]
    weights = loss.weights(of_which.detach())
    torch.testing.assert_close(d_pos.grad, weights / 16)
    torch.testing.assert_close(d_neg.grad, -weights / 16)
    torch.testing.assert_close(losses, weights * (d_pos - d_neg))
    torch.testing.assert_close(loss.seen["mean_weight"], weights.mean())
    assert weights.unique().numel() > 8


@pytest.mark.parametrize("name", ["dsm_aug", "dsm_binary_aug"])
def test_the_gradient_of_the_objective_is_the_weighted_one_of_its_distances(name):
    made, of = objective.build(find(name)), described(name, n=6)
    triplets = made.triplets(of)
    made.total(made.loss(triplets), of).backward(retain_graph=True)
    found, of.raw.grad = of.raw.grad, None
    weights = made.loss.weights(triplets.mined)
    for w, d_pos, d_neg in zip(weights, triplets.positive, triplets.negative, strict=True):
        (w * (d_pos - d_neg) / 6).backward(retain_graph=True)
    torch.testing.assert_close(found, of.raw.grad)
    assert found.abs().max() > 0


def described(name: str, n: int, seed: int = 0) -> Descriptions:
    """What a recipe's network might say of n pairs, positives near their anchors."""
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
    halved, full = cdf.build(form=form), cdf.build(form=form)
    mined = (d_pos.float() - d_neg.float()).detach()
    with torch.autocast("cpu", torch.bfloat16):
        losses = halved(Triplets(None, d_pos, d_neg, None, mined))
    assert losses.dtype == torch.float32
    expected = full(drawn(d_pos.float(), d_neg.float()))
    torch.testing.assert_close(losses, expected, rtol=0, atol=0)
    losses.mean().backward()
    assert d_pos.grad.dtype == dtype
    for name, kept in halved.state_dict().items():
        assert torch.equal(kept, full.state_dict()[name])
        assert kept.dtype == (torch.bool if name == "started" else torch.float32)


@FORMS
def test_a_batch_of_two_and_ties_have_weights(form):
    loss = cdf.build(form=form)
    two = weights_after(loss, -0.5, -0.25)
    assert 0 < two[0] < two[1] <= 1
    tied = weights_after(loss, -0.5, -0.25, -0.5, -0.25)
    assert tied[0] == tied[2] < tied[1] == tied[3]


@pytest.mark.parametrize("name", ["dsm_aug", "dsm_binary_aug"])
def test_identical_descriptors_leave_loss_and_gradient_finite(name):
    made, one = objective.build(find(name)), described(name, n=1)
    raw = one.raw.detach()[:1].repeat(2, 4, 1).requires_grad_()
    binary = None if one.binary is None else torch.where(raw > 0, 1.0, -1.0)
    value = torch.nn.functional.normalize(raw, dim=-1) if binary is None else raw.tanh()
    of = Descriptions(raw, value, binary)
    losses = made.loss(made.triplets(of))
    losses.mean().backward()
    assert torch.isfinite(losses).all()
    assert torch.isfinite(raw.grad).all()
    # Every other patch is taken for a false negative, and the largest distance stands in.
    assert made.loss.seen["beyond_share"] == 0


def in_bits(*rows: list[float]) -> Tensor:
    return torch.tensor(rows, dtype=torch.float32)


def test_signs_are_mined_and_counted_while_the_loss_takes_tanh():
    """Sec. 3.2: where both differ on which negative is nearest and on which triplet is harder."""
    big, small = 0.9, 0.1
    anchors = in_bits([big] * 3 + [small] * 5, [big] * 4 + [-big] * 4)
    positives = in_bits([big] * 8, [big] * 3 + [-small] + [-big] * 4)
    value = torch.stack([anchors, positives]).requires_grad_()
    of = Descriptions(value, value, torch.where(value.detach() > 0, 1.0, -1.0))
    recipe = find("dsm_binary_aug")
    recipe = replace(
        recipe,
        distance=part("hamming", length=8),
        negatives=part("hardest", scope="across", floor=0.0),
        loss=replace_options(recipe.loss, momentum=1.0),
    )
    made = objective.build(recipe)
    triplets = made.triplets(of)
    # By signs d_pos is 0 and 1 bits, and d_neg 4, between p_0 and a_1; by tanh a_0 and p_1 are closer.
    assert (4 * triplets.mined).tolist() == [0 - 4, 1 - 4]
    assert triplets.negatives.query.tolist() == [2, 1]
    assert triplets.negatives.patch.tolist() == [1, 2]
    assert made.distance.paired(anchors[0], positives[1]) < made.distance.paired(
        positives[0], anchors[1]
    )
    by_tanh = (triplets.positive - triplets.negative).tolist()
    assert by_tanh[0] > by_tanh[1]
    losses = made.loss(triplets)
    weights = made.loss.weights(triplets.mined)
    assert weights[0] < weights[1], "pair 1 is the harder by what is compared at test"
    expected = [w * d for w, d in zip(weights.tolist(), by_tanh, strict=True)]
    assert losses.tolist() == pytest.approx(expected)
    literal, mined = MovingHistogram(), triplets.mined.tolist()
    literal.update(mined)
    assert weights.tolist() == pytest.approx([literal.cdf(d) for d in mined])


@pytest.mark.parametrize("of", ["positive", "negative"])
def test_of_binary_descriptors_each_distance_is_that_of_the_signs(of):
    distance, pairs = hamming.build(), described("dsm_binary_aug", n=6)
    recipe = find("dsm_binary_aug")
    recipe = replace(
        recipe, loss=replace_options(recipe.loss, of=of, distance=part("hamming", scale="2D/k"))
    )
    made = objective.build(recipe)
    triplets = made.triplets(pairs)
    d_pos = distance.paired(*pairs.binary)
    d_neg = triplets.negatives.distances(pairs.binary, distance)
    found = made.loss.values(triplets)
    assert torch.equal(found, d_pos if of == "positive" else d_neg)
    made.loss(triplets)
    weights = made.loss.weights(found)
    hardest = found.argmax() if of == "positive" else found.argmin()
    assert weights.argmax() == hardest or weights[hardest] == weights.max()


@pytest.mark.parametrize("of", ["positive", "negative"])
def test_binary_descriptors_without_the_distance_of_their_signs_are_refused(of):
    made = objective.build(find("dsm_binary_aug"))
    triplets = made.triplets(described("dsm_binary_aug", n=3))
    with pytest.raises(ValueError, match=r'the distance of signs, e\.g\. distance=part\("hamming"\)'):
        cdf.build(of=of)(triplets)


@FORMS
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("where", ["positive", "negative", "mined"])
def test_a_distance_that_is_not_finite_is_refused_and_leaves_the_state_as_it_was(form, bad, where):
    loss = cdf.build(form=form)
    loss(of_differences(-0.5, 0.25))
    before = {name: kept.clone() for name, kept in loss.state_dict().items()}
    good = of_differences(-0.5, 0.25, 0.1)
    spoilt = getattr(good, where).clone()
    spoilt[1] = bad
    with pytest.raises(FloatingPointError, match="distances of 1 triplets are not finite"):
        loss(replace(good, **{where: spoilt}))
    assert all(torch.equal(kept, before[name]) for name, kept in loss.state_dict().items())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bins": 1}, "2 bins or more, got 1"),
        ({"bins": 0}, "2 bins or more, got 0"),
        ({"momentum": 0.0}, r"above 0 and at most 1, got 0\.0"),
        ({"momentum": 1.1}, r"above 0 and at most 1, got 1\.1"),
        ({"momentum": math.nan}, "above 0 and at most 1, got nan"),
        ({"momentum": -0.1, "form": "gaussian"}, r"above 0 and at most 1, got -0\.1"),
        ({"of": "margin"}, "difference, positive, negative, got 'margin'"),
        ({"form": "kernel"}, "histogram, gaussian, got 'kernel'"),
        ({"lookup": "ceil"}, "floor, interpolated, got 'ceil'"),
        ({"extent": 0.0}, "positive and finite, got 0"),
        ({"extent": math.inf}, "positive and finite, got inf"),
    ],
)
def test_what_makes_no_distribution_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        cdf.build(**options)


@pytest.mark.parametrize("name", ["dsm_aug", "dsm_binary_aug"])
@FORMS
def test_a_killed_run_resumes_to_the_same_bits_state_of_the_loss_included(
    name: str, form: str, small_set: PatchSet, tmp_path: Path
) -> None:
    recipe = find(name)
    recipe = replace(recipe, loss=replace_options(recipe.loss, form=form))
    of = (recipe, TINY, small_set, 0)
    ours, straight = resumed(4, *of, checkpoint=tmp_path / "run.pt"), train(*of)
    assert ours.curve == straight.curve
    assert ours.stages.keys() == straight.stages.keys() == {"0.0", "0.5", "1.0"}
    for stage, kept in straight.stages.items():
        assert kept.keys() == ours.stages[stage].keys()
        assert all(torch.equal(ours.stages[stage][name], value) for name, value in kept.items())
    names = {"histogram", "started"} if form == "histogram" else {"mean", "variance", "started"}
    states = [part_state(straight.stages[stage], "loss") for stage in ("0.0", "0.5", "1.0")]
    assert all(state.keys() == names for state in states)
    assert [bool(state["started"]) for state in states] == [False, True, True]
    moves = "histogram" if form == "histogram" else "mean"
    assert not torch.equal(states[1][moves], states[2][moves])


@pytest.mark.parametrize("name", ["dsm_aug", "dsm_binary_aug"])
def test_training_in_bfloat16_keeps_the_histogram_in_float32(name: str, small_set: PatchSet) -> None:
    trained = train(find(name), replace(TINY, precision="bfloat16"), small_set, 0)
    state = part_state(trained.stages["1.0"], "loss")
    assert state["histogram"].dtype == torch.float32
    assert state["histogram"].sum().item() == pytest.approx(1, abs=1e-5)
    assert all(0 < weight < 1 for weight in trained.curve["mean_weight"])
    assert set(trained.curve["beyond_share"]) == {0.0}


@pytest.mark.parametrize("name", ["dsm_aug", "dsm_binary_aug"])
def test_training_lowers_the_difference(name: str, small_set: PatchSet) -> None:
    longer = replace(TINY, budget=Budget(batch_pairs=16, epoch_pairs=16 * 40, epochs=1))
    curve = train(find(name), longer, small_set, 0).curve
    apart = [
        positive - negative for positive, negative in zip(curve["d_pos"], curve["d_neg"], strict=True)
    ]
    assert sum(apart[-5:]) < sum(apart[:5])


def test_training_that_diverges_is_told_apart_from_other_failures(small_set: PatchSet) -> None:
    """A search counts such a run as the worst and goes on."""
    with pytest.raises(FloatingPointError, match=r"not finite|the loss is"):
        train(at_rate(find("dsm_aug"), 1e30), TINY, small_set, 0)
