"""Kernels that begin with what notebooks import.

A notebook that reads results would spend a third of its time on imports that are the same for all. Here
one process has done them and is forked for each notebook. It has a single thread, which makes forking
safe, and no notebook runs in it, so that none sees what another did.
"""

import importlib
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from functools import cache
from typing import NoReturn
from uuid import uuid4

from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning import LocalProvisioner

# What nearly all notebooks import, and what their kernels do before the first cell.
IMPORTED = (
    "ipykernel.ipkernel",
    "ipykernel.kernelapp",
    "matplotlib.pyplot",
    "pandas",
    "lib.experiments.artefacts",
    "lib.reporting.showing",
)
# What a kernel sets for matplotlib, which reads it when it is imported.
_FIGURES = {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}


class ForkedKernelManager(AsyncKernelManager):
    """As its base, of kernels of Python that are forked."""

    def __init__(self, **options: object):
        super().__init__(**options)
        self.kernel_id = str(uuid4())
        of = {"kernel_id": self.kernel_id, "kernel_spec": self.kernel_spec}
        self.provisioner = _Forked(**of, parent=self)


class _Forked(LocalProvisioner):
    async def launch_kernel(self, cmd: list[str], *, env: dict, cwd: object = None, **_) -> dict:
        # A command is an interpreter, "-m", the module of the kernel, and what that is given.
        asked = {
            "arguments": cmd[cmd.index("-f") :],
            "environment": env,
            "folder": str(cwd or os.getcwd()),
        }
        forking = _forking()
        forking.stdin.write(json.dumps(asked) + "\n")
        forking.stdin.flush()
        self.pid = self.pgid = int(forking.stdout.readline())
        self.process = _Process(self.pid)
        return self.connection_info


class _Process:
    """What the base asks of a process that it started, of one that is another's child."""

    stdin = stdout = stderr = None

    def __init__(self, pid: int):
        self.pid = pid

    def poll(self) -> int | None:
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return 0
        return None

    wait = poll

    def send_signal(self, signum: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, signum)


@cache
def _forking() -> subprocess.Popen:
    """This process's own, which ends with it."""
    command = [sys.executable, "-P", "-m", __name__]
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=_FIGURES | os.environ,
        start_new_session=True,
    )


def main() -> None:
    """Forks a kernel for each line of the standard input, until that ends, and writes its process's
    number. A line is a JSON object: the kernel's "arguments", its "environment" and "folder".
    """
    for name in IMPORTED:
        importlib.import_module(name)
    # Kernels that ended are waited for by nobody.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    own = os.getpid()
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            _be_kernel(json.loads(line), own)
        print(pid, flush=True)


def _be_kernel(asked: dict, parent: int) -> NoReturn:
    from ipykernel.kernelapp import IPKernelApp

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    # The pipes are between the other two.
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.chdir(asked["folder"])
    IPKernelApp.launch_instance([*asked["arguments"], f"--IPKernelApp.parent_handle={parent}"])
    sys.exit()


if __name__ == "__main__":
    main()
