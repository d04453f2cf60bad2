"""Processes forked from one that has imported the modules that most of them need.

Imports take most of the seconds of a notebook or a run. nbval's kernels, one a notebook, are forked too.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import warnings
from collections.abc import Sequence
from contextlib import chdir, suppress
from functools import partial
from importlib import import_module
from multiprocessing import forkserver, get_context, resource_tracker, util
from queue import Empty
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from unittest.mock import patch

import matplotlib as mpl
import pytest
from ipykernel.kernelapp import IPKernelApp
from jupyter_client.blocking import BlockingKernelClient
from jupyter_client.connect import write_connection_file

FORKING = get_context("forkserver")
IMPORTED = (
    *("ipykernel.debugger", "ipykernel.kernelapp", "parsed", "seaborn", "lib.study.report.execution"),
    *("lib.study.report.artefact", "lib.study.report.together", "lib.study.runs"),
    # The first step of any training imports it.
    "torch._inductor",
)
FORKING.set_forkserver_preload(list(IMPORTED))


def forked_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have `lib.processes` fork its processes, which spares tests of something else the imports."""
    monkeypatch.setattr("lib.processes.multiprocessing.get_context", lambda method: FORKING)


def fork_tasks() -> None:
    """Have `lib.processes` fork its processes, in a process that was itself forked here."""
    # The process that forks all others still runs, but Python would start another one.
    forkserver.ForkServer.ensure_running = lambda server: None
    multiprocessing.get_context = lambda method: FORKING


def start() -> None:
    """Start the process that the others are forked from, by forking this one after the imports."""
    # The kernels' debugger would print a hint at each import.
    with patch.dict(os.environ, {"PYDEVD_DISABLE_FILE_VALIDATION": "1"}):
        for module in IMPORTED:
            import_module(module)
    resource_tracker.ensure_running()
    patch.object(util, "spawnv_passfds", _fork).start()
    forkserver.ensure_running()
    patch.stopall()


def _fork(_: bytes, arguments: Sequence[str], passed: Sequence[int]) -> int:
    """Do in a copy of this process what `python -c` would do, with only the passed files open."""
    if process := os.fork():
        return process
    patch.stopall()
    # Keeps what C libraries write to stderr out of the outputs of cells, as in any test.
    os.environ["PYTEST_CURRENT_TEST"] = "a notebook"
    kept = {0, 1, 2, *passed}
    for file in set(map(int, os.listdir("/dev/fd"))) - kept:
        with suppress(OSError):
            os.close(file)
    # pytest shows them, Python does not.
    for category in (DeprecationWarning, PendingDeprecationWarning):
        warnings.simplefilter("ignore", category)
    gc.freeze()
    gc.enable()
    try:
        exec(arguments[-1])
    finally:
        os._exit(0)


def start_new_kernel(
    startup_timeout: float, cwd: str, **_: object
) -> tuple[SimpleNamespace, BlockingKernelClient]:
    """Replace nbval's function: return the parts of a kernel manager that it uses, and a client.

    Sockets are files, because another kernel may take a free port a moment later."""
    folder = TemporaryDirectory(prefix="kernel")
    options = {"fname": f"{folder.name}/kernel.json", "ip": f"{folder.name}/s"}
    file, _ = write_connection_file(**options, transport="ipc")
    process = FORKING.Process(target=_serve, args=(file, os.getpid()))
    with chdir(cwd):
        process.start()
    client = BlockingKernelClient(connection_file=file)
    client.load_connection_file()
    client.start_channels()
    # nbval waits a second for each message that was published before this subscription arrived.
    while True:
        client.kernel_info(reply=True, timeout=startup_timeout)
        with suppress(Empty):
            client.get_iopub_msg(timeout=0.05)
            break

    def end(now: bool) -> None:
        process.kill()
        folder.cleanup()

    interrupt = partial(os.kill, process.pid, signal.SIGINT)
    manager = {"kernel_spec": None, "is_alive": process.is_alive}
    return SimpleNamespace(**manager, interrupt_kernel=interrupt, shutdown_kernel=end), client


def _serve(file: str, parent: int) -> None:
    # Matplotlib is already imported, so it does not see what a kernel sets in the environment.
    mpl.rcParams["backend"] = "module://matplotlib_inline.backend_inline"
    IPKernelApp.launch_instance(argv=[f"-f={file}", f"--IPKernelApp.parent_handle={parent}"])
