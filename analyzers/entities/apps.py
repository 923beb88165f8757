"""Applications (table IV) and the balance of their processes."""

from __future__ import annotations

import numpy as np

from vani.analyzers.entities.dependencies import process_dependencies
from vani.analyzers.entities.view import View, layer_name
from vani.analyzers.iostats import empty_stats
from vani.analyzers.keyed import Keyed
from vani.schema.profile import App, FileCounts, IOStats, RankBalance

__all__ = ["apps", "file_counts", "interface_of_app", "share_of_run"]


def file_counts(view: View, app: int | None) -> FileCounts:
    """Files of the data set that an app (or the workload) used, by how many processes of the workload used them."""
    files, processes = view.files, view.processes_of_file
    if app is not None:
        table: Keyed = view.measured.results["processes"].apps
        width = view.world.files + 1
        mine = (table.keys // width == app) if len(table) else np.zeros(0, np.bool_)
        used = table.keys[mine] % width - 1
        keep = np.isin(files, used)
        processes = processes[keep]
    shared = int((processes >= 2).sum())
    return FileCounts(total=len(processes), shared=shared, file_per_process=len(processes) - shared)


def interface_of_app(view: View, app: int) -> str | None:
    """Name of the layer through which most bytes went; most calls where none did."""
    via: Keyed = view.measured.results["libraries"].via
    rows = np.flatnonzero(via.keys // 16 == app)
    if not len(rows):
        return None
    best = max(rows.tolist(), key=lambda i: (int(via["bytes"][i]), int(via["calls"][i])))
    return layer_name(int(via.keys[best]) % 16)


def share_of_run(io: IOStats, run_ns: int) -> float | None:
    """Time in which some process is in a file-system call, as a share of the run; None for a run without length."""
    if io.busy_s.total is None or run_ns <= 0:
        return None
    return min(1.0, io.busy_s.total / (run_ns / 1e9))


def _balance(view: View, app: int) -> RankBalance | None:
    rows = np.flatnonzero(view.app_of_process == app)
    if not len(rows):
        return None
    time, calls = view.process_time[rows], view.call_time[rows]
    totals: Keyed = view.measured.results["processes"].processes
    zero = np.zeros(len(rows), np.int64)
    moved = totals.at(rows, "bytes_read") + totals.at(rows, "bytes_written") if len(totals) else zero
    reads = totals.at(rows, "reads") if len(totals) else zero
    writes = totals.at(rows, "writes") if len(totals) else zero
    bases = np.array(view.world.process_base)[view.trace_of_process[rows]]
    slowest, busiest, most = int(time.argmax()), int(moved.argmax()), int(calls.argmax())
    return RankBalance(
        slowest_rank=int(rows[slowest] - bases[slowest]),
        slowest_io_time_s=int(time[slowest]) / 1e9,
        slowest_call_rank=int(rows[most] - bases[most]),
        slowest_call_time_s=int(calls[most]) / 1e9,
        mean_io_time_s=int(time.sum()) / len(rows) / 1e9,
        median_io_time_s=float(np.median(time)) / 1e9,
        busiest_rank=int(rows[busiest] - bases[busiest]),
        busiest_bytes=int(moved[busiest]),
        mean_bytes=int(moved.sum()) / len(rows),
        reading_processes=int((reads > 0).sum()),
        writing_processes=int((writes > 0).sum()),
    )


def apps(view: View) -> list[App]:
    """One entity per app, in order of start."""
    found = []
    for app, name in enumerate(view.world.apps):
        traces = [t for t, a in enumerate(view.world.app_of_trace) if a == app]
        start, end = view.run_ns[app]
        gap = view.measured.gap_ns[app]
        io = view.app_stats.get(app) or empty_stats()
        found.append(
            App(
                name=name,
                instances=len(traces),
                processes=sum(view.measured.stores[t].manifest.ranks for t in traces),
                runtime_s=(end - start) / 1e9,
                interface=interface_of_app(view, app),  # type: ignore[arg-type]
                io=io,
                files=file_counts(view, app),
                process_dependencies=process_dependencies(view, app),
                balance=_balance(view, app),
                io_time_share=share_of_run(io, end - start),
                phase_gap_s=None if gap is None else gap / 1e9,
                library_time_s=view.library_time(app),
            )
        )
    return found
