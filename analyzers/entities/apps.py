"""Applications (table IV) and the balance of their processes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.entities.dependencies import process_dependencies
from vani.analyzers.entities.io_stats import empty_stats
from vani.analyzers.entities.view import Notes, View, layer_name
from vani.analyzers.measures.busy_time import BusyTimes
from vani.analyzers.measures.io_time import SpentTime
from vani.analyzers.measures.libraries import LibraryUse
from vani.analyzers.measures.library_calls import LibraryCallTimes
from vani.analyzers.measures.library_time import LibraryTimes
from vani.analyzers.measures.process_totals import MovedByProcess
from vani.schema.profile import App, FileCounts, IOStats, RankBalance

Ints = NDArray[np.int64]
_OF_TIMES = (
    "slowest_rank",
    "slowest_io_time_s",
    "mean_io_time_s",
    "median_io_time_s",
    "slowest_call_rank",
    "slowest_call_time_s",
)
"""Attributes of the balance that are derived from times."""


def file_counts(view: View, app: int | None) -> FileCounts:
    """Files of the data set that an app (or the workload) used, by number of processes in the workload using them."""
    files, processes = view.files, view.users_of_files["processes"]
    if app is not None:
        used = view.measured.processes
        processes = processes[np.isin(files, used.used_file[used.used_app == app])]
    shared = int((processes >= 2).sum())
    return FileCounts(total=len(processes), shared=shared, file_per_process=len(processes) - shared)


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


def share_of_run(io: IOStats, run_ns: int | None) -> float | None:
    """Share of the run's time during which some process is in a file-system call.

    None for a run of zero or unknown length.
    """
    if io.busy_s.total is None or run_ns is None or run_ns <= 0:
        return None
    return min(1.0, io.busy_s.total / (run_ns / 1e9))


def _balance(view: View, app: int) -> RankBalance | None:
    rows = np.flatnonzero(view.app_of_process == app)
    totals = view.measured.of(MovedByProcess)
    if totals is None or not len(rows):
        return None
    moved = totals.bytes[rows]
    bases = np.array(view.workload.process_base)[view.trace_of_process[rows]]
    busiest = int(moved.argmax())
    return RankBalance(
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
    slowest, most = int(time.argmax()), int(calls.argmax())
    return {
        "slowest_rank": int(ranks[slowest]),
        "slowest_io_time_s": int(time[slowest]) / 1e9,
        "slowest_call_rank": int(ranks[most]),
        "slowest_call_time_s": int(calls[most]) / 1e9,
        "mean_io_time_s": int(time.sum()) / len(processes) / 1e9,
        "median_io_time_s": float(np.median(time)) / 1e9,
    }


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


def apps(view: View) -> tuple[list[App], Notes]:
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
            App(
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
    return entities, notes
