"""The one objective: that it carries what the papers' parts ask of it, shown with toy parts, and that
training minimises it."""

from __future__ import annotations

import math
from dataclasses import replace

import literal_step
import oracles
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lib import objective, parts, profiles, recipes
from lib.batches import Batch, open_batches
from lib.data.patchset import PatchSet
from lib.descriptions import Descriptions, Triplets, descriptions
from lib.distances import Distance, angular, euclidean
from lib.models import l2net
from lib.negatives import hardest
from lib.objective import Objective
from lib.positives import pair
from lib.recipes import Budget, part, replace_options
from lib.samplers import adasample, random_pair
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
    of = raw(n, k, seed).requires_grad_()
    return Descriptions(of, F.normalize(of, dim=-1))


def angle_between(x: list[float], y: list[float]) -> float:
    return oracles.angular(oracles.unit(x), oracles.unit(y))


def whole(loss: nn.Module, distance: Distance | None = None, **more: object) -> Objective:
    distance = distance or euclidean.build(epsilon=0.0)
    more = {"positive": pair.build(distance), "mine": hardest.build("across", 0.0)} | more
    return Objective(distance=distance, loss=loss, **more)


def with_toys(monkeypatch: pytest.MonkeyPatch, **toys: object) -> None:
    """Parts of a toy kind in place of the recipe's modules, by axis."""
    real = parts.build

    def build(axis: str, chosen: recipes.Part, **more: object) -> object:
        return toys[axis](**more) if axis in toys else real(axis, chosen, **more)

    monkeypatch.setattr(parts, "build", build)


class Signed(nn.Module):
    """d_pos − d_neg, negative wherever a triplet is easy; keeps the running mean of what was mined."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(()))

    def forward(self, triplets: Triplets) -> Tensor:
        self.mean = 0.9 * self.mean + 0.1 * triplets.mined.mean()
        self.seen = {"mined_mean": self.mean}
        return triplets.positive - triplets.negative


class Listwise(nn.Module):
    """The share of a query's similarity that its match has among all descriptors of the batch."""

    def forward(self, triplets: Triplets) -> Tensor:
        anchors, positives = triplets.of.value
        return -(anchors @ positives.mT).log_softmax(dim=1).diagonal()


class OfMaps(nn.Module):
    """How much the first feature map of the two patches differs."""

    def forward(self, triplets: Triplets) -> Tensor:
        anchors, positives = triplets.of.maps[0]
        return (anchors - positives).square().flatten(1).mean(1)


class Handing(l2net.L2Net):
    """An L2-Net that hands out its first feature map."""

    def raw(self, patches: Tensor) -> tuple[Tensor, Tensor]:
        first = self.features[:3](l2net.standardise(patches))
        return self.features[3:](first).flatten(1), first


class Binary(l2net.L2Net):
    """An L2-Net whose loss takes tanh and whose signs are compared at test."""

    def normalise(self, raw: Tensor) -> Tensor:
        return raw.float().tanh()

    def code(self, value: Tensor) -> Tensor:
        return torch.where(value > 0, 1.0, -1.0)


class Wide(l2net.L2Net):
    """An L2-Net of the middle of a 64×64 patch."""

    input_size = 64

    def raw(self, patches: Tensor) -> Tensor:
        assert patches.shape[-2:] == (64, 64)
        return super().raw(patches[:, :, 16:48, 16:48])


def test_a_listwise_loss_sees_all_descriptors_of_the_batch() -> None:
    of = described()
    losses = whole(Listwise()).loss(whole(Listwise()).triplets(of))
    products = (of.value[0] @ of.value[1].mT).tolist()
    shares = [math.exp(row[i]) / sum(map(math.exp, row)) for i, row in enumerate(products)]
    assert (-losses).exp().tolist() == pytest.approx(shares)


