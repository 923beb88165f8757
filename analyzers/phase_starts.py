"""Starts of the phases of an app.

With a gap given by the user, a phase ends wherever no process of the app is in a call for longer than the gap, and
nowhere else. Without one, an app's calls are divided in three steps. All of them use the activity of processes, so
that a rank that lags behind the others, or loses its core for some milliseconds, does not create a phase.

1. Long pauses: no call of the app for longer than the gap (see below), unless ranks wait for lagging ones
   (see below). Consecutive runs of a program are also separated.
2. Repetition: a process pauses between similar rounds, and where it turns from reading to writing or back
   (see below). A phase ends at a moment at which most processes pause like this: strictly more than half,
   weighted by the bytes that each moves since the last long pause (by calls if no bytes are moved). Moments are tried
   in order of how many processes pause there, and processes that pause at a chosen moment pause nowhere else.
3. Roles: if some processes only read and others only write, no process turns. Such a part is divided at the
   moment that best separates the bytes read from those written, if at least 95 % then go one way on either side, and
   the lesser of the two is at least a fortieth of the bytes.

A turn with the same kind on either side (95 %) does not count. Pauses and rounds count only if they last both 10 ms
and a thousandth of the run: on a shared machine, the kernel's scheduler takes a process off its core for this long
(time slices of 3 to 24 ms). A phase with the pauses around it lasts at least twice as long.

**The gap** is the pause that separates phases, derived from the data.

The paper splits phases by "a threshold between two I/O calls" and gives no value (section IV-B.1). A pause is a time
in which no process of the app is in a call. An app's pauses, longest first, are g1 >= g2 >= ...; any threshold between
g(k+1) and gk gives k + 1 phases. The gap is the geometric middle of the range that is widest on a logarithmic
scale: the number of phases is then stable for the widest choice of thresholds around
it, so neither noise in the times nor a slightly different threshold changes it. A single phase competes as a range
from the longest pause to a thirtieth of the run.

No gap is shorter than half a second or a thousandth of the run, because ranks that share cores delay each other this
long even without computation. 16 ranks on two cores pass a barrier in up to 0.32 s, and the pauses of a run without
any computation have all lengths up to this, so the widest range among them is chance. Shorter pauses
are judged by the activity of processes, not by their length. Pauses below the floor of
the survey (1 ms, a ten-thousandth of the run) are not visible, because clocks of ranks agree no better.

**Lagging ranks**: a long pause in which other ranks wait for lagging ones does not end a phase. After a pause of the
whole app, everything until the return of a process that is not behind is the work of others. These lag if they were
behind, having moved less than most since the start of the phase, and

- they catch up: they move what they missed, to within a quarter, and pause or turn before they continue;
- no other rank joins in before the next long pause;
- they are at most half as many as the others; or twice as many, if a few were early.

In this case, the pause that follows counts instead.

**A process's repeated blocks (rounds), and its turns** from reading to writing or back:

- A round begins where a process opens a file after a pause (or turns). Rounds of less than 5 % of the largest one are
  preludes, such as a header or a folder, and count as pauses. Rounds are similar if bytes read, bytes written and data
  operations differ by at most a tenth; they may be adjacent or alternate (checkpoint and plot).
- Let the walk be the share of its bytes that a process has read so far, minus the same share of what it writes. A turn
  is an extreme of the walk that is at least a fifth from its neighbours. A kind with less than 5 % of the bytes counts
  less.

A process's actions and their order are the same in each run of a program; only these are used, not times.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from vani.analyzers.activity import Cells
from vani.columns import Bools, Floats, Ints, distinct

MAX_PHASES = 1000

_LEAST_NS = 500_000_000
_LEAST_SHARE = 1000



def least_gap_ns(run_ns: int) -> int:
    """The shortest gap that is derived from the data; `run_ns` as below."""
    return max(_LEAST_NS, run_ns // _LEAST_SHARE)


def default_gap_ns(pauses: Ints, *, run_ns: int, floor_ns: int) -> int:
    """Choose the gap for an app.

    Parameters
    ----------
    pauses
        Lengths of the pauses longer than `floor_ns`, in any order.
    run_ns
        Length of the app's I/O from first to last call.
    """
    least = max(floor_ns, least_gap_ns(run_ns))
    longest = np.sort(pauses)[::-1].astype(np.float64)[:MAX_PHASES]
    if not len(longest) or longest[0] <= least:
        return least
    bounds = np.concatenate(([max(run_ns / 30, longest[0])], longest, [float(floor_ns)]))
    widths = np.log(bounds[:-1]) - np.log(bounds[1:])
    if len(pauses) > MAX_PHASES:
        # There are more below the last pause examined, so that range is not empty.
        widths = widths[:-1]
    # A range that ends below the least gap separates nothing that may be separated.
    widths = widths[bounds[: len(widths)] > least]
    best = int(np.argmax(widths))
    middle = math.sqrt(bounds[best] * bounds[best + 1])
    return max(least, _rounded(middle, bounds[best + 1], bounds[best]))


def _rounded(value: float, low: float, high: float) -> int:
    """Round to two significant digits if the result stays within the range."""
    step = 10 ** (math.floor(math.log10(value)) - 1)
    rounded = round(value / step) * step
    return int(rounded if low <= rounded < high else value)


def split(start: Ints, end: Ints, gap_ns: int) -> tuple[Ints, Ints]:
    """Starts and ends of parts without a longer pause, from an app's busy intervals (ascending, disjoint)."""
    if not len(start):
        return start, end
    opens = np.append(True, start[1:] - end[:-1] > gap_ns)
    return start[opens], end[np.append(opens[1:], True)]


