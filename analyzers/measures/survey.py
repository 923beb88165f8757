"""First pass, which finds what later measures need:

- when each app was busy, without pauses below a floor (a ten-thousandth of the run, at least 1 ms): phases
  are found from this. A pause of the whole app is a pause of every process, so dropping short pauses early loses none;
- the activity of processes over time (`analyzers/activity.py`), which shows where it repeats;
- per file: calls and time by kind (which files matter, which are written and read), and whether several processes use
  it;
- which processes run calls concurrently, so that their I/O time is not a sum;
- per file and moment (a 4,096th of the run): how far writes and truncations reached, and whether the run itself
  created the file, because requests past the end return nothing. If thousands of files are written throughout the
  run, moments are merged in pairs until at most two million moments of files remain. The number of merges depends
  only on all of them together, not on their distribution over partitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from vani.analyzers.activity import Activity, ActivityCollector, bucket_ns, merged_moments
from vani.analyzers.batch import Batch, CountedGroups
from vani.analyzers.int_table import NO_VALUE, Factorized, How, IntTable, group, pack, unpack
from vani.analyzers.intervals import Intervals, merge
from vani.analyzers.workload import BUCKETS, MOMENTS, Context, Ends, SurveyFindings, Workload
from vani.calls import DIRECT, SYNCHRONOUS, Flag, Kind, Layer
from vani.columns import Bools, Ints, Numbers, distinct
from vani.kernels import ReachKind, columns, dtype_of

_LONG_AGO = np.iinfo(np.int64).min


@dataclass(frozen=True)
class Last:
    """The last call of a batch: process (-1 if none), start and end; and the latest end of earlier ones, in ns."""

    process: int = -1
    start: int = 0
    end: int = 0
    reach: int = _LONG_AGO


class OverlapFinder:
    """Follows processes batch by batch.

    A call may overlap its predecessor, because clocks with coarse ticks make neighbours touch. It runs concurrently
    with others if it begins before its predecessor, or before some earlier call has ended.
    """

    def __init__(self) -> None:
        self.last = Last()

    def find(self, process: Ints, start: Ints, end: Ints) -> Ints:
        """Processes with concurrent calls in this batch; calls in recorded order, process by process."""
        n = len(process)
        if not n:
            return process[:0]
        goes_on = int(process[0]) == self.last.process
        bad = np.zeros(n, np.bool_)
        if int(process[0]) == int(process[-1]) and (end[1:] >= end[:-1]).all():
            # No call outlasts its successor, so looking back two calls is enough.
            of_first = n
            bad[1:] = start[1:] < start[:-1]
            bad[2:] |= start[2:] < end[:-2]
        else:
            first = np.append(True, process[1:] != process[:-1])
            of_first = int(np.argmax(first[1:])) + 1 if first[1:].any() else n
            bad[1:] = (start[1:] < start[:-1]) & ~first[1:]
            # One running maximum serves all processes of the batch, each lifted above the previous ones.
            low = int(min(start.min(), end.min()))
            span = int(end.max()) - low + 1
            lift = (np.cumsum(first) - 1) * span - low
            reached = np.maximum.accumulate(end + lift)
            if n > 2:
                bad[2:] |= (start[2:] + lift[2:] < reached[:-2]) & ~first[2:] & ~first[1:-1]
        if goes_on:
            before = max(self.last.end, self.last.reach)
            bad[0] |= start[0] < max(self.last.start, self.last.reach)
            # Calls that extend from the previous batch overlap all calls of the process that begin before they end.
            bad[1:of_first] |= start[1:of_first] < before
        self._keep(process, start, end, goes_on)
        return distinct(process[bad])

    def _keep(self, process: Ints, start: Ints, end: Ints, goes_on: bool) -> None:
        last = int(process[-1])
        earlier_ends = end[process == last][:-1]
        reach = int(earlier_ends.max(initial=_LONG_AGO))
        if goes_on and last == self.last.process:
            reach = max(reach, self.last.end, self.last.reach)
        self.last = Last(last, int(start[-1]), int(end[-1]), reach)


_REACH: dict[str, How] = {"reach": "max"}
_HOWS: tuple[How, ...] = ("max", "min")
ENDS_OF_FILES = {
    name: _HOWS[name.startswith("first")]
    for name in (
        *("last_use", "last_remove", "last_process", "last_writer", "last_maker", "last_close", "furthest_seek"),
        *("first_make", "first_read", "first_process", "first_writer", "first_maker", "first_resize", "first_open"),
    )
}
"""Columns of surveyed files that are not sums."""
_CREATES = Flag.CREATE | Flag.TRUNCATE
_WRITABLE_OPEN = Flag.OPEN | Flag.WRITABLE
_SYNCHRONOUS_OPEN = Flag.OPEN | SYNCHRONOUS
_NEVER = np.iinfo(np.int64).max
_MAX_REACH = 1 << 21
"""Maximum number of moments of files, 16 bytes each."""


def pause_floor_ns(workload: Workload) -> int:
    """Shortest pause in ns that can separate phases."""
    return max(1_000_000, workload.span_ns // 10_000)


@dataclass(frozen=True, eq=False)
class SurveyResult:
    """`busy`: by app. `files`: by file code. `reach`: by file and moment. `threaded`: processes, ascending.
    `level`: a moment is 2 ** level pieces of the run."""

    busy: Intervals
    files: IntTable
    reach: IntTable
    threaded: Ints
    level: int = 0
    activity: Activity = field(default_factory=Activity)


@dataclass(frozen=True, eq=False)
class SurveyedFiles:
    """Calls on each file."""

    files: IntTable
    """By file code: calls (reads, writes, metadata, syncs, opens, makes, empties, looks, streams, resizes, unfollowed,
    writable, stream_opens, direct_opens, synchronous_opens, synchronous_writes, closes), bytes_read and bytes_written,
    time and metadata_time (ns), furthest_seek (bytes, -1: none), open_us (sum of close times minus open times) and
    times; without the latter if no times are known."""
    moments: int = BUCKETS
    """Number of moments of the run at which the ends of files are known."""
    records_creation: bool = True
    """Whether the source recorded which opens created (or emptied) a file."""

    @property
    def records_removal(self) -> bool:
        """Whether the source recorded removals."""
        return not len(self.files) or bool({"removes", "last_remove"} & set(self.files.columns))

    def removed(self, files: Ints) -> Bools:
        """Whether each file was removed, regardless of later events; False if removals are not recorded."""
        if "removes" in self.files.columns:
            return self.files.at(files, "removes") > 0
        if not self.records_removal:
            return np.zeros(len(files), np.bool_)
        return self.files.at(files, "last_remove", -1) >= 0


class Survey:
    """See the module's docstring."""

    name = "survey"
    result = SurveyedFiles
    columns = frozenset({"rank", "kind", "file", "offset", "bytes", "start_ns", "duration_ns"})

    def chunk(self, context: Context, findings: SurveyFindings | None) -> _Collector:
        return _Collector(context)

    def combine(self, parts: Sequence[SurveyResult]) -> SurveyResult:
        # Joining intervals again must not close pauses longer than the floor, because these touch nothing.
        reach, level = merged_moments([(part.reach, part.level) for part in parts], _REACH, _MAX_REACH)
        return SurveyResult(
            Intervals.joined([p.busy for p in parts]),
            IntTable.merged([p.files for p in parts], ENDS_OF_FILES),
            reach,
            distinct(np.empty(0, np.int64), *(p.threaded for p in parts)),
            level,
            Activity.combined([p.activity for p in parts]),
        )

    def aggregate(self, combined: SurveyResult, workload: Workload, findings: SurveyFindings) -> SurveyedFiles:
        return SurveyedFiles(combined.files, BUCKETS >> combined.level)


