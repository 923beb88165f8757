"""Traces, applications (table IV) with the balance of their processes, and their phases (table V).

`phase_starts.py` defines where phases begin, and `view.py` which of them form one row. A row's `io` is the sum over
all its phases, `start_s` is the start of the first and `end_s` the end of the last one, `runtime_s` is their total
length, and `processes` is the largest number that takes part in one of them.

Kinds: `metadata` without data operations, or if 95 % of the I/O time is metadata and at most a quarter of the calls
move data; `read` or `write` if at least 95 % of the data operations (and of the bytes) go one way; otherwise `mixed`.
`dominant` is the kind of call with most I/O time, regardless of bytes. Frequency, for each phase of the row (the
paper's column has "1 op", "7 ops/rank", "Iterative", "Bulk"):

- single: at most one data operation per process;
- bulk: back-to-back operations: the participating processes are in I/O at least half of the phase's time;
- iterative: operations with pauses in between.
"""

from typing import Any, Literal

import numpy as np

from vani.analyzers.entities.dependencies import process_dependencies
from vani.analyzers.entities.io_stats import empty_stats
from vani.analyzers.entities.view import Notes, View, layer_name
from vani.analyzers.measures.busy_time import BusyTimes
from vani.analyzers.measures.io_time import ClockSkew, SpentTime
from vani.analyzers.measures.libraries import LibraryCallTimes, LibraryTimes, LibraryUse
from vani.analyzers.measures.operations import MovedByProcess
from vani.columns import Ints
from vani.schema import profile

_AS_RECORDED = ("tool", "format", "layout", "ranks", "records", "start_unix_s", "repaired_times", "complete")
"""Attributes of a trace that need no conversion."""


def traces(view: View) -> tuple[list[profile.TraceEntity], Notes]:
    """One entity per trace, in the given order."""
    clocks, known = view.measured.of(ClockSkew), view.measured.traces
    skews = [None] * len(known) if clocks is None else clocks.traces
    entities = [
        profile.TraceEntity(
            path=trace.source,
            app=view.workload.apps[app],
            functions=dict(trace.functions),
            span_s=None if trace.span_ns is None else (trace.span_ns - trace.begin_ns) / 1e9,
            clock_skew_s=None if skew is None else skew / 1e9,
            problems=list(trace.problems),
            **{name: getattr(trace, name) for name in _AS_RECORDED},
        )
        for trace, app, skew in zip(known, view.workload.app_of_trace, skews, strict=True)
    ]
    notes = view.nulls(ClockSkew, "traces.clock_skew_s")
    why = view.measured.unknown.get("times")
    if why is not None:
        notes |= dict.fromkeys(("traces.span_s", "traces.repaired_times", "traces.complete"), why)
    if "repaired_times" in view.measured.unknown:
        notes["traces.repaired_times"] = view.measured.unknown["repaired_times"]
    return entities, notes


_OF_TIMES = (
    "slowest_rank",
    "slowest_io_time_s",
    "mean_io_time_s",
    "median_io_time_s",
    "slowest_call_rank",
    "slowest_call_time_s",
)
"""Attributes of the balance that are derived from times."""


def file_counts(view: View, app: int | None) -> profile.FileCounts:
    """Files of the data set that an app (or the workload) used, by number of processes in the workload using them."""
    files, processes = view.files, view.users_of_files["processes"]
    if app is not None:
        used = view.measured.processes
        of_app = np.append(used.used_file[used.used_app == app], view.files_of_libraries(app)[0])
        processes = processes[np.isin(files, of_app)]
    shared = int((processes >= 2).sum())
    return profile.FileCounts(total=len(processes), shared=shared, file_per_process=len(processes) - shared)


def _interface(view: View, app: int) -> str | None:
    """Name of the layer with most bytes; the layer with most calls if no bytes were moved."""
    use = view.measured.of(LibraryUse)
    if use is None:
        return None
    moved, calls = use.outermost_bytes[app], use.outermost_calls[app]
    layers = np.flatnonzero(calls).tolist()
    if not layers or use.caller_unknown[app]:
        return None
    return layer_name(max(layers, key=lambda layer: (int(moved[layer]), int(calls[layer]))))


def share_of_run(io: profile.IOStats, run_ns: int | None) -> float | None:
    """Share of the run's time during which some process is in a file-system call.

    None for a run of zero or unknown length.
    """
    if io.busy_s.total is None or run_ns is None or run_ns <= 0:
        return None
    return min(1.0, io.busy_s.total / (run_ns / 1e9))


def _balance(view: View, app: int) -> profile.RankBalance | None:
    rows = np.flatnonzero(view.app_of_process == app)
    totals = view.measured.of(MovedByProcess)
    if totals is None or not len(rows):
        return None
    moved = totals.bytes[rows]
    bases = np.array(view.workload.process_base)[view.trace_of_process[rows]]
    busiest = int(moved.argmax())
    return profile.RankBalance(
        **_slowest(view, rows, rows - bases),
        busiest_rank=int(rows[busiest] - bases[busiest]),
        busiest_bytes=int(moved[busiest]),
        mean_bytes=int(moved.sum()) / len(rows),
        reading_processes=int((totals.reads[rows] > 0).sum()),
        writing_processes=int((totals.writes[rows] > 0).sum()),
    )


