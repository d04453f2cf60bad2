"""Objectives in loops that this study did not write: under autocast, in evaluation, recomputed by
gradient checkpointing, compiled, differentiated twice, and on descriptors that have collapsed."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace

import pytest
import torch
from pytorch_metric_learning.losses import DynamicSoftMarginLoss
from raw_outputs import halves, outputs
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from lib import profiles
from lib.data.patchset import PatchSet
from lib.objective import Objective, build
from lib.recipes import RECIPES, Budget, find, replace_options
from lib.training import train

EACH_RECIPE = pytest.mark.parametrize("name", sorted(RECIPES))
SHORT = replace(
    profiles.find("quick"), width=1 / 16, budget=Budget(batch_pairs=8, epoch_pairs=16, epochs=1)
)
# Recipes whose loss has a state.
EACH_STATE = pytest.mark.parametrize("name", ["dsm_aug", "dsm_binary_aug", "tcdesc_dsm_aug"])
pytestmark = pytest.mark.filterwarnings("ignore:this is AdaSample")


@pytest.fixture(autouse=True)
def repeatable() -> Iterator[None]:
    """As in training: TCDesc's gradients are else added up in any order."""
    was = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    yield
    torch.use_deterministic_algorithms(was, warn_only=True)


def leaves(name: str) -> list[Tensor]:
    """Return what a recipe's network returns: raw descriptors and, for L2-Net's loss, maps."""
    output = outputs(find(name))[1]
    flat = output if isinstance(output, tuple) else (output,)
    return [each.detach().requires_grad_() for each in flat]


def called(objective: Callable, tensors: list[Tensor]) -> Tensor:
    """Return the objective of raw outputs; TFeat's random negatives are drawn from one seed."""
    torch.manual_seed(1)
    return objective(*halves(tuple(tensors) if len(tensors) > 1 else tensors[0]))


def with_gradient(objective: Callable, name: str) -> tuple[Tensor, ...]:
    tensors = leaves(name)
    loss = called(objective, tensors)
    loss.backward()
    return loss.detach(), *(each.grad for each in tensors)


def after_a_batch(name: str) -> Objective:
    """Return a recipe's objective that has seen another batch than the tests give it."""
    objective = build(find(name))
    called(objective, [0.5 * each.flip(0) for each in leaves(name)])
    return objective


def same(one: tuple[Tensor, ...], other: tuple[Tensor, ...]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def state(objective: Objective) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in objective.state_dict().items()}


def is_unchanged(objective: Objective, before: dict[str, Tensor]) -> bool:
    return all(torch.equal(value, before[name]) for name, value in objective.state_dict().items())


