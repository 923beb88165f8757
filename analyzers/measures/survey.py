"""First pass: what later measures need to know beforehand.

- when each app was busy, without pauses shorter than a floor (a ten-thousandth of the run, at least 1 ms): phases
  are found in it. A pause of the whole app is a pause of every process, so dropping short pauses early loses none;
- per file: calls and time by kind (which files matter, which are written and read);
- which processes run calls at the same time, so that their I/O time is no sum;
- per file and moment (the run in 4,096 pieces): how far writes and truncations reached, and whether the run itself
  made the file: what is asked for beyond that was not there. Of thousands of files that are written all through the
  run, pieces are put together two by two until there are at most two million moments of files. How often hangs on
  all of them alone, not on who looked at which of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.base import BUCKETS, NO_VALUE, Alike, Batch, Context, Ends, Facts, World
from vani.analyzers.intervals import Intervals, merge
from vani.analyzers.keyed import Dense, How, Keyed, group
from vani.analyzers.threads import OverlapFinder
from vani.calls import Flag, Kind, Layer

__all__ = ["Survey", "SurveyResult", "bucket_ns", "ends_of", "pause_floor_ns"]

_REACH: dict[str, How] = {"reach": "max"}
_FILES: dict[str, How] = {"last_use": "max", "last_remove": "max", "first_make": "min", "first_read": "min"}
_NEVER = np.iinfo(np.int64).max
_MOST_REACH = 1 << 21
"""Moments of files, 16 bytes each."""


def pause_floor_ns(world: World) -> int:
    """Shortest pause that can separate phases."""
    return max(1_000_000, world.span_ns // 10_000)


def bucket_ns(world: World) -> int:
    """Length of one of the pieces of the run."""
    return max(1, -(-(world.span_ns + 1) // BUCKETS))


@dataclass(frozen=True)
class SurveyResult:
    """`busy`: by app. `files`: by file code. `reach`: by file and moment. `threaded`: processes, ascending.
    `level`: 2 ** level pieces of the run are one moment."""

    busy: Intervals
    files: Keyed
    reach: Keyed
    threaded: NDArray[np.int64]
    level: int = 0


class Survey:
    """See the module's docstring."""

    name = "survey"
    columns = frozenset({"rank", "kind", "file", "offset", "bytes", "start_ns", "duration_ns"})

    def begin(self, context: Context, facts: Facts | None) -> _Collector:
        del facts
        return _Collector(context)

    def combine(self, parts: Sequence[SurveyResult]) -> SurveyResult:
        # Joining intervals once more must not close pauses that are longer than the floor: they touch nothing.
        level = max((p.level for p in parts), default=0)
        reach, level = _few_moments([_coarser(p.reach, level - p.level) for p in parts], level)
        return SurveyResult(
            Intervals.joined([p.busy for p in parts]),
            Keyed.merged([p.files for p in parts], _FILES),
            reach,
            np.unique(np.concatenate([np.empty(0, np.int64), *(p.threaded for p in parts)])),
            level,
        )


def _coarser(reach: Keyed, by: int) -> Keyed:
    """The furthest ends with 2 ** by moments put together."""
    if not by or not len(reach):
        return reach
    moment = reach.keys % (BUCKETS + 1)
    return group(reach.keys - moment + (moment >> by), reach.columns, _REACH)


def _few_moments(parts: Sequence[Keyed], level: int) -> tuple[Keyed, int]:
    """All parts together, as coarse as it takes; parts of one level."""
    reach = Keyed.merged(parts, _REACH)
    while len(reach) > _MOST_REACH and BUCKETS >> level:
        reach, level = _coarser(reach, 1), level + 1
    return reach, level


