"""Which patches a batch holds, and which two of a class form a pair: random, AdaSample, Hardpos."""

from __future__ import annotations

import math

import numpy as np
import oracles
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from lib.losses.descriptions import drawn
from lib.losses.distances import angular, euclidean
from lib.samplers import adasample, hardpos, random_pair
from lib.samplers.adasample import anchor_distances, log_probabilities
from lib.samplers.candidates import Generation, Pool, draw_pool, group
from lib.samplers.points import Shuffled

METRICS = {"euclidean": (euclidean, oracles.euclidean), "angular": (angular, oracles.angular)}
# Level of statistics on fixed seeds: small enough never to fail by chance, far above the p-value of a
# wrong distribution at these counts (see the tests that demand the opposite).
LEVEL = 1e-4
seeds = st.integers(0, 2**31)


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def pool_of(*counts: int, slots: int | None = None) -> Pool:
    n, c = len(counts), slots or max(counts)
    valid = torch.arange(c) < torch.tensor(counts)[:, None]
    return Pool(torch.arange(n * c).view(n, c), torch.zeros(n, c), valid, torch.tensor(counts))


def descriptors(seed: int, n: int, c: int, k: int = 8, dtype=torch.float64) -> torch.Tensor:
    vectors = torch.randn(n, c, k, generator=generator(seed), dtype=torch.float64)
    return F.normalize(vectors, dim=-1).to(dtype)


def with_loss(loss: float, *, lam: float, distance=None, **options: object) -> adasample.AdaSample:
    sampler = adasample.AdaSample(distance or angular(), lam=lam, **options)
    sampler.observe(None, torch.tensor([loss]))
    return sampler


def pair_counts(choice, c: int) -> np.ndarray:
    pairs = np.bincount((choice.anchor * c + choice.positive).numpy(), minlength=c * c).reshape(c, c)
    return pairs[~np.eye(c, dtype=bool)]


# Pools


def test_patches_are_grouped_by_the_point_they_show():
    classes = group(np.array([7, 3, 7, 3, 3]))
    rows = [
        classes.patches[start : start + count].tolist()
        for start, count in zip(classes.starts.tolist(), classes.counts.tolist(), strict=True)
    ]
    assert rows == [[1, 3, 4], [0, 2]]
    assert len(classes) == 2


def test_a_class_of_a_single_patch_is_refused_by_name():
    with pytest.raises(ValueError, match=r"2 class.*point 42"):
        group(np.array([5, 42, 5, 99]))


@given(seed=seeds, counts=st.lists(st.integers(2, 6), min_size=2, max_size=12), data=st.data())
def test_a_pool_holds_all_patches_of_distinct_classes_and_no_others(seed, counts, data):
    points = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts)), counts))
    n = data.draw(st.integers(2, len(counts)))
    pool = draw_pool(group(points), n, None, generator(seed))
    chosen = []
    for row in range(n):
        patches = pool.patch[row][pool.valid[row]].numpy()
        (point,) = np.unique(points[patches])
        assert sorted(patches) == np.flatnonzero(points == point).tolist()
        assert pool.originals[row] == counts[point] == pool.counts[row]
        chosen.append(point)
    assert len(set(chosen)) == n
    assert pool.angle.eq(0).all()
    assert pool.patch.min() >= 0
    assert pool.patch.max() < len(points)


def test_classes_are_drawn_uniformly_without_regard_to_their_size():
    classes = group(np.repeat(np.arange(6), [2, 2, 3, 5, 9, 20]))
    random = generator(0)
    owner = np.repeat(np.arange(6), [2, 2, 3, 5, 9, 20])
    frequencies = np.zeros(6)
    for _ in range(1500):
        frequencies[owner[draw_pool(classes, 2, None, random).patch[:, 0].numpy()]] += 1
    assert stats.chisquare(frequencies).pvalue > LEVEL


@pytest.mark.parametrize("renew", [True, False])
@given(seed=seeds, counts=st.lists(st.integers(2, 20), min_size=2, max_size=8))
def test_originals_come_first_untouched_and_count_among_the_fifteen(renew, seed, counts):
    points = np.repeat(np.arange(len(counts)), counts)
    generation = Generation(patches_per_class=15, max_degrees=20.0, renew=renew)
    pool = draw_pool(group(points), len(counts), generation, generator(seed))
    for row in range(len(counts)):
        point = points[pool.patch[row, 0]]
        originals = np.flatnonzero(points == point)
        count = max(15, counts[point])
        assert pool.counts[row] == count
        assert pool.valid[row, :count].all()
        assert pool.patch[row, : len(originals)].tolist() == originals.tolist()
        assert pool.angle[row, : len(originals)].eq(0).all()
        assert set(pool.patch[row, len(originals) : count].tolist()) <= set(originals.tolist())
    assert pool.angle.abs().max() <= math.radians(20) + 1e-6