def test_a_loss_of_feature_maps_gets_those_of_the_pairs(
    small_set: PatchSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = open_batches(recipes.HARDNET, small_set).draw(4, torch.Generator().manual_seed(0))
    model = Handing(1 / 16).eval()
    choice = random_pair.build().choose(batch.pool, None, torch.Generator().manual_seed(0))
    images = batch.images(choice.places)
    of = descriptions(model, model.raw(images))
    first = model.features[:3](l2net.standardise(images))
    assert torch.equal(of.maps[0], first.unflatten(0, (2, 4)))
    with_toys(monkeypatch, model=lambda width: Handing(width), loss=OfMaps)
    recipe = recipes.find("hardnet")
    assert train(recipe, TINY, small_set, 0).curve["loss"][0] > 0


@pytest.mark.parametrize("reuse", [False, True])
def test_maps_and_float32_raw_descriptors_of_the_pairs_alone_reach_a_regulariser(
    reuse: bool, small_set: PatchSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Descriptions] = []

    def norms() -> object:
        def regularizer(of: Descriptions) -> Tensor:
            seen.append(of)
            return 0.1 * (of.raw[0].norm(dim=1) - of.raw[1].norm(dim=1)).square().mean()

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
    for of in seen:
        assert of.raw.dtype == torch.float32
        assert of.raw.shape == of.value.shape == (2, 8, 128)
        assert of.maps[0].shape[:2] == (2, 8)
        assert torch.equal(F.normalize(of.raw, dim=-1), of.value)
    assert trained.curve["step"] == [1, 2]


def test_negatives_and_what_was_mined_are_of_the_codes_and_the_loss_of_the_values() -> None:
    model, generator = Binary(1 / 16).eval(), torch.Generator().manual_seed(3)
    output = torch.randn(12, 128, generator=generator)
    of = descriptions(model, output)
    assert torch.equal(of.code, torch.where(output > 0, 1.0, -1.0).unflatten(0, (2, 6)))
    assert not of.code.requires_grad
    # Half the squared distance of signs counts the bits that differ, twice.
    hamming = Distance(lambda inner, x, y: (128 - inner) / 2, power=1, maximum=128.0)
    parts = whole(Signed(), distance=hamming)
    triplets = parts.triplets(of)
    bits = (of.code[0][:, None] != of.code[1]).sum(-1).float()
    others = bits.masked_fill(torch.eye(6, dtype=torch.bool), torch.inf)
    closest = torch.minimum(others.min(0).values, others.min(1).values)
    assert triplets.mined.tolist() == (bits.diagonal() - closest).tolist()
    proxy = (128 - (of.value[0] * of.value[1]).sum(-1)) / 2
    torch.testing.assert_close(triplets.positive, proxy)
    assert not torch.equal(triplets.positive - triplets.negative, triplets.mined)


def test_a_binary_model_trains(small_set: PatchSet, monkeypatch: pytest.MonkeyPatch) -> None:
    with_toys(
        monkeypatch,
        model=lambda width: Binary(width),
        distance=lambda: Distance(lambda inner, x, y: (128 - inner) / 64, 1, 4.0),
    )
    assert train(recipes.HARDNET, TINY, small_set, 0).curve["loss"][-1] > 0


def test_a_positive_s_distance_may_depend_on_the_whole_batch() -> None:
    distance = euclidean.build(power=2)

    def positive(of: Descriptions) -> Tensor:
        spread = distance.matrix(of.value[0], of.value[0]) - distance.matrix(of.value[1], of.value[1])
        return 0.5 * distance.paired(*of.value) + 0.5 * spread.abs().mean(1)

    of = described(n=4)
    triplets = whole(Signed(), distance, positive=positive).triplets(of)
    a, p = of.value.tolist()

    def squared(x: list[float], y: list[float]) -> float:
        return oracles.euclidean(x, y) ** 2

    for i in range(4):
        spread = [abs(squared(a[i], a[j]) - squared(p[i], p[j])) for j in range(4)]
        expected = 0.5 * squared(a[i], p[i]) + 0.5 * sum(spread) / 4
        assert triplets.positive[i].item() == pytest.approx(expected)
    torch.testing.assert_close(triplets.mined, (triplets.positive - triplets.negative).detach())
    triplets.positive[0].backward()
    assert of.raw.grad.abs().sum(-1).gt(0).all(), "the first pair's distance moves all descriptors"


@pytest.mark.parametrize("module", [euclidean, angular])
@pytest.mark.parametrize("power", [1, 2])
def test_distances_off_the_sphere_are_those_of_the_vectors(module, power: int) -> None:
    of = Descriptions(raw(4, 3), 2.5 * raw(4, 3))
    distance = module.build(power=power, epsilon=0.0, unit=False)
    literal = {euclidean: oracles.euclidean, angular: angle_between}[module]
    a, p = of.value.tolist()
    expected = [[literal(x, y) ** power for y in p] for x in a]
    torch.testing.assert_close(distance.matrix(*of.value), torch.tensor(expected, dtype=torch.float64))
    torch.testing.assert_close(
        distance.paired(*of.value), distance.matrix(*of.value).diagonal(), rtol=1e-9, atol=1e-9
    )
    unit = F.normalize(of.value, dim=-1)
    on_sphere = module.build(power=power, epsilon=0.0)
    torch.testing.assert_close(distance.matrix(*unit), on_sphere.matrix(*unit))


def test_patches_of_another_size_reach_the_network(
    small_set: PatchSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_toys(monkeypatch, model=lambda width: Wide(width))
    trained = train(recipes.find("adasample_aug_gen"), TINY, small_set, 0, max_steps=2)
    assert trained.curve["step"] == [1, 2]
    batch: Batch = open_batches(recipes.HARDNET, small_set, size=64).draw(
        3, torch.Generator().manual_seed(0)
    )
    images = batch.images(batch.pool.valid)
    patches = small_set.patches[batch.pool.patch[batch.pool.valid].numpy()]
    assert torch.equal(images[:, 0], torch.from_numpy(patches).float())


def test_a_sum_over_the_batch_is_n_times_its_mean() -> None:
    of, toy = described(), whole(Signed())
    losses = toy.loss(toy.triplets(of))
    weights = torch.arange(5, dtype=torch.float64)
    summed = replace(toy, reduction="sum").total(losses, of, weights)
    torch.testing.assert_close(summed, 5 * toy.total(losses, of, weights))


def test_adasample_refuses_a_loss_that_is_negative_and_takes_the_hinge_of_it(
    small_set: PatchSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampler = adasample.build(angular.build(), lam=10.0)
    with pytest.raises(ValueError, match=r"no meaning for a loss of -0\.5; give the sampler of='hinge'"):
        sampler.observe(None, torch.tensor([0.5, -1.5]))
    of = described()
    triplets = whole(Signed()).triplets(of)
    on_hinge = adasample.build(angular.build(), lam=10.0, of="hinge")
    on_hinge.observe(triplets, triplets.positive - triplets.negative)
    hinges = [max(0.0, 1 + margin) for margin in triplets.mined.tolist()]
    assert float(on_hinge.average_loss) == pytest.approx(sum(hinges) / 5)
    with pytest.raises(ValueError, match="'loss' or 'hinge', got 'mean'"):
        adasample.build(angular.build(), lam=10.0, of="mean")
    with_toys(monkeypatch, loss=Signed)
    signed = recipes.find("adasample_aug_gen")
    signed = replace(signed, sampler=replace_options(signed.sampler, of="hinge"))
    assert train(signed, TINY, small_set, 0).curve["exponent"][-1] > 0


def test_a_loss_of_zero_throughout_makes_adasample_draw_the_farthest() -> None:
    sampler = adasample.build(angular.build(), lam=10.0)
    sampler.observe(None, torch.zeros(4))
    assert float(sampler.exponent) == pytest.approx(1e30)


# Those that `literal_step` writes out: an L2-Net, binary or not, and a loss of mined triplets.
WRITTEN_OUT = sorted(
    name
    for name, recipe in recipes.RECIPES.items()
    if recipe.model.name in ("l2net", "l2net_binary") and recipe.loss.name in ("hinge", "cdf")
)


@pytest.mark.parametrize("name", WRITTEN_OUT)
def test_the_loop_s_step_is_the_literal_one(name: str, small_set: PatchSet) -> None:
    """Three steps of the loop, so that AdaSample's exponent counts, against the steps written out."""
    recipe = recipes.at_rate(recipes.find(name), 0.1)
    if recipe.positive.name == "topology":
        # A batch of 8 has no 16 neighbours.
        recipe = replace(recipe, positive=replace_options(recipe.positive, neighbours=3))
    trained = train(recipe, TINY, small_set, 7, max_steps=3)
    literal = literal_step.weights_after(recipe, TINY, small_set, seed=7, steps=3)
    for key, value in trained.model.state_dict().items():
        torch.testing.assert_close(value, literal[key], rtol=0, atol=1e-5)


def test_an_objective_of_an_unknown_part_is_refused() -> None:
    with pytest.raises(ValueError, match=r"positive: no module lib\.positives\.triple"):
        objective.build(replace(recipes.HARDNET, positive=part("triple")))
