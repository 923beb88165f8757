"""Starts of the phases of an app.

With a gap given by the user, a phase ends wherever no process of the app is in a call for longer than the gap, and
nowhere else. Without one, an app's calls are divided in three steps. All of them use the activity of processes, so
that a rank that lags behind the others, or loses its core for some milliseconds, does not create a phase.

1. Long pauses: no call of the app for longer than the gap of `phase_gap.py`, unless ranks wait for lagging ones
   (`lagging_ranks.py`). Consecutive runs of a program are also separated.
2. Repetition: a process pauses between similar rounds, and where it turns from reading to writing or back
   (`repeated_blocks.py`). A phase ends at a moment at which most processes pause like this: strictly more than half,
   weighted by the bytes that each moves since the last long pause (by calls if no bytes are moved). Moments are tried
   in order of how many processes pause there, and processes that pause at a chosen moment pause nowhere else.
3. Roles: if some processes only read and others only write, no process turns. Such a part is divided at the
   moment that best separates the bytes read from those written, if at least 95 % then go one way on either side, and
   the lesser of the two is at least a fortieth of the bytes.

A turn with the same kind on either side (95 %) does not count. Pauses and rounds count only if they last both 10 ms and
a thousandth of the run: on a shared machine, the kernel's scheduler takes a process off its core for this long (time
slices of 3 to 24 ms). A phase with the pauses around it lasts at least twice as long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.phases.activity import Cells
from vani.analyzers.phases.lagging_ranks import without_lag
from vani.analyzers.phases.phase_gap import MOST_PHASES, default_gap_ns, split
from vani.analyzers.phases.repeated_blocks import Pauses, pauses_of
from vani.distinct import distinct

_SHORT_NS = 10_000_000
_SHORT_SHARE = 1000
_MOST = 0.5
_ONE_WAY = 0.95
_LESSER = 0.025
_READ, _WRITTEN, _MIXED, _NOTHING = range(4)

Ints = NDArray[np.int64]


@dataclass(frozen=True, order=True)
class _Cut:
    """A phase ends at `low`, and the next one begins by `high`."""

    low: int
    high: int
    turn: bool


@dataclass(frozen=True, eq=False)
class _InTime:
    """Cells of all processes in time order, see `Cells`."""

    start: Ints
    end: Ints
    read: Ints
    written: Ints
    calls: Ints


def begins(
    start: Ints,
    end: Ints,
    cells: Cells,
    *,
    runs: Ints,
    floor_ns: int,
    gap_ns: int | None = None,
) -> tuple[Ints, int]:
    """Starts of the phases of an app, ascending, and the gap in ns.

    Parameters
    ----------
    start, end
        Intervals in which the app is in calls, ignoring pauses up to `floor_ns`; at least one.
    runs
        Starts of consecutive runs of the program.
    gap_ns
        Pause that separates phases; None derives it from the data.
    """
    if gap_ns is not None:
        return split(start, end, gap_ns)[0], gap_ns
    run_ns = int(end[-1] - start[0])
    opens = _first_in_runs(start, end, runs)
    within = ~np.isin(start[1:], opens)
    gap = default_gap_ns((start[1:] - end[:-1])[within], run_ns=run_ns, floor_ns=floor_ns)
    if not len(cells):
        return distinct(split(start, end, gap)[0], opens), gap
    short = max(_SHORT_NS, run_ns // _SHORT_SHARE)
    # The order of cells with equal start does not matter.
    order = np.argsort(cells.start)
    stretches = without_lag(start, end, cells, order, gap, short, opens)
    number = np.zeros(len(cells), np.int64)
    if len(stretches) > 1:
        number = np.maximum(np.searchsorted(stretches, cells.start, side="right") - 1, 0)
    pauses = pauses_of(cells, number, short)
    times = cells.start[order]
    bounds = [0, *np.searchsorted(times, stretches[1:]).tolist(), len(cells)]
    parts = [stretches]
    for i in range(len(stretches)):
        rows = slice(bounds[i], bounds[i + 1])
        others = (column[order[rows]] for column in (cells.end, cells.read, cells.written, cells.calls))
        app_in_time = _InTime(times[rows], *others)
        if len(app_in_time.start):
            cuts = _divided(app_in_time, int(stretches[i]), pauses.where(pauses.stretch == i), 2 * short)
            parts.append(np.array([cut.low for cut in cuts], np.int64))
    every = distinct(*parts)
    return (every if len(every) <= MOST_PHASES else stretches), gap


def _first_in_runs(start: Ints, end: Ints, runs: Ints) -> Ints:
    """First time of each run of the program at which it is in a call."""
    if len(runs) > MOST_PHASES:
        runs = runs[:1]
    place = np.searchsorted(start, runs, side="right") - 1
    inside = (place >= 0) & (end[place] > runs)
    following = np.minimum(place + 1, len(start) - 1)
    first = np.where(inside, np.maximum(runs, start[0]), start[following])
    return distinct(first, start[:1])


def _divided(cells: _InTime, begin: int, pauses: Pauses, least: int) -> list[_Cut]:
    """Cuts within a part whose cells are in time order; `begin` is its start."""
    last = int(cells.end.max())
    cuts = _most_pause(cells, begin, last, pauses, least)
    edges = [begin, *(cut.low for cut in cuts), last + 1]
    for low, high in pairwise(edges):
        cut = _between_roles(cells, low, high)
        if cut is not None and _fits(cuts, cut, begin, last, least):
            cuts = sorted([*cuts, cut])
    return _without_same(cells, cuts, begin, last)


def _most_pause(cells: _InTime, begin: int, last: int, pauses: Pauses, least: int) -> list[_Cut]:
    """Moments at which most processes pause, largest first; strictly more than half by what they move."""
    moved = int((cells.read + cells.written).sum())
    enough = _MOST * (moved if moved else int(cells.calls.sum()))
    cuts: list[_Cut] = []
    low, high, weight = pauses.low, pauses.high, pauses.weight.copy()
    times = np.concatenate((low, high))
    # At equal times, starts of pauses come before ends.
    order = np.lexsort((np.repeat((0, 1), len(low)), times))
    while weight.any():
        together = np.cumsum(np.concatenate((weight, -weight))[order])
        best = int(np.argmax(together))
        if together[best] <= enough:
            break
        moment = int(times[order[best]])
        here = (low <= moment) & (high >= moment) & (weight > 0)
        turning = 2 * int(weight[here & pauses.turn].sum()) >= int(weight[here].sum())
        cut = _Cut(moment, int(high[here].min()), turning)
        if _fits(cuts, cut, begin, last, least):
            cuts = sorted([*cuts, cut])
        # No process pauses twice at one time.
        weight[here] = 0
    return cuts


def _fits(cuts: Sequence[_Cut], new: _Cut, begin: int, last: int, least: int) -> bool:
    """Whether both resulting phases, with the pauses around them, last long enough."""
    before = max((cut.low for cut in cuts if cut.low < new.low), default=begin)
    after = min((cut.high for cut in cuts if cut.low >= new.low), default=last)
    return new.high - before >= least and after - new.low >= least and new.low > begin


def _between_roles(cells: _InTime, low: int, high: int) -> _Cut | None:
    """The moment between low and high that best separates reads from writes, if any does."""
    rows = slice(*np.searchsorted(cells.start, (low, high)).tolist())
    read, written = cells.read[rows], cells.written[rows]
    reads, writes = int(read.sum()), int(written.sum())
    if min(reads, writes) < _LESSER * (reads + writes) or not reads or not writes:
        return None
    apart = np.abs(np.cumsum(read) / reads - np.cumsum(written) / writes)
    # Cells with equal start are on the same side, independent of the order of processes.
    times = cells.start[rows]
    apart[:-1][times[1:] == times[:-1]] = -1.0
    place = int(np.argmax(apart[:-1])) if len(apart) > 1 else 0
    if place + 1 >= len(apart) or apart[place] < 0:
        return None
    before, after = (
        _way(int(read[part].sum()), int(written[part].sum())) for part in (slice(place + 1), slice(place + 1, None))
    )
    if {before, after} != {_READ, _WRITTEN}:
        return None
    following = rows.start + place + 1
    start = int(cells.start[following])
    return _Cut(min(start, int(cells.end[rows.start : following].max())), start, turn=True)


def _way(read: float, written: float) -> int:
    if not read + written:
        return _NOTHING
    for side, way in ((read, _READ), (written, _WRITTEN)):
        if side >= _ONE_WAY * (read + written):
            return way
    return _MIXED


def _without_same(cells: _InTime, cuts: list[_Cut], begin: int, last: int) -> list[_Cut]:
    """Cuts, without turns that have the same kind on either side."""
    read, written = (np.append(0, np.cumsum(column)) for column in (cells.read, cells.written))

    def way(low: int, high: int) -> int:
        a, b = np.searchsorted(cells.start, (low, high)).tolist()
        return _way(float(read[b] - read[a]), float(written[b] - written[a]))

    place = 0
    while place < len(cuts):
        low = cuts[place - 1].low if place else begin
        high = cuts[place + 1].low if place + 1 < len(cuts) else last + 1
        here = cuts[place]
        before, after = way(low, here.low), way(here.low, high)
        if here.turn and before == after and before in (_READ, _WRITTEN):
            cuts = cuts[:place] + cuts[place + 1 :]
        else:
            place += 1
    return cuts
