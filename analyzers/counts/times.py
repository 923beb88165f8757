"""I/O time and busy time, and their bounds, from times that are summed per file or over all processes.

A process's time is the sum of its calls' times (one thread each). If records are sums over all processes, each file's
slowest process and its time are known: no process is assumed to have spent more than necessary, and together they
spend the known total (`evened_out`).

Busy time is not a sum. It is at least the time of the process with the most, and at most the union of the intervals
from the first to the last call on each file.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from vani.analyzers.counts.rows import Rows, TracedSegments
from vani.analyzers.int_table import KINDS, LAYERS, group, pack, totals, unpack
from vani.analyzers.intervals import merge, total_length
from vani.analyzers.measurements import Measurements
from vani.analyzers.measures.busy_time import ALL, WIDTH, WRITE_OR_SYNC, BusyTimes
from vani.analyzers.measures.io_time import SpentTime
from vani.analyzers.measures.operations import MovedByProcess
from vani.calls import Kind
from vani.columns import Ints, distinct
from vani.counts import RunCounts


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


def spent_time(rows: Rows) -> SpentTime:
    """Sums by phase and file, and by phase, process and layer; unknown flush time is part of write time."""
    workload, apps, own = rows.workload, len(rows.workload.apps), rows.included
    widths = (apps + 1, workload.files, KINDS + 1)
    kinds = [*range(KINDS), ALL]
    keys = [pack((rows.phase, rows.file, number), widths) for number in range(len(kinds))]
    cells = group(np.concatenate(keys), {"time": rows.times[kinds].ravel()})
    phase, file, kind = unpack(cells.keys, widths)
    processes = _of_processes(rows, "slowest_ns", rows.time_ns)
    return SpentTime(
        phase,
        file,
        kind,
        cells["time"],
        totals((apps + 1, KINDS + 1), (phase, kind), cells["time"]),
        np.zeros((apps, KINDS + 1), np.int64),
        np.minimum(processes, workload.span_ns),
        totals((apps, LAYERS), (rows.app[own], rows["layer"][own]), rows.time_ns[own]),
    )


def _of_processes(rows: Rows, of_slowest: str, amount: Ints) -> Ints:
    """An amount of each process, with the smallest maximum that fits its sums and the slowest process of each row."""
    own, rank, processes = rows.included, rows["slowest_rank"], rows.workload.processes
    alone = own & (rows.process >= 0)
    named = own & (rows.process < 0) & (rank >= 0) & (rank < rows.ranks)
    least = totals(processes, rows.process[alone], amount[alone])
    least += totals(processes, (rows.base + rank)[named], np.minimum(rows[of_slowest], amount)[named])
    of_traces = totals(len(rows.processes_of_traces), rows.trace[own], amount[own]).tolist()
    spans = zip(rows.processes_of_traces, of_traces, strict=True)
    return np.concatenate([evened_out(least[begin:end], total) for (begin, end), total in spans])


def moved_by_process(rows: Rows, segments: TracedSegments) -> MovedByProcess:
    """Bytes of each process, derived like the times in `spent_time`; and whether each process reads and writes."""
    processes = rows.workload.processes
    if len(segments) and segments.whole[rows.included].all():
        weights = (segments.size, segments.kind == Kind.READ, segments.kind == Kind.WRITE)
        return MovedByProcess(*(totals(processes, segments.process, weight) for weight in weights))
    sides = []
    for side in ("reads", "writes"):
        alone = rows.included & (rows.process >= 0)
        some = totals(processes, rows.process[alone], rows[side][alone])
        together = rows.included & (rows.process < 0) & (rows[side] > 0)
        most = np.zeros(len(rows.processes_of_traces), np.int64)
        np.maximum.at(most, rows.trace[together], np.minimum(rows[side], rows.movers)[together])
        for (begin, end), movers in zip(rows.processes_of_traces, most.tolist(), strict=True):
            some[begin : min(begin + movers, end)] += 1
        sides.append(some)
    return MovedByProcess(_of_processes(rows, "slowest_bytes", rows["bytes_read"] + rows["bytes_written"]), *sides)


def busy_times(rows: Rows, listed: Ints, spent: SpentTime, segments: TracedSegments) -> BusyTimes:
    """Lower bounds: the time of the process with the most time that certainly belongs to the phase, app or file.

    If all calls that read (or write) were kept, the time during which some process did so.
    """
    workload, apps = rows.workload, len(rows.workload.apps)
    number = np.full(workload.files, -1, np.int64)
    number[listed] = np.arange(len(listed))
    phases = _at_least(rows, rows.phase, apps + 1, segments, segments.app)
    of_files = np.where(rows.included, number[rows.file], -1)
    files = _at_least(rows, of_files, len(listed), segments, number[segments.file])
    whole = _at_least(rows, np.where(rows.included, 0, -1), 1, segments, np.zeros(len(segments), np.int64))
    processes = [end - begin for begin, end in rows.processes_of_traces]
    np.maximum.at(phases[:, ALL], np.repeat(np.array(workload.app_of_trace), processes), spent.processes)
    whole[:, ALL] = np.maximum(whole[:, ALL], spent.processes.max(initial=0))
    return BusyTimes(*(np.minimum(times, workload.span_ns) for times in (phases, phases[:apps], files, whole[0])))


def _at_least(rows: Rows, of: Ints, groups: int, segments: TracedSegments, of_calls: Ints) -> Ints:
    """Time of the process with the most, shape (groups, WIDTH); rows and calls of group -1 are ignored."""
    lowest, grouped, alone = np.zeros((groups, WIDTH), np.int64), of >= 0, rows.process >= 0
    if not grouped.any():
        return lowest
    # The process with the most time has at least the mean.
    widths = (groups, len(rows.workload.process_base))
    columns = {str(kind): time[grouped] for kind, time in enumerate(rows.times)} | {"ranks": rows.ranks[grouped]}
    table = group(pack((of[grouped], rows.trace[grouped]), widths), columns, {"ranks": "max"})
    mean = np.stack([table[str(kind)] // table["ranks"] for kind in range(WIDTH)], axis=1)
    np.maximum.at(lowest, unpack(table.keys, widths)[0], mean)
    # The slowest process spent its time on a kind, except for at most the time that all spent on other kinds.
    rank, widths = rows["slowest_rank"], (groups, rows.workload.processes)
    slowest = np.where(rank >= 0, np.minimum(rows["slowest_ns"], rows.time_ns), 0)
    certain = np.where(alone, rows.times, np.maximum(0, slowest - (rows.time_ns - rows.times)))
    chosen = grouped & (alone | ((rank >= 0) & (rank < rows.ranks)))
    process = np.where(alone, rows.process, rows.base + rank)
    columns = {str(kind): time[chosen] for kind, time in enumerate(certain)}
    table = group(pack((of[chosen], process[chosen]), widths), columns)
    own = np.stack([table[str(kind)] for kind in range(WIDTH)], axis=1)
    np.maximum.at(lowest, unpack(table.keys, widths)[0], own)
    if len(segments):
        unions, spent = segments.busy(of_calls, groups), _sums(rows, of, groups)
        # Rounded times may add up to less than the union.
        exact = np.minimum(unions[:, :2], spent[:, :2])
        lowest[:, :2] = np.where(segments.all_in(of, groups), exact, np.maximum(lowest[:, :2], exact))
        lowest[:, WRITE_OR_SYNC] = np.maximum(lowest[:, WRITE_OR_SYNC], lowest[:, Kind.WRITE])
        lowest[:, ALL] = np.maximum(lowest[:, ALL], np.minimum(unions[:, ALL], spent[:, :KINDS].sum(axis=1)))
    # A kind's time is at most the time of all kinds.
    lowest[:, ALL] = np.maximum(lowest[:, ALL], lowest[:, :KINDS].max(axis=1))
    return lowest


def _sums(rows: Rows, of: Ints, groups: int) -> Ints:
    """Sums of the rows' times by group, shape (groups, WIDTH)."""
    return totals((groups, WIDTH), of[of >= 0], rows.times.T[of >= 0])


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
    busy, apps = measured.of(BusyTimes), len(rows.workload.apps)
    if busy is None:
        return {}
    flushed = np.zeros(apps, np.bool_)
    flushed[rows.app[rows.included & (rows["syncs"] > 0) & ~segments.whole[:, Kind.WRITE]]] = True
    moved = _moved(rows, runs)
    of_rows, of_segments = np.zeros(len(rows), np.int64), np.zeros(len(segments), np.int64)
    workload = _at_most(rows, of_rows, 1, segments, of_segments, moved, (0,) * len(runs))[0]
    of_apps = _at_most(rows, rows.app, apps, segments, segments.app, moved, rows.workload.app_of_trace)
    lowest = busy.apps[0] if apps == 1 else busy.workload
    bounds = dict(_rows("workflow", lowest, workload, flushed=bool(flushed.any())))
    for app in range(apps):
        bounds |= dict(_rows(f"apps[{app}]", busy.apps[app], of_apps[app], flushed=bool(flushed[app])))
    return bounds


