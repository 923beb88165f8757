"""Busy time: how long at least one process was in a call, a union over all processes (denominator of bandwidths).

Measured per phase, app and listed file, and for the workload, by kind and in total. An app's busy time is not
the sum of its phases': if one follows another without a pause, a call of the former may continue in the latter.
The union needs the calls of all processes, so it works on time windows, not on partitions: each window reads the row
groups that may contain its calls, cuts intervals at its borders, and lengths add up. Unit: nanoseconds.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np

from vani.analyzers.int_table import KINDS, IntTable, group, key_widths, pack, unpack
from vani.analyzers.intervals import Intervals, merge, total_length
from vani.analyzers.passes.call_times import CallTimes, TimedGroup, times_in, widths_of
from vani.analyzers.workload import Context, SurveyFindings
from vani.calls import Kind
from vani.columns import Bools, Ints, distinct
from vani.engine.executor import Executor
from vani.store.read import ROW_GROUP

_ROWS = 1 << 19
WRITE_OR_SYNC, ALL = KINDS, KINDS + 1
"""Unions of several kinds, numbered after the kinds themselves."""
WIDTH = KINDS + 2
_OF_GROUP = key_widths(WIDTH)
"""Widths of keys of group and kind, or `WRITE_OR_SYNC` or `ALL`."""


_PIECES = 4
"""Number of pieces per worker."""
_HELD = 8 << 20
"""Maximum rows of overlapping row groups, 20 bytes each; with more, calls are first merged row group by row group."""
_FEW_ROWS = 1 << 14
"""Rows of overlapping groups for which those of some tens of processes stay in the processor's cache."""
MOST = 1 << 20
"""Maximum number of intervals that are merged in one place, 24 bytes each."""
_SAMPLE = 64
"""Reciprocal of the share of the run that is sampled to estimate how many intervals will remain."""
_SHORTEST = 1 << 12
"""Reciprocal of the shortest window's share of the run: simultaneous intervals are from as many processes and files."""


@dataclass(frozen=True, eq=False)
class BusyTimes:
    """Nanoseconds by kind, `WRITE_OR_SYNC` and `ALL`; shape (n, WIDTH) each."""

    phases: Ints
    """Busy time of each phase; the last row is for excluded calls."""
    apps: Ints
    files: Ints
    """Busy time of the listed files, in their order."""
    workload: Ints
    """Shape (WIDTH,); 0 if there is only one app."""


def finish(combined: IntTable, phases: int, listed: int, apps: int) -> BusyTimes:
    """Times of the whole run, from the result of `busy`."""
    every = np.zeros(((phases + 2 + listed + apps), WIDTH), np.int64)
    owner, kind = unpack(combined.keys, (len(every), WIDTH))
    if len(combined):
        every[owner, kind] = combined["time"]
    of_phases, workload, files, of_apps = np.split(every, (phases + 1, phases + 2, phases + 2 + listed))
    return BusyTimes(of_phases, of_apps, files, workload[0])


@dataclass(frozen=True, eq=False)
class Window:
    """A period of the workload's time, and the row groups with calls in it."""

    begin: int
    end: int
    groups: tuple[TimedGroup, ...]


@dataclass(frozen=True, eq=False)
class WindowInputs:
    """Arguments that all windows share."""

    findings: SurveyFindings
    listed: Ints
    """Shape (files,): number of a listed file, -1 for others."""
    workload: bool
    """Whether to measure the workload, too (it is not the sum of its apps)."""

    @property
    def widths(self) -> tuple[int, int, int]:
        """Widths of keys of phase, number of the listed file + 1, and kind."""
        return widths_of(self.findings, self.listed)


