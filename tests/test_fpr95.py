"""FPR95 against sorting and scanning by hand over every order of ties, and the distance histogram."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
import oracles
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.benchmarks.fpr95 import fpr95, fpr95_of_points, measure
from lib.benchmarks.pair_distances import count_within, distances_between
from lib.benchmarks.subject import Subject, describe, once, pair_distances
from lib.data.patchset import LabelledPairs, PatchSet, one_patch_a_point
from lib.models.handcrafted import Sift

both_kinds = st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=2, max_size=7).filter(
    lambda pairs: {m for _, m in pairs} == {True, False}
)


def split(pairs) -> tuple[np.ndarray, np.ndarray]:
    distances, match = zip(*pairs, strict=True)
    return np.array(distances, dtype=float), np.array(match)


@given(pairs=both_kinds)
@settings(max_examples=60)
def test_the_expected_value_and_both_ends_are_those_over_every_order_of_ties(pairs):
    distances, match = split(pairs)
    rate = fpr95(distances, match)
    expected, low, high = oracles.fpr95_over_tie_orders(distances.tolist(), match.tolist())
    assert rate.expected == pytest.approx(expected)
    assert rate.low == pytest.approx(low)
    assert rate.high == pytest.approx(high)


@given(seed=st.integers(0, 2**31), size=st.integers(40, 400))
def test_the_rate_without_ties_follows_hardnets_convention(seed, size):
    random = np.random.default_rng(seed)
    match = np.arange(size) % 2 == 0
    distances = random.permutation(size) / size + math.sqrt(0.1) * ~match
    rate = fpr95(distances, match)
    assert rate.low == rate.expected == rate.high
    assert rate.expected == pytest.approx(oracles.hardnet_fpr95(distances.tolist(), match.tolist()))


@pytest.mark.parametrize("positives", [1, 2, 19, 20, 21, 39, 40, 41, 60, 100, 180, 380])
def test_the_threshold_is_the_first_with_ninety_five_percent_within_it(positives):
    distances = np.arange(2 * positives, dtype=float)
    match = np.arange(2 * positives) % 2 == 0
    rate = fpr95(distances, match)
    within = (distances[match] <= rate.threshold).sum()
    assert 100 * within >= 95 * positives
    assert 100 * (within - 1) < 95 * positives
    assert rate.threshold in distances[match]


def test_small_cases_by_hand():
    ideal = fpr95([0.1, 0.2, 0.8, 0.9], [True, True, False, False])
    assert (ideal.low, ideal.expected, ideal.high, ideal.threshold) == (0, 0, 0, 0.2)
    reversed_ = fpr95([0.8, 0.9, 0.1, 0.2], [True, True, False, False])
    assert (reversed_.low, reversed_.expected, reversed_.high) == (100, 100, 100)
    # Twenty matching pairs: the nineteenth decides, the twentieth may lie anywhere.
    distances = [*range(19), 1000, 17.5, 18.5, 30, 40]
    assert fpr95(distances, [True] * 20 + [False] * 4).expected == 25
    # One pair of each kind, tied: half the orders put the wrong one first.
    tied = fpr95([1.0, 1.0], [True, False])
    assert (tied.low, tied.expected, tied.high) == (0, 50, 100)
    # Two matching and three others, all tied: the second match comes after 2·3/3 = 2 of the three.
    assert fpr95([5] * 5, [True, True, False, False, False]).expected == pytest.approx(200 / 3)


@given(seed=st.integers(0, 2**31))
def test_a_monotone_map_of_the_distances_changes_no_rate(seed):
    random = np.random.default_rng(seed)
    distances, match = random.integers(0, 40, 200) / 20, random.random(200) < 0.5
    plain = fpr95(distances, match)
    for mapped in (distances**2, np.exp(distances), 3 * distances + 7):
        rate = fpr95(mapped, match)
        assert (rate.low, rate.expected, rate.high) == (plain.low, plain.expected, plain.high)


@pytest.mark.parametrize(("last", "match"), [(math.nan, [True, False]), (1.0, [True, True])])
def test_a_distance_that_is_not_finite_and_pairs_of_one_kind_are_refused(last, match):
    with pytest.raises(ValueError, match=r"not finite|both kinds"):
        fpr95([0.0, last], match)


@pytest.mark.parametrize("match", [[0.2, 0.7, 1.0], [1, -1, 1], ["1", "0", "1"], [1, math.nan, 0]])
def test_labels_other_than_0_and_1_are_refused_as_those_of_exchanged_arguments_are(match):
    with pytest.raises(ValueError, match="distances first"):
        fpr95([0.1, 0.4, 0.5], match)


@pytest.mark.parametrize("kind", [int, np.uint8, float])
def test_labels_of_0_and_1_are_those_of_bool(kind):
    distances, match = np.array([0.1, 0.2, 0.4, 0.5]), np.array([True, False, True, False])
    assert fpr95(distances, match.astype(kind)) == fpr95(distances, match)


# From patches to pairs


def labelled(seed: int = 0, m: int = 60) -> PatchSet:
    random = np.random.default_rng(seed)
    patches = random.integers(0, 256, (20, 64, 64), dtype=np.uint8)
    points = np.repeat(np.arange(10), 2)
    first, second = random.integers(0, 20, (2, m))
    # The other patch of the point, in every second pair.
    second[::2] = first[::2] ^ 1
    pairs = LabelledPairs(first, second, points[first] == points[second])
    return PatchSet("made", patches, points, None, pairs)


def mean_and_spread(patches: np.ndarray) -> np.ndarray:
    flat = patches.reshape(len(patches), -1).astype(np.float32)
    return np.stack([flat.mean(axis=1), flat.std(axis=1)], axis=1)


def test_bits_are_packed_and_compared_by_hamming_distance():
    class Dark(torch.nn.Module):
        input_size = 32

        def forward(self, patches):
            return patches[:, 0, ::4, ::2].flatten(1) > 128

    def literal(patches):
        return (patches[:, ::8, ::4] > 128).reshape(len(patches), -1)

    patch_set = labelled()
    # Blocks of 2 by 2 px have one value, so that halving preserves them.
    patch_set = replace(
        patch_set, patches=patch_set.patches[:, ::2, ::2].repeat(2, axis=1).repeat(2, axis=2)
    )
    packed = describe(Dark(), patch_set.patches)
    assert packed.dtype == np.uint8
    assert packed.shape == (len(patch_set.patches), 16)
    bits, pairs = literal(patch_set.patches), patch_set.pairs
    expected = (bits[pairs.first] != bits[pairs.second]).sum(axis=1)
    describer = partial(describe, Dark())
    np.testing.assert_array_equal(pair_distances(describer, patch_set)[0], expected)
    assert measure(Subject(describer), patch_set)["expected"] == fpr95(expected, pairs.match).expected


@pytest.mark.parametrize("shape", [(-1, 64, 64), (-1, 1, 64, 64)])
@pytest.mark.parametrize("white", [1, 255])
def test_grey_values_of_0_to_1_have_the_rate_of_the_same_grey_values_of_8_bits(white, shape):
    bytes_set, describer = labelled(), partial(describe, Sift())
    floats = (white * (bytes_set.patches / np.float32(255))).reshape(shape)
    expected = measure(Subject(describer), bytes_set)
    assert measure(Subject(describer), replace(bytes_set, patches=floats)) == expected


def test_a_network_describes_no_grey_values_of_16_bits():
    wide = replace(labelled(), patches=labelled().patches.astype(np.uint16) * 257)
    with pytest.raises(ValueError, match="grey values are uint8, or floating"):
        measure(Subject(partial(describe, Sift())), wide)


def test_pair_distances_are_euclidean():
    patch_set = labelled()
    distances, match = pair_distances(mean_and_spread, patch_set)
    descriptors = mean_and_spread(patch_set.patches).astype(float)
    for i in range(60):
        x, y = descriptors[patch_set.pairs.first[i]], descriptors[patch_set.pairs.second[i]]
        assert distances[i] == pytest.approx(oracles.euclidean(x, y))
    assert match.tolist() == patch_set.pairs.match.tolist()


def test_a_set_is_described_once_for_all_its_measures():
    calls = []

    def counting_describer(patches):
        calls.append(len(patches))
        return mean_and_spread(patches)

    subject, patch_set, second_set = Subject(once(counting_describer)), labelled(), labelled(1)
    first = measure(subject, patch_set)
    assert measure(subject, patch_set) == first
    assert len(calls) == 1
    measure(subject, second_set)
    assert len(calls) == 2, "other patches are described, though their set is called the same"


def test_a_network_that_is_trained_further_is_measured_anew():
    network, patch_set = torch.nn.Linear(64 * 64, 8), labelled()

    def describer(patches):
        return network(torch.from_numpy(patches).flatten(1).float()).detach().numpy()

    subject = Subject(describer)
    before = measure(subject, patch_set)
    torch.nn.init.normal_(network.weight)
    assert measure(subject, patch_set) == measure(Subject(describer), patch_set) != before


def test_a_descriptor_that_is_not_finite_is_refused_by_its_patch():
    patch_set = labelled(2)
    last = int(max(patch_set.pairs.first.max(), patch_set.pairs.second.max()))

    def broken(patches: np.ndarray) -> np.ndarray:
        descriptors = mean_and_spread(patches)
        descriptors[-1, 0] = np.nan
        return descriptors

    with pytest.raises(ValueError, match=f"made: the descriptor of patch {last} is not finite"):
        pair_distances(broken, patch_set)


# All pairs of different points, one patch each


def all_pairs(count: int) -> tuple[list[int], list[int]]:
    pairs = [(one, other) for one in range(count) for other in range(one + 1, count)]
    return tuple(map(list, zip(*pairs, strict=True)))


@given(seed=st.integers(0, 2**31), points=st.integers(2, 12), is_binary=st.booleans())
def test_all_pairs_of_points_give_the_rate_of_their_written_list(seed, points, is_binary):
    """Few values a number, so that many distances are tied with the threshold."""
    random = np.random.default_rng(seed)
    descriptors = random.integers(0, 3, (2 * points, 3)).astype(np.float32)
    if is_binary:
        descriptors = random.integers(0, 256, (2 * points, 1), dtype=np.uint8)
    first, second = np.arange(0, 2 * points, 2), np.arange(1, 2 * points, 2)
    representatives = random.choice([0, 1], points) + first
    left, right = (representatives[side] for side in all_pairs(points))
    listed = LabelledPairs(
        np.r_[first, left], np.r_[second, right], np.arange(points + len(left)) < points
    )
    patches = np.arange(2 * points)
    written = PatchSet("written", patches, patches // 2, None, listed)
    expected = fpr95(*pair_distances(lambda used: descriptors[used], written))
    assert fpr95_of_points(descriptors, first, second, representatives) == expected


def test_pairs_across_two_descriptions_count_in_both_orders_and_never_a_point_with_itself():
    random = np.random.default_rng(0)
    first, second = random.normal(size=(2, 30, 4))
    distances = np.linalg.norm(first[:, None] - second[None], axis=2)
    different = ~np.eye(30, dtype=bool)
    for limit in (distances[3, 8], distances[5, 5]):
        closer, tied = count_within(first, second, limit)
        assert closer == (distances[different] < limit).sum()
        assert tied == (distances[different] == limit).sum()


@pytest.mark.parametrize("length", [1e-6, 1.0, 1e6])
def test_a_pair_at_the_distance_is_neither_closer_nor_farther_whatever_the_product_rounds_to(length):
    """Far from the origin, ‖x‖² + ‖y‖² − 2 x·y loses digits that x − y keeps."""
    rows = length * (1 + 1e-4 * np.random.default_rng(1).normal(size=(60, 16)))
    sides = tuple(map(np.array, all_pairs(60)))
    distances = np.sort(distances_between(rows, rows, sides))
    for rank in (0, 500, 1769):
        assert count_within(rows, rows, distances[rank]) == (rank, 1)


def test_blocks_of_rows_change_no_count(monkeypatch):
    rows = np.random.default_rng(2).normal(size=(50, 8))
    whole = count_within(rows, rows, 3.5), count_within(rows, rows + 0, 3.5)
    monkeypatch.setattr("lib.benchmarks.pair_distances._BLOCK", 350)
    assert (count_within(rows, rows, 3.5), count_within(rows, rows + 0, 3.5)) == whole


def test_every_point_has_one_patch_drawn_among_all_of_its_own():
    points = np.array([2, 0, 0, 1, 2, 2, 0])
    drawn = np.stack([one_patch_a_point(points, seed) for seed in range(60)])
    assert (points[drawn] == [0, 1, 2]).all()
    assert set(drawn[:, 0]) == {1, 2, 6}
    assert set(drawn[:, 2]) == {0, 4, 5}


def test_a_set_of_points_takes_all_their_pairs():
    patch_set = replace(labelled(4), representatives=np.arange(0, 20, 2))
    match = patch_set.pairs.match
    first, second = patch_set.pairs.first[match], patch_set.pairs.second[match]
    descriptors = mean_and_spread(patch_set.patches)
    rate = fpr95_of_points(descriptors, first, second, np.arange(0, 20, 2))
    assert measure(Subject(mean_and_spread), patch_set)["expected"] == rate.expected


def test_one_point_or_no_matching_pair_is_refused():
    descriptors = np.eye(3, dtype=np.float32)
    for pairs, representatives in ((([0], [1]), [0]), (([], []), [0, 1])):
        with pytest.raises(ValueError, match="patches of two points"):
            fpr95_of_points(descriptors, *map(np.array, pairs), np.array(representatives))


@pytest.mark.parametrize("labels", [np.ones(3, int), np.zeros(3, np.uint8), [1, 0, 1]])
def test_labels_that_are_numbers_are_no_pairs_because_they_would_index(labels):
    with pytest.raises(ValueError, match=r"^match is bool, got u?int\d+; of labels 0 and 1"):
        LabelledPairs(np.arange(3), np.arange(3), labels)


def test_a_keypoint_without_a_match_is_no_pair_with_the_last_patch():
    """hloc's `matches0` has -1 there."""
    matches0 = np.array([1, 0, -1, 4])
    with pytest.raises(ValueError, match=r"^pair 2 has a patch below 0: leave out pairs without"):
        LabelledPairs(np.arange(4), matches0, matches0 > -1)


