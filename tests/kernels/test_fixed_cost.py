"""What a batch costs however few calls it has: Python and small arrays, which one thread at a time works on."""

from __future__ import annotations

import sys
from typing import Any

from switched import needs_kernels
from traces.trace_generator import Workload, generate_trace

from vani.analyzers.calls.batch import Batch
from vani.analyzers.passes import run_pass
from vani.api import profile

ROWS = 512
MOST_CALLS = 2500
"""Of functions, those of numpy among them: 1,800 are made where 5,700 once were."""


@needs_kernels
def test_measuring_a_batch_takes_few_calls_of_python(tmp_path, monkeypatch):
    generate_trace(tmp_path / "trace", Workload(calls=60_000, ranks=4, files=16, zlib_level=1))
    called = batches = 0

    def note(frame: Any, event: str, arg: Any) -> None:
        nonlocal called
        called += event in {"call", "c_call"}

    def run_part(task: Any, wanted: Any, findings: Any) -> Any:
        nonlocal batches
        collector = wanted.begin(task.context, findings)
        columns = sorted(wanted.columns | {"layer", "flags"})
        for calls in task.store.batches(task.store.manifest.parts[task.part], columns):
            for at in range(0, calls.num_rows, ROWS):
                batch = Batch(task.context, calls.slice(at, ROWS), findings)
                sys.setprofile(note if findings is not None else None)
                collector.add(batch)
                sys.setprofile(None)
                batches += findings is not None
        return collector.result()

    monkeypatch.setattr(run_pass, "_run_part", run_part)
    monkeypatch.setenv("VANI_PARTIAL_RESULTS", "0")
    profile(tmp_path / "trace", scheduler="synchronous")
    assert batches > 100
    assert called / batches < MOST_CALLS
