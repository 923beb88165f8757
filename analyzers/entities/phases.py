"""I/O phases (table V).

Kinds: `metadata` without a data operation, `read` or `write` where at least 95 % of the data operations (and of the
bytes) go one way, else `mixed`. Frequency (the paper's column has "1 op", "7 ops/rank", "Iterative", "Bulk"):

- single: at most one data operation per process;
- bulk: the operations come back to back: the processes taking part are in I/O at least half of the phase's time;
- iterative: they come with pauses between.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from vani.analyzers.entities.view import View
from vani.analyzers.keyed import Keyed
from vani.schema.profile import Frequency, IOStats, Phase

__all__ = ["phases"]

_ONE_WAY = 0.95
_BACK_TO_BACK = 0.5


def phases(view: View) -> list[Phase]:
    """One entity per phase, app after app, in order of time."""
    facts = view.facts
    counts: Keyed = view.measured.results["processes"].phases
    found = []
    for phase in range(facts.phases):
        app = int(facts.phase_app[phase])
        io = view.phase_stats.get(phase)
        if io is None:
            continue
        start, end = int(facts.phase_start[phase]), int(view.measured.phase_end[phase])
        processes = int(counts.at(np.array([phase]), "processes")[0]) if len(counts) else 0
        found.append(
            Phase(
                app=view.world.apps[app],
                index=phase - int(facts.first_phase[app]),
                start_s=start / 1e9,
                end_s=end / 1e9,
                runtime_s=(end - start) / 1e9,
                kind=_kind(io),
                processes=processes,
                io=io,
                frequency=_frequency(io, processes, (end - start) / 1e9),
            )
        )
    return found


def _kind(io: IOStats) -> Literal["write", "read", "mixed", "metadata"]:
    data = io.ops.read + io.ops.write
    if not data:
        return "metadata"
    moved = (io.bytes.read or 0) + (io.bytes.written or 0)
    for name, ops, size in (
        ("read", io.ops.read, io.bytes.read or 0),
        ("write", io.ops.write, io.bytes.written or 0),
    ):
        if ops >= _ONE_WAY * data and size >= _ONE_WAY * moved:
            return name  # type: ignore[return-value]
    return "mixed"


def _frequency(io: IOStats, processes: int, runtime_s: float) -> Frequency:
    data = io.ops.read + io.ops.write
    per_process = data / processes if processes else 0.0
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