_FEW = 0.5
_MADE_UP = 0.25
_EVEN = 0.99


def without_lag(start: Ints, end: Ints, cells: Cells, order: Ints, gap: int, short: int, runs: Ints) -> Ints:
    """Starts of the parts separated by a pause longer than the gap in which no rank lags.

    Parameters
    ----------
    start, end, runs
        As in `begins`.
    order
        Time order of the cells.
    gap, short
        Pauses that separate phases, and a process's rounds, in ns.
    """
    long = np.flatnonzero(np.append(False, start[1:] - end[:-1] > gap))
    times = cells.start[order]

    def done(low: int, high: int) -> Cells:
        return cells.where(order[slice(*np.searchsorted(times, (low, high)).tolist())])

    starts = [int(start[0])]
    for number, at in enumerate(long.tolist()):
        here = int(start[at])
        until = int(start[long[number + 1]]) if number + 1 < len(long) else int(end[-1]) + 1
        earlier, after = done(starts[-1], here), done(here, until)
        back = after.start[np.isin(after.process, _not_behind(earlier))]
        again = int(back.min()) if len(back) else until
        late, then = done(here, again), done(again, until)
        if here in runs or not _makes_up(late, earlier) or not _is_even(late, earlier, then, short):
            starts.append(here)
        elif again < until and again - int(late.end.max()) > gap:
            starts.append(again)
    return distinct(np.array(starts, np.int64), runs)


def _not_behind(cells: Cells) -> Ints:
    """Processes that moved about as much as most did."""
    processes, number = np.unique(cells.process, return_inverse=True)
    moved = np.bincount(number, cells.read + cells.written)
    return processes[moved >= _EVEN * np.median(moved)] if len(moved) else processes


def _makes_up(late: Cells, before: Cells) -> bool:
    """Whether some processes do what others did before but they did not, and one of the two groups is small."""
    if not len(late) or not len(before):
        return False
    late_processes = distinct(late.process)
    lagged = np.isin(before.process, late_processes)
    others = len(distinct(before.process[~lagged]))
    if not others or min(len(late_processes), others) > _FEW * max(len(late_processes), others):
        return False
    behind, done = [], []
    for column in ("read", "written"):
        moved = getattr(before, column)
        behind.append(int(moved[~lagged].sum()) / others - int(moved[lagged].sum()) / len(late_processes))
        done.append(int(getattr(late, column).sum()) / len(late_processes))
    most = max(sum(behind), sum(done))
    return sum(done) > 0 and all(abs(a - b) <= _MADE_UP * most for a, b in zip(behind, done, strict=True))


