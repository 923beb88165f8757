"""Memory of `vani profile` over time, and the peak of each of its stages.

Samples are those of `benchmarks.processes`: resident bytes of the command and its processes every 20 ms. A stage lasts
from its mark to the next; before the first mark the trace's tables are read.
"""

from __future__ import annotations

import bisect
import csv
import io
import shutil
import sys
from pathlib import Path
from typing import Any

from benchmarks.processes import Run, succeed
from vani.schema.profile import Profile

__all__ = ["as_csv", "as_vega_lite", "memory"]

_MOST_SAMPLES = 2000
_FIRST = "start and tables"


def memory(trace: Path, folder: Path, *, scheduler: str | None = None) -> dict[str, Any]:
    """Profile a trace as a command, without a store from before.

    Returns
    -------
    dict
        `seconds`, `cpu_s`, `peak_bytes` (all processes together), `records` and `bytes` (calls, and bytes read and
        written, that the profile tells), `stages` (stage, seconds, peak_bytes), `samples`
        ([seconds, bytes, stage], at most 2,000: of each stretch of time the largest); `note` where nothing can be
        sampled.
    """
    marks = folder / "marks"
    command = [sys.executable, "-m", "benchmarks.marked_command", marks, "profile", trace]
    command += ["--store", folder / "memory-store", "-o", folder / "memory.yaml", "-q"]
    if scheduler is not None:
        command += ["--scheduler", scheduler]
    done = succeed(command)
    profile = Profile.load(folder / "memory.yaml")
    moved = profile.workflow.io.bytes
    told = [line.split(" ", 1) for line in marks.read_text().splitlines()]
    starts = [0.0] + [float(at) - done.began for at, _ in told]
    names = [_FIRST] + [name for _, name in told]
    found: dict[str, Any] = {
        "seconds": done.seconds,
        "cpu_s": done.cpu_s,
        "peak_bytes": done.memory_bytes,
        "scheduler": scheduler or "threads",
        "records": sum(one.records for one in profile.traces),
        "bytes": [moved.read, moved.written],
        "stages": _by_stage(done, starts, names),
        "samples": [[at, held, names[bisect.bisect_right(starts, at) - 1]] for at, held in _thinned(done)],
    }
    shutil.rmtree(folder / "memory-store")
    if not done.samples:
        found["note"] = "memory over time needs /proc, which this system does not have"
    return found


def _by_stage(done: Run, starts: list[float], names: list[str]) -> list[dict[str, Any]]:
    """Stages that follow each other under one name are one."""
    ends = [*starts[1:], done.seconds]
    rows: dict[str, dict[str, Any]] = {}
    for name, begin, end in zip(names, starts, ends, strict=True):
        row = rows.setdefault(name, {"stage": name, "seconds": 0.0, "peak_bytes": None})
        row["seconds"] += max(0.0, end - begin)
        held = [size for at, size in done.samples if begin <= at < end]
        if held:
            row["peak_bytes"] = max(*held, row["peak_bytes"] or 0)
    return list(rows.values())


def _thinned(done: Run) -> list[tuple[float, int]]:
    at_once = -(-len(done.samples) // _MOST_SAMPLES) or 1
    return [
        max(done.samples[i : i + at_once], key=lambda sample: sample[1])
        for i in range(0, len(done.samples), at_once)
    ]


def as_csv(found: dict[str, Any]) -> str:
    """Samples as a table: seconds, bytes, stage."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(("seconds", "bytes", "stage"))
    table.writerows((f"{at:.3f}", held, stage) for at, held, stage in found["samples"])
    return text.getvalue()


def as_vega_lite(found: dict[str, Any], title: str) -> dict[str, Any]:
    """A plot of the samples, with their data in it."""
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "title": title,
        "width": 640,
        "height": 240,
        "data": {
            "values": [
                {"seconds": round(at, 3), "MiB": round(held / 2**20, 1), "stage": stage}
                for at, held, stage in found["samples"]
            ]
        },
        "mark": {"type": "bar", "width": 2},
        "encoding": {
            "x": {"field": "seconds", "type": "quantitative", "title": "time (s)"},
            "y": {"field": "MiB", "type": "quantitative", "title": "resident memory (MiB)"},
            "color": {"field": "stage", "type": "nominal", "sort": None},
        },
    }
