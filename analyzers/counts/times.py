"""I/O time and busy time, from times that are summed per file or over all processes.

A process's time is the sum of its calls' times (one thread each). If records are sums over all processes, each file's
slowest process and its time are known: no process is assumed to have spent more than necessary, and together they
spend the known total (`evened_out`).

Busy time is not a sum. It is at least the time of the process with the most, and at most the union of the intervals
from the first to the last call on each file.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.counts.rows import Rows
from vani.analyzers.counts.spread import evened_out
from vani.analyzers.counts.traced_segments import TracedSegments
from vani.analyzers.measures.busy_time import ALL, WIDTH, WRITE_OR_SYNC, BusyTimes
from vani.analyzers.measures.io_time import SpentTime
from vani.analyzers.measures.process_totals import MovedByProcess
from vani.analyzers.tables.int_table import group
from vani.analyzers.tables.intervals import merge, total_length
from vani.analyzers.tables.keys import ALL_KINDS, KINDS, LAYERS, pack, unpack
from vani.calls import Kind

Ints = NDArray[np.int64]
_KIND_COLUMNS = (
    (Kind.READ, "read_ns"),
    (Kind.WRITE, "write_ns"),
    (Kind.METADATA, "metadata_ns"),
    (Kind.SYNC, "sync_ns"),
)


def spent_time(rows: Rows) -> SpentTime:
    """Sums by phase and file, and by phase, process and layer; unknown flush time is part of write time."""
    workload = rows.workload
    apps = len(workload.apps)
    widths = (apps + 1, workload.files, KINDS + 1)
    keys, times = [], []
    for kind, spent in (*((k, rows[c]) for k, c in _KIND_COLUMNS), (ALL_KINDS, rows.time_ns)):
        keys.append(pack((rows.phase, rows.file, int(kind)), widths))
        times.append(spent)
    phase_files = group(np.concatenate(keys), {"time": np.concatenate(times)})
    phase, file, phase_file_kind = unpack(phase_files.keys, widths)
    phases = np.zeros((apps + 1, KINDS + 1), np.int64)
    np.add.at(phases, (phase, phase_file_kind), phase_files["time"])
    layers = np.zeros((apps, LAYERS), np.int64)
    included = rows.included
    np.add.at(layers, (rows.app[included], rows["layer"][included]), rows.time_ns[included])
    return SpentTime(
        phase,
        file,
        phase_file_kind,
        phase_files["time"],
        phases,
        np.zeros((apps, KINDS + 1), np.int64),
        _of_processes(rows),
        layers,
    )


def _of_processes(rows: Rows) -> Ints:
    """I/O time of each process, with the smallest maximum that fits; at most the duration of the run."""
    least = _least(rows, "slowest_rank", "slowest_ns", rows.time_ns)
    times = _per_trace(rows, least, rows.time_ns)
    return np.minimum(times, rows.workload.span_ns)


def _least(rows: Rows, rank: str, value: str, own: Ints) -> Ints:
    """Lower bound for each process; shape (processes,)."""
    lowest = np.zeros(rows.workload.processes, np.int64)
    alone = rows.included & (rows.process >= 0)
    np.add.at(lowest, rows.process[alone], own[alone])
    named = rows.included & (rows.process < 0) & (rows[rank] >= 0) & (rows[rank] < rows.ranks)
    bases = np.array(rows.workload.process_base, np.int64)[rows.trace[named]]
    np.add.at(lowest, bases + rows[rank][named], np.minimum(rows[value], own)[named])
    return lowest


def _per_trace(rows: Rows, least: Ints, own: Ints) -> Ints:
    times = least.copy()
    ends = [*rows.workload.process_base[1:], rows.workload.processes]
    totals = np.zeros(len(ends), np.int64)
    np.add.at(totals, rows.trace[rows.included], own[rows.included])
    for trace, (begin, end) in enumerate(zip(rows.workload.process_base, ends, strict=True)):
        times[begin:end] = evened_out(least[begin:end], int(totals[trace]))
    return times


def moved_by_process(rows: Rows, segments: TracedSegments) -> MovedByProcess:
    """Bytes of each process, derived like the times in `spent_time`; and whether each process reads and writes."""
    if len(segments) and segments.whole[rows.included].all():
        return MovedByProcess(
            *(
                np.bincount(segments.process, weights, rows.workload.processes).astype(np.int64)
                for weights in (segments.size, segments.kind == Kind.READ, segments.kind == Kind.WRITE)
            )
        )
    moved = rows["bytes_read"] + rows["bytes_written"]
    moved_bytes = _per_trace(rows, _least(rows, "slowest_rank", "slowest_bytes", moved), moved)
    sides = []
    for side in ("reads", "writes"):
        some = np.zeros(rows.workload.processes, np.int64)
        alone = rows.included & (rows.process >= 0)
        np.add.at(some, rows.process[alone], rows[side][alone])
        ends = [*rows.workload.process_base[1:], rows.workload.processes]
        together = rows.included & (rows.process < 0) & (rows[side] > 0)
        most = np.zeros(len(ends), np.int64)
        np.maximum.at(most, rows.trace[together], np.minimum(rows[side], rows.movers)[together])
        for trace, (begin, end) in enumerate(zip(rows.workload.process_base, ends, strict=True)):
            some[begin : begin + min(int(most[trace]), end - begin)] += 1
        sides.append(some)
    return MovedByProcess(moved_bytes, *sides)


def busy_times(rows: Rows, listed: Ints, spent: SpentTime, segments: TracedSegments) -> BusyTimes:
    """Lower bounds: the time of the process with the most time that certainly belongs to the phase, app or file.

    If all calls that read (or write) were kept, the time during which some process did so.
    """
    apps = len(rows.workload.apps)
    phases = _at_least(rows, rows.phase, apps + 1)
    number = _numbers(rows.workload.files, listed)
    files = _at_least(rows, np.where(rows.included, number[rows.file], -1), len(listed))
    workload = _at_least(rows, np.where(rows.included, 0, -1), 1)[0]
    of_apps = phases[:apps].copy()
    app_of_process = np.repeat(
        np.array(rows.workload.app_of_trace), np.diff([*rows.workload.process_base, rows.workload.processes])
    )
    np.maximum.at(of_apps[:, ALL], app_of_process, spent.processes)
    phases[:apps, ALL] = of_apps[:, ALL]
    workload[ALL] = max(int(workload[ALL]), int(spent.processes.max(initial=0)))
    most = rows.workload.span_ns
    if len(segments):
        with_calls(phases, rows, rows.phase, segments, segments.app)
        with_calls(of_apps, rows, np.where(rows.included, rows.app, -1), segments, segments.app)
        with_calls(files, rows, np.where(rows.included, number[rows.file], -1), segments, number[segments.file])
        alone = workload[None]
        with_calls(alone, rows, np.where(rows.included, 0, -1), segments, np.zeros(len(segments), np.int64))
        workload = alone[0]
    return BusyTimes(*(np.minimum(times, most) for times in (phases, of_apps, files, workload)))


def _numbers(files: int, listed: Ints) -> Ints:
    number = np.full(files, -1, np.int64)
    number[listed] = np.arange(len(listed))
    return number


def with_calls(times: Ints, rows: Rows, of: Ints, segments: TracedSegments, of_calls: Ints) -> None:
    """Insert the unions of kept calls into lower bounds of shape (groups, WIDTH), by groups of rows and of calls."""
    groups = len(times)
    unions, all_segments = segments.busy(of_calls, groups), segments.all_in(of, groups)
    spent = np.zeros((groups, KINDS), np.int64)
    is_grouped = of >= 0
    for kind, column in _KIND_COLUMNS:
        np.add.at(spent[:, kind], of[is_grouped], rows[column][is_grouped])
    # Rounded times may add up to less than the union.
    exact = np.minimum(unions[:, :2], spent[:, :2])
    times[:, :2] = np.where(all_segments, exact, np.maximum(times[:, :2], exact))
    times[:, WRITE_OR_SYNC] = np.maximum(times[:, WRITE_OR_SYNC], times[:, Kind.WRITE])
    both = np.minimum(unions[:, ALL], spent.sum(axis=1))
    times[:, ALL] = np.maximum.reduce([times[:, ALL], both, times[:, :KINDS].max(axis=1)])


def _at_least(rows: Rows, of: Ints, groups: int) -> Ints:
    """Time of the process with the most, shape (groups, WIDTH); rows of group -1 are ignored."""
    lowest = np.zeros((groups, WIDTH), np.int64)
    grouped = of >= 0
    if not grouped.any():
        return lowest
    workload, ranks = rows.workload, rows.ranks
    traces = len(workload.process_base)
    bases = np.array(workload.process_base, np.int64)[rows.trace]
    columns = {int(k): rows[c] for k, c in _KIND_COLUMNS} | {
        WRITE_OR_SYNC: rows["write_ns"] + rows["sync_ns"],
        ALL: rows.time_ns,
    }
    slowest = np.where(rows["slowest_rank"] >= 0, np.minimum(rows["slowest_ns"], rows.time_ns), 0)
    for kind, spent in columns.items():
        # The process with the most time has at least the mean.
        of_trace = group(
            pack((of[grouped], rows.trace[grouped]), (groups, traces)),
            {"time": spent[grouped], "ranks": ranks[grouped]},
            {"ranks": "max"},
        )
        owner, _ = unpack(of_trace.keys, (groups, traces))
        np.maximum.at(lowest[:, kind], owner, of_trace["time"] // of_trace["ranks"])
        alone = rows.process >= 0
        chosen = grouped & (alone | ((rows["slowest_rank"] >= 0) & (rows["slowest_rank"] < ranks)))
        process = np.where(alone, rows.process, bases + rows["slowest_rank"])
        # The slowest process spent its time on this kind, except for at most the time that all spent on other kinds.
        time = np.where(alone, spent, np.maximum(0, slowest - (rows.time_ns - spent)))
        by_process = group(pack((of[chosen], process[chosen]), (groups, workload.processes)), {"time": time[chosen]})
        if len(by_process):
            owner, _ = unpack(by_process.keys, (groups, workload.processes))
            np.maximum.at(lowest[:, kind], owner, by_process["time"])
    # A kind's time is at most the time of all kinds.
    lowest[:, ALL] = np.maximum(lowest[:, ALL], lowest[:, :KINDS].max(axis=1))
    return lowest


def busy_times_at_most(rows: Rows, of: Ints, groups: int, segments: TracedSegments, of_calls: Ints) -> Ints:
    """Union of the intervals from the first to the last call on each file; at most the time of all calls.

    If all calls that read (or write) were kept, the time during which some process did so.

    Parameters
    ----------
    of, of_calls
        Group of each row and of each kept call, -1 for none.

    Returns
    -------
    times
        Shape (groups, WIDTH).
    """
    highest = np.zeros((groups, WIDTH), np.int64)
    grouped = of >= 0
    spans = {
        int(Kind.READ): ("read_first_ns", "read_last_ns", rows["read_ns"]),
        int(Kind.WRITE): ("write_first_ns", "write_last_ns", rows["write_ns"]),
        int(Kind.METADATA): ("first_ns", "last_ns", rows["metadata_ns"]),
        int(Kind.SYNC): ("first_ns", "last_ns", rows["sync_ns"]),
        WRITE_OR_SYNC: ("first_ns", "last_ns", rows["write_ns"] + rows["sync_ns"]),
        ALL: ("first_ns", "last_ns", rows.time_ns),
    }
    for kind, (first, last, spent) in spans.items():
        np.add.at(highest[:, kind], of[grouped], spent[grouped])
        # Writes that only flush do not have the time of a write.
        known = (rows[first] > 0) & (rows[last] >= rows[first])
        if not known[grouped & (spent > 0)].all():
            continue
        chosen = grouped & known & (spent > 0)
        keys, lengths = total_length(merge(of[chosen], rows[first][chosen], rows[last][chosen]))
        longest = np.zeros(groups, np.int64)
        longest[keys] = lengths
        highest[:, kind] = np.minimum(highest[:, kind], longest)
    if len(segments):
        unions, all_segments, own = (
            segments.busy(of_calls, groups),
            segments.all_in(of, groups),
            segments.spent(of_calls, groups),
        )
        spent = np.zeros(groups, np.int64)
        np.add.at(spent, of[grouped], rows.time_ns[grouped])
        highest[:, :2] = np.where(all_segments, np.minimum(unions[:, :2], highest[:, :2]), highest[:, :2])
        # All other calls may have been at other times than these.
        others = np.maximum(0, spent - own[:, KINDS])
        highest[:, ALL] = np.minimum(highest[:, ALL], unions[:, ALL] + others)
    return np.minimum(highest, rows.workload.span_ns)
