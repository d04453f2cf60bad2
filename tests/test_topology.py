"""TCDesc's positive: each formula against the literal one, and degenerate batches."""

from __future__ import annotations

import math
from dataclasses import replace

import literal_tcdesc as literal
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from literal_tcdesc import Options
from scipy.spatial import cKDTree
from torch import Tensor

from lib import objective, profiles
from lib.benchmarks.subject import describe
from lib.data.images import read_grey
from lib.data.patchset import PatchSet
from lib.data.scenes.prepared import keypoints_of
from lib.data.sources import FREE_PLACES
from lib.features.keypoints import Keypoints
from lib.features.networks import find
from lib.features.patches import PATCH_WIDTH, cut
from lib.losses import topology_weights
from lib.losses.descriptions import Descriptions
from lib.losses.distances import angular, euclidean
from lib.losses.topology import topology, topology_distance
from lib.losses.topology_weights import linear_combination, nearest
from lib.recipes import (
    ADASAMPLE_TC,
    HYNET_TC,
    RECIPES,
    Budget,
    Recipe,
    at_rate,
    part,
)
from lib.training import train

# Without ε under the root, so that d_E is as the paper prints it.
EXACT = euclidean(epsilon=0.0)
seeds = st.integers(0, 2**31)


def pairs(n: int, k: int, seed: int = 0, noise: float = 0.4) -> Tensor:
    """Return (2, n, k) unit float64 descriptors; less noise makes those of a pair more alike."""
    draw = torch.Generator().manual_seed(seed)
    point = torch.randn(n, k, generator=draw, dtype=torch.float64)
    offsets = torch.randn(2, n, k, generator=draw, dtype=torch.float64)
    return F.normalize(point + noise * offsets, dim=-1)


def descriptions(descriptors: Tensor) -> Descriptions:
    return Descriptions(descriptors, descriptors)


def positives(descriptors: Tensor, **options: object) -> list[float]:
    """Return d⁺ by Algorithm 1 and Eq. 10 and 11."""
    return literal.positive_distances(descriptors.numpy(), Options(eps=0.0, **options)).tolist()


@given(seed=seeds, n=st.integers(3, 12), k=st.integers(1, 5), gamma=st.sampled_from([0, 0.5, 1, 2]))
def test_d_pos_is_the_paper_s_algorithm_and_mixture(seed, n, k, gamma):
    batch, k = pairs(n, 12, seed), min(k, n - 1)
    d_pos = topology(EXACT, neighbours=k, gamma=gamma)(descriptions(batch))
    assert d_pos.tolist() == pytest.approx(positives(batch, k=k, gamma=gamma), rel=1e-10, abs=1e-12)


@pytest.fixture(scope="module")
def patches() -> np.ndarray:
    """Patches of different spots of the repository's places, in random order."""
    cut_out = []
    for place in ("banana", "conch", "boruszyn", "caliterra"):
        photograph = min((FREE_PLACES / place / "images").iterdir())
        grey = read_grey(photograph, orientation="stored")
        cut_out.append(cut(grey, apart(keypoints_of(grey))))
    return np.random.default_rng(0).permutation(np.concatenate(cut_out))


def apart(keypoints: Keypoints) -> Keypoints:
    """Return the keypoints, strongest first, without those whose patch a stronger one's middle is in."""
    near = cKDTree(keypoints.position).query_ball_point(
        keypoints.position, PATCH_WIDTH / 2 * keypoints.scale
    )
    return keypoints[[min(others) == index for index, others in enumerate(near)]]


# Network, and a bound below its neighbours' squared distances in the largest batches, in `COLLINEAR`.
@pytest.mark.parametrize(("network", "factor"), [("tcdesc_dsm_aug", 5), ("dsm_aug", 2)])
def test_the_safeguard_changes_no_weights_of_trained_networks(
    patches: np.ndarray, network: str, factor: float, monkeypatch: pytest.MonkeyPatch
):
    # In float64, so that rounding causes no difference.
    batch = torch.as_tensor(describe(find(network), patches[:1024])).double()
    assert len(batch) == 1024
    near = batch[nearest(batch, 16)]
    # A least squares solver, which adds nothing to any diagonal.
    exact = torch.linalg.lstsq(near.mT, batch[:, :, None]).solution[..., 0]
    assert changed(batch, near, exact) == 0
    # Squares of R's diagonal are squared distances from the span of earlier neighbours; lengths are 1.
    squared_distances = torch.linalg.qr(near.mT).R.diagonal(dim1=1, dim2=2).square()
    assert squared_distances.amin() > factor * topology_weights.COLLINEAR
    # A much larger threshold would change many weights.
    monkeypatch.setattr(topology_weights, "COLLINEAR", 2 / 3)
    assert changed(batch, near, exact) > 0.3


def changed(centres: Tensor, near: Tensor, exact: Tensor) -> float:
    """Return the share of centres whose weights are not the exact ones."""
    errors = (linear_combination(centres, near) - exact).norm(dim=1)
    return (errors > 1e-9 * exact.norm(dim=1)).double().mean().item()