def _at_most(
    rows: Rows,
    of: Ints,
    groups: int,
    segments: TracedSegments,
    of_calls: Ints,
    moved: tuple[Ints, ...] | None,
    of_runs: Sequence[int],
) -> Ints:
    """Union of the intervals from the first to the last call on each file; at most the time of all calls.

    If all calls that read (or write) were kept, the time during which some process did so.

    Parameters
    ----------
    of, of_calls, of_runs
        Group of each row, of each kept call, and of each run.
    moved
        See `_moved`.

    Returns
    -------
    times
        Shape (groups, WIDTH).
    """
    of = np.where(rows.included, of, -1)
    highest, grouped = _sums(rows, of, groups), of >= 0
    spent = highest.copy()
    for kind, time in enumerate(rows.times):
        side = "read_" if kind == Kind.READ else "write_" if kind == Kind.WRITE else ""
        first, last = rows[f"{side}first_ns"], rows[f"{side}last_ns"]
        # Writes that only flush do not have the time of a write.
        known, chosen = (first > 0) & (last >= first), grouped & (time > 0)
        if known[chosen].all():
            longest = _unions(groups, of[chosen], first[chosen], last[chosen])
            highest[:, kind] = np.minimum(highest[:, kind], longest)
    if len(segments):
        unions, whole = segments.busy(of_calls, groups), segments.all_in(of, groups)
        highest[:, :2] = np.where(whole, np.minimum(unions[:, :2], highest[:, :2]), highest[:, :2])
        # All other calls may have been at other times than these.
        others = np.maximum(0, spent[:, ALL] - segments.spent(of_calls, groups)[:, KINDS])
        highest[:, ALL] = np.minimum(highest[:, ALL], unions[:, ALL] + others)
    highest = np.minimum(highest, rows.workload.span_ns)
    if moved is None:
        return highest
    run, of_kind, begin, end = moved
    owner = np.array(of_runs, np.int64)[run]
    for kind in (Kind.READ, Kind.WRITE):
        some = of_kind == kind
        highest[:, kind] = np.minimum(highest[:, kind], _unions(groups, owner[some], begin[some], end[some]))
    # Everything else may have happened while nothing was moved, because write time includes flush time.
    flushed = np.zeros(groups, np.bool_)
    flushed[of[grouped & (rows["syncs"] > 0)]] = True
    most = np.where(flushed, highest[:, ALL], _unions(groups, owner, begin, end) + spent[:, Kind.METADATA])
    highest[:, ALL] = np.minimum(highest[:, ALL], most)
    return highest