@pytest.mark.parametrize("renew", [True, False])
@pytest.mark.parametrize("degrees", [20.0, 180.0])
def test_generated_angles_and_their_originals_are_uniform_and_independent(renew, degrees):
    points = np.repeat(np.arange(400), 2)
    generation = Generation(patches_per_class=15, max_degrees=degrees, renew=renew)
    pool = draw_pool(group(points), 400, generation, generator(0))
    angles, source = pool.angle[:, 2:].flatten().double(), (pool.patch[:, 2:] % 2).flatten()
    share = (angles.numpy() / math.radians(degrees) + 1) / 2
    # The fixed angles form a lattice, which is more even than chance; the test has one side only.
    assert stats.kstest(share, "uniform").pvalue > LEVEL
    assert stats.chisquare(np.bincount(source.numpy())).pvalue > LEVEL
    by_source = [share[source.numpy() == s] for s in (0, 1)]
    assert stats.ks_2samp(*by_source).pvalue > LEVEL


def test_without_renewal_a_class_always_gets_the_same_patches_and_angles():
    points = np.repeat(np.arange(10), [2, 3, 4, 2, 3, 4, 2, 3, 4, 17])
    classes = group(points)
    generation = Generation(15, 20.0, renew=False)
    content_by_point: dict[int, tuple[list, list]] = {}
    for seed in range(5):
        pool = draw_pool(classes, 7, generation, generator(seed))
        for row in range(7):
            mask = pool.valid[row]
            content = (pool.patch[row][mask].tolist(), pool.angle[row][mask].tolist())
            assert content_by_point.setdefault(int(points[pool.patch[row, 0]]), content) == content
    assert len(content_by_point) == 10
    turns = [tuple(angle) for _, angle in content_by_point.values()]
    assert len(set(turns)) == 10


