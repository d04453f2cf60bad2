"""The one objective: it supplies what the papers' parts need, shown with toy parts, and training
minimises it."""

from __future__ import annotations

from dataclasses import replace

import literal_step
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lib import parts, profiles, recipes
from lib.data.patchset import PatchSet
from lib.losses.descriptions import Descriptions, Triplets
from lib.losses.distances import Distance, angular, euclidean
from lib.losses.negatives import Hardest
from lib.losses.topology import Pair
from lib.models import l2net
from lib.objective import Objective
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
    more = {"positive": Pair(distance), "mine": Hardest("across", 0.0)} | more
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