def test_a_pair_has_two_patches_and_a_label():
    with pytest.raises(ValueError, match=r"^a pair is .* got \(4,\), \(4,\) and \(3,\)$"):
        LabelledPairs(np.arange(4), np.arange(4), np.ones(3, bool))


@pytest.mark.parametrize("kept", [np.arange(1, 20), np.r_[1:20, 0]])
def test_pairs_are_numbered_anew_when_patches_are_left_out_or_sorted(kept):
    whole = labelled()
    # Pairs of patches that are there in any case, so that only the labels can tell.
    there = (whole.pairs.first < 19) & (whole.pairs.second < 19)
    first, second, match = (column[there] for column in vars(whole.pairs).values())
    other = {"patches": whole.patches[kept], "point_ids": whole.point_ids[kept]}
    with pytest.raises(ValueError, match=r"^made, pair \d+: point_ids say otherwise whether it match"):
        replace(whole, pairs=LabelledPairs(first, second, match), **other)
    shown = (first > 0) & (second > 0)
    anew = LabelledPairs(first[shown] - 1, second[shown] - 1, match[shown])
    assert len(replace(whole, pairs=anew, **other).pairs.match) == shown.sum() > 0


def test_pairs_and_representatives_are_patches_of_the_set():
    whole = labelled()
    fewer = {"patches": whole.patches[:10], "point_ids": whole.point_ids[:10]}
    with pytest.raises(ValueError, match="made has 10 patches, of which pairs name others"):
        replace(whole, **fewer)
    for patches in ([0, 2, 10], [0, 2, -1]):
        with pytest.raises(ValueError, match="made has 10 patches, of which representatives name"):
            replace(whole, pairs=None, representatives=np.array(patches), **fewer)


def test_a_point_has_one_representative():
    with pytest.raises(ValueError, match="made: representatives have several patches of one point"):
        replace(labelled(), representatives=np.arange(20))


def test_a_set_without_labelled_pairs_is_named():
    alone = PatchSet("mine", np.zeros((4, 64, 64), np.uint8), np.arange(4), None, None)
    with pytest.raises(ValueError, match=r"^mine has no labelled pairs"):
        measure(Subject(lambda patches: patches), alone)
