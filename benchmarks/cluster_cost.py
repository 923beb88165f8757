"""What a worker of Dask costs beside work in one process: `python -m benchmarks.cluster_cost`, processor seconds.

One trace is profiled without threads, and by one worker under the nanny of Dask, each into an empty store. The worker
profiles a trace of 1,000 calls first, so that imports are not counted. The time of the client is printed apart.
"""

from __future__ import annotations

import argparse
import logging
import os
import tempfile
from pathlib import Path

from benchmarks.processes import succeed
from benchmarks.rates import VANI
from tests.traces.trace_generator import Workload, generate_trace

__all__ = ["main"]

GOAL = 1.15
"""Processor time of the worker over that of a synchronous run."""


def main() -> None:
    """Measure, and print a line per round."""
    from distributed import LocalCluster  # noqa: PLC0415 - heavy

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=float, default=4e6)
    parser.add_argument("--rounds", type=int, default=2)
    asked = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as name,
        LocalCluster(
            n_workers=1, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL
        ) as cluster,
    ):
        folder = Path(name)
        (worker,) = cluster.workers.values()
        generate_trace(folder / "small", Workload(calls=1000, ranks=2, files=2))
        generate_trace(folder / "trace", Workload(calls=int(asked.calls), ranks=16, files=64, zlib_level=6))

        def spent(trace: str, where: str, number: int) -> float:
            store = str(folder / f"{trace}-{number}-{where[:3]}")
            output = str(folder / "profile.yaml")
            given = [
                "profile",
                str(folder / trace),
                "-o",
                output,
                "-q",
                "--store",
                store,
                "--scheduler",
                where,
            ]
            return succeed([*VANI, *given]).cpu_s

        spent("small", cluster.scheduler_address, 0)
        for number in range(asked.rounds):
            here = spent("trace", "synchronous", number)
            before = _processor_s(worker.pid)
            client = spent("trace", cluster.scheduler_address, number)
            there = _processor_s(worker.pid) - before
            print(
                f"synchronous {here:.2f} s, worker {there:.2f} s and client {client:.2f} s: "
                f"the worker {there / here:.2f} times, goal {GOAL}"
            )


def _processor_s(pid: int) -> float:
    """User and system time of a process, of Linux only."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
