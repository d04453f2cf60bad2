"""Many tasks at once: failures, killed workers, ended parents, and a Dask cluster."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import psutil
import pytest
from distributed import LocalCluster

from lib.study import making
from lib.study import sweep as sweeping
from lib.study.sweep import KILLED, Cluster, Task, sweep, wall_clock

ROOT = Path(__file__).resolve().parents[1]


def touch(path: Path) -> None:
    path.touch()


def fail() -> None:
    raise ValueError("as asked")


def die_once(path: Path) -> None:
    if not path.exists():
        path.touch()
        # The other task of the sweep ends first.
        time.sleep(1)
        os.kill(os.getpid(), signal.SIGKILL)


def die() -> None:
    time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGKILL)


def fill_the_disk() -> None:
    raise OSError(28, "No space left on device")


def test_a_task_that_fails_is_named_and_the_others_are_done(tmp_path: Path) -> None:
    tasks = [Task("good", partial(touch, tmp_path / "a")), Task("bad", fail)]
    assert sweep(tasks, 2) == [("bad", "ValueError: as asked")]
    assert (tmp_path / "a").exists()


def test_a_sweep_is_longer_than_what_is_handed_out_at_once(tmp_path: Path) -> None:
    assert sweep([Task(str(n), partial(touch, tmp_path / str(n))) for n in range(30)], 2) == []
    assert len(list(tmp_path.iterdir())) == 30


def append(path: Path, line: str) -> None:
    with path.open("a") as file:
        file.write(f"{line}\n")


def test_a_stopped_sweep_leaves_whole_groups(tmp_path: Path) -> None:
    """Tasks come by group, and within it the longest first."""
    done = tmp_path / "done"
    lengths = [("b short", 1.0, 1), ("a short", 1.0, 0), ("b long", 9.0, 1), ("a long", 5.0, 0)]
    tasks = [Task(title, partial(append, done, title), length, n) for title, length, n in lengths]
    assert sweep(tasks, 1) == []
    assert done.read_text().splitlines() == ["a long", "a short", "b long", "b short"]


def threads(path: Path) -> None:
    path.write_text(os.environ.get("OMP_NUM_THREADS", ""))


def test_a_process_has_the_threads_that_it_is_given(tmp_path: Path) -> None:
    assert sweep([Task("a", partial(threads, tmp_path / "a"))], 2, threads=3) == []
    assert (tmp_path / "a").read_text() == "3"


def test_after_a_killed_worker_the_sweep_goes_on_with_what_is_missing(tmp_path: Path) -> None:
    others = [Task(f"other {n}", partial(touch, tmp_path / str(n))) for n in range(3)]
    assert sweep([Task("killed", partial(die_once, tmp_path / "died")), *others], 2) == []
    assert all((tmp_path / str(n)).exists() for n in range(3))


def test_what_is_killed_twice_is_named(tmp_path: Path) -> None:
    failures = sweep([Task("killed", die), Task("other", partial(touch, tmp_path / "a"))], 2)
    assert ("killed", KILLED) in failures


def test_a_full_disk_ends_the_sweep() -> None:
    with pytest.raises(OSError, match="the disk is full: make room"):
        sweep([Task("full", fill_the_disk)], 1)


def test_the_longest_task_bounds_the_forecast() -> None:
    assert wall_clock([4.0, 1.0, 1.0], 2) == 4.0
    assert wall_clock([2.0, 2.0, 2.0, 2.0], 2) == 4.0
    assert wall_clock([], 2) == 0.0


SLEEPING = """
import sys, time
from pathlib import Path
from functools import partial
from lib.study.sweep import Task, sweep
sys.path.insert(0, {tests!r})
from test_sweep import wait_for_ever
sweep([Task(str(n), partial(wait_for_ever, Path({folder!r}) / str(n))) for n in range(2)], 2)
"""


def wait_for_ever(path: Path) -> None:
    path.write_text(str(os.getpid()))
    time.sleep(600)


def _lives(number: int) -> bool:
    """Whether a process runs. Where nothing collects orphans, an ended one stays as a zombie."""
    try:
        return psutil.Process(number).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_workers_end_within_two_seconds_of_the_process_that_started_them(
    number: int, tmp_path: Path
) -> None:
    code = SLEEPING.format(tests=str(ROOT / "tests"), folder=str(tmp_path))
    parent = subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    until = time.monotonic() + 120
    while len(list(tmp_path.iterdir())) < 2 or not all(p.read_text() for p in tmp_path.iterdir()):
        assert time.monotonic() < until
        time.sleep(0.1)
    workers = [int(path.read_text()) for path in tmp_path.iterdir()]
    parent.send_signal(number)
    parent.wait(30)
    time.sleep(2)
    assert not any(map(_lives, workers))


def state(torch: str = "2") -> dict[str, object]:
    return {"torch": torch}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The address, reachable only from this machine, of two workers with a thread each."""
    options = {"threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(n_workers=2, processes=True, silence_logs=50, **options) as local:
        yield local.scheduler_address


def test_a_clusters_workers_carry_out_tasks(address: str, tmp_path: Path) -> None:
    cluster = Cluster(address, tmp_path, state(), state)
    tasks = [Task("good", partial(touch, tmp_path / "a")), Task("bad", fail)]
    assert sweep(tasks, 1, cluster=cluster) == [("bad", "ValueError: as asked")]
    assert (tmp_path / "a").exists()
    assert not list(tmp_path.glob("client-*"))


def test_a_task_of_a_killed_worker_is_carried_out_by_another(address: str, tmp_path: Path) -> None:
    cluster = Cluster(address, tmp_path, state(), state)
    tasks = [Task("killed", partial(die_once, tmp_path / "died"))]
    tasks += [Task("other", partial(touch, tmp_path / "a"))]
    assert sweep(tasks, 1, cluster=cluster) == []
    assert (tmp_path / "a").exists()


def test_a_worker_with_another_torch_is_refused(address: str, tmp_path: Path) -> None:
    cluster = Cluster(address, tmp_path, state("1"), state)
    with pytest.raises(ValueError, match=r"refused: it has torch 2 \(here: 1\)"):
        sweep([Task("a", partial(touch, tmp_path / "a"))], 1, cluster=cluster)
    assert not (tmp_path / "a").exists()


def test_a_worker_with_another_version_of_any_library_is_refused(address: str, tmp_path: Path) -> None:
    cluster = Cluster(address, tmp_path, {**making.state(), "numpy": "1.0"}, making.state)
    with pytest.raises(ValueError, match=rf"it has numpy {np.__version__} \(here: 1\.0\)"):
        sweep([Task("a", partial(touch, tmp_path / "a"))], 1, cluster=cluster)


def test_a_task_that_kills_each_worker_is_named_and_the_others_are_done(tmp_path: Path) -> None:
    options = {"threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(n_workers=2, processes=True, silence_logs=50, **options) as local:
        cluster = Cluster(local.scheduler_address, tmp_path, state(), state)
        tasks = [Task("kills", die, 2.0), Task("other", partial(touch, tmp_path / "a"))]
        failures = sweep(tasks, 1, cluster=cluster)
    assert failures == [("kills", KILLED)]
    assert (tmp_path / "a").exists()


def test_a_worker_with_several_threads_is_refused(tmp_path: Path) -> None:
    options = {"threads_per_worker": 2, "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(n_workers=1, processes=True, silence_logs=50, **options) as local:
        cluster = Cluster(local.scheduler_address, tmp_path, state(), state)
        with pytest.raises(ValueError, match="refused: it has several threads"):
            sweep([Task("a", fail)], 1, cluster=cluster)


def test_a_worker_that_shares_no_folder_is_refused(tmp_path: Path) -> None:
    cluster = Cluster("", tmp_path, state(), state)
    why = sweeping._difference(cluster, tmp_path / "client-not-here")
    assert "it does not share that folder" in why


def test_an_address_without_a_scheduler_fails_soon(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sweeping, "ANSWER", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        for port in (9, silent.getsockname()[1]):
            cluster = Cluster(f"tcp://127.0.0.1:{port}", tmp_path, state(), state)
            with pytest.raises(
                OSError, match=rf"no Dask scheduler answers at tcp://127\.0\.0\.1:{port}"
            ):
                sweep([Task("a", fail)], 1, cluster=cluster)
