"""Processes that are forked from one that has imported what most of them need: a notebook's or a run's
seconds are in the greater part imports. Kernels for nbval are forked as well; each notebook has its own.
"""

from __future__ import annotations

import os
import signal
from contextlib import chdir
from functools import partial
from multiprocessing import forkserver, get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from unittest.mock import patch

import matplotlib as mpl
import pytest
from ipykernel.kernelapp import IPKernelApp
from jupyter_client.blocking import BlockingKernelClient
from jupyter_client.connect import write_connection_file

FORKING = get_context("forkserver")
FORKING.set_forkserver_preload(
    [
        *("ipykernel.kernelapp", "seaborn", "lib.study.report.together", "lib.study.report.artefact"),
        # The last is imported by the first step of any training.
        *("lib.study.runs", "parsed", "torch._inductor"),
    ]
)


def forked_workers(patch: pytest.MonkeyPatch) -> None:
    """Have `lib.processes` fork what it starts, which spares a test that is not about it the imports."""
    patch.setattr("lib.processes.multiprocessing.get_context", lambda method: FORKING)


def start() -> None:
    """Start the process that others are forked from. Its environment alone says where modules are, and
    keeps what libraries in C write to stderr out of the outputs of cells, as in any test."""
    paths = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {"PYTHONPATH": os.pathsep.join(paths), "PYTEST_CURRENT_TEST": "a notebook"}
    with patch.dict(os.environ, environment):
        forkserver.ensure_running()


def start_new_kernel(
    startup_timeout: float, cwd: str, **_: object
) -> tuple[SimpleNamespace, BlockingKernelClient]:
    """nbval's function of this name: what it asks of a kernel's manager, and a client.

    Sockets are files: a free port may be another kernel's a moment later."""
    folder = TemporaryDirectory(prefix="kernel")
    named = {"fname": f"{folder.name}/kernel.json", "ip": f"{folder.name}/s"}
    file, _ = write_connection_file(**named, transport="ipc")
    process = FORKING.Process(target=_serve, args=(file, os.getpid()))
    with chdir(cwd):
        process.start()
    client = BlockingKernelClient(connection_file=file)
    client.load_connection_file()
    client.start_channels()
    client.wait_for_ready(timeout=startup_timeout)

    def end(now: bool) -> None:
        process.kill()
        folder.cleanup()

    interrupt = partial(os.kill, process.pid, signal.SIGINT)
    manager = {"kernel_spec": None, "is_alive": process.is_alive}
    return SimpleNamespace(**manager, interrupt_kernel=interrupt, shutdown_kernel=end), client


def _serve(file: str, parent: int) -> None:
    # Matplotlib is imported already, so that it does not see what a kernel sets in the environment.
    mpl.rcParams["backend"] = "module://matplotlib_inline.backend_inline"
    IPKernelApp.launch_instance(argv=[f"-f={file}", f"--IPKernelApp.parent_handle={parent}"])
