"""A Dask cluster: the same bytes as locally, little data transferred, and one clear line if that is impossible."""

from __future__ import annotations

import json
import logging
import os
import pickle
import shutil
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from dask import config
from distributed import Client, LocalCluster
from switched import numpy_alone

import vani
from vani.cli.main import main
from vani.engine import cluster
from vani.engine.cluster import Cluster, Witness, check_folders, open_executor, trouble, witness
from vani.errors import InputError
from vani.readers.open import open_trace
from vani.store import write

TRACES = Path(__file__).resolve().parents[1] / "data" / "traces"
MANY_RANKS = TRACES / "v3-cm1like-16r"
SAME = ["v25g-pr-ior-strided-8r", "v3-cm1like-16r", "v2-posix-mix-nonmpi", "v3-netcdf-pnetcdf-4r"]


def local_cluster(workers: int) -> LocalCluster:
    return LocalCluster(
        n_workers=workers, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL
    )


@pytest.fixture(scope="module")
def dask():
    with local_cluster(2) as two:
        yield two


@pytest.fixture
def engine(dask):
    engine = open_executor(dask.scheduler_address)
    yield engine
    engine.close()


@pytest.fixture
def a_part_per_rank(monkeypatch):
    """Divide small traces into many parts, like large ones."""
    monkeypatch.setattr(write, "LARGE_PART", 1)


def command(capfd, *arguments) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as leaving:
        main([str(a) for a in arguments])
    out, err = capfd.readouterr()
    return leaving.value.code, out, err


# ------------------------------------------------------------------ same results


@pytest.mark.parametrize("name", SAME)
@pytest.mark.sampled(1)
def test_a_profile_is_the_same_here_and_on_a_cluster(tmp_path, dask, a_part_per_rank, name):
    here = vani.profile(TRACES / name, store=tmp_path / "here").to_yaml()
    there = vani.profile(TRACES / name, store=tmp_path / "there", scheduler=dask.scheduler_address).to_yaml()
    assert there == here