@given(count=st.integers(2, 40), data=st.data())
def test_every_point_is_used_once_before_any_is_used_again_each_time_in_another_order(count, data):
    n, random = data.draw(st.integers(1, count)), generator(data.draw(st.integers(0, 99)))
    points = Shuffled(count)
    orders = [torch.cat([points(n, random) for _ in range(count // n)]).tolist() for _ in range(3)]
    for order in orders:
        assert len(set(order)) == count // n * n
        assert set(order) <= set(range(count))
    assert count < 20 or len(set(map(tuple, orders))) == 3


# All samplers


SAMPLERS = {
    "random": lambda: random_pair.RandomPair(),
    "hardpos of the anchor": lambda: hardpos.Hardpos(euclidean(), of="anchor"),
    "hardpos of the class": lambda: hardpos.Hardpos(angular(power=2), of="class"),
    "adasample, first batch": lambda: adasample.AdaSample(angular(power=2), lam=10.0),
    "adasample": lambda: with_loss(0.5, lam=10.0, distance=euclidean(power=2)),
    "adasample, loss gone": lambda: with_loss(0.0, lam=10.0),
}


@pytest.mark.parametrize("name", sorted(SAMPLERS))
@given(seed=seeds, counts=st.lists(st.integers(2, 6), min_size=1, max_size=30), identical=st.booleans())
def test_anchors_are_never_their_own_positive_and_empty_slots_are_never_drawn(
    name, seed, counts, identical
):
    pool = pool_of(*counts, slots=8)
    described = descriptors(seed, len(counts), 8, dtype=torch.float32)
    if identical:
        described = described[:, :1].expand_as(described).contiguous()
    choice = SAMPLERS[name]().choose(pool, lambda: described, generator(seed))
    rows = torch.arange(len(counts))
    assert pool.valid[rows, choice.anchor].all()
    assert pool.valid[rows, choice.positive].all()
    assert (choice.anchor != choice.positive).all()


@pytest.mark.parametrize("name", sorted(set(SAMPLERS) - {"hardpos of the class"}))
def test_anchors_are_uniform(name):
    pool = pool_of(*[4] * 4000, slots=5)
    choice = SAMPLERS[name]().choose(pool, lambda: descriptors(1, 4000, 5), generator(1))
    assert stats.chisquare(np.bincount(choice.anchor.numpy(), minlength=4)).pvalue > LEVEL


@pytest.mark.parametrize("name", sorted(set(SAMPLERS) - {"random"}))
@pytest.mark.parametrize("metric", sorted(METRICS))
@pytest.mark.parametrize("power", [1, 2])
def test_the_reported_distance_is_that_of_the_drawn_pair_at_power_one(name, metric, power):
    distance_of, literal = METRICS[metric]
    sampler = SAMPLERS[name]()
    sampler.distance = distance_of(power=power, epsilon=0.0)
    described = descriptors(2, 20, 5)
    choice = sampler.choose(pool_of(*[5] * 20), lambda: described, generator(2))
    for row in range(20):
        pair = described[row, choice.anchor[row]], described[row, choice.positive[row]]
        expected = literal(pair[0].tolist(), pair[1].tolist())
        assert choice.distance[row].item() == pytest.approx(expected, abs=1e-7)


def test_random_pairs_are_uniform_over_ordered_pairs():
    choice = random_pair.RandomPair().choose(pool_of(*[5] * 4000), None, generator(3))
    assert stats.chisquare(pair_counts(choice, 5)).pvalue > LEVEL


# AdaSample


def test_the_first_batch_is_drawn_uniformly_for_any_lambda():
    sampler = adasample.AdaSample(angular(), lam=1000.0)
    assert sampler.average_loss is None
    assert sampler.exponent is None
    described = descriptors(4, 1, 5).expand(4000, 5, 8)
    choice = sampler.choose(pool_of(*[5] * 4000), lambda: described, generator(7))
    assert stats.chisquare(pair_counts(choice, 5)).pvalue > LEVEL
    assert choice.log_normaliser.exp().tolist() == pytest.approx([4.0] * 4000, rel=1e-5)


@pytest.mark.parametrize("metric", sorted(METRICS))
@pytest.mark.parametrize("power", [1, 2])
@given(
    seed=seeds,
    counts=st.lists(st.integers(2, 6), min_size=1, max_size=6),
    exponent=st.floats(0, 40),
)
def test_probabilities_are_those_of_equation_13_within_each_class(metric, power, seed, counts, exponent):
    distance_of, literal = METRICS[metric]
    pool = pool_of(*counts, slots=7)
    described = descriptors(seed, len(counts), 7)
    anchor = torch.tensor([seed % count for count in counts])
    d = anchor_distances(pool, described, anchor, distance_of(power=power, epsilon=0.0))
    logarithms, log_normaliser = log_probabilities(d, torch.tensor(exponent, dtype=torch.float64))
    for row, count in enumerate(counts):
        distances = [
            literal(described[row, i].tolist(), described[row, anchor[row]].tolist())
            if i < count and i != anchor[row]
            else None
            for i in range(7)
        ]
        expected = oracles.sampling_probabilities(distances, exponent)
        assert logarithms[row].exp().tolist() == pytest.approx(expected, abs=1e-7)
        z = sum(x**exponent for x in distances if x is not None)
        assert log_normaliser[row].item() == pytest.approx(math.log(z), abs=1e-6)
        assert d[row].isnan().tolist() == [x is None for x in distances]


def test_positives_are_drawn_as_often_as_equation_13_says():
    n, lam, loss = 20_000, 3.0, 0.75
    described = descriptors(8, 1, 4)
    sampler = with_loss(loss, lam=lam, distance=angular(power=2))
    choice = sampler.choose(pool_of(*[4] * n), lambda: described.expand(n, 4, 8), generator(8))
    expected = np.zeros((4, 4))
    for a in range(4):
        distances = [
            None if i == a else oracles.angular(described[0, i].tolist(), described[0, a].tolist())
            for i in range(4)
        ]
        expected[a] = oracles.sampling_probabilities(distances, lam / loss)
    expected = expected[~np.eye(4, dtype=bool)] * n / 4
    observed = pair_counts(choice, 4)
    assert stats.chisquare(observed, expected).pvalue > LEVEL
    # The test rejects the squared probabilities, which a sampler at the loss's power would have.
    squared = expected.reshape(4, 3) ** 2
    squared = (squared / squared.sum(axis=1, keepdims=True) * n / 4).ravel()
    assert stats.chisquare(observed, squared).pvalue < 1e-12


@pytest.mark.parametrize(("lam", "loss"), [(1e6, 1.0), (10.0, 1e-5), (10.0, 0.0), (1e4, 0.0)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_large_lambda_or_a_vanished_loss_draws_as_hardpos(lam, loss, dtype):
    described = descriptors(9, 200, 6, dtype=dtype)
    pool = pool_of(*[2, 3, 4, 5, 6] * 40)
    ours = with_loss(loss, lam=lam).choose(pool, lambda: described, generator(9))
    hardest = hardpos.Hardpos(angular()).choose(pool, lambda: described, generator(9))
    assert torch.equal(ours.anchor, hardest.anchor)
    # Near ties are a matter of chance at any finite exponent.
    gap = hardest.distance - ours.distance
    assert (gap >= 0).all()
    assert gap.max() < 1e-3


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@given(seed=seeds, exponent=st.sampled_from([0.0, 1.0, 1e3, 1e6, 1e9, 1e12, 1e30]))
def test_exponents_up_to_1e30_leave_probabilities_and_normalisers_finite(dtype, seed, exponent):
    pool = pool_of(2, 5, 6, slots=6)
    described = descriptors(seed, 3, 6, dtype=dtype)
    described[1, 1] = described[1, 0]
    d = anchor_distances(pool, described, torch.tensor([0, 1, 2]), angular(power=2))
    logarithms, log_normaliser = log_probabilities(d, torch.tensor(exponent, dtype=dtype))
    probabilities = logarithms.exp()
    assert not logarithms.isnan().any()
    assert probabilities.sum(dim=1).tolist() == pytest.approx([1.0] * 3, rel=1e-5)
    assert torch.isfinite(log_normaliser).all()
    assert probabilities[d.isnan()].eq(0).all()


@given(
    losses=st.lists(st.floats(1e-3, 5), min_size=1, max_size=130),
    kind=st.sampled_from(["exponential", "windowed", "cumulative"]),
    lam=st.floats(0, 50),
)
def test_averages_are_those_of_the_oracle(losses, kind, lam):
    sampler = adasample.AdaSample(angular(), lam=lam, average=kind)
    for loss in losses:
        sampler.observe(None, torch.tensor([loss], dtype=torch.float64))
    expected = oracles.average_loss(losses, kind)
    assert sampler.average_loss.item() == pytest.approx(expected)
    assert sampler.exponent.item() == pytest.approx(lam / expected)


def test_the_window_holds_the_last_hundred_batches_and_no_older_one():
    sampler = adasample.AdaSample(angular(), lam=1.0, average="windowed")
    for loss in [1000.0, 201.0] + [1.0] * 99:
        sampler.observe(None, torch.tensor([loss]))
    assert sampler.average_loss.item() == pytest.approx(3.0)


def test_a_negative_loss_is_averaged_as_the_hinge_of_its_triplets_alone():
    triplets, losses = drawn(torch.tensor([0.5]), torch.tensor([0.8])), torch.tensor([-0.3])
    with pytest.raises(ValueError, match="of='hinge'"):
        adasample.AdaSample(angular(), lam=1.0).observe(triplets, losses)
    sampler = adasample.AdaSample(angular(), lam=1.0, of="hinge")
    sampler.observe(triplets, losses)
    assert sampler.average_loss.item() == pytest.approx(0.7)


def test_the_observed_loss_carries_no_gradient_into_the_average():
    sampler = adasample.AdaSample(angular(), lam=1.0)
    sampler.observe(None, torch.tensor([2.0], requires_grad=True) * 3)
    assert not sampler.average_loss.requires_grad


@pytest.mark.parametrize("kind", ["exponential", "windowed", "cumulative"])
def test_a_restored_sampler_continues_as_the_saved_one(kind):
    first = adasample.AdaSample(angular(), lam=2.0, average=kind)
    for loss in (0.9, 0.8, 0.3):
        first.observe(None, torch.tensor([loss]))
    second = adasample.AdaSample(angular(), lam=2.0, average=kind)
    second.load_state_dict(first.state_dict())
    for sampler in (first, second):
        sampler.observe(None, torch.tensor([0.1]))
    assert torch.equal(first.average_loss, second.average_loss)


def test_distances_to_the_anchor_carry_no_gradient_and_are_never_zero():
    described = descriptors(12, 2, 3).requires_grad_()
    same = described[:, :1].expand(2, 3, 8)
    for distance_of, _ in METRICS.values():
        for power in (1, 2):
            d = anchor_distances(pool_of(3, 3), same, torch.tensor([0, 2]), distance_of(power=power))
            assert not d.requires_grad
            assert d[~d.isnan()].min() > 0


# Hardpos


@pytest.mark.parametrize("metric", sorted(METRICS))
@pytest.mark.parametrize("kind", ["anchor", "class"])
@given(seed=seeds, counts=st.lists(st.integers(2, 6), min_size=1, max_size=8))
def test_hardpos_takes_the_farthest_pair_of_its_anchor_or_class(kind, metric, seed, counts):
    distance_of, literal = METRICS[metric]
    described = descriptors(seed, len(counts), 6)
    choice = hardpos.Hardpos(distance_of(epsilon=0.0), of=kind).choose(
        pool_of(*counts, slots=6), lambda: described, generator(seed)
    )
    for row, count in enumerate(counts):
        x = described[row].tolist()
        anchors = [choice.anchor[row].item()] if kind == "anchor" else range(count)
        expected = max(literal(x[i], x[j]) for i in anchors for j in range(count) if i != j)
        actual = literal(x[choice.anchor[row]], x[choice.positive[row]])
        assert actual == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("of", ["anchor", "class"])
def test_among_equally_far_positives_all_are_drawn(of):
    # The corners of a regular simplex are all equally far apart.
    described = torch.eye(4).expand(4000, 4, 4)
    choice = hardpos.Hardpos(euclidean(), of=of).choose(
        pool_of(*[4] * 4000), lambda: described, generator(13)
    )
    assert stats.chisquare(pair_counts(choice, 4)).pvalue > LEVEL
