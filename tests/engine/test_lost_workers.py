"""Workers that die during the work: the same profile, a complete store, and one line if that is impossible."""

from __future__ import annotations

import logging
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import dask
import pyarrow.dataset as ds
import pytest
from distributed import Client, LocalCluster

import vani
from tests.traces.trace_generator import Workload, generate_trace
from vani.engine import cluster
from vani.engine.cluster import open_executor
from vani.engine.executor import Executor, Scheduler, scheduler_of
from vani.errors import InputError
from vani.readers.open import open_trace
from vani.store import write
from vani.store.read import open_store
from vani.store.write import PartTask, decode_part, write_store

TRACES = Path(__file__).resolve().parents[1] / "data" / "traces"
CALLS = 400_000


@pytest.fixture(scope="module")
def trace(tmp_path_factory) -> Path:
    """Large enough that every stage has a middle."""
    place = tmp_path_factory.mktemp("generated") / "trace"
    generate_trace(place, Workload(calls=CALLS, ranks=48, files=48, pattern="mixed", zlib_level=1))
    return place


@pytest.fixture(scope="module")
def at_home(trace, tmp_path_factory) -> str:
    return vani.profile(trace, store=tmp_path_factory.mktemp("home")).to_yaml()


@pytest.fixture(autouse=True)
def parts_of_25_000_calls(monkeypatch):
    monkeypatch.setattr(write, "LARGE_PART", 25_000)


def local_cluster(workers: int, **options) -> LocalCluster:
    return LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        dashboard_address=":0",
        silence_logs=logging.CRITICAL + 1,
        **options,
    )


@contextmanager
def unwatched_workers(scheduler: LocalCluster, count: int):
    """Workers that are not restarted."""
    command = [sys.executable, "-m", "distributed.cli.dask_worker", scheduler.scheduler_address]
    command += ["--no-nanny", "--nthreads", "1", "--dashboard-address", ":0"]
    runs = [
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/")
        for _ in range(count)
    ]
    try:
        with Client(scheduler, set_as_default=False) as client:
            client.wait_for_workers(count, timeout=60)
        yield
    finally:
        for run in runs:
            run.kill()
            run.wait()


class Killer:
    """Kills one worker while a stage is running."""

    def __init__(self, scheduler: str, stage: str) -> None:
        with Client(scheduler, set_as_default=False) as client:
            self._pid = min(client.run(os.getpid).values())
        self._stage = stage
        self.killed_at: tuple[int, int] | None = None

    def __call__(self, stage: str, done: int, total: int) -> None:
        if stage == self._stage and done and self.killed_at is None:
            self.killed_at = done, total
            os.kill(self._pid, signal.SIGKILL)


def profile_while_one_dies(trace: Path, store: Path, scheduler: str, stage: str) -> str:
    killer = Killer(scheduler, stage)
    found = vani.profile(trace, store=store, scheduler=scheduler, progress=killer).to_yaml()
    assert killer.killed_at is not None
    assert killer.killed_at[0] < killer.killed_at[1], "it died in the middle"
    return found


def check_store(stores: Path) -> None:
    """Check that a killed worker's unfinished data is not in it."""
    (place,) = stores.iterdir()
    store = open_store(place)
    assert store.manifest.records == CALLS
    assert {p.name for p in (place / "calls").iterdir()} == {Path(p.file).name for p in store.manifest.parts}
    assert ds.dataset(place / "calls", format="parquet").count_rows() == CALLS


@pytest.mark.slow
@pytest.mark.parametrize(
    "stage", ["decode", *(pytest.param(s, marks=pytest.mark.slow) for s in ("survey", "measure"))]
)
def test_killed_worker_does_not_change_the_profile(trace, at_home, tmp_path, stage):
    with local_cluster(2) as dask_cluster:
        assert profile_while_one_dies(trace, tmp_path, dask_cluster.scheduler_address, stage) == at_home
    check_store(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["decode", "survey", "measure"])
def test_profile_is_the_same_after_the_loss_of_a_worker(trace, at_home, tmp_path, stage):
    with local_cluster(0) as dask_cluster, unwatched_workers(dask_cluster, 2):
        assert profile_while_one_dies(trace, tmp_path, dask_cluster.scheduler_address, stage) == at_home
        with Client(dask_cluster, set_as_default=False) as client:
            assert len(client.ncores()) == 1
    check_store(tmp_path)


@pytest.mark.slow
def test_task_killing_its_workers_is_reported_in_one_line():
    with dask.config.set({"distributed.scheduler.allowed-failures": 0}), local_cluster(1) as dask_cluster:
        engine = open_executor(dask_cluster.scheduler_address)
        with pytest.raises(InputError) as told:
            engine.map(os._exit, [1], stage="decode")
        engine.close()
    assert told.value.exit_code == 2
    assert str(told.value) == (
        f"{dask_cluster.scheduler_address}: 1 workers died of one task while decoding, as happens where memory runs out; "
        "give each worker more memory or fewer threads, and look into the workers' logs"
    )


