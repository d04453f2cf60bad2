"""Kernels that are forked are as any other, and begin with what notebooks import."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import nbformat
import papermill
import pytest
from nbclient.exceptions import DeadKernelError
from nbformat.v4 import new_code_cell, new_notebook

from lib.study.report.page import kernels
from lib.study.report.page.kernels import ForkedKernelManager


def outputs(folder: Path, source: str, **kernel: object) -> list[dict]:
    """Of a notebook of one cell, executed in a folder."""
    python = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    notebook = folder / "notebook.ipynb"
    nbformat.write(new_notebook(cells=[new_code_cell(source)], metadata=python), notebook)
    quiet = {"progress_bar": False, "extra_arguments": ["--log-level=CRITICAL"]}
    made = papermill.execute_notebook(notebook, folder / "executed.ipynb", cwd=folder, **quiet, **kernel)
    return made.cells[0].outputs


def executed(folder: Path, source: str) -> str:
    """What a notebook of one cell printed that a forked kernel executed."""
    of = {"kernel_manager_class": ForkedKernelManager, "shutdown_kernel": "immediate"}
    return "".join(output["text"] for output in outputs(folder, source, **of))


def test_it_has_imported_what_nearly_all_notebooks_need_and_nothing_that_trains(tmp_path: Path) -> None:
    names = "('matplotlib.pyplot', 'pandas', 'lib.study.report.showing', 'torch')"
    source = f"import sys\nprint([name in sys.modules for name in {names}])"
    assert executed(tmp_path, source) == "[True, True, True, False]\n"


def test_it_works_in_its_folder_and_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    executed(tmp_path, "print()")  # The process that forks is there before the environment changes.
    monkeypatch.setenv("OF_THE_KERNEL", "today")
    monkeypatch.setenv("HOME", str(tmp_path))
    source = "import os\nprint(os.getcwd(), os.environ['OF_THE_KERNEL'])"
    assert executed(tmp_path, source) == f"{tmp_path} today\n"


def test_none_sees_what_another_did(tmp_path: Path) -> None:
    left = "import pandas\nprint(hasattr(pandas, 'left'))\npandas.left = 1"
    assert executed(tmp_path, left) == "False\n"
    assert executed(tmp_path, left) == "False\n"


def test_figures_are_shown_as_by_any_kernel(tmp_path: Path) -> None:
    source = "import matplotlib.pyplot as plt\nplt.plot([0, 1])\nprint(plt.get_backend())"
    assert outputs(tmp_path, source, kernel_manager_class=ForkedKernelManager) == outputs(
        tmp_path, source
    )


def test_an_error_is_told(tmp_path: Path) -> None:
    with pytest.raises(papermill.PapermillExecutionError, match="as it should"):
        executed(tmp_path, "raise RuntimeError('as it should')")


def test_one_that_is_killed_is_found_out(tmp_path: Path) -> None:
    with pytest.raises(DeadKernelError):
        executed(tmp_path, "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")


def test_the_process_that_forks_is_replaced_once_it_has_ended(tmp_path: Path) -> None:
    executed(tmp_path, "print()")
    kernels._forking().kill()
    kernels._forking().wait()
    assert executed(tmp_path, "print(1)") == "1\n"


def alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def gone_within(pid: int, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while alive(pid) and time.monotonic() < end:
        time.sleep(0.1)
    return not alive(pid)


def test_it_is_gone_once_its_notebook_is_executed(tmp_path: Path) -> None:
    assert gone_within(int(executed(tmp_path, "import os\nprint(os.getpid())")), 5)


def test_it_ends_with_the_process_that_asked_for_it(tmp_path: Path) -> None:
    cell = "import os, pathlib, time\npathlib.Path('pid').write_text(str(os.getpid()))\ntime.sleep(600)"
    folder = str(tmp_path)
    source = f"import pathlib, {__name__} as it\nit.executed(pathlib.Path({folder!r}), {cell!r})"
    command = [sys.executable, "-c", source]
    with subprocess.Popen(command, cwd=Path(__file__).parent) as asking:
        try:
            end = time.monotonic() + 60
            while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
                assert asking.poll() is None
                assert time.monotonic() < end
                time.sleep(0.1)
            pid = int((tmp_path / "pid").read_text())
            assert alive(pid)
        finally:
            asking.kill()
    assert gone_within(pid, 20)
