"""VGG and BinBoost of a patch against OpenCV on a whole image."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
import torch
from scipy.ndimage import gaussian_filter
from scipy.spatial.distance import cdist

from lib.benchmarks.subject import describe
from lib.models.learned_by_others import OpenCvDescriptor

BOTH = pytest.mark.parametrize("name", ["vgg", "binboost"])


def image(seed: int = 0) -> np.ndarray:
    """(200, 200) uint8, a smooth texture."""
    rough = gaussian_filter(np.random.default_rng(seed).standard_normal((200, 200)), 2)
    return (127 + 40 * rough / rough.std()).clip(10, 210).astype(np.uint8)


def described(name: str, *patches: np.ndarray) -> np.ndarray:
    return describe(OpenCvDescriptor(name), np.stack(patches))


def of_image(name: str, whole: np.ndarray, x: int, y: int) -> np.ndarray:
    """OpenCV's descriptor of a keypoint whose default scale factor gives a window of 64 px."""
    extractor, factor = cv2.xfeatures2d.VGG_create(), 6.25
    if name == "binboost":
        extractor = cv2.xfeatures2d.BoostDesc_create(desc=300)
    return extractor.compute(whole, [cv2.KeyPoint(x, y, 64 / factor, 0)])[1][0]


@BOTH
def test_a_patch_has_the_descriptor_of_the_keypoint_whose_window_it_is(name: str) -> None:
    whole = image()
    patch = described(name, whole[50:114, 70:134])[0]
    expected = of_image(name, whole, 70 + 32, 50 + 32)
    if name == "binboost":
        assert np.bitwise_count(patch ^ expected).sum() <= 1
    else:
        # VGG is smoothed beyond the window, where the patch has no pixels.
        assert np.linalg.norm(patch - expected) < 0.05 * np.linalg.norm(expected)


@BOTH
def test_all_of_the_patch_counts(name: str) -> None:
    patch = image()[:64, :64]
    for border in ((slice(0, 6), slice(None)), (slice(None), slice(-6, None))):
        changed = patch.copy()
        changed[border] = 255 - changed[border]
        assert (described(name, changed) != described(name, patch)).any()


@BOTH
def test_a_gain_and_an_offset_change_little_and_another_patch_much(name: str) -> None:
    patch, other = image()[:64, :64], image(1)[:64, :64]
    brighter = (0.7 * patch + 40).round().astype(np.uint8)
    rows = described(name, patch, brighter, other)
    if name == "binboost":
        rows = np.unpackbits(rows, axis=1)
    own, changed, others = rows.astype(np.float64)
    assert np.linalg.norm(own - changed) < 0.5 * np.linalg.norm(own - others)


@BOTH
def test_the_nearest_to_a_noisy_copy_is_its_original(name: str) -> None:
    originals = np.stack([image(seed)[:64, :64] for seed in range(20)])
    noise = np.random.default_rng(0).normal(0, 8, originals.shape)
    copies = (originals + noise).round().clip(0, 255).astype(np.uint8)
    rows = [described(name, *patches) for patches in (originals, copies)]
    if name == "binboost":
        rows = [np.unpackbits(bits, axis=1) for bits in rows]
    distances = cdist(rows[1].astype(float), rows[0].astype(float))
    assert (distances.argmin(axis=1) == np.arange(20)).all()


def test_no_patch_gives_no_row() -> None:
    assert OpenCvDescriptor("vgg")(torch.empty(0, 1, 64, 64)).shape == (0, 120)
    assert OpenCvDescriptor("binboost")(torch.empty(0, 1, 64, 64)).shape == (0, 64)


def test_another_name_is_refused() -> None:
    with pytest.raises(ValueError, match="there are: vgg, binboost"):
        OpenCvDescriptor("brisk")
