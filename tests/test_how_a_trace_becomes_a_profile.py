"""The values on the page "How a trace becomes a profile" come from the bundled trace."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.traces.recorder_oracle import decode_trace
from vani.analyzers.batch import Batch
from vani.analyzers.measures.operations import OperationCounts, Operations
from vani.calls import Kind
from vani.cli.profile import characterise
from vani.readers.open import open_trace
from vani.readers.trace_reader import Piece

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "how-a-trace-becomes-a-profile.md"
TRACE = ROOT / "vani" / "demo" / "ior-shared-file-8r"
RANK, NUMBER = 3, 4
"""The second write of rank 3 is its call 4."""
COLUMNS = ("rank", "kind", "file", "offset", "bytes", "start_ns", "duration_ns")


@dataclass
class Seen:
    batches: list[Batch] = field(default_factory=list)
    partials: list[Any] = field(default_factory=list)
    combined: list[Any] = field(default_factory=list)


def watch(monkeypatch: pytest.MonkeyPatch) -> Seen:
    """The input and output of the measure of operations."""
    seen, chunk, aggregate = Seen(), Operations.chunk, Operations.aggregate

    class Collector:
        def __init__(self, collector: Any) -> None:
            self._collector = collector

        def add(self, batch: Batch) -> None:
            seen.batches.append(batch)
            self._collector.add(batch)

        def result(self) -> Any:
            seen.partials.append(self._collector.result())
            return seen.partials[-1]

    def note(self: Operations, combined: Any, *others: Any) -> OperationCounts:
        seen.combined.append(combined)
        return aggregate(self, combined, *others)

    monkeypatch.setattr(Operations, "chunk", lambda self, *context: Collector(chunk(self, *context)))
    monkeypatch.setattr(Operations, "aggregate", note)
    return seen


def forms(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """One write in each form, as the page shows it."""
    trace = decode_trace(TRACE)
    entry = trace.tables[RANK][trace.stored[RANK][NUMBER]]
    (calls,) = (batch.to_pylist() for batch in open_trace(TRACE).batches(range(8), Piece()))
    own = [call for call in calls if call["rank"] == RANK]
    monkeypatch.setenv("VANI_PARTIAL_RESULTS", "0")
    seen = watch(monkeypatch)
    found = characterise(TRACE)
    (batch,), (partial,), (combined,) = seen.batches, seen.partials, seen.combined
    row = [call["rank"] for call in calls].index(RANK) + NUMBER
    at = batch.rows.tolist().index(row)
    group = int(batch.groups.codes[at])
    assert batch.groups.kind[group] == Kind.WRITE
    counts = found.view.measured.of(OperationCounts)
    assert counts is not None
    (file,) = found.profile.files
    names = ("writes", "bytes_written")
    return [
        entry.key.decode("latin-1").encode("unicode_escape").decode()[:40],
        f"{trace.stored[RANK][NUMBER]}: {entry.call.function} {' '.join(entry.call.args)}",
        ", ".join(f"{name}={own[NUMBER][name]}" for name in COLUMNS),
        f"rows={len(batch)}, groups={len(batch.groups)}",
        f"count={batch.groups.count[group]}, bytes={batch.groups.bytes[group]}, time={batch.groups.time[group]}",
        *(", ".join(f"{n}={sums['operations'][n].tolist()}" for n in names) for sums in (partial, combined)),
        ", ".join(f"{n}={getattr(counts, n).tolist()}" for n in ("phase", "file", *names)),
        f"ops.write={file.io.ops.write}, bytes.written={file.io.bytes.written}",
        next(line.strip() for line in found.profile.to_yaml().splitlines() if line.strip().startswith("bytes: {")),
    ]


def test_the_page_follows_a_real_write_through_each_form(monkeypatch):
    page = PAGE.read_text()
    for number, form in enumerate(forms(monkeypatch), 1):
        assert form in page, f"form {number}"
