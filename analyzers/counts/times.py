"""I/O time and busy time, and their bounds, from times that are summed per file or over all processes.

A process's time is the sum of its calls' times (one thread each). If records are sums over all processes, each file's
slowest process and its time are known: no process is assumed to have spent more than necessary, and together they
spend the known total (`evened_out`).

Busy time is not a sum. It is at least the time of the process with the most, and at most the union of the intervals
from the first to the last call on each file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.counts.rows import Rows, TracedSegments
from vani.analyzers.int_table import ALL_KINDS, KINDS, LAYERS, group, pack, unpack
from vani.analyzers.intervals import merge, total_length
from vani.analyzers.measurements import Measurements
from vani.analyzers.measures.busy_time import ALL, WIDTH, WRITE_OR_SYNC, BusyTimes
from vani.analyzers.measures.io_time import SpentTime
from vani.analyzers.measures.operations import MovedByProcess
from vani.calls import Kind
from vani.counts import RunCounts
from vani.distinct import distinct

Ints = NDArray[np.int64]

def evened_out(least: Ints, total: int) -> Ints:
    """Raise the smallest values of `least` until all add up to `total`, which keeps the largest as small as possible.

    Parameters
    ----------
    least
        Shape (processes,): certain minimum of each process.
    total
        Total of all processes; if the sum of `least` is larger, that sum applies.
    """
    left = total - int(least.sum())
    if left <= 0 or not len(least):
        return least.copy()
    order = np.sort(least)
    places = np.arange(1, len(order) + 1)
    # Amount needed to raise the lowest n values to the next one.
    needed = places * np.append(order[1:], np.iinfo(np.int64).max // len(order)) - np.cumsum(order)
    lowest = int(np.searchsorted(needed, left, side="left")) + 1
    level, rest = divmod(int(order[:lowest].sum()) + left, lowest)
    evened: Ints = np.maximum(least, level)
    evened[np.flatnonzero(least <= level)[:rest]] += 1
    return evened


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


_KINDS = {
    "read": int(Kind.READ),
    "write": int(Kind.WRITE),
    "metadata": int(Kind.METADATA),
    "sync": int(Kind.SYNC),
    "total": ALL,
}


def bounds_of(
    rows: Rows, segments: TracedSegments, runs: Sequence[RunCounts], measured: Measurements
) -> dict[str, tuple[float, float]]:
    """Smallest and largest possible value, by attribute of the profile."""
    busy = measured.of(BusyTimes)
    if busy is None:
        return {}
    apps = len(rows.workload.apps)
    of_apps = _at_most(rows, rows.app, apps, segments, segments.app, runs, rows.workload.app_of_trace)
    nothing = np.zeros(len(rows), np.int64)
    workload = _at_most(rows, nothing, 1, segments, np.zeros(len(segments), np.int64), runs, (0,) * len(runs))
    lowest = busy.apps if apps == 1 else busy.workload[None]
    flushed = np.zeros(apps, np.bool_)
    flushed[rows.app[rows.included & (rows["syncs"] > 0) & ~segments.whole[:, Kind.WRITE]]] = True
    bounds = dict(_rows("workflow", lowest[0], workload[0], flushed=bool(flushed.any())))
    for app in range(apps):
        bounds |= dict(_rows(f"apps[{app}]", busy.apps[app], of_apps[app], flushed=bool(flushed[app])))
    return bounds


def _at_most(
    rows: Rows,
    of: Ints,
    groups: int,
    segments: TracedSegments,
    of_calls: Ints,
    runs: Sequence[RunCounts],
    of_runs: Sequence[int],
) -> Ints:
    """Upper bounds by group of rows, of kept calls, and of runs; shape (groups, WIDTH)."""
    of = np.where(rows.included, of, -1)
    highest = busy_times_at_most(rows, of, groups, segments, of_calls)
    moved = _moved(rows, groups, runs, of_runs)
    if moved is None:
        return highest
    highest[:, :2] = np.minimum(highest[:, :2], moved[:, :2])
    # Everything else may have happened while nothing was moved, because write time includes flush time.
    flushed = np.zeros(groups, np.bool_)
    flushed[of[(of >= 0) & (rows["syncs"] > 0)]] = True
    others = np.zeros(groups, np.int64)
    np.add.at(others, of[of >= 0], rows["metadata_ns"][of >= 0])
    most = np.where(flushed, highest[:, ALL], moved[:, ALL] + others)
    highest[:, ALL] = np.minimum(highest[:, ALL], most)
    return highest


def _moved(rows: Rows, groups: int, runs: Sequence[RunCounts], of_runs: Sequence[int]) -> Ints | None:
    """Total length of all periods with transfers; None if some run does not record them."""
    parts: list[tuple[Ints, Ints, Ints, Ints]] = []
    for run, number, shift in zip(runs, of_runs, rows.workload.shift_ns, strict=True):
        heat = run.heat
        if heat is None:
            return None
        for kind, moved in ((int(Kind.READ), heat.read), (int(Kind.WRITE), heat.written)):
            bins = distinct(heat.stretch[moved > 0])
            begin = bins * heat.width_ns + shift
            parts.append(
                (np.full(len(begin), number), np.full(len(begin), kind), begin, begin + heat.width_ns)
            )
    owner, of_kind, begin, end = (np.concatenate(column) for column in zip(*parts, strict=True))
    moved_times = np.zeros((groups, WIDTH), np.int64)
    for kind in (int(Kind.READ), int(Kind.WRITE), ALL):
        of_this_kind = np.ones(len(owner), np.bool_) if kind == ALL else of_kind == kind
        keys, lengths = total_length(merge(owner[of_this_kind], begin[of_this_kind], end[of_this_kind]))
        moved_times[keys, kind] = lengths
    return moved_times


def _rows(
    where: str, low: NDArray[np.int64], high: NDArray[np.int64], *, flushed: bool
) -> Iterator[tuple[str, tuple[float, float]]]:
    for name, kind in _KINDS.items():
        # The share of flushes in write time is unknown.
        least = 0 if flushed and kind == Kind.WRITE else int(low[kind])
        if high[kind] > least:
            yield f"{where}.io.busy_s.{name}", (least / 1e9, max(int(low[kind]), int(high[kind])) / 1e9)
