"""I/O phases (table V).

`phases/phase_cuts.py` defines where phases begin, and `phase_rows.py` which of them form one row. A row's `io` is the
sum over all its phases, `start_s` is the start of the first and `end_s` the end of the last one, `runtime_s` is their
total length, and `processes` is the largest number that takes part in one of them.

Kinds: `metadata` without data operations, or if 95 % of the I/O time is metadata and at most a quarter of the calls
move data; `read` or `write` if at least 95 % of the data operations (and of the bytes) go one way; otherwise `mixed`.
`dominant` is the kind of call with most I/O time, regardless of bytes. Frequency, for each phase of the row (the
paper's column has "1 op", "7 ops/rank", "Iterative", "Bulk"):

- single: at most one data operation per process;
- bulk: back-to-back operations: the participating processes are in I/O at least half of the phase's time;
- iterative: operations with pauses in between.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from vani.analyzers.entities.phase_rows import period_s
from vani.analyzers.entities.view import Notes, View
from vani.analyzers.measures.io_time import SpentTime
from vani.schema.profile import Dominant, Frequency, IOStats, Phase, PhaseIO, Repeats

_KINDS: tuple[Literal["read", "write", "metadata", "sync"], ...] = ("read", "write", "metadata", "sync")
_ONE_WAY = 0.95
_FEW_DATA = 0.25
_BACK_TO_BACK = 0.5


def phases(view: View) -> tuple[list[Phase] | None, Notes]:
    """One entity per row of similar phases, app by app, in order of time; None if no times are known."""
    rows = view.phase_rows
    why = view.measured.unknown.get("phases")
    if why is not None:
        return None, {"phases": why, "apps.phase_gap_s": why}
    if not view.timed:
        # Phases consist of calls on data set files.
        return (None, view.nulls(SpentTime, "phases")) if len(view.measured.survey.files) else ([], {})
    entities: list[Phase] = []
    index: dict[int, int] = {}
    for row in range(rows.rows):
        members = np.flatnonzero(rows.row == row)
        app = int(view.measured.phases.app[members[0]])
        io = view.row_stats[row]
        start, end = rows.start[members], rows.end[members]
        runtime_s = int((end - start).sum()) / 1e9
        processes = int(rows.processes[members].max())
        index[app] = index.get(app, -1) + 1
        entities.append(
            Phase(
                app=view.workload.apps[app],
                index=index[app],
                start_s=int(start[0]) / 1e9,
                end_s=int(end.max()) / 1e9,
                runtime_s=runtime_s,
                repeats=Repeats(count=len(members), period_s=period_s(start)),
                kind=_kind(io),
                dominant=dominant(io),
                processes=processes,
                io=PhaseIO.of(io),
                frequency=_frequency(io, processes, runtime_s, len(members)),
            )
        )
    return entities, {}


def dominant(io: IOStats) -> Dominant | None:
    """The kind of call with most I/O time; None if there was no time, or times are unknown."""
    spent = {kind: getattr(io.time_s, kind) or 0.0 for kind in _KINDS}
    whole = sum(spent.values())
    if not whole:
        return None
    most = max(_KINDS, key=lambda kind: spent[kind])
    return Dominant(kind=most, share=spent[most] / whole)


def _kind(io: IOStats) -> Literal["write", "read", "mixed", "metadata"]:
    data = io.ops.read + io.ops.write
    most = dominant(io)
    if not data or (
        most is not None
        and most.kind == "metadata"
        and most.share >= _ONE_WAY
        and data <= _FEW_DATA * io.ops.all
    ):
        return "metadata"
    moved = (io.bytes.read or 0) + (io.bytes.written or 0)
    for name, ops, size in (
        ("read", io.ops.read, io.bytes.read or 0),
        ("write", io.ops.write, io.bytes.written or 0),
    ):
        if ops >= _ONE_WAY * data and size >= _ONE_WAY * moved:
            return name  # type: ignore[return-value]
    return "mixed"


def _frequency(io: IOStats, processes: int, runtime_s: float, count: int) -> Frequency:
    data = io.ops.read + io.ops.write
    per_process = data / processes / count if processes else 0.0
    sizes = [
        s for side in (io.transfer_size.read, io.transfer_size.write) if side is not None for s in side.common
    ]
    size = max(sizes, key=lambda s: (s[1], s[0]))[0] if sizes else None
    kind: Literal["single", "iterative", "bulk"]
    if per_process <= 1:
        kind = "single"
    else:
        busy = (io.time_s.total or 0.0) / (processes * runtime_s) if processes and runtime_s else 1.0
        kind = "bulk" if busy >= _BACK_TO_BACK else "iterative"
    return Frequency(kind=kind, ops_per_process=per_process, size=size)