def _unions(groups: int, of: Ints, begin: Ints, end: Ints) -> Ints:
    """Length of the union of each group's intervals."""
    keys, lengths = total_length(merge(of, begin, end))
    return totals(groups, keys, lengths)


def _moved(rows: Rows, runs: Sequence[RunCounts]) -> tuple[Ints, ...] | None:
    """Run, kind, begin and end of all periods with transfers; None if some run does not record them."""
    parts = []
    for number, (run, shift) in enumerate(zip(runs, rows.workload.shift_ns, strict=True)):
        if run.heat is None:
            return None
        for kind, moved in ((int(Kind.READ), run.heat.read), (int(Kind.WRITE), run.heat.written)):
            begin = distinct(run.heat.stretch[moved > 0]) * run.heat.width_ns + shift
            of = np.full((2, len(begin)), [[number], [kind]])
            parts.append((*of, begin, begin + run.heat.width_ns))
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))


def _rows(where: str, low: Ints, high: Ints, *, flushed: bool) -> Iterator[tuple[str, tuple[float, float]]]:
    for name, kind in _KINDS.items():
        # The share of flushes in write time is unknown.
        least = 0 if flushed and kind == Kind.WRITE else int(low[kind])
        if high[kind] > least:
            yield f"{where}.io.busy_s.{name}", (least / 1e9, max(int(low[kind]), int(high[kind])) / 1e9)
