"""Real-valued descriptors by their signs, against Hamming distances counted bit by bit."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from test_evaluation_hpatches import make_split

from lib.benchmarks import fpr95, hpatches
from lib.benchmarks.subject import Subject, of_signs, once
from lib.data.hpatches.release import FILES, read_sequence, write_sequence
from lib.data.patchset import PatchSet

LENGTH = 24
PROJECTIONS = np.random.default_rng(0).normal(size=(64 * 64, LENGTH))


def projected(patches: np.ndarray) -> np.ndarray:
    """Random projections of patches, without their mean, float32."""
    flat = patches.reshape(len(patches), -1).astype(np.float64)
    return ((flat - flat.mean(axis=1, keepdims=True)) @ PROJECTIONS).astype(np.float32)


def hamming(one: np.ndarray, other: np.ndarray) -> int:
    return sum(int((a > 0) != (b > 0)) for a, b in zip(one.tolist(), other.tolist(), strict=True))


def test_fpr95_is_that_of_hamming_distances(small_set: PatchSet) -> None:
    descriptors, pairs = projected(small_set.patches), small_set.pairs
    sides = zip(pairs.first, pairs.second, strict=True)
    distances = [hamming(descriptors[i], descriptors[j]) for i, j in sides]
    matching = sorted(d for d, match in zip(distances, pairs.match, strict=True) if match)
    others = [d for d, match in zip(distances, pairs.match, strict=True) if not match]
    threshold = matching[math.ceil(0.95 * len(matching)) - 1]
    measured = fpr95.measure(of_signs(Subject(projected)), small_set)
    assert measured["low"] == pytest.approx(100 * sum(d < threshold for d in others) / len(others))
    assert measured["high"] == pytest.approx(100 * sum(d <= threshold for d in others) / len(others))
    assert measured["threshold"] == threshold
    assert measured["low"] < measured["expected"] < measured["high"], "Hamming distances tie"
    plain = fpr95.measure(Subject(projected), small_set)
    assert plain["threshold"] != measured["threshold"]


def test_a_subject_that_keeps_its_descriptors_does_not_mix_them_with_their_signs(
    small_set: PatchSet,
) -> None:
    subject = Subject(once(projected))
    before = fpr95.measure(subject, small_set)
    assert fpr95.measure(of_signs(subject), small_set) != before
    assert fpr95.measure(subject, small_set) == before
    assert of_signs(subject).describe(small_set.patches).shape == (120, LENGTH // 8)


def test_zero_counts_as_negative() -> None:
    values = np.array([[-1.0, -0.0, 0.0, 1e-30]], np.float32)
    assert of_signs(Subject(lambda patches: values)).describe(None).tolist() == [[0b00010000]]


def test_hpatches_is_that_of_the_bits(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    split = make_split(("v_wall", "i_dome"), counts=(7, 5), pairs=20, queries=5, distractors=15)
    for sequence in split.sequences:
        spots = random.integers(0, 256, size=(sequence.count, 65, 65))
        noisy = spots + random.normal(0, 60, size=(16, *spots.shape))
        patches = noisy.clip(0, 255).astype(np.uint8)
        write_sequence(tmp_path / sequence.name, dict(zip(FILES, patches, strict=True)))
    sequences = tuple(read_sequence(tmp_path / sequence.name) for sequence in split.sequences)
    split = replace(split, sequences=sequences)
    measured = hpatches.measure(of_signs(Subject(projected)), split)
    as_numbers = Subject(lambda patches: (projected(patches) > 0).astype(np.float32) + 0.5)
    expected = hpatches.measure(as_numbers, split)
    assert measured == pytest.approx(expected)
    assert measured != hpatches.measure(Subject(projected), split)
