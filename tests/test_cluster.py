"""Jobs on a Dask cluster of two workers on this machine: done, killed, interrupted, refused."""

from __future__ import annotations

import os
import re
import signal
import socket
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest.mock import patch

import psutil
import pytest
from distributed import Client, LocalCluster, config
from followed_run import ForkedTasks, followed, undone
from forked import start
from small_study import made_cold

from lib.cluster import at_once
from lib.processes import Task
from lib.study import cluster, jobs, records
from lib.study.jobs import Job, Setting
from lib.study.open import Study, make
from lib.study.runs import weights_path

# Fields that tell how long a run took, or when.
TIMES = {"seconds": 0, "evaluation_seconds": {}}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The address, reachable only from this machine, of two workers with two threads each."""
    # Workers are forked, which spares them the imports.
    start()
    options = {"threads_per_worker": 2, "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with (
        patch.dict(config["distributed"]["worker"], {"multiprocessing-method": "forkserver"}),
        LocalCluster(n_workers=2, processes=True, silence_logs=50, **options) as local,
    ):
        yield local.scheduler_address


@pytest.fixture(scope="module")
def local_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, Job, Path]:
    """A study, a job and its record, made without the cluster."""
    return made_cold(tmp_path_factory.mktemp("results"))


@pytest.fixture
def setting(local_run: tuple[Study, Job, Path], tmp_path: Path) -> Setting:
    """The same study's setting with an empty folder."""
    return replace(local_run[0], folder=tmp_path)


@pytest.fixture(autouse=True)
def time_limit() -> Iterator[None]:
    """Fail a test after five minutes."""

    def time_out(*_: object) -> None:
        raise AssertionError("it took more than five minutes")

    previous = signal.signal(signal.SIGALRM, time_out)
    signal.alarm(300)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, previous)


def quiet(*_: object) -> None:
    pass


def same(one: Path, other: Path) -> bool:
    """Whether two records, with probes and weights, are equal bit by bit except for times."""
    return {**records.read(one), **TIMES} == {**records.read(other), **TIMES} and weights_path(
        one
    ).read_bytes() == weights_path(other).read_bytes()


def test_a_worker_makes_the_same_record_as_a_local_run(
    local_run: tuple[Study, Job, Path],
    setting: Setting,
    address: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    study, job, path = local_run
    assert make(replace(study, folder=setting.folder, reading=(setting.folder,)), [job], address) == []
    assert same(jobs.record_path(job, setting), path)
    assert records.read(path)["threads"] == 1, "a worker has two"
    assert not list((setting.folder / "locks").iterdir())
    stdout = capsys.readouterr().out
    assert f"runs: 1 to make, 4 at once at {address}, about" in stdout
    assert f"[  1/1] {job.title}: done" in stdout


@pytest.fixture
def progress(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let `followed` do each job, and return the folder to which it writes its steps."""
    folder = tmp_path / "seen"
    folder.mkdir()
    with Client(address, set_as_default=False) as client:
        client.register_plugin(ForkedTasks())

    def task(job: Job, setting: Setting) -> Task:
        return Task(job.title, partial(followed, job, setting, folder))

    monkeypatch.setattr(cluster, "task", task)
    return folder


def test_a_run_of_a_killed_worker_resumes_elsewhere_from_its_checkpoint(
    local_run: tuple[Study, Job, Path], setting: Setting, address: str, progress: Path
) -> None:
    _, job, path = local_run
    waiting, killed = progress / "waiting", progress / "killed"

    def kill(*_: object) -> None:
        if waiting.exists() and not killed.exists():
            worker, _ = waiting.read_text().split()
            killed.write_text(worker)
            os.kill(int(worker), signal.SIGKILL)

    assert cluster.complete([job], setting, address, kill) == []
    first = progress / f"{killed.read_text()}.steps"
    (second,) = set(progress.glob("*.steps")) - {first}
    assert first.read_text().split() == ["1", "2", "3", "4", "5"]
    assert second.read_text().split() == ["5", "6", "7", "8"], "the 4 steps before are not done again"
    assert same(jobs.record_path(job, setting), path)
    assert not list((setting.folder / "checkpoints").iterdir())


def test_ctrl_c_ends_the_runs_and_not_the_cluster(
    local_run: tuple[Study, Job, Path], setting: Setting, address: str, progress: Path
) -> None:
    _, job, _ = local_run

    waiting, running = progress / "waiting", []

    def interrupt(*_: object) -> None:
        if waiting.exists():
            _, process = waiting.read_text().split()
            running.append(psutil.Process(int(process)))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cluster.complete([job], setting, address, interrupt)
    assert psutil.wait_procs(running, timeout=60)[1] == []
    # A file of `followed` may be unfinished, too.
    unfinished = [
        file for file in setting.folder.rglob("*") if ".half" in file.name and progress != file.parent
    ]
    assert unfinished == []
    assert not list((setting.folder / "locks").iterdir())
    assert list((setting.folder / "checkpoints").iterdir()), "what was done is kept"
    assert at_once(address) == 4


def test_a_worker_with_other_code_is_refused(
    local_run: tuple[Study, Job, Path], setting: Setting, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, job, _ = local_run
    monkeypatch.setattr(jobs, "code_digest", lambda modules: "0" * 16)
    with pytest.raises(ValueError, match=r"refused: it has code \w{16} \(here: \w{16}\)"):
        cluster.complete([job], setting, address, quiet)
    assert not (setting.folder / "records").exists()


@pytest.mark.parametrize(
    ("held", "reason"),
    [(False, "it does not see .*, so it does not share"), (True, "locks in .* do not hold between")],
)
def test_a_worker_that_shares_no_folder_or_no_locks_is_refused(
    held: bool, reason: str, local_run: tuple[Study, Job, Path], setting: Setting
) -> None:
    lock = setting.folder / "locks" / "study.lock"
    lock.parent.mkdir(parents=True)
    if held:
        lock.touch()  # by a client whose locks are not seen here
    assert re.match(reason, cluster._do_if_alike(Task("a", quiet), local_run[1], setting, lock, {}))


def test_a_record_that_stays_invisible_is_a_failure(
    local_run: tuple[Study, Job, Path], setting: Setting, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, job, _ = local_run
    monkeypatch.setattr(cluster, "_SEEN", 0.0)
    monkeypatch.setattr(cluster, "task", lambda job, setting: Task(job.title, undone))
    ((failed, reason),) = cluster.complete([job], setting, address, quiet)
    assert failed == job
    assert "its record" in reason
    assert "is missing here" in reason


def test_an_address_without_a_scheduler_fails_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lib.cluster._ANSWER", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        for port in (9, silent.getsockname()[1]):
            with pytest.raises(
                OSError, match=rf"no Dask scheduler answers at tcp://127\.0\.0\.1:{port}"
            ):
                at_once(f"tcp://127.0.0.1:{port}")


def test_the_end_of_the_scheduler_ends_the_study(
    local_run: tuple[Study, Job, Path], setting: Setting
) -> None:
    with LocalCluster(
        n_workers=0, processes=True, host="127.0.0.1", dashboard_address="127.0.0.1:0", silence_logs=50
    ) as local:

        def end(*_: object) -> None:
            if local.status.name == "running":
                local.close()

        with pytest.raises(OSError, match="is gone; what was done is kept"):
            cluster.complete([local_run[1]], setting, local.scheduler_address, end)
