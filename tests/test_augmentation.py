"""From stored patches to the network's input: halving, small rotations, the square's symmetries."""

from __future__ import annotations

import itertools
import math

import numpy as np
import oracles
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage, stats

from lib.samplers.augmentation import Turns, cut

seeds = st.integers(0, 2**31)


def noise(seed: int, m: int = 1) -> torch.Tensor:
    drawn = np.random.default_rng(seed).integers(0, 256, (m, 64, 64), dtype=np.uint8)
    return torch.from_numpy(drawn)


def smooth(seed: int) -> torch.Tensor:
    drawn = np.random.default_rng(seed).normal(size=(64, 64))
    drawn = ndimage.gaussian_filter(drawn, 4, mode="reflect")
    drawn = (drawn - drawn.min()) / np.ptp(drawn)
    return torch.from_numpy((drawn * 255).astype(np.uint8))[None]


def at(angle: float, m: int = 1) -> torch.Tensor:
    return torch.full((m,), angle)


@given(seed=seeds)
@settings(max_examples=10)
def test_each_pixel_of_an_unturned_patch_is_exactly_the_mean_of_four(seed):
    patches = noise(seed, 2)
    images = cut(patches, at(0.0, 2))
    assert images.shape == (2, 1, 32, 32)
    assert images.dtype == torch.float32
    for patch, image in zip(patches, images, strict=True):
        assert image[0].tolist() == oracles.halved(patch.tolist())


@pytest.mark.parametrize("degrees", [-180, -73, -20, -5, 3, 20, 45, 111])
def test_a_rotation_equals_the_literal_one_at_the_border_too(degrees):
    patches = noise(degrees % 7)
    rotated = cut(patches, at(math.radians(degrees)))[0, 0]
    expected = oracles.turned_and_halved(patches[0].tolist(), math.radians(degrees))
    np.testing.assert_allclose(rotated, expected, atol=0.02)


@pytest.mark.parametrize("degrees", [-20, -7, 4, 13, 20])
def test_a_rotation_agrees_with_scipys_in_the_interior_of_smooth_images(degrees):
    patches = smooth(abs(degrees))
    rotated = cut(patches, at(math.radians(degrees)))[0, 0].numpy()

    # scipy's angle is counter-clockwise as displayed, rows downwards.
    def rotated_by_scipy(angle: float) -> np.ndarray:
        turned = ndimage.rotate(patches[0].numpy().astype(float), angle, reshape=False, order=3)
        return np.array(oracles.halved(turned.tolist()))

    interior = np.s_[7:25, 7:25]
    assert np.abs(rotated - rotated_by_scipy(degrees))[interior].max() < 1.5
    assert np.abs(rotated - rotated_by_scipy(-degrees))[interior].max() > 10


def test_the_eight_symmetries_are_all_different_and_each_is_exact():
    patches = noise(2).expand(8, 64, 64)
    images = cut(patches, at(0.0, 8), torch.arange(8))
    plain = np.array(oracles.halved(patches[0].tolist()))
    for turn in range(8):
        # Literally: out[r][c] of a left-right flip, then a quarter turn counter-clockwise at a time.
        image = [line[::-1] for line in plain.tolist()] if turn >= 4 else plain.tolist()
        for _ in range(turn % 4):
            image = [[image[r][31 - row] for r in range(32)] for row in range(32)]
        assert images[turn, 0].tolist() == image
    assert len({images[turn].numpy().tobytes() for turn in range(8)}) == 8


def test_a_transpose_and_a_flip_drawn_independently_make_four_symmetries():
    drawn = Turns(among="transpose_flip").draw(torch.Size((4000, 1)), torch.Generator().manual_seed(0))
    kinds, counts = np.unique(drawn.numpy(), return_counts=True)
    assert stats.chisquare(counts).pvalue > 1e-4
    patches = noise(2).expand(4, 64, 64)
    plain = cut(patches[:1], at(0.0))[0, 0]
    expected = {t.numpy().tobytes() for t in (plain, plain.T, plain.flip(1), plain.T.flip(1))}
    images = cut(patches, at(0.0, 4), torch.from_numpy(kinds))
    assert {image[0].numpy().tobytes() for image in images} == expected


def none(image):
    return image


def left_right(image):
    return image.flip(-1)


def up_down(image):
    return image.flip(-2)


# Quarter turns and the flips that follow, each as often as in the authors' code.
CODES = {
    "turn_then_flip": ((0, 1, 2, 3), (none, left_right, up_down)),
    "half_turned": ((0, 0, 0, 1, 2, 3), (none, up_down)),
}


@pytest.mark.parametrize("among", CODES)
def test_symmetries_are_as_frequent_as_by_turning_and_flipping(among):
    patches = noise(2).expand(8, 64, 64)
    known = {cut(patches, at(0.0, 8), torch.arange(8))[t, 0].numpy().tobytes(): t for t in range(8)}
    plain = cut(patches[:1], at(0.0))[0, 0]
    literal = np.zeros(8)
    for quarter, flip in itertools.product(*CODES[among]):
        literal[known[flip(torch.rot90(plain, quarter)).contiguous().numpy().tobytes()]] += 1
    drawn = Turns(among=among).draw(torch.Size((6000, 1)), torch.Generator().manual_seed(0))
    counts = np.bincount(drawn.flatten().numpy(), minlength=8)
    assert stats.chisquare(counts, 6000 * literal / literal.sum()).pvalue > 1e-4
    # Frequencies off by a factor of two would show.
    assert stats.chisquare(counts, np.full(8, 750)).pvalue < 1e-10


def test_a_turned_patch_is_rotated_first_and_flipped_after():
    patches, angle = noise(3), at(0.3)
    rotated = cut(patches, angle)
    flipped = cut(patches, angle, torch.tensor([4]))
    assert torch.equal(flipped, rotated.flip(-1))


@given(seed=seeds, m=st.integers(1, 6))
@settings(max_examples=10)
def test_patches_of_a_batch_do_not_mix(seed, m):
    random = np.random.default_rng(seed)
    patches = noise(seed, m)
    angle = torch.from_numpy(random.choice([0.0, 0.2, -0.1], m).astype(np.float32))
    turn = torch.from_numpy(random.integers(0, 8, m))
    together = cut(patches, angle, turn)
    for i in range(m):
        alone = cut(patches[i : i + 1], angle[i : i + 1], turn[i : i + 1])
        torch.testing.assert_close(together[i : i + 1], alone)


def test_a_shared_turn_is_the_same_within_a_class_and_uniform_over_classes():
    turns = Turns(shared=True).draw(torch.Size((4000, 3)), torch.Generator().manual_seed(0))
    assert (turns == turns[:, :1]).all()
    counts = np.bincount(turns[:, 0].numpy())
    assert len(counts) == 8
    assert stats.chisquare(counts).pvalue > 1e-4
