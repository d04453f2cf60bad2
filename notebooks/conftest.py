"""How nbval starts the kernels of the notebooks."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest
from filelock import FileLock


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, None, None]:
    """Let one kernel start at a time, among all workers of a test run.

    The setup of a notebook's first cell starts its kernel, on five TCP ports that were free a moment
    before. Two workers that start kernels together can pick the same port; one kernel then dies.
    """
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", "alone")
    with FileLock(Path(tempfile.gettempdir()) / f"kernel-starts-{run}.lock"):
        return (yield)
