"""Jobs on a cluster, a Dask scheduler and two workers on this machine: done, killed, left, refused."""

from __future__ import annotations

import os
import re
import signal
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import psutil
import pytest
from distributed import Client, LocalCluster
from followed_run import followed, undone
from small_study import made_cold

from lib.cluster import at_once
from lib.processes import Task
from lib.study import cluster, jobs, records
from lib.study.jobs import Job, Setting
from lib.study.open import Study, make
from lib.study.runs import weights_path

# What says how long it took, or when it was made.
TIMES = {"seconds": 0, "evaluation_seconds": {}}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Of a cluster of two workers with two threads each, which nobody outside this machine reaches."""
    with LocalCluster(
        n_workers=2,
        threads_per_worker=2,
        processes=True,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        silence_logs=50,
    ) as local:
        yield local.scheduler_address


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, Job, Path]:
    """A small run made without the cluster."""
    return made_cold(tmp_path_factory.mktemp("results"))


@pytest.fixture
def setting(here: tuple[Study, Job, Path], tmp_path: Path) -> Setting:
    """The same study's, with an empty folder."""
    return replace(here[0], folder=tmp_path)


@pytest.fixture(autouse=True)
def limited() -> Iterator[None]:
    """Whatever waits for ever fails."""

    def late(*_: object) -> None:
        raise AssertionError("it took more than five minutes")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(300)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def quiet(*standing: object) -> None:
    pass


def same(one: Path, other: Path) -> bool:
    """Whether records, their probes and weights are equal to the last bit, times aside."""
    return {**records.read(one), **TIMES} == {**records.read(other), **TIMES} and weights_path(
        one
    ).read_bytes() == weights_path(other).read_bytes()


def test_a_record_made_by_a_worker_is_the_one_made_here(
    here: tuple[Study, Job, Path], setting: Setting, address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    opened, job, path = here
    assert make(replace(opened, folder=setting.folder, reading=(setting.folder,)), [job], address) == []
    assert same(jobs.record_path(job, setting), path)
    assert records.read(path)["threads"] == 1, "a worker has two"
    assert not list((setting.folder / "locks").iterdir())
    said = capsys.readouterr().out
    assert f"runs: 1 to make, 4 at once at {address}, about" in said
    assert f"[  1/1] {job.title}: done" in said


@pytest.fixture
def seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Has each job done by `followed`, which says in this folder what it does."""
    folder = tmp_path / "seen"
    folder.mkdir()

    def task(job: Job, setting: Setting) -> Task:
        return Task(job.title, partial(followed, job, setting, folder))

    monkeypatch.setattr(cluster, "task", task)
    return folder


def test_a_run_whose_worker_is_killed_goes_on_elsewhere_from_its_checkpoint(
    here: tuple[Study, Job, Path], setting: Setting, address: str, seen: Path
) -> None:
    _, job, path = here
    waiting, killed = seen / "waiting", seen / "killed"

    def kill(*_: object) -> None:
        if waiting.exists() and not killed.exists():
            killed.write_text(waiting.read_text())
            os.kill(int(waiting.read_text()), signal.SIGKILL)

    assert cluster.complete([job], setting, address, kill) == []
    first = seen / f"{killed.read_text()}.steps"
    (other,) = set(seen.glob("*.steps")) - {first}
    assert first.read_text().split() == ["1", "2", "3", "4", "5"]
    assert other.read_text().split() == ["5", "6", "7", "8"], "the 4 steps before are not done again"
    assert same(jobs.record_path(job, setting), path)
    assert not list((setting.folder / "checkpoints").iterdir())


def working(address: str) -> list[psutil.Process]:
    """The processes that do jobs for a cluster's workers just now."""
    with Client(address, set_as_default=False) as client:
        workers = client.run(os.getpid).values()
    started = [process for worker in workers for process in psutil.Process(worker).children()]
    # Other than the one that keeps account of what processes share.
    return [process for process in started if "spawn_main" in _command(process)]


def _command(process: psutil.Process) -> str:
    """Its command line, empty of one that has ended."""
    try:
        return "" if process.status() == psutil.STATUS_ZOMBIE else " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return ""


def test_ctrl_c_ends_the_runs_and_not_the_cluster(
    here: tuple[Study, Job, Path], setting: Setting, address: str, seen: Path
) -> None:
    _, job, _ = here

    def interrupt(*_: object) -> None:
        if (seen / "waiting").exists():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cluster.complete([job], setting, address, interrupt)
    ended = time.monotonic()
    while any(process.is_running() for process in working(address)):
        time.sleep(0.5)
    assert time.monotonic() - ended < 60, "two seconds, on a machine that does nothing else"
    # What says here what they do may be ended too.
    left = [file for file in setting.folder.rglob("*") if ".half" in file.name and seen != file.parent]
    assert left == []
    assert not list((setting.folder / "locks").iterdir())
    assert list((setting.folder / "checkpoints").iterdir()), "what was done is kept"
    assert at_once(address) == 4


def test_a_worker_of_other_code_is_refused(
    here: tuple[Study, Job, Path], setting: Setting, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, job, _ = here
    monkeypatch.setattr(jobs, "code_digest", lambda modules: "0" * 16)
    with pytest.raises(ValueError, match=r"refused: it has code \w{16} \(here: \w{16}\)"):
        cluster.complete([job], setting, address, quiet)
    assert not (setting.folder / "records").exists()


@pytest.mark.parametrize(
    ("held", "told"),
    [(False, "it does not see .*, so it does not share"), (True, "locks in .* do not hold between")],
)
def test_a_worker_that_shares_no_folder_or_no_locks_is_refused(
    held: bool, told: str, here: tuple[Study, Job, Path], setting: Setting
) -> None:
    lock = setting.folder / "locks" / "study.lock"
    lock.parent.mkdir(parents=True)
    if held:
        lock.touch()  # by a client whose locks are not seen here
    assert re.match(told, cluster._do_if_alike(Task("a", quiet), here[1], setting, lock, {}))


def test_a_record_that_is_not_seen_here_is_a_failure(
    here: tuple[Study, Job, Path], setting: Setting, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, job, _ = here
    monkeypatch.setattr(cluster, "_SEEN", 0.0)
    monkeypatch.setattr(cluster, "task", lambda job, setting: Task(job.title, undone))
    ((failed, reason),) = cluster.complete([job], setting, address, quiet)
    assert failed == job
    assert "its record" in reason
    assert "is missing here" in reason


def test_where_no_scheduler_listens_is_said_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lib.cluster._ANSWER", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        for port in (9, silent.getsockname()[1]):
            with pytest.raises(
                OSError, match=rf"no Dask scheduler answers at tcp://127\.0\.0\.1:{port}"
            ):
                at_once(f"tcp://127.0.0.1:{port}")


def test_a_scheduler_that_ends_ends_the_study(here: tuple[Study, Job, Path], setting: Setting) -> None:
    with LocalCluster(
        n_workers=0, processes=True, host="127.0.0.1", dashboard_address="127.0.0.1:0", silence_logs=50
    ) as local:

        def end(*_: object) -> None:
            if local.status.name == "running":
                local.close()

        with pytest.raises(OSError, match="is gone; what was done is kept"):
            cluster.complete([here[1]], setting, local.scheduler_address, end)
