"""Number of test workers; small patch sets and studies that several tests share."""

from __future__ import annotations

import gc
import signal
import sys

import joblib
import numpy as np
import pytest
from hypothesis import settings
from paper_records import searched

from lib.data.patchset import LabelledPairs, PatchSet
from lib.study.open import Study

# The slowest files come first, so that no core still runs one when the others are done. A file's tests
# stay on one core: they share its fixtures, and a notebook's cells share a kernel.
LONGEST = (
    *("test_study.py", "test_cluster.py", "test_scenes_truth.py", "test_training.py", "hpatches.ipynb"),
    *("test_matching_files.py", "test_synthetic_multiview.py", "test_reporting_rendering.py"),
    *("test_sources.py", "sparse_model.ipynb", "embedded.ipynb"),
)


# Tests of random inputs have no deadline and few inputs, since most are parametrised too.
settings.register_profile("suite", deadline=None, max_examples=25)
settings.load_profile("suite")

# Torch, pandas and 2,700 tests stay until the end: searching them for garbage took a third of the
# collection time.
gc.disable()

# A shell's background processes, and their children, ignore Ctrl-C.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    nbval = sys.modules.get("nbval.kernel")
    executes = hasattr(config, "workerinput") or not config.getoption("numprocesses", None)
    if nbval is not None and executes:
        # This import takes seconds.
        from forked import start, start_new_kernel

        start()
        nbval.start_new_kernel = start_new_kernel


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    ranks = {name: rank for rank, name in enumerate(LONGEST)}
    items.sort(key=lambda item: ranks.get(item.path.name, len(ranks)))


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


@pytest.fixture
def study(monkeypatch: pytest.MonkeyPatch) -> Study:
    """A quick study whose searches are `paper_records.searched`; a test file may override it."""
    return searched(monkeypatch)


@pytest.fixture
def seeded(monkeypatch: pytest.MonkeyPatch) -> Study:
    """The same study with three seeds of everything, grids too."""
    return searched(monkeypatch, (0, 1, 2))
