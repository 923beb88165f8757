"""Long pauses in which other ranks wait for lagging ones, which do not end a phase.

After a pause of the whole app, everything until the return of a process that is not behind is the work of others. These
lag if they were behind, having moved less than most since the start of the phase, and

- they catch up: they move what they missed, to within a quarter, and pause or turn before they continue;
- no other rank joins in before the next long pause;
- they are at most half as many as the others; or twice as many, if a few were early.

In this case, the pause that follows counts instead.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.phases.activity import Cells
from vani.distinct import distinct

_FEW = 0.5
_MADE_UP = 0.25
_EVEN = 0.99

Ints = NDArray[np.int64]


def without_lag(
    start: Ints, end: Ints, cells: Cells, order: Ints, gap: int, short: int, runs: Ints
) -> Ints:
    """Starts of the parts separated by a pause longer than the gap in which no rank lags.

    Parameters
    ----------
    start, end, runs
        As in `phase_cuts.begins`.
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
