"""How time and memory of `vani profile` grow: with calls, ranks, files, and processes on the node.

Every row is a generated trace of the mixed pattern that differs from the base in one number, profiled as a command
without a store from before. `processes` runs the same trace on 1, 2, 4, ... processors, in threads and in processes
(`--scheduler`); with more nodes see the page on scaling.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.processes import succeed
from benchmarks.rates import VANI
from tests.traces.trace_generator import Workload, generate_trace

__all__ = ["growth"]

_RANKS, _FILES = 8, 32
_FEWEST_CALLS_OF_A_FILE = 64
"""The mixed pattern needs some calls to open, use and close a file."""


@dataclass(frozen=True)
class _Row:
    axis: str
    calls: int
    ranks: int = _RANKS
    files: int = _FILES
    processors: int | None = None
    scheduler: str = "threads"


def growth(folder: Path, *, calls: int) -> list[dict[str, Any]]:
    """Profile traces around a base of `calls` calls, 8 ranks and 32 files.

    Returns
    -------
    list of dict
        axis, calls, ranks, files, processors, scheduler, seconds, cpu_s, peak_bytes, calls_per_s.
    """
    rows = []
    for row in _rows(calls):
        trace, store = folder / "growth-trace", folder / "growth-store"
        generate_trace(
            trace, Workload(calls=row.calls, ranks=row.ranks, files=row.files, pattern="mixed", zlib_level=1)
        )
        cores = _cores()[: row.processors] if row.processors else []
        done = succeed(
            [
                *(*VANI, "profile", trace, "--store", store, "-o", folder / "growth.yaml", "-q"),
                *("--scheduler", row.scheduler),
            ],
            cores=cores,
        )
        shutil.rmtree(trace)
        shutil.rmtree(store)
        rows.append(
            {
                **vars(replace(row, processors=row.processors or len(_cores()))),
                "seconds": done.seconds,
                "cpu_s": done.cpu_s,
                "peak_bytes": done.memory_bytes,
                "calls_per_s": row.calls / done.seconds,
            }
        )
    return rows


def _rows(base: int) -> Iterator[_Row]:
    for calls in (base // 100, base // 10, base, 10 * base):
        if calls >= _FILES * _FEWEST_CALLS_OF_A_FILE:
            yield _Row("calls", calls)
    most = base // _FEWEST_CALLS_OF_A_FILE
    for ranks in (_RANKS, 128, 1024, 8192):
        if ranks <= most:
            yield _Row("ranks", base, ranks=ranks, files=max(_FILES, ranks))
    for files in (_FILES, 512, 4096, 32768):
        if files <= most:
            yield _Row("files", base, files=files)
    for scheduler in ("threads", "processes"):
        count = 1
        # Only where a command can be held to some of the processors.
        while count < len(_cores()) and hasattr(os, "sched_setaffinity"):
            yield _Row("processes", base, processors=count, scheduler=scheduler)
            count *= 2
        yield _Row("processes", base, processors=len(_cores()), scheduler=scheduler)


def _cores() -> list[int]:
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))