def calls_by_file(groups: CountedGroups, rows: Numbers, files: Factorized) -> dict[str, Ints]:
    """Columns of `SurveyedFiles` that need neither times nor places, shape (files,); `files` of some rows of groups."""
    kind, flags, layer = groups.kind[rows], groups.flags[rows], groups.layer[rows]
    moved, unsized = groups.bytes[rows], groups.unsized[rows]
    read, write, metadata = kind == Kind.READ, kind == Kind.WRITE, kind == Kind.METADATA
    chosen = {
        "reads": read,
        "writes": write,
        "metadata": metadata,
        "syncs": kind == Kind.SYNC,
        "opens": (flags & Flag.OPEN) != 0,
        "makes": (flags & _CREATES) != 0,
        "empties": (flags & Flag.TRUNCATE) != 0,
        "looks": (flags & (_WRITABLE_OPEN | Flag.DIRECTORY)) == Flag.OPEN,
        "streams": ((flags & _CREATES) != 0) & (layer == Layer.STDIO),
        "resizes": (flags & Flag.RESIZE) != 0,
        "removes": (flags & Flag.REMOVE) != 0,
        "unfollowed": (flags & _WRITABLE_OPEN) == Flag.WRITABLE,
        "direct_opens": (flags & DIRECT) != 0,
        "synchronous_opens": (flags & _SYNCHRONOUS_OPEN) == _SYNCHRONOUS_OPEN,
        "synchronous_writes": ((flags & SYNCHRONOUS) != 0) & write & (layer <= Layer.STDIO),
    }
    return {name: files.sum(groups.count[rows], some) for name, some in chosen.items()} | {
        "bytes_read": files.sum(moved, read),
        "bytes_written": files.sum(moved, write),
        "unsized_reads": files.sum(unsized, read),
        "unsized_writes": files.sum(unsized, write),
        "metadata_time": files.sum(groups.time[rows], metadata),
    }


