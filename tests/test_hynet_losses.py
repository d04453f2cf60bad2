"""SOSNet's squared hinge, and HyNet's two other ways of mixing s and d, L_A and L_B (Eq. 9)."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from lib import objective, profiles
from lib.data.patchset import PatchSet
from lib.descriptions import Descriptions, drawn
from lib.losses import mixed_hinge, squared_hinge, stacked_hinge
from lib.recipes import HYNET, SOSNET, Budget, Recipe, at_rate, part
from lib.training import train

angles = st.lists(st.tuples(st.floats(0, math.pi), st.floats(0, math.pi)), min_size=1, max_size=8).map(
    lambda pairs: torch.tensor(pairs, dtype=torch.float64).T
)
LOSSES = {
    "squared": (squared_hinge.build, lambda s, d: max(0, 1 + d[0] - d[1]) ** 2),
    "L_A": (mixed_hinge.build, lambda s, d: max(0, 1 + (1 - s[0]) - d[1])),
    "L_B": (
        stacked_hinge.build,
        lambda s, d: 2 * max(0, 0.9 + s[1] - s[0]) + max(0, 1.2 + d[0] - d[1]),
    ),
}
EVERY = pytest.mark.parametrize("name", LOSSES)


def distances(theta: torch.Tensor) -> torch.Tensor:
    return 2 * (theta / 2).sin()


@EVERY
@given(theta=angles)
@settings(deadline=None, max_examples=40)
def test_each_triplet_has_the_papers_loss(name, theta):
    build, literal = LOSSES[name]
    loss = build()
    losses = loss(drawn(*distances(theta)))
    expected = [
        literal([math.cos(t) for t in pair], [math.sqrt(2 - 2 * math.cos(t)) for t in pair])
        for pair in theta.T.tolist()
    ]
    assert losses.tolist() == pytest.approx(expected, abs=1e-7)
    assert loss.seen["zero_share"].item() == pytest.approx(
        sum(value == 0 for value in losses.tolist()) / len(expected)
    )


@EVERY
def test_a_saturated_triplet_has_no_gradient(name):
    positive, negative = (torch.tensor([d], requires_grad=True) for d in (0.0, 2.0))
    losses = LOSSES[name][0]()(drawn(positive, negative))
    losses.sum().backward()
    assert (losses.item(), positive.grad.item(), negative.grad.item()) == (0, 0, 0)


@EVERY
def test_the_gradient_is_that_of_differences(name):
    d_pos, d_neg = (
        (0.1 + 1.7 * torch.rand(20, generator=torch.Generator().manual_seed(seed)).double())
        for seed in (0, 1)
    )
    check = [d_pos.requires_grad_(), d_neg.requires_grad_()]
    assert torch.autograd.gradcheck(lambda p, n: LOSSES[name][0]()(drawn(p, n)), check)


@EVERY
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_gives_what_float32_gives_but_for_rounding(name, dtype):
    d_pos, d_neg = (2 * torch.rand(16, generator=torch.Generator().manual_seed(seed)) for seed in (0, 1))
    halved = LOSSES[name][0]()(drawn(d_pos.to(dtype), d_neg.to(dtype)))
    torch.testing.assert_close(
        halved.float(), LOSSES[name][0]()(drawn(d_pos, d_neg)), atol=0.1, rtol=0.05
    )


WHOLE = {
    "squared": part("squared_hinge", margin=1.0),
    "L_A": part("mixed_hinge"),
    "L_B": part("stacked_hinge"),
}


def of_recipe(name: str, raw: torch.Tensor) -> torch.Tensor:
    """The losses of a batch under SOSNet's distance and negatives."""
    made = objective.build(replace(SOSNET, loss=WHOLE[name]))
    return made.loss(made.triplets(Descriptions(raw, F.normalize(raw, dim=-1))))


@EVERY
def test_a_batch_of_identical_descriptors_has_finite_gradients(name):
    raw = torch.ones(2, 3, 8, requires_grad=True)
    of_recipe(name, raw).sum().backward()
    assert torch.isfinite(raw.grad).all()


TINY = replace(
    profiles.find("quick"), width=1 / 16, budget=Budget(batch_pairs=16, epoch_pairs=16 * 40, epochs=1)
)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize(("recipe", "rate"), [(SOSNET, 0.1), (HYNET, 0.005)])
def test_training_lowers_the_loss(
    recipe: Recipe, rate: float, precision: str, small_set: PatchSet
) -> None:
    trained = train(at_rate(recipe, rate), replace(TINY, precision=precision), small_set, 0)
    losses = trained.curve["loss"]
    assert sum(losses[-5:]) < 0.8 * sum(losses[:5])
    assert all(torch.isfinite(value).all() for value in trained.model.state_dict().values())