@given(seed=seeds, gamma=st.floats(0, 4), noise=st.floats(0.05, 2))
def test_lambda_is_eq_11_s(seed, gamma, noise):
    batch, options = pairs(14, 8, seed, noise), Options(k=4, gamma=gamma)
    # With d_T = 0, d⁺ = (1 − λ) d_E.
    positive = topology(EXACT, neighbours=4, weights="none", gamma=gamma)
    lam = 1 - positive(descriptions(batch)) / (batch[0] - batch[1]).norm(dim=1)
    near = np.array([literal.neighbours(side, 4) for side in batch.numpy()])
    matches = literal.matched_neighbours(batch.numpy(), near, options)
    assert lam.tolist() == pytest.approx(literal.lambdas(matches, options).tolist(), abs=1e-9)
    assert positive.seen["mean_lambda"].item() == pytest.approx(lam.mean().item(), abs=1e-9)
    assert positive.seen["matched_share"].item() == pytest.approx(matches.mean() / 4)
    capped = ((matches / 4) ** gamma >= 0.5).mean()
    assert positive.seen["capped_share"].item() == pytest.approx(capped)


def test_topology_vectors_are_indexed_by_pair():
    """A neighbour of both counts by the difference of its weights, of one alone in full (Eq. 8)."""
    near = torch.tensor([[[1, 2], [0, 2], [0, 1], [0, 1]], [[2, 1], [3, 0], [3, 0], [2, 1]]])
    of_anchors = torch.tensor([[0.5, 0.25], [1.0, 2.0], [1.0, -1.0], [1.0, 1.0]])
    of_positives = torch.tensor([[0.25, 0.5], [4.0, 3.0], [5.0, -1.0], [1.0, -1.0]])
    distances = topology_distance(of_anchors, of_positives, near)
    assert distances.tolist() == [0, (2 + 2 + 4) / 2, (2 + 1 + 5) / 2, (1 + 2 + 1) / 2]


OPTIONS = {
    "as printed": {},
    "neighbours of one": {"neighbours": 1},
    "sum to one": {"sum_to_one": True},
    "ridge": {"ridge": 0.1},
    "heat": {"weights": "heat", "t": 0.5},
    "heat of squares": {"weights": "heat", "t": 0.5, "squared": True},
    "none": {"weights": "none"},
    "batch": {"per": "batch"},
    "mutual": {"mutual": True},
}


@pytest.mark.parametrize("option", OPTIONS)
def test_the_gradient_is_that_of_differences(option):
    positive = topology(EXACT, **{"neighbours": 3, **OPTIONS[option]})

    def positive_of_raw(raw: Tensor) -> Tensor:
        return positive(descriptions(F.normalize(raw, dim=-1)))

    assert torch.autograd.gradcheck(positive_of_raw, (2 * pairs(7, 5)).requires_grad_(), fast_mode=True)


def test_well_conditioned_weights_are_exactly_those_without_a_safeguard():
    """Float32 against float64 without one, at the paper's numbers of neighbours and dimensions."""
    centres = pairs(256, 128)[0]
    for k in (16, 32, 64):
        near = centres[nearest(centres, k)]
        exact = torch.linalg.solve(near @ near.mT, near @ centres[:, :, None])[:, :, 0]
        torch.testing.assert_close(linear_combination(centres, near), exact, rtol=0, atol=1e-12)
        weights = linear_combination(centres.float(), near.float())
        torch.testing.assert_close(weights, exact.float(), rtol=0, atol=1e-5)


@pytest.mark.parametrize("offset", [0.0, 1e-6, 1e-4, 1e-2])
def test_nearly_collinear_neighbours_have_weights_and_gradients_of_usual_size(offset):
    batch = pairs(64, 32).float()
    usual = gradient(batch)
    batch[:, 1] = F.normalize(batch[:, 0] + offset * batch[:, 2], dim=-1)
    batch[0, 4] = F.normalize(batch[0, 3] + offset * batch[0, 5], dim=-1)
    # In a plane with two others, close to neither.
    batch[1, 8] = F.normalize(batch[1, 6] + batch[1, 7] + offset * batch[1, 9], dim=-1)
    assert gradient(batch).norm(dim=-1).max() < 5 * usual.norm(dim=-1).max()
    for side in batch:
        near = side[nearest(side, 16)]
        assert linear_combination(side, near).abs().max() < 2


def gradient(batch: Tensor, **options: object) -> Tensor:
    leaf = batch.clone().requires_grad_()
    distances = topology(euclidean(), **options)(descriptions(leaf))
    assert torch.isfinite(distances).all()
    distances.mean().backward()
    assert torch.isfinite(leaf.grad).all()
    return leaf.grad


def test_identical_neighbours_share_their_weight_and_leave_other_centres_unchanged():
    centres = pairs(6, 8)[0]
    near = pairs(18, 8, 1)[0].view(6, 3, 8).clone()
    before = linear_combination(centres, near)
    near[2, 2] = near[2, 0]
    after = linear_combination(centres, near)
    assert after[2, 0].item() == pytest.approx(after[2, 2].item())
    others = torch.arange(6) != 2
    assert torch.equal(before[others], after[others])
    single = linear_combination(centres, near[:, :2])
    # Up to the ridge.
    assert after[2, 0].item() + after[2, 2].item() == pytest.approx(single[2, 0].item(), rel=0.02)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("weights", ["linear", "heat", "none"])