class _Collector:
    def __init__(self, context: Context) -> None:
        self._floor = pause_floor_ns(context.workload)
        self._bucket = bucket_ns(context.workload.span_ns)
        self._app = context.app
        self._busy = Intervals()
        self._activity = ActivityCollector(context)
        self._overlaps = OverlapFinder()
        self._threaded: list[Ints] = []
        self._files: list[IntTable] = []
        self._reach: list[IntTable] = []
        self._level = 0

    def add(self, batch: Batch) -> None:
        busy_of_batch = self._in_time(batch)
        if not batch.groups.included.any():
            return
        self._add_busy(busy_of_batch)
        self._activity.add(batch)
        self._add_reach(batch)
        self._add_files(batch)
        if len(self._files) > 64:
            self._shrink()

    def _in_time(self, batch: Batch) -> Intervals:
        """Busy time of the batch, ignoring pauses up to the floor; also notes processes with concurrent calls."""
        groups = batch.groups
        last = self._overlaps.last
        processes = distinct(np.append(groups.process, last.process))
        state = np.zeros(1, dtype_of("busy", "last"))
        state[0] = (np.searchsorted(processes, last.process), last.start, last.end, last.reach)
        out = batch.call(
            *("busy", "start", "duration"),
            process=np.searchsorted(processes, groups.process),
            included=groups.included,
            processes=len(processes),
            floor=self._floor,
            last=state,
        )
        if out is not None:
            threaded = processes[out["overlaps"] != 0]
            start, end = columns(out["busy"])
            of, *times = state[0].tolist()
            self._overlaps.last = Last(int(processes[of]), *times)
        else:
            threaded = self._overlaps.find(batch.process, batch.start, batch.end)
            rows = np.flatnonzero(batch.included)
            start, end = batch.start[rows], np.maximum(batch.end[rows], batch.start[rows] + 1)
        self._threaded.append(threaded)
        app = np.full(len(start), self._app, np.int64)
        return _shorter(merge(app, start, end + self._floor), self._floor)

    def _add_files(self, batch: Batch) -> None:
        # One row represents all similar calls.
        groups = batch.groups
        included = groups.included
        kind, flags, layer = groups.kind[included], groups.flags[included], groups.layer[included]
        process, count, unsized = (column[included] for column in (groups.process, groups.count, groups.unsized))
        placeless, displaced = (column[included] for column in (groups.unplaced, groups.unplaced_sized))
        first, last = (column[included] for column in (groups.first_start, groups.last_start))
        group = Factorized.of(groups.file[included])
        blind = np.where(kind == Kind.WRITE, unsized + displaced, 0)
        blind = np.where((flags & Flag.RESIZE) != 0, np.maximum(blind, placeless), blind)
        created = (flags & _CREATES) != 0
        opens = (flags & Flag.OPEN) != 0
        uses = (kind <= Kind.WRITE) | opens
        every = np.ones(len(kind), np.bool_)

        def least(values: Ints, some: Bools) -> Ints:
            lowest = np.full(len(group.keys), _NEVER)
            np.minimum.at(lowest, group.codes[some], values[some])
            return lowest

        def most(values: Ints, some: Bools) -> Ints:
            highest = np.full(len(group.keys), -1)
            np.maximum.at(highest, group.codes[some], values[some])
            return highest

        columns = calls_by_file(groups, included, group) | {
            "time": group.sum(groups.time[included]),
            "uses": group.sum(count, uses & ((flags & Flag.DIRECTORY) == 0)),
            "blind": group.sum(blind),
            # A file that receives the name exists, even if another file with that name was removed before.
            "last_use": most(last, uses | ((flags & Flag.RENAME) != 0)),
            "last_remove": most(last, (flags & Flag.REMOVE) != 0),
            "first_make": least(first, created),
            "first_read": least(first, kind == Kind.READ),
            "first_process": least(process, every),
            "last_process": most(process, every),
            "first_writer": least(process, kind == Kind.WRITE),
            "last_writer": most(process, kind == Kind.WRITE),
            "first_maker": least(process, created),
            "last_maker": most(process, created),
            "first_resize": least(first, (flags & Flag.RESIZE) != 0),
            "writable": group.sum(count, (flags & _WRITABLE_OPEN) == _WRITABLE_OPEN),
            "stream_opens": group.sum(count, opens & (layer == Layer.STDIO)),
            "closes": group.sum(count, (flags & Flag.CLOSE) != 0),
            "first_open": least(first, opens),
            "last_close": most(last, (flags & Flag.CLOSE) != 0),
            "open_us": np.zeros(len(group.keys), np.int64),
            "furthest_seek": np.full(len(group.keys), -1),
        }
        self._add_open_time(batch, group, columns["open_us"])
        self._add_seeks(batch, group, columns["furthest_seek"])
        self._files.append(IntTable(group.keys, columns))

    def _add_open_time(self, batch: Batch, files: Factorized, open_us: Ints) -> None:
        """Add close times minus open times: for complete pairs, the sum is how long files were open."""
        flags = np.where(batch.groups.included, batch.groups.flags, 0)
        for flag, moments, sign in ((Flag.OPEN, batch.end, -1), (Flag.CLOSE, batch.start, 1)):
            rows, file = _rows_of(batch, (flags & flag) != 0, files)
            np.add.at(open_us, file, sign * (moments[rows] // 1000))

    def _add_seeks(self, batch: Batch, files: Factorized, furthest: Ints) -> None:
        rows, file = _rows_of(batch, batch.groups.included & ((batch.groups.flags & Flag.SEEK) != 0), files)
        np.maximum.at(furthest, file, batch.offset[rows])

    def _add_busy(self, intervals: Intervals) -> None:
        parts = [self._busy, intervals]
        longer = [Intervals(p.group, p.start, p.end + self._floor) for p in parts if len(p)]
        self._busy = _shorter(Intervals.joined(longer), self._floor)

    def _add_reach(self, batch: Batch) -> None:
        groups = batch.groups
        resizes = (groups.flags & Flag.RESIZE) != 0
        what = np.where(groups.kind == Kind.WRITE, ReachKind.WRITES, ReachKind.LEFT_OUT)
        what = np.where(resizes, ReachKind.CUTS, what)
        what[~groups.included] = ReachKind.LEFT_OUT
        if not what.any():
            return
        out = None
        # Groups that write and also set the length need both rules, call by call.
        if not (resizes & (groups.kind == Kind.WRITE)).any():
            out = batch.call(
                *("reach", "offset", "bytes", "start"),
                what=what,
                length=self._bucket,
                most=BUCKETS,
                level=self._level,
                empty=False,
            )
        if out is None:
            self._add_reach_by_call(batch, what != ReachKind.LEFT_OUT)
        elif len(out["reached"]):
            of, moment, end, _ = columns(out["reached"])
            self._reach.append(group(pack((groups.file[of], moment), MOMENTS), {"reach": end}, _REACH))

    def _add_reach_by_call(self, batch: Batch, reaching: Bools) -> None:
        """`reaching`: groups of calls that show how far a file reaches."""
        groups, codes = batch.groups, batch.groups.codes
        rows = np.flatnonzero(reaching[codes] & (batch.offset != NO_VALUE))
        size, of = batch.bytes[rows], codes[rows]
        wrote = (groups.kind == Kind.WRITE)[of] & (size > 0)
        reaching_rows = np.flatnonzero(wrote | ((groups.flags & Flag.RESIZE) != 0)[of])
        if not len(reaching_rows):
            return
        rows, of = rows[reaching_rows], of[reaching_rows]
        furthest = batch.offset[rows] + np.where(wrote[reaching_rows], size[reaching_rows], 0)
        bucket = np.minimum(batch.start[rows] // self._bucket, BUCKETS)
        key = pack((groups.file[of], bucket >> self._level), MOMENTS)
        self._reach.append(group(key, {"reach": furthest}, _REACH))

    def _shrink(self) -> None:
        self._files = [IntTable.merged(self._files, ENDS_OF_FILES)]
        reach, level = merged_moments([(part, self._level) for part in self._reach], _REACH, _MAX_REACH)
        self._reach, self._level = [reach], level

    def result(self) -> SurveyResult:
        self._shrink()
        threaded = distinct(np.empty(0, np.int64), *self._threaded)
        return SurveyResult(
            self._busy,
            self._files[0].packed(),
            self._reach[0].packed(),
            threaded,
            self._level,
            self._activity.result(),
        )


def _rows_of(batch: Batch, chosen: Bools, files: Factorized) -> tuple[Ints, Ints]:
    """Calls of the chosen groups, and the index of each call's file in `files`: those of the included groups."""
    if not chosen.any():
        return np.empty(0, np.int64), np.empty(0, np.int64)
    place = np.zeros(len(chosen), np.int64)
    place[batch.groups.included] = files.codes
    rows = np.flatnonzero(chosen[batch.groups.codes])
    return rows, place[batch.groups.codes[rows]]


def _shorter(intervals: Intervals, by: int) -> Intervals:
    return Intervals(intervals.group, intervals.start, intervals.end - by)


def join_busy(busy: Intervals, floor: int) -> Intervals:
    """Close pauses up to the floor again after merging partitions."""
    if not len(busy):
        return busy
    return _shorter(merge(busy.group, busy.start, busy.end + floor), floor)


def unfilled(files: IntTable, sized: Bools) -> Bools:
    """Files that were created without a recorded write or length, so that whatever filled them left no record.

    Parameters
    ----------
    files
        Columns writes, resizes, makes, empties and streams by file.
    sized
        Whether their sizes before the run are known, so that O_CREAT did not create them.
    """
    if not len(files):
        return np.zeros(0, np.bool_)
    nothing = (files["writes"] == 0) & (files["resizes"] == 0)
    created = (files["empties"] > 0) | ((files["makes"] > 0) & ~sized) | (files["streams"] > 0)
    unfilled_: Bools = nothing & created
    return unfilled_


def ends_of(workload: Workload, survey: SurveyResult) -> Ends:
    """Reach of each file over time.

    A file's end is known once the run created it (an open that creates or truncates) or set its length, or if job.yaml
    has its size. That an open with O_CREAT created the file, instead of finding it, is an assumption that the readers'
    limits state. It is not made for a file that is never written, because programs open inputs like that, too. The end
    is unknown if a write's offset or size is; if the file was created and neither a write nor its length is seen, so
    that whatever filled it left no record (fprintf, mmap, copy_file_range, sendfile); if a seek goes beyond all writes;
    and if it may have been written through a descriptor that the tracer does not follow.
    """
    files = workload.files
    since, first_read = np.full(files, _NEVER), np.full(files, _NEVER)
    sized = workload.known_sizes != NO_VALUE
    since[sized] = np.iinfo(np.int64).min
    if len(survey.files):
        surveyed = survey.files
        used = surveyed.keys
        first_read[used] = surveyed["first_read"]
        known_from = np.minimum(surveyed["first_make"], surveyed["first_resize"])
        since[used] = np.minimum(since[used], known_from)
        unseen = (surveyed["blind"] > 0) | (surveyed["unfollowed"] > 0) | unfilled(surveyed, sized[used])
        reached = np.full(files, -1)
        if len(survey.reach):
            np.maximum.at(reached, unpack(survey.reach.keys, MOMENTS)[0], survey.reach["reach"])
        # The position behind an unrecorded write (`ftell` after an fwrite through a duplicated descriptor).
        unseen |= (surveyed["writes"] > 0) & (surveyed["furthest_seek"] > reached[used])
        since[used[unseen]] = _NEVER
    known = since != _NEVER
    keys, reach = survey.reach.keys, survey.reach["reach"] if len(survey.reach) else np.empty(0, np.int64)
    if sized.any():
        start = IntTable(pack((np.flatnonzero(sized), 0), MOMENTS), {"reach": workload.known_sizes[sized]})
        both = IntTable.merged([IntTable(keys, {"reach": reach}), start], _REACH)
        keys, reach = both.keys, both["reach"]
    if len(keys):
        owner, _ = unpack(keys, MOMENTS)
        # The largest end so far within each file: lifting files above each other makes one running maximum serve all.
        order = np.cumsum(np.append(0, (owner[1:] != owner[:-1]).astype(np.int64)))
        widest = int(reach.max()) + 1
        if (int(order[-1]) + 1) * widest < 1 << 62:
            reach = np.maximum.accumulate(reach + order * widest) - order * widest
        else:
            bounds = np.append(np.flatnonzero(np.append(True, owner[1:] != owner[:-1])), len(owner))
            for a, b in pairwise(bounds.tolist()):
                reach[a:b] = np.maximum.accumulate(reach[a:b])
    # One column of millions of moments, packed as a table into a small type.
    reach = IntTable(keys, {"reach": reach}).packed().columns["reach"]
    return Ends(known, since, known & (since <= first_read), keys, reach, bucket_ns(workload.span_ns), survey.level)