def stretches(whole: Window, active: int, workers: int) -> list[Window]:
    """Divide the time into windows with about the same number of calls, one per worker.

    Both sides read row groups that cross a border; there are few enough windows that no call is read more than twice.
    """
    _, _, _, rows = _extents(whole.groups)
    count = max(1, min(workers, int(rows.sum()) // max(1, active)))
    return [_between(whole, begin, end) for begin, end in pairwise(_borders(whole, count))]


def rows_of_groups(processes: int) -> int:
    """Number of calls that a `NotedTimes` should have for this number of processes.

    Groups that are merged individually are as large as a store's.
    """
    return _FEW_ROWS if processes * ROW_GROUP <= _HELD else ROW_GROUP


def _borders(window: Window, count: int) -> list[int]:
    """Borders of windows with about the same number of calls.

    A row group's calls are assumed to be evenly spread over its time, which only affects the placement of borders.
    """
    first, last, _, rows = _extents(window.groups)
    edges = distinct(np.clip(np.concatenate((first, last + 1)), window.begin, window.end))
    rate = rows / (last + 1 - first)
    begins, ends = (
        np.bincount(np.searchsorted(edges, np.clip(at, window.begin, window.end)), rate, len(edges))
        for at in (first, last + 1)
    )
    # Rounding may make the difference slightly negative.
    rates = np.maximum(np.cumsum(begins - ends), 0)[:-1]
    mass = np.append(0, np.cumsum(rates * np.diff(edges)))
    wanted = np.linspace(float(mass[0]), float(mass[-1]), count + 1)[1:-1]
    borders = distinct(np.interp(wanted, mass, edges).astype(np.int64))
    borders = borders[(borders > window.begin) & (borders < window.end)]
    return [window.begin, *borders.tolist(), window.end]


def _most_active(groups: Sequence[TimedGroup]) -> int:
    """Maximum rows of all row groups that have calls at the same time."""
    first, _, reach, rows = _extents(groups)
    at = np.concatenate((first, reach + 1))
    change = np.concatenate((rows, -rows))
    return int(np.cumsum(change[np.lexsort((-change, at))]).max())


def _extents(groups: Sequence[TimedGroup]) -> tuple[Ints, Ints, Ints, Ints]:
    """First and last start, last end, and number of rows of each group."""
    first, last, reach, rows = (
        np.array([(g.first, g.last, g.reach, g.rows) for g in groups], np.int64).reshape(-1, 4).T
    )
    return first, last, reach, rows


def busy(
    groups: Sequence[TimedGroup],
    findings: SurveyFindings,
    listed: Ints,
    executor: Executor,
    *,
    workload: bool,
    contexts: Sequence[Context],
) -> IntTable:
    """Busy time of the whole run; see `busy_in`.

    Row groups are read in time order, and calls after a window wait for the next one. If so many processes run
    that the row groups of all of them do not fit in memory together, calls are first merged row group by row group,
    because many processes leave few intervals. The run is divided into as many windows as a sample requires
    for each to fit in memory; a window with more remaining intervals is divided in four. Each window is a task, or, if
    there are fewer windows than workers, many tasks whose results are merged as a tree.
    """
    if not groups:
        return IntTable()
    first, _, reach, rows = _extents(groups)
    low, high = int(first.min()), int(reach.max()) + 1
    whole = Window(low, high, tuple(groups))
    broadcast = (WindowInputs(findings, listed, workload), contexts)
    active = _most_active(groups)
    if active <= _HELD:
        few = stretches(whole, active, executor.workers)
        return executor.reduce(busy_in, few, IntTable.merged, stage="overlap", broadcast=broadcast)

    # Calls of one process rarely overlap: merging more simultaneous calls leaves fewer intervals.
    whole = replace(whole, groups=tuple(groups[i] for i in np.argsort(first, kind="stable").tolist()))

    def left_of(window: Window, most: int) -> Intervals | None:
        left: Intervals | None = executor.reduce(
            partial(_finest_in, most=most),
            _pieces(window, executor.workers),
            partial(_joined, most=most),
            stage="overlap",
            broadcast=broadcast,
        )
        return left

    pieces = 1
    if rows.sum() > MOST:
        short = _cut(whole, _SAMPLE)
        sample = left_of(short[len(short) // 2], MOST)
        pieces = -(-2 * _SAMPLE * (MOST if sample is None else len(sample)) // MOST)
        if pieces > executor.workers:
            pieces += -pieces % executor.workers

    def most_in(window: Window) -> int:
        long = (window.end - window.begin) * _SHORTEST > high - low
        return MOST if long else np.iinfo(np.int64).max

    done = []
    todo = _cut(whole, pieces)
    while todo:
        if len(todo) >= executor.workers:
            now, todo = todo, []
            tasks = [(window, most_in(window)) for window in now]
            times_of_pieces = executor.map(_busy_if_few, tasks, stage="overlap", broadcast=broadcast)
        else:
            # There are fewer windows than workers, so all work on one of them.
            now, todo = todo[:1], todo[1:]
            left = left_of(now[0], most_in(now[0]))
            times_of_pieces = [None if left is None else _rolled_up(left, broadcast[0])]
        for window, times in zip(now, times_of_pieces, strict=True):
            if times is None:
                todo += _cut(window, 4)
            else:
                done.append(times)
    return IntTable.merged(done)


def _busy_if_few(task: tuple[Window, int], inputs: WindowInputs, contexts: Sequence[Context]) -> IntTable | None:
    """Busy time in a window; None if more intervals remain than the given number."""
    window, most = task
    left = _finest_in(window, inputs, contexts, most)
    return None if left is None else _rolled_up(left, inputs)


def _pieces(window: Window, workers: int) -> list[Window]:
    """The window for some row groups at a time, at least a million calls, because pieces are merged one by one."""
    million = 2 * _ROWS // max(g.rows for g in window.groups)
    size = max(1, million, -(-len(window.groups) // (_PIECES * workers)))
    return [replace(window, groups=window.groups[at : at + size]) for at in range(0, len(window.groups), size)]


def _between(window: Window, begin: int, end: int) -> Window:
    """A part of the window, with the row groups that have calls in it."""
    first, _, reach, _ = _extents(window.groups)
    inside = np.flatnonzero((first < end) & (reach >= begin)).tolist()
    return replace(window, begin=begin, end=end, groups=tuple(window.groups[i] for i in inside))


def _cut(window: Window, pieces: int) -> list[Window]:
    """Parts of equal length, without those that have no calls."""
    borders = distinct(np.linspace(window.begin, window.end, max(1, pieces) + 1).astype(np.int64)).tolist()
    windows = [_between(window, begin, end) for begin, end in pairwise(borders)]
    return [piece for piece in windows if piece.groups]


def _joined(parts: Sequence[Intervals | None], most: int) -> Intervals | None:
    """All intervals merged; None if more than `most` remain."""
    known = [p for p in parts if p is not None]
    if len(known) < len(parts):
        return None
    joined = Intervals.joined(known)
    return joined if len(joined) <= most else None


def _finest_in(window: Window, inputs: WindowInputs, contexts: Sequence[Context], most: int) -> Intervals | None:
    """Intervals that remain of the calls in a window; None if more than `most` remain."""
    left, calls, size = Intervals(), list[CallTimes](), 0
    for some in _calls_in(window, inputs, contexts, window.groups, ordered=False):
        calls.append(some)
        size += len(some)
        if size > max(2 * _ROWS, len(left)):
            left, calls, size = _with_calls(left, calls), [], 0
            if len(left) > most:
                return None
    left = _with_calls(left, calls)
    return left if len(left) <= most else None


def _with_calls(left: Intervals, calls: Sequence[CallTimes]) -> Intervals:
    code, start, end = (
        np.concatenate([first, *(getattr(some, name) for some in calls)])
        for first, name in ((left.group, "code"), (left.start, "start"), (left.end, "end"))
    )
    return merge(code, start, end)


def busy_in(window: Window, inputs: WindowInputs, contexts: Sequence[Context]) -> IntTable:
    """Busy time in one window: column `time` by group and kind (or `WRITE_OR_SYNC` or `ALL`).

    Groups are phases 0..phases-1, excluded calls, the workload (phases + 1), listed files (from phases + 2), and
    then apps.
    """
    first, _, _, rows = _extents(window.groups)
    order = np.argsort(first, kind="stable").tolist()
    waiting: list[CallTimes] = []
    times: list[IntTable] = []
    for end in _borders(window, -(-int(rows.sum()) // _ROWS))[1:]:
        while order and first[order[0]] < end:
            waiting += _calls_in(window, inputs, contexts, [window.groups[order.pop(0)]], ordered=True)
        now, behind = CallTimes.joined([times_of_group.take_until(end) for times_of_group in waiting]).cut_at(end)
        waiting = [times_of_group for times_of_group in (*waiting, behind) if len(times_of_group)]
        finest = merge(now.code.astype(np.int64, copy=False), now.start, now.end)
        times.append(_rolled_up(finest, inputs))
    return IntTable.merged(times)


def _rolled_up(finest: Intervals, inputs: WindowInputs) -> IntTable:
    """Merge calls by phase, listed file and kind first, and then compute all other unions from the result."""
    phase, number, kind = unpack(finest.group, inputs.widths)
    phases, files = inputs.findings.phases, inputs.widths[1]
    by_phase = _union(finest, pack((phase, kind), _OF_GROUP))
    owner, by_kind = unpack(by_phase.group, _OF_GROUP)
    included = owner < phases
    app = np.append(inputs.findings.phase_app, -1)[owner]
    unions = [by_phase, _union(by_phase, pack((phases + 1 + files + app, by_kind), _OF_GROUP), included)]
    if inputs.workload:
        unions.append(_union(by_phase, pack((phases + 1, by_kind), _OF_GROUP), included))
    unions.append(_union(finest, pack((phases + 1 + number, kind), _OF_GROUP), number > 0))
    together = [_write_or_sync(union) for union in unions]
    unions += [_union(union, pack((unpack(union.group, _OF_GROUP)[0], ALL), _OF_GROUP)) for union in unions]
    lengths = [group(keys, {"time": time}) for keys, time in map(total_length, [*unions, *together])]
    return _with_writes_alone(IntTable.merged(lengths))


def _write_or_sync(intervals: Intervals) -> Intervals:
    """Unions of writes and flushes, for groups with flushes."""
    owner, kind = unpack(intervals.group, _OF_GROUP)
    flushing = owner[kind == Kind.SYNC]
    if not len(flushing):
        return Intervals()
    some = ((kind == Kind.WRITE) | (kind == Kind.SYNC)) & np.isin(owner, flushing)
    return merge(pack((owner[some], WRITE_OR_SYNC), _OF_GROUP), intervals.start[some], intervals.end[some])


def _with_writes_alone(times: IntTable) -> IntTable:
    """Times in which groups without flushes get their write time as the time of writes or flushes."""
    owner, kind = unpack(times.keys, _OF_GROUP)
    alone = np.flatnonzero((kind == Kind.WRITE) & ~np.isin(owner, owner[kind == WRITE_OR_SYNC]))
    if not len(alone):
        return times
    more = IntTable(pack((owner[alone], WRITE_OR_SYNC), _OF_GROUP), {"time": times["time"][alone]})
    return IntTable.merged([times, more])


def _calls_in(
    window: Window,
    inputs: WindowInputs,
    contexts: Sequence[Context],
    groups: Sequence[TimedGroup],
    *,
    ordered: bool,
) -> Iterator[CallTimes]:
    for timed in groups:
        span = {"begin": window.begin, "end": window.end}
        yield from times_in(timed, contexts, inputs.findings, inputs.listed, **span, ordered=ordered)


def _union(intervals: Intervals, key: Ints, rows: Bools | None = None) -> Intervals:
    """The intervals (those in `rows`) merged under other keys; groups may be in any order."""
    if rows is not None and not rows.all():
        return merge(key[rows], intervals.start[rows], intervals.end[rows])
    firsts = np.flatnonzero(np.append(True, intervals.group[1:] != intervals.group[:-1])[: len(key)])
    if len(distinct(key[firsts])) == len(firsts):
        # No two groups overlap.
        return Intervals(key, intervals.start, intervals.end)
    return merge(key, intervals.start, intervals.end)