@pytest.mark.parametrize("k", [1, 15, 60])
def test_duplicate_descriptors_have_finite_distances_and_gradients(dtype, weights, k):
    """All identical; half of them twice; and two equal sets, whose topology is equal."""
    identical, doubled, equal = torch.ones(2, 64, 96) / 96**0.5, pairs(64, 96), pairs(64, 96)
    doubled[:, 32:] = doubled[:, :32]
    equal[1] = equal[0]
    for batch in (identical, doubled, equal):
        gradient(batch.to(dtype), neighbours=k, weights=weights, sum_to_one=k == 15)


def test_half_precision_and_autocast_compute_in_float32():
    batch = pairs(40, 32).to(torch.bfloat16)
    positive = topology(euclidean(), neighbours=8)
    distances = positive(descriptions(batch))
    assert distances.dtype == torch.float32
    torch.testing.assert_close(distances, positive(descriptions(batch.float())))
    centres = batch[0].float()
    near = centres[nearest(centres, 8)]
    with torch.autocast("cpu", torch.bfloat16):
        under_autocast = linear_combination(centres, near)
    assert torch.equal(under_autocast, linear_combination(centres, near))


@pytest.mark.parametrize(("rows", "value"), [(3, torch.nan), (slice(None), 0.0)])
def test_distances_that_are_not_finite_are_counted_in_the_error(rows: int | slice, value: float) -> None:
    """The factorisation raises no error of its own; a later one would not name the cause."""
    batch = pairs(20, 16).float()
    batch[:, rows] = value
    with pytest.raises(FloatingPointError, match=r"distances of \d+ pairs are not finite"):
        topology(euclidean(), neighbours=4)(descriptions(batch))


def test_the_recipe_s_distance_is_mixed_in_at_its_power():
    batch = pairs(12, 8)
    distance = angular(power=2, epsilon=0.0)
    topological, mixed = (
        topology(distance, neighbours=3, lam=lam)(descriptions(batch)) for lam in (1.0, 0.25)
    )
    angle = torch.acos((batch[0] * batch[1]).sum(-1))
    torch.testing.assert_close(mixed, 0.25 * topological + 0.75 * angle**2)


def test_too_few_pairs_or_dimensions_for_the_neighbours_are_refused():
    with pytest.raises(ValueError, match="a batch of 16 pairs has no 16 neighbours"):
        topology(EXACT)(descriptions(pairs(16, 32)))
    batch = pairs(20, 8)
    with pytest.raises(ValueError, match="8 dimensions are combinations of any 8 neighbours"):
        topology(EXACT, neighbours=8)(descriptions(batch))
    assert torch.isfinite(topology(EXACT, neighbours=8, weights="heat")(descriptions(batch))).all()
    assert torch.isfinite(topology(EXACT, neighbours=7)(descriptions(batch))).all()


def test_the_cdf_may_be_of_the_distance_without_topology():
    """Weights are those without topology; the loss is w (d⁺ − d⁻) of the mixed d⁺."""
    recipe = RECIPES["tcdesc_dsm_aug"]
    unmixed = replace(recipe, loss=part("unmixed", loss=recipe.loss, distance=recipe.distance))
    ours, dsm = objective.build(unmixed), objective.build(RECIPES["dsm_aug"])
    for seed in range(3):
        batch = descriptions(pairs(24, 32, seed).float().requires_grad_())
        mixed, plain = ours.triplets(batch), dsm.triplets(batch)
        weights = dsm.loss(plain) / (plain.positive - plain.negative)
        torch.testing.assert_close(
            ours.loss(mixed), weights.detach() * (mixed.positive - mixed.negative)
        )
        assert ours.loss.seen["mean_weight"] == dsm.loss.seen["mean_weight"]
    assert torch.equal(ours.loss.state_dict()["loss.histogram"], dsm.loss.state_dict()["histogram"])


@pytest.mark.parametrize("recipe", [ADASAMPLE_TC, HYNET_TC], ids=lambda recipe: recipe.label)
def test_topology_recipes_train_in_bfloat16_and_record_statistics(recipe: Recipe, small_set: PatchSet):
    size = replace(
        profiles.find("quick"),
        width=1 / 16,
        budget=Budget(batch_pairs=20, epoch_pairs=60, epochs=1),
        stages=(),
        precision="bfloat16",
    )
    curve = train(at_rate(recipe, 0.01), size, small_set, 0).curve
    assert curve["step"] == [1, 2, 3]
    assert all(math.isfinite(value) for values in curve.values() for value in values)
    for step in range(3):
        # 16 of the 19 others are neighbours, and at least 13 of these are shared.
        assert curve["matched_share"][step] >= 13 / 16
        assert curve["mean_lambda"][step] == 0.5
        assert curve["capped_share"][step] == 1
        assert curve["d_topology"][step] > 0