@pytest.mark.parametrize("kernels", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_schedulers_give_the_same_profile(
    tmp_path, monkeypatch, a_part_per_rank, kernels
):
    monkeypatch.setenv("VANI_KERNELS", "1" if kernels else "0")
    with nullcontext() if kernels else numpy_alone(), local_cluster(1) as one:
        places = {"threads": None, "synchronous": None, "processes": None, "one": one.scheduler_address}
        found = {
            name: vani.profile(MANY_RANKS, store=tmp_path / name, scheduler=place or name).to_yaml()
            for name, place in places.items()
        }
    assert len(set(found.values())) == 1


@pytest.mark.slow
def test_a_workflow_of_several_traces_is_the_same(tmp_path, dask, a_part_per_rank):
    traces = [TRACES / "v3-posix-mix-4r", TRACES / "v3-haccio-ssf-8r", TRACES / "v25g-mpiio-mix-4r"]
    here = vani.profile(*traces, store=tmp_path / "here", files=None).to_yaml()
    there = vani.profile(
        *traces, store=tmp_path / "there", files=None, scheduler=dask.scheduler_address
    ).to_yaml()
    assert there == here


@pytest.mark.slow
def test_workers_write_the_store_that_would_be_written_here(tmp_path, dask, a_part_per_rank):
    vani.convert(MANY_RANKS, tmp_path / "here")
    vani.convert(MANY_RANKS, tmp_path / "there", scheduler=dask.scheduler_address)

    def content(place: Path) -> dict[str, bytes]:
        return {str(p.relative_to(place)): p.read_bytes() for p in sorted(place.rglob("*")) if p.is_file()}

    here, there = content(tmp_path / "here"), content(tmp_path / "there")
    assert len([name for name in here if name.startswith("calls/")]) == 16
    assert there == here


def test_paths_may_be_relative_and_the_trace_damaged(tmp_path, dask, monkeypatch, a_part_per_rank):
    # Workers run in a folder of their own; their messages about damage name the trace as the user did.
    shutil.copytree(TRACES / "v2-ipc-mpiio-mix-4r", tmp_path / "cut")
    times = tmp_path / "cut" / "1.ts"
    times.write_bytes(times.read_bytes()[: times.stat().st_size // 2])
    monkeypatch.chdir(tmp_path)
    here = vani.profile("cut", store="here")
    there = vani.profile("cut", store="there", scheduler=dask.scheduler_address)
    assert here.traces[0].problems
    assert there.to_yaml() == here.to_yaml()


def test_given_client_is_used_and_left_open(tmp_path, dask):
    with Client(dask, set_as_default=False) as client:
        assert vani.profile(MANY_RANKS, store=tmp_path, scheduler=client).workflow.processes == 16
        assert client.submit(abs, -1).result() == 1


@pytest.mark.slow
def test_clusters_report_is_equal_and_asks_workers_once(tmp_path, dask, monkeypatch):
    checks, real = [], Cluster.check_workers

    def counted(self, **rest):
        checks.append(rest["reads"])
        real(self, **rest)

    monkeypatch.setattr(Cluster, "check_workers", counted)
    there = vani.report(MANY_RANKS, store=tmp_path / "there", scheduler=dask.scheduler_address)
    assert there == vani.report(MANY_RANKS, store=tmp_path / "here")
    assert checks == [[MANY_RANKS]]


def test_workers_check_whether_they_see_the_store_of_a_plot(tmp_path, dask, monkeypatch):
    monkeypatch.setenv("VANI_CACHE", str(tmp_path / "cache"))
    profile = vani.profile(MANY_RANKS, store=tmp_path / "S")
    checks = []
    monkeypatch.setattr(
        Cluster, "check_workers", lambda self, *, version, reads, writes: checks.append((reads, writes))
    )
    heat = vani.heat_map(profile, store=tmp_path / "S", scheduler=dask.scheduler_address)
    assert heat == vani.heat_map(profile, store=tmp_path / "S")
    (store,) = (tmp_path / "S").iterdir()
    assert checks == [([store], tmp_path / "S")]
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    assert vani.heat_map(profile, store=tmp_path / "S", scheduler=dask.scheduler_address) == heat
    assert checks[1:] == [([store], tmp_path / "cache" / "stores")]


def test_given_cluster_is_used_and_left_open(tmp_path, dask):
    # Such as a cluster of dask-jobqueue.
    assert vani.profile(MANY_RANKS, store=tmp_path, scheduler=dask).workflow.processes == 16
    with Client(dask, set_as_default=False) as client:
        assert client.submit(abs, -1).result() == 1


def test_a_scheduler_file_names_the_cluster(tmp_path, dask, capfd, monkeypatch):
    monkeypatch.setenv("VANI_CACHE", str(tmp_path))
    file = tmp_path / "scheduler.json"
    file.write_text(json.dumps({"address": dask.scheduler_address}))
    status, out, err = command(capfd, "profile", MANY_RANKS, "--scheduler", file)
    assert (status, err) == (0, "")
    assert out == vani.profile(MANY_RANKS, store=tmp_path).to_yaml()


# -------------------------------------------------------------- what travels


def test_tasks_and_partial_results_are_small(tmp_path, dask, a_part_per_rank):
    class Observed(Cluster):
        def _computed(self, function, items, combine, stage, broadcast):
            sizes[stage] = [len(pickle.dumps((function, item))) for item in items]
            shared[stage] = [len(pickle.dumps(each)) for each in broadcast]
            return super()._computed(function, items, combine, stage, broadcast)

    sizes, shared = {}, {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("vani.engine.cluster.Cluster", Observed)
        vani.profile(MANY_RANKS, store=tmp_path, scheduler=dask.scheduler_address)
    (store,) = tmp_path.iterdir()
    assert set(sizes) == {"decode", "survey", "measure", "overlap"}
    # The reader is sent as the path of its trace; workers write the calls.
    assert len(sizes["decode"]) == 16
    assert sum(shared["decode"]) < 370 + len(str(MANY_RANKS))
    for stage, most in (("decode", 700), ("survey", 200), ("measure", 200)):
        assert max(sizes[stage]) < most, stage
    assert (store / "manifest.json").is_file()


def test_workers_combine_results_as_a_tree(engine):
    total = engine.reduce(np.ones, [10_000] * 100, sum, stage="s")
    assert total.tolist() == [100.0] * 10_000


def test_all_threads_of_all_workers_count(engine):
    assert engine.workers == 2


# ------------------------------------------------------------ what goes wrong


def test_a_scheduler_that_does_not_answer(tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(cluster, "CONNECT_S", 0.3)
    monkeypatch.chdir(tmp_path)
    status, out, err = command(
        capfd, "profile", MANY_RANKS, "--store", "s", "--scheduler", "tcp://127.0.0.1:9"
    )
    assert (status, out) == (2, "")
    assert err == (
        "vani: tcp://127.0.0.1:9: no Dask scheduler answers; start one (`dask scheduler`), or leave --scheduler out\n"
    )


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (None, "no such scheduler file"),
        ("{", "cannot be read as a scheduler file"),
        ("[" * 100_000, "cannot be read as a scheduler file"),
        ("[]", "names no address"),
        ('{"address": 3}', "names no address"),
        ('{"address": "host"}', "names no address"),
    ],
)
def test_invalid_scheduler_file_is_refused(tmp_path, content, what):
    file = tmp_path / "scheduler.json"
    if content is not None:
        file.write_text(content)
    with pytest.raises(InputError, match=what):
        vani.convert(MANY_RANKS, tmp_path / "s", scheduler=file)
    assert not (tmp_path / "s").exists()


def test_a_cluster_without_workers(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "NO_WORKER_S", 0.2)
    with (
        local_cluster(0) as empty,
        pytest.raises(InputError, match=r"no workers for 0 s; start some \(`dask worker tcp"),
    ):
        vani.convert(MANY_RANKS, tmp_path / "s", scheduler=empty.scheduler_address)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_workers_that_have_all_paused(tmp_path, monkeypatch):
    # Formerly waited for ever.
    monkeypatch.setattr(cluster, "NO_WORKER_S", 0.5)
    options = {"processes": False, "memory_limit": "1GB", "dashboard_address": ":0"}
    with (
        config.set({"distributed.worker.memory.pause": 0.0001, "distributed.worker.memory.spill": False}),
        LocalCluster(n_workers=2, threads_per_worker=1, silence_logs=logging.CRITICAL, **options) as full,
    ):
        until = time.monotonic() + 60
        while any(worker.status.name != "paused" for worker in full.workers.values()):
            assert time.monotonic() < until
            time.sleep(0.02)
        line = "all 2 workers have paused for 0 s, as happens where memory runs out; give each worker more memory"
        with pytest.raises(InputError, match=line):
            vani.convert(MANY_RANKS, tmp_path / "s", scheduler=full.scheduler_address)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("address", ["tcp://host", "tls://host:", "ucx://10.0.0.1/"])
def test_an_address_without_a_port(capfd, tmp_path, address):
    status, out, err = command(capfd, "convert", MANY_RANKS, tmp_path / "s", "--scheduler", address)
    assert (status, out) == (2, "")
    assert err == (
        f"vani: scheduler address {address} names no port; "
        f"write it with the port of `dask scheduler`, such as {address.rstrip('/:')}:8786\n"
    )


def test_workers_with_another_version_of_vani(tmp_path, dask, monkeypatch):
    monkeypatch.setattr(vani, "__version__", "99.0")
    with pytest.raises(
        InputError, match=r"the scheduler runs Vani \S+, this is Vani 99\.0; use the same environment"
    ):
        vani.convert(MANY_RANKS, tmp_path / "s", scheduler=dask.scheduler_address)


@pytest.mark.parametrize(
    ("side", "change", "line"),
    [
        (
            "scheduler",
            {"distributed": "2020.1"},
            "the scheduler runs distributed 2020.1, this is distributed 2",
        ),
        ("worker", {"dask": "2020.1"}, "workers run Dask 2020.1, this is Dask 2"),
        ("worker", {"python": "3.8"}, r"workers run Python 3\.8, this is Python 3\."),
        ("worker", {"vani-io": None, "vani": None}, "Vani is not installed where workers run; start them in"),
        ("scheduler", {"vani-io": None, "vani": None}, "Vani is not installed where the scheduler runs; start"),
        ("scheduler", {"dask": None}, "Dask is not installed where the scheduler runs; start them in"),
    ],
)
def test_versions_that_differ(engine, monkeypatch, side, change, line):
    found = engine.client.get_versions(packages=["vani-io", "vani"])
    one = found["scheduler"] if side == "scheduler" else next(iter(found["workers"].values()))
    if "python" in change:
        one["host"] = one["host"] | {"python": "3.8.1.final.0"}
    else:
        one["packages"] = one["packages"] | change
    monkeypatch.setattr(engine.client, "get_versions", lambda packages: found)
    with pytest.raises(InputError, match=line):
        engine._check_versions(vani.__version__)


def test_cluster_without_distributed_names_the_extra(tmp_path, capfd, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.chdir(tmp_path)
    status, out, err = command(capfd, "convert", MANY_RANKS, "s", "--scheduler", "tcp://127.0.0.1:9")
    assert (status, out) == (2, "")
    assert err.startswith("vani: tcp://127.0.0.1:9: a Dask cluster needs the package distributed (")
    assert err.endswith("; pip install 'vani-io[cluster]'\n")
    assert err.count("\n") == 1


def test_an_error_of_a_worker_is_the_error_of_the_run(engine):
    with pytest.raises(InputError, match="nowhere: no such file or directory"):
        engine.map(open_trace, [Path("nowhere")])
    with pytest.raises(InputError, match="nowhere: no such file or directory"):
        engine.reduce(open_trace, [Path("nowhere")] * 20, list)


def test_worker_out_of_memory_is_reported_in_one_line(engine):
    with pytest.raises(
        InputError, match="a worker ran out of memory while decoding; give each worker more"
    ) as told:
        engine.map(bytearray, [1 << 62], stage="decode")
    assert told.value.exit_code == 2


@pytest.mark.parametrize("stage", ["decode", "measure"])
def test_interrupt_cancels_the_tasks_and_leaves_no_files(tmp_path, dask, a_part_per_rank, stage):
    def interrupt(now: str, done: int, total: int) -> None:
        if now == stage and done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        vani.profile(MANY_RANKS, store=tmp_path, scheduler=dask.scheduler_address, progress=interrupt)
    assert [p for p in tmp_path.iterdir() if p.name.startswith(".")] == []
    assert len(list(tmp_path.iterdir())) == (stage == "measure"), "a store appears whole or not at all"
    with Client(dask, set_as_default=False) as client:
        assert not any(client.processing().values())


def test_logging_is_restored_after_the_work(tmp_path, dask):
    before = [logging.getLogger(name).level for name in cluster._LOGGERS]
    vani.convert(MANY_RANKS, tmp_path / "s", scheduler=dask.scheduler_address)
    assert [logging.getLogger(name).level for name in cluster._LOGGERS] == before


# ------------------------------------------------------------- shared files


@pytest.fixture
def asked(tmp_path) -> Witness:
    (tmp_path / "trace").mkdir()
    (tmp_path / "trace" / "recorder.mt").write_bytes(b"12345")
    (tmp_path / "token").write_text("abc")
    return Witness(((str(tmp_path / "trace"), "recorder.mt", 5),), str(tmp_path / "token"), "abc")


def test_worker_that_sees_everything_reports_no_problem(asked, tmp_path):
    assert check_folders(asked) is None
    assert {p.name for p in tmp_path.iterdir()} == {"trace", "token"}


def test_a_worker_without_the_trace(asked, tmp_path):
    shutil.rmtree(tmp_path / "trace")
    assert check_folders(asked)[1:] == ("trace", str(tmp_path / "trace"))


def test_a_worker_with_another_trace_at_that_place(asked, tmp_path):
    (tmp_path / "trace" / "recorder.mt").write_bytes(b"1234567")
    assert check_folders(asked)[1:] == ("trace", str(tmp_path / "trace"))


@pytest.mark.parametrize("content", [None, "another"])
def test_a_worker_with_a_folder_of_its_own_at_that_place(asked, tmp_path, content):
    (tmp_path / "token").unlink()
    if content:
        (tmp_path / "token").write_text(content)
    assert check_folders(asked)[1:] == ("store", str(tmp_path))


def test_worker_checks_a_single_file_trace(tmp_path):
    # Formerly "Not a directory".
    (tmp_path / "trace.csv").write_text("0,open")
    with witness([tmp_path / "trace.csv"], tmp_path) as asked:
        assert check_folders(asked) is None
        (tmp_path / "trace.csv").write_text("another")
        assert check_folders(asked)[1:] == ("trace", str(tmp_path))


@pytest.mark.slow
def test_a_worker_that_may_not_write(asked, tmp_path, monkeypatch):
    def refused(**_):
        raise PermissionError

    # Root, which runs tests in containers, may write anywhere.
    monkeypatch.setattr(tempfile, "mkstemp", refused)
    assert check_folders(asked)[1:] == ("write", str(tmp_path))


@pytest.mark.slow
def test_answers_of_workers_become_messages():
    told = [str(trouble("node7", what, "/scratch/x")) for what in ("trace", "store", "write")]
    assert told == [
        "/scratch/x: is not what workers see on node7; put the trace on a file system that all nodes share",
        "/scratch/x: is not seen by workers on node7; "
        "name a folder that all nodes share (--store DIR; convert: STORE)",
        "/scratch/x: cannot be written by workers on node7; name a folder that they can write",
    ]
