"""Descriptors of an image, and matches between two images against all pairs."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist
from test_matching_keypoints import texture

from lib.benchmarks import subject
from lib.data.hpatches.release import as_64
from lib.data.patchset import PatchSet
from lib.features.detectors import Detector, detect
from lib.features.matches import match, nearest, similarity
from lib.features.networks import describe, find, own_magnification, patch_descriptors
from lib.features.patches import MAGNIFICATION, PATCH_WIDTH, as_patches, extract
from lib.models import l2net, l2net_binary
from lib.profiles import QUICK
from lib.recipes import RECIPES, Budget
from lib.training import train

KINDS = pytest.mark.parametrize("kind", ["float", "bits"])


def descriptors(kind: str, seed: int, n: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if kind == "bits":
        return rng.integers(0, 4, (n, 4)).astype(np.uint8)
    return rng.standard_normal((n, 16)).astype(np.float32)


def all_distances(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    if first.dtype == np.uint8:
        return np.bitwise_count(first[:, None] ^ second).sum(axis=2).astype(float)
    return cdist(first, second)


@KINDS
def test_neighbours_equal_those_of_all_pairs(kind: str) -> None:
    first, second = descriptors(kind, 0, 70), descriptors(kind, 1, 90)
    expected = np.sort(all_distances(first, second), axis=1)[:, :3]
    distances, neighbours = nearest(first, second, 3)
    np.testing.assert_allclose(distances, expected, rtol=1e-5)
    rows = np.arange(70)[:, None]
    np.testing.assert_allclose(all_distances(first, second)[rows, neighbours], expected, rtol=1e-5)


def test_an_offset_that_all_descriptors_share_changes_no_neighbour() -> None:
    rng = np.random.default_rng(0)
    first = rng.normal(1000, 1, (300, 128)).astype(np.float32)
    second = first + rng.normal(0, 1.5, first.shape).astype(np.float32)
    expected = cdist(first.astype(float), second.astype(float)).argmin(axis=1)
    np.testing.assert_array_equal(nearest(first, second, 1)[1][:, 0], expected)


def test_masked_descriptors_are_refused() -> None:
    first = descriptors("float", 0, 20)
    masked = np.ma.masked_greater(first, 1)
    with pytest.raises(ValueError, match="masked values would count as values"):
        match(masked, first)


@KINDS
@pytest.mark.parametrize("mutual", [False, True])
@pytest.mark.parametrize("ratio", [None, 0.9])
def test_matches_follow_their_definition(kind: str, mutual: bool, ratio: float | None) -> None:
    first, second = descriptors(kind, 2, 60), descriptors(kind, 3, 50)
    distances = all_distances(first, second)
    matches = match(first, second, mutual, ratio)
    assert 0 < len(matches) <= 60
    assert (np.diff(matches.first) > 0).all()
    np.testing.assert_allclose(matches.distance, distances[matches.first, matches.second], rtol=1e-5)
    np.testing.assert_allclose(matches.distance, distances[matches.first].min(axis=1), rtol=1e-5)
    if mutual:
        np.testing.assert_allclose(matches.distance, distances[:, matches.second].min(axis=0), rtol=1e-5)
    if ratio is not None:
        assert (matches.distance < ratio * np.partition(distances, 1)[matches.first, 1]).all()
    if kind == "float":
        ranked = np.sort(distances, axis=1)
        passes = ranked[:, 0] < (ratio or np.inf) * ranked[:, 1]
        is_mutual = distances.argmin(axis=0)[distances.argmin(axis=1)] == np.arange(60)
        passes = passes & is_mutual if mutual else passes
        assert matches.first.tolist() == np.flatnonzero(passes).tolist()


def test_close_descriptors_have_their_true_distance() -> None:
    first = np.random.default_rng(0).standard_normal((5, 128)).astype(np.float32)
    second = first + np.float32(1e-4)
    expected = np.linalg.norm(first.astype(float) - second, axis=1)
    np.testing.assert_allclose(match(first, second).distance, expected, rtol=1e-3)


def test_matches_are_named_by_their_number_and_not_printed_one_by_one() -> None:
    sample = descriptors("float", 0, 30)
    assert repr(match(sample, sample)) == "Matches(30 pairs)"


@KINDS
def test_an_image_without_keypoints_has_no_matches(kind: str) -> None:
    sample = descriptors(kind, 0, 3)
    for first, second in ((sample, sample[:0]), (sample[:0], sample), (sample[:0], sample[:0])):
        assert len(match(first, second, ratio=0.8)) == 0


def test_one_keypoint_gives_no_second_nearest_for_the_ratio_test() -> None:
    sample = descriptors("float", 0, 3)
    assert len(match(sample, sample[:1], ratio=None)) == 1
    assert len(match(sample, sample[:1])) == 0


@pytest.mark.parametrize("ratio", [80, 0, -1, float("nan")])
def test_a_ratio_outside_its_range_is_refused_without_keypoints_too(ratio: float) -> None:
    sample = descriptors("float", 0, 3)
    for first in (sample, sample[:0]):
        with pytest.raises(ValueError, match="ratio"):
            match(first, sample, ratio=ratio)


@KINDS
def test_tensors_match_as_arrays_do(kind: str) -> None:
    first, second = descriptors(kind, 0, 30), descriptors(kind, 1, 20)
    tensors = torch.from_numpy(first), torch.from_numpy(second)
    expected, got = match(first, second, ratio=None), match(*tensors, ratio=None)
    np.testing.assert_array_equal(got.second, expected.second)
    np.testing.assert_array_equal(got.distance, expected.distance)
    np.testing.assert_array_equal(similarity(*tensors, got), similarity(first, second, expected))


def test_lists_of_numbers_match_as_arrays_do() -> None:
    first, second = descriptors("float", 0, 30), descriptors("float", 1, 20)
    expected, got = match(first, second), match(first.tolist(), second.tolist())
    np.testing.assert_array_equal(got.second, expected.second)
    np.testing.assert_allclose(got.distance, expected.distance, rtol=1e-6)
    assert len(match([], second.tolist())) == 0


def test_bits_that_are_not_packed_are_refused() -> None:
    bits = descriptors("float", 0, 5) > 0
    with pytest.raises(ValueError, match="packbits"):
        match(bits, bits)


def bytes_of_sift(seed: int) -> np.ndarray:
    """60 descriptors as COLMAP's database and OpenCV have them, (60, 128) uint8; those of two seeds are
    much alike in each row."""
    points = np.random.default_rng(0).gamma(0.5, 40, (60, 128))
    noise = np.random.default_rng(seed).normal(0, 8, (60, 128))
    return (points + noise).round().clip(0, 255).astype(np.uint8)


def test_bytes_that_are_numbers_are_not_taken_for_packed_bits() -> None:
    first, second = bytes_of_sift(1), bytes_of_sift(2)
    with pytest.raises(ValueError, match="float32"):
        match(first, second)
    as_numbers = match(first.astype(np.float32), second.astype(np.float32))
    assert as_numbers.first.tolist() == as_numbers.second.tolist() == list(range(60))
    distances = all_distances(first, second)
    as_bits = match(first, second, mutual=False, ratio=None, packed=True)
    np.testing.assert_array_equal(as_bits.distance, distances.min(axis=1))


@pytest.mark.parametrize("kind", [np.uint16, np.float16])
def test_short_numbers_match_as_the_same_ones_in_float32(kind: type) -> None:
    first, second = bytes_of_sift(1), bytes_of_sift(2)
    expected = match(first.astype(np.float32), second.astype(np.float32))
    got = match(first.astype(kind), second.astype(kind))
    np.testing.assert_array_equal(got.second, expected.second)
    np.testing.assert_allclose(got.distance, expected.distance, rtol=1e-6)


def test_hlocs_transposed_descriptors_give_a_warning_and_other_numbers_of_keypoints_none() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.standard_normal((2, 128, 300)).astype(np.float32)
    with pytest.warns(UserWarning, match="transpose"):
        match(first, second)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        match(first.T, second.T)
        match(first[:, :128], second[:, :128])
        match(first[:100], second[:100])
        match(first, second[:90])


@pytest.mark.parametrize("kind", [np.float16, np.float32])
@pytest.mark.parametrize(("n", "k"), [(2048, 512), (2048, 96), (60, 64), (500, 512)])
def test_unit_descriptors_that_are_transposed_are_refused(n: int, k: int, kind: type) -> None:
    first, second = np.random.default_rng(0).standard_normal((2, n, k))
    unit = [
        (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(kind) for rows in (first, second)
    ]
    with pytest.raises(ValueError, match="transpose hloc's descriptors"):
        match(*(rows.T for rows in unit))
    match(*unit)
    # Raw descriptors have no unit rows, and no unit columns either.
    match(first.astype(np.float32), second.astype(np.float32))


def test_an_orthonormal_basis_is_matched_as_it_is() -> None:
    basis = np.eye(8, dtype=np.float32)
    assert match(basis, basis[::-1], ratio=None).second.tolist() == [7, 6, 5, 4, 3, 2, 1, 0]


def test_descriptors_equal_those_of_the_patches() -> None:
    image, network = texture(), l2net.L2Net(width=0.25).eval()
    regions = detect(image, Detector(most=50))
    expected = subject.describe(network, extract(image, regions))
    for descriptor in (network, lambda patches: subject.describe(network, patches)):
        features = describe(image, Detector(most=50), descriptor)
        np.testing.assert_allclose(features.descriptors, expected, atol=1e-6)
        np.testing.assert_array_equal(features.maps, regions.maps)
        assert features.size == (200, 200)


def test_zero_keypoints_have_descriptors_of_the_right_kind() -> None:
    flat = np.full((60, 80), 9, np.uint8)
    binary = describe(flat, Detector(), l2net_binary.L2NetBinary(width=0.25).eval())
    assert (binary.descriptors.shape, binary.descriptors.dtype) == ((0, 32), np.uint8)
    assert describe(flat, Detector(), find("sift")).descriptors.shape == (0, 128)
    assert binary.size == (80, 60)


@pytest.mark.parametrize("name", ["sift", "rootsift", "orb"])
def test_an_image_matches_itself(name: str) -> None:
    features = describe(texture(), Detector(upright=True, most=40), find(name))
    matches = match(features.descriptors, features.descriptors)
    assert matches.first.tolist() == matches.second.tolist() == list(range(40))
    assert (matches.distance == 0).all()


PATCHES = texture()[: 2 * 64, :64].reshape(2, 64, 64)


@pytest.mark.parametrize(
    "given",
    [
        PATCHES / 255,
        (PATCHES / 255).astype(np.float32),
        PATCHES.astype(np.float32),
        PATCHES[:, None],
        PATCHES[:, None] / 255,
    ],
)
def test_patches_are_bytes_or_floating_from_0_to_1_or_to_255_with_or_without_a_channel(
    given: np.ndarray,
) -> None:
    sift = find("sift")
    np.testing.assert_array_equal(patch_descriptors(sift, given), patch_descriptors(sift, PATCHES))


def test_floats_of_which_8_bits_would_keep_little_are_refused_as_in_a_16_bit_file() -> None:
    # A thermal camera's counts divided by 65,535.
    image = texture()
    thermal = (29_500 + image / 255 * 300).round() / 65_535
    regions = detect(image, Detector(most=40))
    with pytest.raises(ValueError, match="an image: 8 bits would keep 2 of its grey values"):
        describe(thermal, regions, find("sift"))
    with pytest.warns(UserWarning, match="2 of 2 patches span less than 4 of 255 grey values"):
        as_patches(thermal[: 2 * 64, :64].reshape(2, 64, 64))


def test_a_faint_patch_among_others_gives_a_warning() -> None:
    given = np.concatenate([PATCHES[:1] / 256.0, PATCHES[1:]])
    with pytest.warns(UserWarning, match="1 of 2 patches span less than 4 of 255 grey values"):
        as_patches(given)


def test_hpatches_patches_are_resized_as_the_benchmark_does_and_a_warning_says_so() -> None:
    larger = texture()[: 3 * 65, :65].reshape(3, 65, 65)
    with pytest.warns(UserWarning, match="patches of 65 px are resized to 64 px"):
        resized = as_patches(larger)
    np.testing.assert_array_equal(resized, as_64(larger))


def test_of_no_patches_there_are_no_descriptors() -> None:
    nothing = np.zeros((0, 64, 64), np.uint8)
    assert patch_descriptors(find("sift"), nothing).shape == (0, 128)
    assert patch_descriptors(l2net_binary.L2NetBinary(width=0.25).eval(), nothing).shape == (0, 32)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (PATCHES.astype(int), "got int64"),
        (PATCHES.astype(np.uint16), "got uint16"),
        (PATCHES - 128.0, "from -"),
        # Bicubic resizing of patches of 0 to 1 overshoots.
        (np.maximum(PATCHES / 255, 1.02 * (PATCHES > 100)), "clip"),
        (np.maximum(PATCHES / 255, np.nextafter(1, 2) * (PATCHES > 100)), "clip"),
        (np.where(PATCHES > 100, np.nan, PATCHES), "to nan"),
        (np.repeat(PATCHES[..., None], 3, axis=3), r"got \(2, 64, 64, 3\)"),
        (PATCHES[:, :32], r"got \(2, 32, 64\)"),
        (PATCHES[0], r"got \(64, 64\)"),
    ],
)
def test_what_is_no_patch_is_refused_and_said(given: np.ndarray, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        patch_descriptors(find("sift"), given)


@pytest.mark.parametrize("scale", [1.0, 1 / 255])
def test_an_image_of_floats_has_the_features_of_its_bytes_with_given_keypoints_too(scale: float) -> None:
    keypoints = detect(texture(), Detector(most=20))
    for where in (keypoints, Detector(most=20)):
        expected = describe(texture(), where, find("sift"))
        got = describe(scale * texture(), where, find("sift"))
        np.testing.assert_array_equal(got.descriptors, expected.descriptors)
        np.testing.assert_array_equal(got.maps, expected.maps)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (np.stack([texture()] * 3, axis=2), "convert colours to grey"),
        (texture().astype(np.uint16), "got uint16"),
        (texture() * 2.0, "0 to 255"),
        (1.02 * texture() / texture().max(), "clip"),
    ],
)
def test_what_is_no_grey_image_is_refused_and_said(given: np.ndarray, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        describe(given, Detector(), find("sift"))


def test_a_network_carries_its_magnification_from_training_on(small_set: PatchSet) -> None:
    shown = []
    size = replace(QUICK, width=1 / 16, budget=Budget(batch_pairs=8, epoch_pairs=8, epochs=1))

    def evaluate(model: torch.nn.Module) -> dict[str, float]:
        shown.append(own_magnification(model))
        return {}

    network = train(RECIPES["hardnet"], size, small_set, 0, evaluate=evaluate).model
    assert [*shown, own_magnification(network)] == [PATCH_WIDTH / 2] * 2
    assert own_magnification(network) == own_magnification(find("hardnet_aug"))


def test_a_network_of_this_study_carries_the_magnification_that_it_was_trained_at() -> None:
    network = find("tcdesc_dsm_aug")
    assert own_magnification(network) == PATCH_WIDTH / 2
    assert own_magnification(find("sift")) == MAGNIFICATION
    own = describe(texture(), Detector(most=20), network).descriptors
    given = describe(texture(), Detector(most=20), network, PATCH_WIDTH / 2).descriptors
    np.testing.assert_array_equal(own, given)


@pytest.mark.parametrize("other", [np.ones((3, 64), np.float32), np.ones((3, 16), np.uint8)])
def test_descriptors_of_different_kinds_are_refused_by_their_lengths(other: np.ndarray) -> None:
    with pytest.raises(ValueError, match=rf"128 of float32 and {other.shape[1]} of {other.dtype}"):
        match(np.ones((2, 128), np.float32), other)


def test_hlocs_transposed_descriptors_of_different_numbers_are_refused_with_advice() -> None:
    first, second = np.ones((256, 500), np.float32), np.ones((256, 400), np.float32)
    with pytest.raises(ValueError, match=r"different kinds.*transpose"):
        match(first, second)


@pytest.mark.parametrize("shape", [(1, 30, 16), (16,), ()])
def test_descriptors_that_are_no_rows_are_refused_whichever_image_has_them(shape: tuple) -> None:
    rows, others = descriptors("float", 0, 30), np.ones(shape, np.float32)
    for first, second in ((rows, others), (others, rows), (others, others)):
        with pytest.raises(ValueError, match=r"are \(n, k\), one a row"):
            match(first, second)


@pytest.mark.parametrize("kind", [object, complex, str])
def test_descriptors_that_are_no_real_numbers_are_refused(kind: type) -> None:
    others = descriptors("float", 0, 30).astype(kind)
    with pytest.raises(ValueError, match="real numbers"):
        match(others, others)


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.float16])
def test_scores_of_short_numbers_are_those_of_their_float32(kind: type) -> None:
    draw = np.random.default_rng(0)
    largest = {np.int8: 127, np.int16: 30_000, np.float16: 30_000}[kind]
    first = draw.uniform(-1, 1, (40, 128))
    second = (first + draw.normal(0, 0.05, first.shape)).clip(-1, 1)
    short = [(largest * descriptors).astype(kind) for descriptors in (first, second)]
    matches = match(*short)
    expected = similarity(*(descriptors.astype(np.float32) for descriptors in short), matches)
    np.testing.assert_allclose(similarity(*short, matches), expected, rtol=1e-6)
    assert expected[matches.first].min() > 0.9