def _is_even(late: Cells, earlier: Cells, then: Cells, short: int) -> bool:
    """Whether no other rank joins in, and those that caught up pause or turn before they continue."""
    if not np.isin(then.process, np.concatenate((late.process, earlier.process))).all():
        return False
    before, after = late.by_process(last=True), then.by_process(last=False)
    _, late_rows, other = np.intersect1d(before.process, after.process, assume_unique=True, return_indices=True)
    before, after = before.where(late_rows), after.where(other)
    same_way = ((before.read > 0) & (after.read > 0)) | ((before.written > 0) & (after.written > 0))
    return not (same_way & (after.start - before.end <= short)).any()


_PRELUDE = 0.05
_ALIKE = 0.1
_TURN = 0.2
_SCARCE = 0.05



@dataclass(frozen=True, eq=False)
class Pauses:
    """Pauses of processes, from `low` to `high`; `weight` is what each moves, `turn` is True if its kind changes."""

    stretch: Ints
    low: Ints
    high: Ints
    weight: Ints
    turn: Bools

    def where(self, rows: Bools) -> Pauses:
        """Select some of them."""
        return Pauses(*(getattr(self, n)[rows] for n in self.__dataclass_fields__))


def pauses_of(cells: Cells, stretch: Ints, short: int) -> Pauses:
    """Pauses of processes between similar rounds, and turns."""
    reach = _reached(cells)
    owner = np.append(True, (cells.process[1:] != cells.process[:-1]) | (stretch[1:] != stretch[:-1]))
    step = np.append(True, cells.start[1:] - reach[:-1] > short) | owner
    groups = np.cumsum(owner) - 1
    heads = np.flatnonzero(owner)
    moved = cells.read + cells.written
    total = np.add.reduceat(moved, heads)
    weight = np.where(_by_stretch(total, stretch[heads]) > 0, total, np.add.reduceat(cells.calls, heads))
    turns, turned = _turns(cells, groups, step, reach)
    rounds = _between_rounds(cells, groups, step, turned, reach)
    if len(turns[0]) and len(rounds[0]):
        # A turn is known more precisely than the rounds around it.
        first = np.searchsorted(turns[0], rounds[0])
        last = np.searchsorted(turns[0], rounds[0], side="right")
        alone = np.array(
            [
                not ((turns[1][a:b] <= high) & (turns[2][a:b] >= low)).any()
                for a, b, low, high in zip(first, last, rounds[1], rounds[2], strict=True)
            ],
            dtype=np.bool_,
        )
        rounds = rounds[0][alone], rounds[1][alone], rounds[2][alone]
    group, low, high = (np.concatenate(pair) for pair in zip(turns, rounds, strict=True))
    turn = np.arange(len(group)) < len(turns[0])
    return Pauses(stretch[heads][group], low, high, weight[group], turn)


def _reached(cells: Cells) -> Ints:
    """Latest end so far of each process."""
    first = np.append(True, cells.process[1:] != cells.process[:-1])
    order = np.cumsum(first) - 1
    span = int(cells.end.max()) + 1
    if (int(order[-1]) + 1) * span >= 1 << 62:
        return cells.end
    order *= span
    reach: Ints = np.maximum.accumulate(cells.end + order)
    reach -= order
    return reach


def _by_stretch(values: Ints, stretch: Ints) -> Ints:
    """Sum over the part that each value belongs to."""
    sums = np.zeros(int(stretch.max()) + 1, np.int64)
    np.add.at(sums, stretch, values)
    return sums[stretch]