class _Collector:
    def __init__(self, context: Context) -> None:
        self._floor = pause_floor_ns(context.world)
        self._bucket = bucket_ns(context.world)
        self._app = context.app
        self._busy = Intervals()
        self._overlaps = OverlapFinder()
        self._threaded: list[NDArray[np.int64]] = []
        self._files: list[Keyed] = []
        self._reach: list[Keyed] = []
        self._level = 0

    def add(self, batch: Batch) -> None:
        self._threaded.append(self._overlaps.find(batch.process, batch.start, batch.end))
        rows: Any = np.flatnonzero(batch.included)
        if not len(rows):
            return
        if len(rows) == len(batch):
            # Views in place of copies.
            rows = slice(None)
        self._add_busy(batch, rows)
        file, flags = batch.file[rows], batch.flags[rows]
        kind, layer = batch.kind[rows], batch.layer[rows]
        start, size = batch.start[rows], batch.bytes[rows]
        dense = Dense.of(file)
        alike = Alike.of(dense.codes, flags, kind + 4 * layer)
        count = alike.count
        blind = (kind == Kind.WRITE) & ((size == NO_VALUE) | ((batch.offset[rows] == NO_VALUE) & (size > 0)))
        # From here on one row stands for all that are alike.
        group = Dense(dense.keys, dense.codes[alike.row])
        kind, flags, layer = kind[alike.row], flags[alike.row], layer[alike.row]
        made = (flags & (Flag.CREATE | Flag.TRUNCATE)) != 0
        uses = (kind <= Kind.WRITE) | ((flags & Flag.OPEN) != 0)
        first, last = alike.range(start)

        def extreme(some: NDArray[np.bool_], latest: bool) -> NDArray[np.int64]:
            found = np.full(len(dense.keys), -1 if latest else _NEVER)
            extremes, values = (np.maximum, last) if latest else (np.minimum, first)
            extremes.at(found, group.codes[some], values[some])
            return found

        columns = {
            "reads": group.sum(count, kind == Kind.READ),
            "writes": group.sum(count, kind == Kind.WRITE),
            "metadata": group.sum(count, kind == Kind.METADATA),
            "time": dense.sum(batch.duration[rows]),
            "opens": group.sum(count, (flags & Flag.OPEN) != 0),
            "uses": group.sum(count, uses & ((flags & Flag.DIRECTORY) == 0)),
            "makes": group.sum(count, made),
            "empties": group.sum(count, (flags & Flag.TRUNCATE) != 0),
            "looks": group.sum(count, (flags & (Flag.OPEN | Flag.WRITABLE | Flag.DIRECTORY)) == Flag.OPEN),
            "streams": group.sum(count, made & (layer == Layer.STDIO)),
            "blind": dense.count(blind) if blind.any() else np.zeros(len(dense.keys), np.int64),
            "last_use": extreme(uses, latest=True),
            "last_remove": extreme((flags & Flag.REMOVE) != 0, latest=True),
            "first_make": extreme(made, latest=False),
            "first_read": extreme(kind == Kind.READ, latest=False),
        }
        self._files.append(Keyed(dense.keys, columns))
        self._add_reach(batch, rows)
        if len(self._files) > 64:
            self._shrink()

    def _add_busy(self, batch: Batch, rows: Any) -> None:
        start, end = batch.start[rows], batch.end[rows]
        app = np.full(len(start), self._app, np.int64)
        if len(start) > 1 and (start[1:] >= start[:-1]).all():
            reached = np.maximum.accumulate(np.maximum(end, start + 1))
            opens = np.append(True, start[1:] - reached[:-1] > self._floor)
            closes = np.append(opens[1:], True)
            found = Intervals(app[opens], start[opens], reached[closes])
        else:
            found = _shorter(merge(app, start, np.maximum(end, start + 1) + self._floor), self._floor)
        parts = [self._busy, found]
        longer = [Intervals(p.group, p.start, p.end + self._floor) for p in parts if len(p)]
        self._busy = _shorter(Intervals.joined(longer), self._floor)

    def _add_reach(self, batch: Batch, rows: Any) -> None:
        offset, size = batch.offset[rows], batch.bytes[rows]
        kind, flags = batch.kind[rows], batch.flags[rows]
        resized = ((flags & Flag.RESIZE) != 0) & (offset != NO_VALUE)
        wrote = (kind == Kind.WRITE) & (offset != NO_VALUE) & (size > 0)
        telling = np.flatnonzero(resized | wrote)
        if not len(telling):
            return
        reach = offset[telling] + np.where(wrote[telling], size[telling], 0)
        bucket = np.minimum(batch.start[rows][telling] // self._bucket, BUCKETS)
        key = batch.file[rows][telling] * (BUCKETS + 1) + (bucket >> self._level)
        self._reach.append(group(key, {"reach": reach}, _REACH))

    def _shrink(self) -> None:
        self._files = [Keyed.merged(self._files, _FILES)]
        reach, level = _few_moments(self._reach, self._level)
        self._reach, self._level = [reach], level

    def result(self) -> SurveyResult:
        self._shrink()
        threaded = np.unique(np.concatenate([np.empty(0, np.int64), *self._threaded]))
        return SurveyResult(self._busy, self._files[0].packed(), self._reach[0].packed(), threaded, self._level)


def _shorter(intervals: Intervals, by: int) -> Intervals:
    return Intervals(intervals.group, intervals.start, intervals.end - by)


def join_busy(busy: Intervals, floor: int) -> Intervals:
    """Close pauses up to the floor once more, after partitions were put together."""
    if not len(busy):
        return busy
    return _shorter(merge(busy.group, busy.start, busy.end + floor), floor)


def ends_of(world: World, survey: SurveyResult) -> Ends:
    """How far each file reached over time.

    A file's end is known once the run made it (an open that creates or truncates) or if job.yaml knows its size. That
    an open with O_CREAT made the file, and did not find it, is an assumption that the readers' limits name. It is
    unknown where a write's place or size is, and where a stream was opened for writing and no write is seen: Recorder
    3 does not trace fprintf.
    """
    files = world.files
    since, first_read = np.full(files, _NEVER), np.full(files, _NEVER)
    sized = world.known_sizes != NO_VALUE
    since[sized] = np.iinfo(np.int64).min
    if len(survey.files):
        used = survey.files.keys
        since[used] = np.minimum(since[used], survey.files["first_make"])
        first_read[used] = survey.files["first_read"]
        unseen = (survey.files["blind"] > 0) | ((survey.files["streams"] > 0) & (survey.files["writes"] == 0))
        since[used[unseen]] = _NEVER
    known = since != _NEVER
    keys, reach = survey.reach.keys, survey.reach["reach"] if len(survey.reach) else np.empty(0, np.int64)
    if sized.any():
        start = Keyed(np.flatnonzero(sized) * (BUCKETS + 1), {"reach": world.known_sizes[sized]})
        both = Keyed.merged([Keyed(keys, {"reach": reach}), start], _REACH)
        keys, reach = both.keys, both["reach"]
    if len(keys):
        owner = keys // (BUCKETS + 1)
        # The largest end so far within each file: lifted apart by file, one running maximum serves all.
        order = np.cumsum(np.append(0, (owner[1:] != owner[:-1]).astype(np.int64)))
        widest = int(reach.max()) + 1
        if (int(order[-1]) + 1) * widest < 1 << 62:
            reach = np.maximum.accumulate(reach + order * widest) - order * widest
        else:
            bounds = np.append(np.flatnonzero(np.append(True, owner[1:] != owner[:-1])), len(owner))
            for a, b in pairwise(bounds.tolist()):
                reach[a:b] = np.maximum.accumulate(reach[a:b])
    # One column of millions of moments: as a table it is kept in a small type.
    reach = Keyed(keys, {"reach": reach}).packed().columns["reach"]
    return Ends(known, since, known & (since <= first_read), keys, reach, bucket_ns(world), survey.level)