@EACH_RECIPE
def test_autocast_changes_neither_loss_nor_gradient(name: str) -> None:
    plain = with_gradient(after_a_batch(name), name)

    def surrounded(*halves: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return objective(*halves)

    objective = after_a_batch(name)
    assert same(with_gradient(surrounded, name), plain)


@EACH_RECIPE
def test_raw_descriptors_in_half_precision_are_compared_in_float32(name: str) -> None:
    tensors = [each.detach().bfloat16() for each in leaves(name)]
    half = called(after_a_batch(name), tensors)
    assert half.dtype == torch.float32
    assert torch.equal(half, called(after_a_batch(name), [each.float() for each in tensors]))


@EACH_RECIPE
def test_in_evaluation_a_loss_is_what_training_would_minimise_and_leaves_no_trace(name: str) -> None:
    objective = after_a_batch(name)
    expected = called(deepcopy(objective), leaves(name))
    before = state(objective)
    with torch.no_grad():
        assert torch.equal(called(objective, leaves(name)), expected)
    objective.eval()
    assert torch.equal(called(objective, leaves(name)), expected)
    assert is_unchanged(objective, before)


@EACH_STATE
def test_in_training_mode_a_batch_moves_the_state_of_its_loss(name: str) -> None:
    objective = after_a_batch(name)
    before = state(objective)
    called(objective, leaves(name))
    assert not is_unchanged(objective, before)


@EACH_RECIPE
@pytest.mark.parametrize("reentrant", [True, False])
def test_gradient_checkpointing_changes_neither_numbers_nor_state(name: str, reentrant: bool) -> None:
    straight, recomputed = after_a_batch(name), after_a_batch(name)
    expected = with_gradient(straight, name)
    tensors = leaves(name)
    loss = checkpoint(lambda *flat: called(recomputed, list(flat)), *tensors, use_reentrant=reentrant)
    loss.backward()
    assert same((loss.detach(), *(each.grad for each in tensors)), expected)
    assert is_unchanged(recomputed, state(straight))


@EACH_RECIPE
def test_a_compiled_objective_has_the_same_loss_and_gradient(name: str) -> None:
    expected = with_gradient(after_a_batch(name), name)
    torch.compiler.reset()
    # This backend traces and differentiates as the default one does, and leaves out its code.
    compiled = torch.compile(after_a_batch(name), backend="aot_eager")
    for got, wanted in zip(with_gradient(compiled, name), expected, strict=True):
        torch.testing.assert_close(got, wanted)


@EACH_RECIPE
def test_a_gradient_can_be_differentiated_again(name: str) -> None:
    """A gradient penalty needs it: products with the Hessian H exist, and v·Hu = u·Hv."""
    tensors = leaves(name)
    total = called(after_a_batch(name), tensors)
    raw = tensors[0]
    (gradient,) = torch.autograd.grad(total, raw, create_graph=True)
    u, v = torch.randn(2, *raw.shape, generator=torch.Generator().manual_seed(2))
    hu, hv = (torch.autograd.grad(gradient, raw, each, retain_graph=True)[0] for each in (u, v))
    assert hu.abs().max() > 0
    scale = float(u.norm() * hv.norm())
    assert float((v * hu).sum()) == pytest.approx(float((u * hv).sum()), abs=1e-4 * scale)


@pytest.mark.parametrize(
    ("name", "loss"), [("hardnet", 0.0), ("adasample_aug_gen", 0.0), ("dsm_aug", -1.6)]
)
def test_collapsed_descriptors_are_told_once(name: str, loss: float) -> None:
    """No other patch is above the floor, so no pair has a negative."""
    objective = build(find(name))
    pairs = torch.ones(2, 20, 128)
    with pytest.warns(UserWarning, match=r"100% of the pairs have no negative") as told:
        assert objective(*pairs).item() == pytest.approx(loss, abs=0.1)
    assert {each.filename for each in told} == {__file__}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        objective(*pairs)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        called(build(find("hardnet")), leaves("hardnet"))


def test_training_says_that_its_pairs_have_no_negative(small_set: PatchSet) -> None:
    hardnet = find("hardnet")
    # No two unit descriptors are farther apart than 2.
    alone = replace(hardnet, negatives=replace_options(hardnet.negatives, floor=2.1))
    with pytest.warns(UserWarning, match="HardNet, seed 0: 100% of the pairs have no negative"):
        trained = train(alone, SHORT, small_set, 0)
    assert trained.curve["alone_share"] == [1.0, 1.0]
    assert train(hardnet, SHORT, small_set, 0).curve["alone_share"] == [0.0, 0.0]


@pytest.mark.parametrize(("name", "loss"), [("sosnet_aug", 1.001), ("hynet_aug", 1.2)])
def test_collapsed_descriptors_have_the_loss_of_sosnets_and_hynets_code(name: str, loss: float) -> None:
    assert build(find(name))(*torch.ones(2, 20, 128)).item() == pytest.approx(loss, abs=1e-4)


@EACH_STATE
def test_a_batch_that_is_given_twice_in_a_row_counts_once(name: str) -> None:
    once, twice = after_a_batch(name), after_a_batch(name)
    called(once, leaves(name))
    assert torch.equal(called(twice, leaves(name)), called(twice, leaves(name)))
    assert is_unchanged(twice, state(once))


@pytest.mark.parametrize("momentum", [0.01, 0.1, 1.0])
def test_dsm_in_pytorch_metric_learning_moves_its_histogram_faster(momentum: float) -> None:
    """It adds the counts of n triplets to a histogram that sums to one, so that its momentum m is
    n m / (n m + 1 − m) in the paper's sense. At that momentum the losses are the same. Its range ends
    one bin earlier. Its backward raises in this version of torch, so there is no gradient to compare.
    """
    n = 32
    faster = n * momentum / (n * momentum + 1 - momentum)
    recipe = find("dsm_aug")
    ours = build(
        replace(
            recipe,
            loss=replace_options(recipe.loss, bins=11, momentum=faster),
            negatives=replace_options(recipe.negatives, floor=0.0),
            distance=replace_options(recipe.distance, epsilon=0.0),
        )
    )
    theirs = DynamicSoftMarginLoss(num_bins=10, momentum=momentum)
    generator = torch.Generator().manual_seed(0)
    for _ in range(4):
        anchors = torch.randn(n, 16, generator=generator)
        positives = anchors + 0.8 * torch.randn(n, 16, generator=generator)
        loss = theirs(anchors, ref_emb=positives)
        assert ours(anchors, positives).item() == pytest.approx(loss.item(), abs=1e-6)