def _between_rounds(cells: Cells, groups: Ints, step: Bools, turned: Bools, reach: Ints) -> tuple[Ints, Ints, Ints]:
    """(group, end of a round, start of the next) where a process repeats itself."""
    at = np.flatnonzero(step | turned)
    opens, group = np.add.reduceat(cells.opens, at), groups[at]
    head = (opens > 0) | turned[at] | np.append(True, group[1:] != group[:-1])
    first = at[head]
    group = groups[first]
    read, written, data, calls = (
        np.add.reduceat(column, first) for column in (cells.read, cells.written, cells.data, cells.calls)
    )
    end = np.maximum.reduceat(reach, first)
    start = cells.start[first]
    in_all = np.zeros(int(groups[-1]) + 1, np.int64)
    np.add.at(in_all, group, read + written)
    size = np.where(in_all[group] > 0, read + written, calls)
    largest = np.zeros(len(in_all), np.int64)
    np.maximum.at(largest, group, size)
    keep = np.flatnonzero((size >= _PRELUDE * largest[group]) & (np.bincount(group)[group] <= MAX_PHASES))
    group, read, written, data, start, end = (c[keep] for c in (group, read, written, data, start, end))

    def alike(apart: int) -> Bools:
        """Whether each round is similar to the one `apart` rounds later; shape (rounds,)."""
        repeats = np.zeros(len(group), np.bool_)
        if len(group) > apart:
            a, b = slice(None, -apart), slice(apart, None)
            most = _ALIKE * np.maximum((read + written)[a], (read + written)[b])
            repeats[a] = (
                (group[a] == group[b])
                & (most > 0)
                & (np.abs(read[a] - read[b]) <= most)
                & (np.abs(written[a] - written[b]) <= most)
                & (np.abs(data[a] - data[b]) <= _ALIKE * np.maximum(data[a], data[b]))
            )
        return repeats

    if len(group) < 2:
        return group[:0], start[:0], start[:0]
    two = alike(2)
    again = (alike(1) | two | np.append(False, two[:-1]))[:-1] & (group[1:] == group[:-1])
    return group[:-1][again], end[:-1][again], np.maximum(start[1:], end[:-1])[again]


def _turns(cells: Cells, groups: Ints, step: Bools, reach: Ints) -> tuple[tuple[Ints, Ints, Ints], Bools]:
    """(group, end of reading, start of writing), or with reading and writing swapped, per turn; and cells after turns.

    Actions in one cell are unordered: a process may turn anywhere in a cell in which it reads and writes, and before
    any data operation of a cell that also has others.
    """
    ways = np.flatnonzero((cells.read > 0) | (cells.written > 0))
    number = np.cumsum(step) - 1
    heads = np.flatnonzero(step)
    step_end = reach[np.append(heads[1:], len(step)) - 1]
    both = (cells.read > 0) & (cells.written > 0)
    turned = np.zeros(len(cells), np.bool_)
    turns: list[tuple[int, int, int]] = []
    if len(ways):
        walk = _walk(cells.read[ways], cells.written[ways], groups[ways])
        bounds = np.append(np.flatnonzero(np.append(True, groups[ways][1:] != groups[ways][:-1])), len(ways))
        swing = np.maximum.reduceat(walk, bounds[:-1]) - np.minimum.reduceat(walk, bounds[:-1])
        for i in np.flatnonzero(swing >= _TURN).tolist():
            rows = ways[bounds[i] : bounds[i + 1]]
            for place in _extremes(walk[bounds[i] : bounds[i + 1]], _TURN):
                if place + 1 < len(rows):
                    a, b = int(rows[place]), int(rows[place + 1])
                    turned[b] = True
                    low = (
                        cells.start[a]
                        if both[a]
                        else reach[a]
                        if number[a] == number[b]
                        else step_end[number[a]]
                    )
                    high = cells.start[b] if cells.calls[b] == cells.data[b] and not both[b] else cells.end[b] - 1
                    turns.append((int(groups[a]), int(low), int(max(low, high))))
    columns = np.array(turns, np.int64).reshape(-1, 3)
    return (columns[:, 0], columns[:, 1], columns[:, 2]), turned


