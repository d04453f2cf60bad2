"""Kernels that begin with what notebooks import.

A notebook that reads results would spend a third of its time on imports that are the same for all.
Here a process that executes notebooks has a second one that has done them and is forked for each. That
one has a single thread, which makes forking safe, and no notebook runs in it, so that none sees what
another did.
"""

import importlib
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from functools import cache
from select import select
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
    "lib.study.catalogue",
    "lib.study.report.showing",
)
# What a kernel sets for matplotlib, which reads it when it is imported.
_FIGURES = {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}


class ForkedKernelManager(AsyncKernelManager):
    """Starts Python kernels by forking a process that has done their imports; in all else its base."""

    def __init__(self, **options: object):
        super().__init__(**options)
        self.kernel_id = str(uuid4())
        of = {"kernel_id": self.kernel_id, "kernel_spec": self.kernel_spec}
        self.provisioner = _Forked(**of, parent=self)


class _Forked(LocalProvisioner):
    """Has the kernel's process forked where its base would start one."""

    async def launch_kernel(self, cmd: list[str], *, env: dict, cwd: object = None, **_) -> dict:
        # A command is an interpreter, "-m", the module of the kernel, and what that is given.
        asked = {
            "arguments": cmd[cmd.index("-f") :],
            "environment": env,
            "folder": str(cwd or os.getcwd()),
        }
        if _forking().poll() is not None:
            _forking.cache_clear()
        forking = _forking()
        with suppress(BrokenPipeError):
            forking.stdin.write(json.dumps(asked) + "\n")
            forking.stdin.flush()
        answer = forking.stdout.readline()
        if not answer:
            raise RuntimeError(f"the process that forks kernels ended with status {forking.wait()}")
        self.pid = self.pgid = int(answer)
        self.process = _Process(self.pid)
        return self.connection_info


class _Process:
    """What the base asks of a process that it started, here of one that another started."""

    stdin = stdout = stderr = None

    def __init__(self, pid: int):
        self._handle = None
        with suppress(ProcessLookupError):  # it may have ended already
            self._handle = os.pidfd_open(pid)

    def poll(self) -> int | None:
        ended = self._handle is None or select([self._handle], [], [], 0)[0]
        return 0 if ended else None

    def wait(self) -> int:
        if self._handle is not None:
            select([self._handle], [], [])
            os.close(self._handle)
            self._handle = None
        return 0

    def send_signal(self, number: int) -> None:
        if self._handle is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, number)


@cache
def _forking() -> subprocess.Popen:
    """The process that forks kernels for this one: started at the first call, it ends when this one
    does. Forked with it, numpy has one thread.
    """
    return subprocess.Popen(
        [sys.executable, "-P", "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=_FIGURES | os.environ | {"OPENBLAS_NUM_THREADS": "1"},
        start_new_session=True,
    )


def main() -> None:
    """Forks a kernel for each line of the standard input, until that ends, and writes its process's
    number. A line is a JSON object: the kernel's "arguments", its "environment" and "folder".
    """
    # What an import prints is no number.
    told = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for name in IMPORTED:
        importlib.import_module(name)
    # Nobody waits for kernels that ended; with this they leave no zombies.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    own = os.getpid()
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            told.close()
            _be_kernel(json.loads(line), own)
        try:
            print(pid, file=told, flush=True)
        except BrokenPipeError:  # who asked has ended; without this process the kernel does, too
            os._exit(1)


def _be_kernel(asked: dict, parent: int) -> NoReturn:
    from ipykernel.kernelapp import IPKernelApp

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    # The standard input is the pipe of those who ask, which a kernel must not hold.
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.chdir(asked["folder"])
    IPKernelApp.launch_instance([*asked["arguments"], f"--IPKernelApp.parent_handle={parent}"])
    sys.exit()


if __name__ == "__main__":
    main()
