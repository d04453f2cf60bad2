"""The one objective: it supplies what the papers' parts need, shown with toy parts, and training
minimises it."""

from __future__ import annotations

import warnings
from dataclasses import replace

import literal_step
import pytest
import torch
import torch.nn.functional as F
from raw_outputs import halves, outputs
from torch import Tensor, nn

from lib import parts, profiles, recipes
from lib.data.patchset import PatchSet
from lib.losses.descriptions import Descriptions, Triplets
from lib.losses.descriptions import descriptions as as_described
from lib.losses.distances import Distance, angular, euclidean
from lib.losses.negatives import Hardest
from lib.losses.topology import Pair
from lib.models import l2net
from lib.objective import Objective
from lib.objective import build as build_objective
from lib.recipes import Budget, part, replace_options
from lib.samplers import adasample
from lib.training import train

TINY = replace(
    profiles.find("quick"),
    width=1 / 16,
    budget=Budget(batch_pairs=8, epoch_pairs=32, epochs=1),
    stages=(0.0, 0.5, 1.0),
)


def raw(n: int, k: int, seed: int = 0) -> Tensor:
    return torch.randn(2, n, k, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def described(n: int = 5, k: int = 4, seed: int = 0) -> Descriptions:
    vectors = raw(n, k, seed).requires_grad_()
    return Descriptions(vectors, F.normalize(vectors, dim=-1))


def whole(loss: nn.Module, distance: Distance | None = None, **more: object) -> Objective:
    distance = distance or euclidean(epsilon=0.0)
    more = {"positive": Pair(distance), "negatives": Hardest("across", 0.0)} | more
    return Objective(distance=distance, loss=loss, **more)


def with_toys(monkeypatch: pytest.MonkeyPatch, **toys: object) -> None:
    """Put toy parts in place of the recipe's modules, by axis."""
    real = parts.build

    def build(axis: str, chosen: recipes.Part, **more: object) -> object:
        return toys[axis](**more) if axis in toys else real(axis, chosen, **more)

    monkeypatch.setattr(parts, "build", build)


class Signed(nn.Module):
    """d_pos − d_neg, negative wherever a triplet is easy; keeps the running mean of `mined`."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(()))

    def forward(self, triplets: Triplets) -> Tensor:
        self.mean = 0.9 * self.mean + 0.1 * triplets.mined.mean()
        self.seen = {"mined_mean": self.mean}
        return triplets.positive - triplets.negative


class Handing(l2net.L2Net):
    """An L2-Net that also returns its first feature map."""

    def raw(self, patches: Tensor) -> tuple[Tensor, Tensor]:
        first = self.features[:3](l2net.standardise(patches))
        return self.features[3:](first).flatten(1), first


@pytest.mark.parametrize("reuse", [False, True])
def test_maps_and_float32_raw_descriptors_of_the_pairs_alone_reach_a_regulariser(
    reuse: bool, small_set: PatchSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Descriptions] = []

    def norms() -> object:
        def regularizer(batch: Descriptions) -> Tensor:
            seen.append(batch)
            return 0.1 * (batch.raw[0].norm(dim=1) - batch.raw[1].norm(dim=1)).square().mean()

        return regularizer

    with_toys(monkeypatch, regularizers=norms, model=lambda width: Handing(width))
    sampling = recipes.find("adasample_aug_gen")
    recipe = replace(
        sampling,
        sampler=replace_options(sampling.sampler, reuse=reuse),
        regularizers=(part("norms"),),
    )
    mixed = replace(TINY, precision="bfloat16")
    trained = train(recipe, mixed, small_set, 0, max_steps=2)
    assert len(seen) == 2
    for batch in seen:
        assert batch.raw.dtype == torch.float32
        assert batch.raw.shape == batch.value.shape == (2, 8, 128)
        assert batch.maps[0].shape[:2] == (2, 8)
        assert torch.equal(F.normalize(batch.raw, dim=-1), batch.value)
    assert trained.curve["step"] == [1, 2]


def test_a_sum_over_the_batch_is_n_times_its_mean() -> None:
    descriptions, toy = described(), whole(Signed())
    losses = toy.loss(toy.triplets(descriptions))
    weights = torch.arange(5, dtype=torch.float64)
    assert not toy.triplets(descriptions).mined.requires_grad
    summed = whole(Signed(), reduction="sum").total(losses, descriptions, weights)
    torch.testing.assert_close(summed, 5 * toy.total(losses, descriptions, weights))


def test_adasample_refuses_a_negative_loss_and_takes_its_hinge(
    small_set: PatchSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampler = adasample.AdaSample(angular(), lam=10.0)
    with pytest.raises(ValueError, match=r"no meaning for a loss of -0\.5"):
        sampler.observe(None, torch.tensor([0.5, -1.5]))
    of = described()
    triplets = whole(Signed()).triplets(of)
    on_hinge = adasample.AdaSample(angular(), lam=10.0, of="hinge")
    on_hinge.observe(triplets, triplets.positive - triplets.negative)
    hinges = [max(0.0, 1 + margin) for margin in triplets.mined.tolist()]
    assert float(on_hinge.average_loss) == pytest.approx(sum(hinges) / 5)
    with_toys(monkeypatch, loss=Signed)
    signed = recipes.find("adasample_aug_gen")
    signed = replace(signed, sampler=replace_options(signed.sampler, of="hinge"))
    assert train(signed, TINY, small_set, 0).curve["exponent"][-1] > 0


# Recipes that `literal_step` writes out: an L2-Net, binary or not, and a loss of mined triplets.
WRITTEN_OUT = sorted(
    name
    for name, recipe in recipes.RECIPES.items()
    if recipe.model.name in ("l2net", "l2net_binary") and recipe.loss.name in ("hinge", "cdf")
)


@pytest.mark.parametrize("name", WRITTEN_OUT)
def test_a_training_step_is_the_literal_one(name: str, small_set: PatchSet) -> None:
    """Compare three steps, so that AdaSample's exponent counts, with the steps written out."""
    recipe = recipes.at_rate(recipes.find(name), 0.1)
    if recipe.positive.name == "topology":
        # A batch of 8 has fewer than 16 neighbours.
        recipe = replace(recipe, positive=replace_options(recipe.positive, neighbours=3))
    trained = train(recipe, TINY, small_set, 7, max_steps=3)
    literal = literal_step.weights_after(recipe, TINY, small_set, seed=7, steps=3)
    for key, value in trained.model.state_dict().items():
        torch.testing.assert_close(value, literal[key], rtol=0, atol=1e-5)


@pytest.mark.filterwarnings("ignore:this is AdaSample")
@pytest.mark.parametrize("name", sorted(recipes.RECIPES))
def test_one_call_on_raw_descriptors_is_what_training_minimises(name: str) -> None:
    recipe = recipes.find(name)
    network, output = outputs(recipe)
    stepwise, called = build_objective(recipe), build_objective(recipe)
    weights = 0.5 + torch.rand(18)
    for given in (None, weights):
        torch.manual_seed(1)
        described = as_described(network, output)
        expected = stepwise.total(stepwise.loss(stepwise.triplets(described)), described, given)
        torch.manual_seed(1)
        assert torch.equal(called(*halves(output), weights=given), expected)
    expected.backward()
    gradients = [parameter.grad for parameter in network.parameters()]
    assert all(torch.isfinite(gradient).all() for gradient in gradients)
    assert any(gradient.abs().max() > 0 for gradient in gradients)


def test_a_loop_of_ten_lines_trains_a_network_of_ones_own(small_set: PatchSet) -> None:
    """The loop of lib/objective.py, with a network that this study does not know."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.AvgPool2d(4), nn.Flatten(), nn.LayerNorm(256), nn.Linear(256, 64))
    objective = build_objective(recipes.find("dsm_aug"))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
    patches = torch.from_numpy(small_set.patches).float()[:, None].unflatten(0, (40, 3))
    distances = []
    for _ in range(30):
        raw = network(torch.cat([patches[:, 0], patches[:, 1]]))
        loss = objective(*raw.chunk(2))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        triplets = objective.triplets(as_described(l2net.L2Net, raw))
        distances.append(float((triplets.positive - triplets.negative).mean()))
    assert distances[-1] < distances[0] - 0.3
    assert "loss.histogram" in objective.state_dict(), "its state goes into a checkpoint"


def test_adasamples_recipe_says_once_that_its_sampler_and_weights_are_separate() -> None:
    adasampled = build_objective(recipes.find("adasample_aug_gen"))
    pairs = raw(5, 8).float()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        adasampled(*pairs, weights=torch.ones(5))
        build_objective(recipes.find("hardnet_aug_gen"))(*pairs)
    with pytest.warns(UserWarning, match=r"a sampler and a weight of each pair") as told:
        adasampled(*pairs)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        adasampled(*pairs)
    assert len(told) == 1
    assert "sampler.choose(pool, describe, generator)" in str(told[0].message)
    assert told[0].filename == __file__


@pytest.mark.parametrize(
    ("name", "anchors", "positives", "message"),
    [
        (
            "hardnet",
            torch.rand(5, 8),
            torch.rand(4, 8),
            r"of one shape \(n, k\), got \(5, 8\) and \(4, 8\)",
        ),
        ("hardnet", torch.rand(5, 8, 1), torch.rand(5, 8, 1), r"of one shape \(n, k\)"),
        ("hardnet", torch.rand(1, 8), torch.rand(1, 8), "take 2 pairs or more"),
        ("dsm_binary_aug", torch.rand(5, 256) > 0, torch.rand(5, 256) > 0, "before tanh and sign"),
        ("dsm_binary_aug", torch.rand(5, 128), torch.rand(5, 128), "the distance is of 256 bits"),
        ("l2net_aug", torch.rand(5, 128), torch.rand(5, 128), "takes feature maps too"),
        ("tcdesc_hn_aug", torch.rand(5, 128), torch.rand(5, 128), "has no 16 neighbours"),
    ],
)
def test_what_a_loss_needs_is_said(name: str, anchors: Tensor, positives: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build_objective(recipes.find(name))(anchors, positives)


@pytest.mark.parametrize(
    "name", ["hardnet_aug", "dsm_aug", "dsm_binary_aug", "sosnet_aug", "tcdesc_hn_aug"]
)
def test_a_descriptor_of_zeros_has_no_direction_and_is_refused(name: str) -> None:
    anchors, positives = torch.randn(2, 32, 256, generator=torch.Generator().manual_seed(0))
    anchors[3] = 0
    with pytest.raises(FloatingPointError, match="1 of the descriptors are zero"):
        build_objective(recipes.find(name))(anchors, positives)


def test_weights_of_another_number_of_pairs_are_refused() -> None:
    with pytest.raises(ValueError, match=r"5 pairs, but weights of shape \(4,\)"):
        build_objective(recipes.find("hardnet"))(*raw(5, 8), weights=torch.ones(4))


def test_weights_do_not_spread_over_the_losses_of_other_pairs() -> None:
    objective = build_objective(recipes.find("hardnet"))
    pairs = described(5, 8)
    losses = objective.losses(objective.triplets(pairs))
    with pytest.raises(ValueError, match=r"losses of shape \(5,\), but weights of shape \(5, 1\)"):
        objective.total(losses, pairs, torch.ones(5, 1))


def test_an_unknown_part_is_refused_with_the_known_ones() -> None:
    unknown = replace(recipes.HARDNET, loss=part("hinges"))
    with pytest.raises(ValueError, match="loss: no part 'hinges'; there are: hinge, squared_hinge, "):
        build_objective(unknown)
    with pytest.raises(ValueError, match="reduction must be 'mean' or 'sum', got 'max'"):
        build_objective(replace(recipes.HARDNET, reduction="max"))