def _walk(read: Ints, written: Ints, groups: Ints) -> Floats:
    """Share of a group's reads that it has read so far, minus the same share of its writes: rises with reads, and falls
    with writes. A scarce kind counts less."""
    starts = np.flatnonzero(np.append(True, groups[1:] != groups[:-1]))
    lengths = np.diff(np.append(starts, len(groups)))
    reads, writes = (np.add.reduceat(column, starts).astype(np.float64) for column in (read, written))
    moved = reads + writes

    def scale(side: Floats) -> Floats:
        share = np.divide(side, moved, out=np.zeros_like(moved), where=moved > 0)
        weight = np.minimum(1.0, share / _SCARCE)
        scale_of_group: Floats = np.divide(weight, side, out=np.zeros_like(moved), where=side > 0)
        return np.repeat(scale_of_group, lengths)

    steps = read * scale(reads) - written * scale(writes)
    walk: Floats = np.cumsum(steps)
    walk -= np.repeat(walk[starts] - steps[starts], lengths)
    return walk


def _extremes(walk: Floats, least: float) -> list[int]:
    """Indices after which the walk, which begins at 0, reverses by at least `least`, alternately up and down."""
    extremes: list[int] = []
    high = low = 0.0
    high_at = low_at = -1
    way = 0
    for place, value in enumerate(walk.tolist()):
        if value >= high and way >= 0:
            high, high_at = value, place
        if value <= low and way <= 0:
            low, low_at = value, place
        if way <= 0 and value - low >= least:
            if way or low <= -least:
                extremes.append(low_at)
            way, high, high_at = 1, value, place
        elif way >= 0 and high - value >= least:
            if way or high >= least:
                extremes.append(high_at)
            way, low, low_at = -1, value, place
    return extremes


_SHORT_NS = 10_000_000
_SHORT_SHARE = 1000
_MOST = 0.5
_ONE_WAY = 0.95
_LESSER = 0.025
_READ, _WRITTEN, _MIXED, _NOTHING = range(4)



@dataclass(frozen=True, order=True)
class _Cut:
    """A phase ends at `low`, and the next one begins by `high`."""

    low: int
    high: int
    turn: bool


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
        app_in_time = cells.where(order[rows])
        if len(app_in_time):
            cuts = _divided(app_in_time, int(stretches[i]), pauses.where(pauses.stretch == i), 2 * short)
            parts.append(np.array([cut.low for cut in cuts], np.int64))
    every = distinct(*parts)
    return (every if len(every) <= MAX_PHASES else stretches), gap


def _first_in_runs(start: Ints, end: Ints, runs: Ints) -> Ints:
    """First time of each run of the program at which it is in a call."""
    if len(runs) > MAX_PHASES:
        runs = runs[:1]
    place = np.searchsorted(start, runs, side="right") - 1
    inside = (place >= 0) & (end[place] > runs)
    following = np.minimum(place + 1, len(start) - 1)
    first = np.where(inside, np.maximum(runs, start[0]), start[following])
    return distinct(first, start[:1])


def _divided(cells: Cells, begin: int, pauses: Pauses, least: int) -> list[_Cut]:
    """Cuts within a part whose cells are in time order; `begin` is its start."""
    last = int(cells.end.max())
    cuts = _most_pause(cells, begin, last, pauses, least)
    edges = [begin, *(cut.low for cut in cuts), last + 1]
    for low, high in pairwise(edges):
        cut = _between_roles(cells, low, high)
        if cut is not None and _fits(cuts, cut, begin, last, least):
            cuts = sorted([*cuts, cut])
    return _without_same(cells, cuts, begin, last)


def _most_pause(cells: Cells, begin: int, last: int, pauses: Pauses, least: int) -> list[_Cut]:
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


def _between_roles(cells: Cells, low: int, high: int) -> _Cut | None:
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


def _without_same(cells: Cells, cuts: list[_Cut], begin: int, last: int) -> list[_Cut]:
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
