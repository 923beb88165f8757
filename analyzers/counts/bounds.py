"""Lower and upper bounds of attributes that counts do not determine exactly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.counts.rows import Rows
from vani.analyzers.counts.times import busy_times_at_most
from vani.analyzers.counts.traced_segments import TracedSegments
from vani.analyzers.measurements import Measurements
from vani.analyzers.measures.busy_time import ALL, WIDTH, BusyTimes
from vani.analyzers.tables.intervals import merge, total_length
from vani.calls import Kind
from vani.counts import RunCounts
from vani.distinct import distinct

Ints = NDArray[np.int64]
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
    for run, group, shift in zip(runs, of_runs, rows.workload.shift_ns, strict=True):
        heat = run.heat
        if heat is None:
            return None
        for kind, moved in ((int(Kind.READ), heat.read), (int(Kind.WRITE), heat.written)):
            bins = distinct(heat.stretch[moved > 0])
            begin = bins * heat.width_ns + shift
            parts.append(
                (np.full(len(begin), group), np.full(len(begin), kind), begin, begin + heat.width_ns)
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
