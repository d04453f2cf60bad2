"""Number of test workers, and a small patch set that several tests share."""

from __future__ import annotations

import signal

import joblib
import numpy as np
import pytest
from hypothesis import settings

from lib.data.patchset import LabelledPairs, PatchSet

# Tests of random inputs have no deadline and few inputs, since most are parametrised too.
settings.register_profile("suite", deadline=None, max_examples=25)
settings.load_profile("suite")

# A shell without job control starts programs in the background with SIGINT ignored, and their children
# inherit that. Tests that press Ctrl-C in a child need it to be heard.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_xdist_auto_num_workers() -> int:
    """`-n auto`: return the number of cores that this process may use, by its affinity and quota."""
    return joblib.cpu_count()


@pytest.fixture(scope="session")
def small_set() -> PatchSet:
    """40 classes of 3 patches: noisy copies of 40 random smooth textures."""
    rng = np.random.default_rng(0)
    coarse = rng.normal(size=(40, 1, 8, 8)).repeat(8, axis=2).repeat(8, axis=3)
    noisy = coarse + 2.5 * rng.normal(size=(40, 3, 64, 64))
    patches = np.clip(128 + 40 * noisy, 0, 255).astype(np.uint8).reshape(120, 64, 64)
    points = np.repeat(np.arange(40), 3)
    first = np.concatenate([np.arange(0, 120, 3), np.arange(0, 117, 3)])
    second = np.concatenate([np.arange(1, 120, 3), np.arange(4, 120, 3)])
    pairs = LabelledPairs(first, second, points[first] == points[second])
    return PatchSet("small", patches, points, None, pairs)