def _slowest(view: View, processes: Ints, ranks: Ints) -> dict[str, Any]:
    """Attributes of the balance that are derived from times; None if no times are known."""
    if view.process_time is None or view.call_time is None:
        return dict.fromkeys(_OF_TIMES)
    time, calls = view.process_time[processes], view.call_time[processes]
    return {
        "slowest_rank": _rank_with_most(ranks, time),
        "slowest_io_time_s": int(time.max()) / 1e9,
        "slowest_call_rank": _rank_with_most(ranks, calls),
        "slowest_call_time_s": int(calls.max()) / 1e9,
        "mean_io_time_s": int(time.sum()) / len(processes) / 1e9,
        "median_io_time_s": float(np.median(time)) / 1e9,
    }


def _rank_with_most(ranks: Ints, time: Ints) -> int | None:
    """The rank with most time; None if several processes all have the same, except for rounded nanoseconds."""
    return None if len(time) > 1 and np.ptp(time) <= 1 else int(ranks[time.argmax()])


def _nulls(view: View) -> Notes:
    """Attributes that are null in every app, with reasons."""
    notes = view.nulls(BusyTimes, "apps.io_time_share") | view.nulls(LibraryTimes, "apps.library_time_s")
    notes |= view.nulls(LibraryCallTimes, "apps.library_time_s")
    notes |= view.nulls(SpentTime, "apps.phase_gap_s", *(f"apps.balance.{name}" for name in _OF_TIMES))
    notes |= view.nulls(MovedByProcess, "apps.balance")
    if view.run_ns is None:
        notes["apps.runtime_s"] = view.no_times
    if not view.knows_callers:
        notes["apps.interface"] = view.measured.why(LibraryUse)
    return notes


def apps(view: View) -> tuple[list[profile.App], Notes]:
    """One entity per app, by start time."""
    entities, notes = [], _nulls(view)
    for app, name in enumerate(view.workload.apps):
        traces = [t for t, a in enumerate(view.workload.app_of_trace) if a == app]
        run_ns = None if view.run_ns is None else view.run_ns[app][1] - view.run_ns[app][0]
        gap = view.measured.phases.gap_ns[app]
        dependencies, why = process_dependencies(view, app)
        notes |= why
        io = view.app_stats.get(app) or empty_stats()
        entities.append(
            profile.App(
                name=name,
                instances=len(traces),
                processes=sum(view.measured.traces[t].ranks for t in traces),
                runtime_s=None if run_ns is None else run_ns / 1e9,
                interface=_interface(view, app),  # type: ignore[arg-type]
                io=io,
                files=file_counts(view, app),
                process_dependencies=dependencies,
                balance=_balance(view, app),
                io_time_share=share_of_run(io, run_ns),
                phase_gap_s=None if gap is None else gap / 1e9,
                library_time_s=view.library_time(app),
            )
        )
    if any(app.balance is not None and app.balance.slowest_rank is None for app in entities):
        notes.setdefault("apps.balance.slowest_rank", "every process takes as long as the others")
    return entities, notes


_KINDS: tuple[Literal["read", "write", "metadata", "sync"], ...] = ("read", "write", "metadata", "sync")
_ONE_WAY = 0.95
_FEW_DATA = 0.25
_BACK_TO_BACK = 0.5


def phases(view: View) -> tuple[list[profile.Phase] | None, Notes]:
    """One entity per row of similar phases, app by app, in order of time; None if no times are known."""
    rows = view.phase_rows
    why = view.measured.unknown.get("phases")
    if why is not None:
        return None, {"phases": why, "apps.phase_gap_s": why}
    if not view.timed:
        # Phases consist of calls on data set files.
        return (None, view.nulls(SpentTime, "phases")) if len(view.measured.survey.files) else ([], {})
    entities = []
    for row, (members, attributes) in enumerate(rows.described(view.measured.phases, view.workload.apps)):
        io = view.row_stats[row]
        frequency = _frequency(io, attributes["processes"], attributes["runtime_s"], len(members))
        attributes |= {"kind": _kind(io), "dominant": dominant(io), "frequency": frequency}
        entities.append(profile.Phase(**attributes, io=profile.PhaseIO.of(io)))
    return entities, {}


def dominant(io: profile.IOStats) -> profile.Dominant | None:
    """The kind of call with most I/O time; None if there was no time, or times are unknown."""
    spent = {kind: getattr(io.time_s, kind) or 0.0 for kind in _KINDS}
    whole = sum(spent.values())
    if not whole:
        return None
    most = max(_KINDS, key=lambda kind: spent[kind])
    return profile.Dominant(kind=most, share=spent[most] / whole)


def _kind(io: profile.IOStats) -> Literal["write", "read", "mixed", "metadata"]:
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


def _frequency(io: profile.IOStats, processes: int, runtime_s: float, count: int) -> profile.Frequency:
    data = io.ops.read + io.ops.write
    per_process = data / processes / count if processes else 0.0
    sizes = [s for side in (io.transfer_size.read, io.transfer_size.write) if side is not None for s in side.common]
    size = max(sizes, key=lambda s: (s[1], s[0]))[0] if sizes else None
    busy = (io.time_s.total or 0.0) / (processes * runtime_s) if processes and runtime_s else 1.0
    several: Literal["bulk", "iterative"] = "bulk" if busy >= _BACK_TO_BACK else "iterative"
    return profile.Frequency(kind="single" if per_process <= 1 else several, ops_per_process=per_process, size=size)
