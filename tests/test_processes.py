"""Parallel processes: the effect on the others when one is killed, and on all when the first is."""

from __future__ import annotations

import errno
import itertools
import os
import signal
import subprocess
import sys
import textwrap
import time
from functools import partial
from pathlib import Path

import psutil
import pytest

from lib import processes
from lib.processes import Task


def doubled(number: int) -> int:
    return 2 * number


def refused() -> None:
    raise ValueError("as it should")


def killed(number: int) -> None:
    os.kill(os.getpid(), number)
    time.sleep(60)


def environment() -> dict[str, str]:
    return dict(os.environ)


def without_space(file: Path) -> None:
    file.touch()
    raise OSError(errno.ENOSPC, "cannot write")


def compiled(file: Path) -> None:
    file.write_text("begun")
    try:
        # Python's compiler folds this division for a minute, and checks for signals meanwhile.
        compile(f"0x{'f' * 4_000_000} // 0x{'e' * 2_000_000}", "signalled", "exec")
        time.sleep(60)
    finally:
        file.write_text("unwound")


def process() -> int:
    time.sleep(0.3)
    return os.getpid()


def test_outcomes_come_in_the_order_of_the_tasks() -> None:
    tasks = [Task(f"{n}", partial(doubled, n)) for n in range(7)]
    reports: list[tuple] = []
    outcomes = processes.run(tasks, 3, lambda *progress: reports.append(progress))
    assert [outcome.value for outcome in outcomes] == [0, 2, 4, 6, 8, 10, 12]
    ended = [report for report in reports if report[0] is not None]
    assert sorted(task.title for task, *_ in ended) == [f"{n}" for n in range(7)]
    assert ended[-1][2:] == (0, pytest.approx(1))
    assert all(a[3] <= b[3] for a, b in itertools.pairwise(reports))


def test_a_task_that_raises_fails_alone_with_its_reason() -> None:
    raised, completed = processes.run([Task("a", refused), Task("b", partial(doubled, 1))], 1)
    assert raised.failure == "ValueError: as it should"
    assert completed.value == 2


def test_no_task_begins_once_the_disk_is_full(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks = [Task(name, partial(without_space, tmp_path / name)) for name in "abc"]
    with pytest.raises(OSError, match="the same command goes on"):
        processes.run(tasks, 1, processes.printed(3))
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert "a: FAILED: OSError: [Errno 28] cannot write" in capsys.readouterr().out


def test_a_process_killed_for_lack_of_memory_fails_its_own_task_alone() -> None:
    tasks = [Task("heavy", partial(killed, signal.SIGKILL))]
    tasks += [Task(f"{n}", partial(doubled, n)) for n in range(5)]
    heavy, *others = processes.run(tasks, 2)
    assert "killed by signal 9" in heavy.failure
    assert "memory" in heavy.failure
    assert "--jobs" in heavy.failure
    assert [outcome.value for outcome in others] == [0, 2, 4, 6, 8]


def test_processes_are_reused_and_never_outnumber_the_tasks() -> None:
    outcomes = processes.run([Task("a", process)] * 4, 2)
    assert len({outcome.value for outcome in outcomes}) == 2
    assert processes.run([Task("a", process)], 8)[0].value != os.getpid()


def test_a_process_that_is_compiling_unwinds_when_terminated(tmp_path: Path) -> None:
    file, ticks = tmp_path / "compiled", []

    def interrupt(*_: object) -> None:
        ticks.append(file.exists())
        if ticks.count(True) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        processes.run([Task("a", partial(compiled, file))], 1, interrupt)
    assert file.read_text() == "unwound"


def test_workers_get_the_requested_threads_and_the_parent_keeps_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    monkeypatch.delenv("MALLOC_TOP_PAD_", raising=False)
    (outcome,) = processes.run([Task("a", environment)], 1, threads=3)
    assert outcome.value["OMP_NUM_THREADS"] == "3"
    assert os.environ["OMP_NUM_THREADS"] == "5"
    assert "MALLOC_TOP_PAD_" not in os.environ


# Two processes that would run for a minute and leave half-written files unless they unwind.
MAIN = r"""
import os, sys, time
from functools import partial
from pathlib import Path
from lib.files import replacing
from lib import processes

def long(folder, number):
    with replacing(folder / f"{number}.txt") as half:
        half.write_text("half")
        (folder / f"{number}.pid").write_text(str(os.getpid()))
        os.write(1, b"begun\n")
        for _ in range(600):
            time.sleep(0.1)

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    try:
        processes.run([processes.Task(f"{n}", partial(long, folder, n)) for n in range(2)], 2)
    except KeyboardInterrupt:
        sys.exit(130)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_processes_end_with_the_one_that_started_them(number: int, tmp_path: Path) -> None:
    script = tmp_path / "main.py"
    script.write_text(textwrap.dedent(MAIN))
    main = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert [main.stdout.readline() for _ in range(2)] == ["begun\n"] * 2
    workers = [psutil.Process(int(file.read_text())) for file in tmp_path.glob("*.pid")]
    main.send_signal(number)
    sent = time.monotonic()
    # Returns once no process holds stdout and stderr any more, as `… | tee log` does.
    _, errors = main.communicate(timeout=20)
    while [
        worker for worker in workers if worker.is_running() and worker.status() != psutil.STATUS_ZOMBIE
    ]:
        # Where nothing collects orphans, an ended process stays as a zombie.
        time.sleep(0.05)
    assert time.monotonic() - sent < 10, "a second or two, on a machine that does nothing else"
    assert errors == "", "no process prints a traceback"
    assert main.returncode == (130 if number == signal.SIGINT else -number)
    assert not list(tmp_path.glob("*.half*")), "they unwound"


INTERRUPTED = """
import os, signal
from multiprocessing import util
from lib import processes

launch = util.spawnv_passfds


def launched(path, args, fds):
    process = launch(path, args, fds)
    if any("spawn_main" in os.fsdecode(of) for of in args):
        os.kill(os.getpid(), signal.SIGINT)
    return process


util.spawnv_passfds = launched
try:
    processes.run([processes.Task("never done", list)], at_once=1)
except KeyboardInterrupt:
    print("stopped")
"""


def test_ctrl_c_waits_until_the_first_process_has_its_start_data() -> None:
    completed = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=60
    )
    assert (completed.stdout, completed.stderr) == ("stopped\n", "")
