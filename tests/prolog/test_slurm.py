"""The scripts of `vani/centre/prolog/slurm` under a real Slurm: four nodes on this host."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from vani.centre.demo.slurm import Cluster, impossible, until
from vani.centre.history.rows import PlannedRun
from vani.centre.history.runs import read
from vani.centre.history.runs.store import Store
from vani.centre.plan.schema.plans import JobPlan
from vani.errors import StoreError

OPTIONS = "--io-nodes 4 --no-direct"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    if reason := impossible():
        pytest.skip(f"no Slurm here: {reason}")
    with tempfile.TemporaryDirectory(prefix="vani-", dir="/tmp") as folder:
        cluster = Cluster(Path(folder))
        cluster.configure(OPTIONS)
        with cluster.running():
            yield cluster


def submit(cluster: Cluster, seconds: float, *options: str) -> int:
    return cluster.submit(f"srun env; sleep {seconds}", *options)


def plan_of(cluster: Cluster, number: int) -> JobPlan:
    until((cluster.state / f"{number}.env").exists)
    return JobPlan.load(cluster.state / f"{number}.yaml")


def exported(text: str) -> dict[str, str]:
    names = ("VANI_PLAN=", "VANI_FORWARDING", "VANI_IO_NODES=", "LIBGKFS_")
    return dict(line.split("=", 1) for line in text.splitlines() if line.startswith(names))


@pytest.mark.slow
def test_tasks_of_a_job_get_their_io_nodes_and_the_epilog_frees_them(cluster):
    first = submit(cluster, 300, "-N4", "-n4", "-J", "bt")
    assert len(plan_of(cluster, first).io_nodes) == 4
    second = submit(cluster, 2, "-N2", "-n2", "-J", "a'b\"c $(touch x)")
    plan = plan_of(cluster, second)
    assert plan.job.name == "a'b\"c $(touch x)"
    assert plan.running == 2
    kept = JobPlan.load(cluster.state / f"{first}.yaml")
    assert not set(kept.io_nodes) & set(plan.io_nodes)
    until(lambda: cluster.is_over(second))
    told = exported((cluster.folder / f"{second}.out").read_text())
    assert told == {
        "VANI_PLAN": f"{cluster.state}/{second}.yaml",
        "VANI_FORWARDING": "own",
        "VANI_IO_NODES": ",".join(plan.io_nodes),
        "VANI_FORWARDING_MAP": f"{cluster.state}/{second}.map",
        "LIBGKFS_FORWARDING_MAP_FILE": f"{cluster.state}/{second}.map",
    }
    until(lambda: len(JobPlan.load(cluster.state / f"{first}.yaml").io_nodes) == 4)
    assert not (cluster.state / f"{second}.map").exists()
    lines = (cluster.state / f"{first}.map").read_text().splitlines()
    assert [line.split()[0] for line in lines] == ["n1", "n2", "n3", "n4"]
    cluster.run("scancel", str(first))
    until(lambda: cluster.is_over(first))
    until(lambda: not (cluster.state / "jobs" / str(first)).exists())


@pytest.mark.slow
def test_failing_or_hanging_planner_neither_stops_nor_requeues_jobs(cluster):
    hangs = cluster.folder / "hangs.sh"
    hangs.write_text("#!/bin/sh\nexec sleep 1000\n")
    hangs.chmod(0o755)
    try:
        for options, vani in (
            ("--nonsense", None),
            ("--snapshot /none", None),
            ("", Path("/no/such/vani")),
            ("", hangs),
        ):
            cluster.configure(options, vani)
            begin = time.monotonic()
            number = submit(cluster, 0, "-N1", "-n1")
            until(lambda number=number: cluster.is_over(number))
            assert time.monotonic() - begin < 45
            text = (cluster.folder / f"{number}.out").read_text()
            assert "SLURM_JOB_ID" in text, "the tasks ran"
            assert exported(text) == {}
            assert "Restarts=0" in cluster.run("scontrol", "show", "job", str(number))
    finally:
        cluster.configure(OPTIONS)


@pytest.mark.slow
def test_jobs_that_begin_together_are_all_planned(cluster):
    cluster.configure("--io-nodes 16 --no-direct")
    numbers = [submit(cluster, 3, "-N1", "-n1", "--mem=1", "-J", f"j{n}") for n in range(12)]
    until(lambda: cluster.is_over(*numbers), 120)
    told = [exported((cluster.folder / f"{number}.out").read_text()) for number in numbers]
    assert [one["VANI_PLAN"] for one in told] == [f"{cluster.state}/{number}.yaml" for number in numbers]
    assert {one["VANI_FORWARDING"] for one in told} == {"own"}
    assert all(one["VANI_IO_NODES"].isdecimal() for one in told)
    until(lambda: not any((cluster.state / "jobs" / str(number)).exists() for number in numbers))


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("strace") is None, reason="strace traces the tasks")
def test_each_task_of_an_array_has_a_plan_and_an_outcome(cluster):
    logs, history = cluster.folder / "logs", cluster.folder / "history.sqlite"
    logs.mkdir()
    cluster.configure(OPTIONS, more=f"VANI_LOGS={logs}\nVANI_HISTORY={history}\n")
    trace = f"strace -f -ttt -T -y -o {logs}/dd-$SLURM_JOB_ID.strace"
    script = f"{trace} dd if=/dev/zero of={cluster.folder}/$SLURM_JOB_ID.dat bs=1M count=$SLURM_ARRAY_TASK_ID oflag=dsync"
    array = cluster.submit(f"srun env; {script}", "-N1", "-n1", "-J", "dd", "--array=2-4")
    until(lambda: cluster.is_over(array), 120)

    def outcomes() -> list[PlannedRun]:
        # While an epilog makes the history, it has no tables.
        with suppress(StoreError), Store(history).reading() as connection:
            return list(read.rows(connection, PlannedRun))
        return []

    until(lambda: len(outcomes()) == 3)
    rows = outcomes()
    # Slurm numbers tasks like jobs; one of them has the number of the array.
    assert len({row.job for row in rows}) == 3 and str(array) in {row.job for row in rows}
    told = [exported((cluster.folder / f"{row.job}.out").read_text()) for row in rows]
    assert [one["VANI_PLAN"] for one in told] == [f"{cluster.state}/{row.job}.yaml" for row in rows]
    assert all(row.measured is not None and row.measured > 0 for row in rows)
    assert {row.application for row in rows} == {"dd"}
