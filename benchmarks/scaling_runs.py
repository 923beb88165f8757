"""How long one and two workers of a cluster on this machine take, and what a task costs the scheduler."""

from __future__ import annotations

import logging
import operator
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import vani
from benchmarks.scaling_costs import STAGES
from tests.traces.trace_generator import Workload, generate_trace
from vani.engine import Engine

__all__ = ["Run", "one_and_two", "scheduler_cost"]


def _cluster(workers: int) -> Any:
    from distributed import LocalCluster  # noqa: PLC0415 - heavy

    return LocalCluster(
        n_workers=workers, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL
    )


def scheduler_cost(tasks: int = 4000) -> tuple[float, float]:
    """Processor seconds and bytes of a task that does nothing, without those of the two workers."""
    with _cluster(2) as cluster:
        engine = Engine(cluster.scheduler_address)
        try:
            engine.map(abs, [1], stage="warm")
            # One item for each task: chunks would hide what is measured.
            runner = engine._cluster
            assert runner is not None
            runner._chunks = lambda items: [[i] for i in items]  # type: ignore[method-assign]
            # Scheduler and client are threads of this process; workers are others.
            began = time.process_time()
            engine.map(partial(operator.add, 1), range(tasks), stage="tasks")
            spent = time.process_time() - began
            traffic = runner.traffic["tasks"]
            return spent / tasks, (traffic.sent + traffic.received) / tasks
        finally:
            engine.close()


@dataclass(frozen=True)
class Run:
    """One profile on a cluster: wall seconds of each stage, processor seconds of all workers."""

    workers: int
    calls: int
    wall: Mapping[str, float]
    processor_s: float

    @property
    def seconds(self) -> float:
        return sum(self.wall.values())


def run_on(cluster: Any, trace: Path, calls: int, workers: int) -> Run:
    """Profile a trace from the beginning."""
    from distributed import Client  # noqa: PLC0415

    marks: dict[str, list[float]] = {}

    def progress(stage: str, done: int, total: int) -> None:
        del done, total
        marks.setdefault(stage, []).append(time.perf_counter())

    with Client(cluster, set_as_default=False) as client, tempfile.TemporaryDirectory() as folder:
        before = sum(client.run(time.process_time).values())
        vani.profile(trace, store=folder, scheduler=client, progress=progress)
        after = sum(client.run(time.process_time).values())
    wall = {stage: marks[stage][-1] - marks[stage][0] for stage in STAGES}
    return Run(workers, calls, wall, after - before)


def one_and_two(folder: Path, calls: int, turns: int) -> list[Run]:
    """The best of some turns of one and two workers on one trace, and of two workers on twice as much."""
    single, double = folder / "single", folder / "double"
    generate_trace(single, Workload(calls=calls, ranks=64, files=64, pattern="mixed", zlib_level=6))
    generate_trace(double, Workload(calls=2 * calls, ranks=128, files=128, pattern="mixed", zlib_level=6))
    runs: dict[tuple[int, int], list[Run]] = {}
    with _cluster(1) as one, _cluster(2) as two:
        # Imports are no part of it.
        for cluster, workers in ((one, 1), (two, 2)):
            run_on(cluster, single, calls, workers)
        for _ in range(turns):
            for cluster, workers, trace, size in (
                (one, 1, single, calls),
                (two, 2, single, calls),
                (two, 2, double, 2 * calls),
            ):
                runs.setdefault((workers, size), []).append(run_on(cluster, trace, size, workers))
    return [min(found, key=lambda r: r.seconds) for found in runs.values()]