@pytest.mark.slow
def test_run_ends_after_the_last_worker(monkeypatch):
    monkeypatch.setattr(cluster, "NO_WORKER_S", 2.0)
    with local_cluster(0) as dask_cluster, unwatched_workers(dask_cluster, 1):
        engine = open_executor(dask_cluster.scheduler_address, progress=Killer(dask_cluster.scheduler_address, "nap"))
        began = time.monotonic()
        with pytest.raises(InputError, match="no workers for 2 s; start some"):
            engine.map(time.sleep, [0.0] + [0.5] * 40, stage="nap")
        engine.close()
        assert time.monotonic() - began < 20


@pytest.mark.slow
def test_run_ends_after_the_scheduler(monkeypatch, tmp_path):
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"]
    command += ["--no-dashboard", "--scheduler-file", str(tmp_path / "s.json")]
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "2s"}),
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as scheduler,
    ):
        while not (tmp_path / "s.json").is_file():
            time.sleep(0.05)
        address = scheduler_of(tmp_path / "s.json").address()
        worker = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "distributed.cli.dask_worker",
                address,
                "--nthreads",
                "1",
                "--no-dashboard",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        killed = []

        def kill(stage: str, done: int, total: int) -> None:
            if done and not killed:
                killed.append(scheduler.kill())

        engine = open_executor(address, progress=kill)
        try:
            with pytest.raises(InputError, match="the connection to the scheduler was lost"):
                engine.map(time.sleep, [0.0] + [0.5] * 60, stage="nap")
        finally:
            engine.close()
            worker.kill()
            worker.wait()


# ---------------------------------------------------------------- parts of a store


def test_a_part_may_be_written_twice(tmp_path):
    # A worker that was considered lost may finish after the one that took over its task.
    reader = open_trace(TRACES / "v3-posix-mix-4r")
    task = PartTask(range(4), tmp_path / "part-00000.parquet")
    decode_part(task, reader)
    first = task.file.read_bytes()
    decode_part(task, reader)
    assert task.file.read_bytes() == first
    assert [p.name for p in tmp_path.iterdir()] == ["part-00000.parquet"]


def test_unfinished_parts_of_a_killed_worker_are_not_in_the_store(tmp_path):
    class Interrupted(Executor):
        def map(self, function, items, **options):
            begun = items[0].file.with_name(f".{items[0].file.name}.0123.partial")
            begun.write_bytes(b"PAR1 half of it")
            return super().map(function, items, **options)

    write_store(open_trace(TRACES / "v3-posix-mix-4r"), tmp_path / "s", version="0", executor=Interrupted(Scheduler("synchronous")))
    assert [p.name for p in (tmp_path / "s" / "calls").iterdir()] == ["part-00000.parquet"]


def test_failing_part_leaves_no_files(tmp_path, monkeypatch):
    reader = open_trace(TRACES / "v3-posix-mix-4r")

    def fails(ranks, piece):
        yield from ()
        raise OSError("no such device")

    monkeypatch.setattr(reader, "batches", fails)
    with pytest.raises(OSError, match="no such device"):
        decode_part(PartTask(range(4), tmp_path / "part-00000.parquet"), reader)
    assert list(tmp_path.iterdir()) == []


def test_late_worker_does_not_restore_an_abandoned_store(tmp_path):
    reader = open_trace(TRACES / "v3-posix-mix-4r")
    late = []

    class Interrupted(Executor):
        def map(self, function, items, **options):
            late.extend(items)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_store(reader, tmp_path / "s", version="0", executor=Interrupted(Scheduler("synchronous")))
    with pytest.raises(FileNotFoundError):
        write.decode_part(late[0], reader)
    assert list(tmp_path.iterdir()) == []


# --------------------------------------------------------------- files not shared

_HIDE = "mount -t tmpfs none {hidden} && exec {python} -m distributed.cli.dask_worker {address} --nthreads 1 --no-dashboard"


def may_hide_folders() -> bool:
    if shutil.which("unshare") is None:
        return False
    with_mount = ["unshare", "-m", "sh", "-c", "mount -t tmpfs none /mnt"]
    return subprocess.run(with_mount, capture_output=True, check=False).returncode == 0


@pytest.mark.slow
@pytest.mark.skipif(not may_hide_folders(), reason="needs the right to mount in a namespace of its own")
@pytest.mark.parametrize(
    ("hidden", "line"),
    [("traces", "trace: is not what workers see on "), ("stores", "stores: is not seen by workers on ")],
)
def test_a_worker_on_another_file_system_is_found_before_work_begins(tmp_path, hidden, line):
    (tmp_path / "traces").mkdir()
    shutil.copytree(TRACES / "v3-posix-mix-4r", tmp_path / "traces" / "trace")
    (tmp_path / "stores").mkdir()
    with local_cluster(0) as dask_cluster:
        script = _HIDE.format(
            hidden=tmp_path / hidden, python=shlex.quote(sys.executable), address=dask_cluster.scheduler_address
        )
        with subprocess.Popen(
            ["unshare", "-m", "sh", "-c", script], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as worker:
            try:
                with pytest.raises(InputError, match=line):
                    vani.profile(
                        tmp_path / "traces" / "trace",
                        store=tmp_path / "stores",
                        scheduler=dask_cluster.scheduler_address,
                    )
            finally:
                worker.kill()
    assert list((tmp_path / "stores").iterdir()) == []
