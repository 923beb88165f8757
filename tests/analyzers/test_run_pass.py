"""The order in which a pass visits the partitions."""

from __future__ import annotations

from typing import Any

from traces.trace_generator import Workload, generate_trace

from vani.analyzers.passes import measure_workload
from vani.cli.profile import profile


def test_longest_partitions_start_first(
    tmp_path, monkeypatch
):
    for name, calls in (("a", 4_000), ("b", 64_000), ("c", 16_000)):
        generate_trace(tmp_path / name, Workload(calls=calls, ranks=2, files=4, zlib_level=1))
    begun: list[tuple[bool, int]] = []
    collect = measure_workload._collect

    def note(task: Any, measures: Any, findings: Any, *others: Any) -> Any:
        begun.append((findings is not None, task.rows))
        return collect(task, measures, findings, *others)

    monkeypatch.setattr(measure_workload, "_collect", note)
    monkeypatch.setenv("VANI_PARTIAL_RESULTS", "0")
    profile(tmp_path, scheduler="synchronous")
    for later in (False, True):
        rows = [rows for is_later, rows in begun if is_later == later]
        assert len(set(rows)) > 2
        assert rows == sorted(rows, reverse=True)
