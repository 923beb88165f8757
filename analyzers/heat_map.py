"""Bytes and I/O time over time and processes, from stores: the time-resolved data that a profile lacks.

Definitions equal the profile's: counted calls (file-system calls on data set files, without nested ones),
a process's I/O time as the union of its calls, times on the workload's clock. A call that spans several time bins is
spread over them in proportion; the parts are integers that add up to its bytes. Each partition adds up its calls under
integer keys of a grid (time bins, rows of processes, path patterns), and keeps its longest calls and
a sample of reads and writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final

import numpy as np

from vani.analyzers import int_table
from vani.analyzers.batch import Batch
from vani.analyzers.characterise import workload_of
from vani.analyzers.intervals import Intervals, merge
from vani.analyzers.measures.accesses import LIBRARIES
from vani.analyzers.passes.measure_workload import Task, tasks_of, trace_facts, with_names
from vani.analyzers.workload import Context, Workload
from vani.calls import DXT, HEAT_MAP, Kind, Layer
from vani.columns import Ints, Numbers
from vani.engine.executor import Executor
from vani.schema import timeline
from vani.store.read import Manifest, Store

MAX_ROWS = 512
MAX_BINS = 150
OF_LAYER = (max(LIBRARIES) + 1, int_table.KINDS)
"""Widths of keys of layer and kind."""
ALL_CALLS = OF_LAYER[0] * OF_LAYER[1]
"""All counted calls, in addition to keys of layer and kind."""
CODES = ALL_CALLS + 1


@dataclass(frozen=True, eq=False)
class Grid:
    """Time bins, rows of processes, and file patterns."""

    bins: int
    bin_ns: int
    row_of_process: Ints
    pattern_of_file: Ints
    """Shape (files,): number of the pattern of each file's path."""
    patterns: int
    processes: int

    @property
    def cells(self) -> tuple[int, int]:
        """Widths of keys of row and bin."""
        return int(self.row_of_process.max(initial=0)) + 1, self.bins

    @property
    def uses(self) -> tuple[int, int]:
        """Widths of keys of process and pattern."""
        return self.processes, self.patterns


def rows_of(workload: Workload, ranks: Sequence[int]) -> list[timeline.HeatRow]:
    """One row per process, or per block of neighbouring processes if there are more than `MAX_ROWS`."""
    if len(ranks) > MAX_ROWS:
        step = -(-workload.processes // MAX_ROWS)
        spans = [(at, min(at + step, workload.processes)) for at in range(0, workload.processes, step)]
    else:
        # The shortest block that leaves few enough rows; it ends with its trace.
        step = next(step for step in count(1) if sum(-(-n // step) for n in ranks) <= MAX_ROWS)
        bounds = zip(workload.process_base, ranks, strict=True)
        spans = [(base + at, base + min(at + step, n)) for base, n in bounds for at in range(0, n, step)]
    rows = []
    for first, last in spans:
        trace = int(np.searchsorted(workload.process_base, first, side="right")) - 1
        base = workload.process_base[trace]
        rows.append(
            timeline.HeatRow(
                app=workload.apps[workload.app_of_trace[trace]],
                trace=trace,
                first_process=first,
                processes=last - first,
                ranks=(first - base, last - base - 1) if last <= base + ranks[trace] else None,
            )
        )
    return rows


def common_pattern(paths: Sequence[str]) -> str:
    """One pattern for paths that differ only in numbers, with `#` for those that differ."""
    if len(paths) == 1:
        return paths[0]
    texts = re.split(r"\d+", paths[0])
    columns = zip(*(re.findall(r"\d+", path) for path in paths), strict=True)
    numbers = [column[0] if len(set(column)) == 1 else "#" for column in columns]
    return "".join(text + n for text, n in zip(texts, [*numbers, ""], strict=True))


def bin_ns(span_ns: int) -> int:
    """The shortest of 1, 2, 5, 10, 20, ... ns that divides the run into at most `MAX_BINS` bins."""
    unit = 1
    while True:
        for length in (unit, 2 * unit, 5 * unit):
            if length * MAX_BINS >= span_ns:
                return length
        unit *= 10


_PIECES_AT_ONCE = 1 << 20
_EXACT_NS = 1 << 31
"""Products of two numbers below this fit in 64 bits."""


def spread(start: Ints, end: Ints, amount: Ints, grid: Grid) -> Iterator[tuple[Ints, Ints, Ints]]:
    """Divide amounts at the borders of bins: (row, bin, part), at most about a million parts at a time.

    The amount up to a border is rounded down, so the parts of a row add up to its amount exactly.
    """
    last_bin, bin_ns = grid.bins - 1, grid.bin_ns
    first = np.clip(start // bin_ns, 0, last_bin)
    last = np.clip((np.maximum(end, start + 1) - 1) // bin_ns, first, last_bin)
    inside = np.flatnonzero(first == last)
    if len(inside):
        yield inside, first[inside], amount[inside]
    wide = np.flatnonzero(first < last)
    count = (last - first + 1)[wide]
    for a, b in _runs(count):
        rows = np.repeat(wide[a:b], count[a:b])
        step = np.arange(len(rows)) - np.repeat(np.cumsum(count[a:b]) - count[a:b], count[a:b])
        bin_ = first[rows] + step

        length = end[rows] - start[rows]
        # In two parts, to avoid overflow; the first alone is exact if the amount equals the length.
        whole, rest = amount[rows] // length, amount[rows] % length

        def passed(
            border: Ints, rows: Ints = rows, length: Ints = length, whole: Ints = whole, rest: Ints = rest
        ) -> Ints:
            since = np.clip(border - start[rows], 0, length)
            exact = length < _EXACT_NS
            part = np.where(exact, rest, 0) * np.where(exact, since, 0) // length
            rounded = np.floor(rest * (since / length)).astype(np.int64)
            passed_by: Ints = whole * since + np.where(exact, part, np.minimum(rounded, rest))
            return passed_by

        # At the ends, the amounts are zero and all, regardless of float rounding.
        before = np.where(step == 0, 0, passed(bin_ * bin_ns))
        after = np.where(bin_ == last[rows], amount[rows], passed((bin_ + 1) * bin_ns))
        yield rows, bin_, after - before


def _runs(count: Ints) -> Iterator[tuple[int, int]]:
    """Ranges of rows whose counts add up to about `_PIECES_AT_ONCE`."""
    reach = np.cumsum(count)
    first = 0
    while first < len(count):
        done = int(reach[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(reach, done + _PIECES_AT_ONCE, side="right")))
        yield first, last
        first = last


MAX_CALLS: Final = 100
"""Number of calls that are listed."""
MAX_SAMPLED: Final = 2000
"""Number of reads and writes that are drawn one by one: all, or a random choice that repeats."""
EDGES: Final = np.array([first * 10**power for power in range(13) for first in (1, 2, 5)], np.int64)
"""Durations (ns) at which classes begin, except the class of calls that took no time."""
DURATIONS: Final = (int_table.KINDS, len(EDGES) + 1)
"""Widths of keys of kind and duration class."""


@dataclass(frozen=True, eq=False)
class Listed:
    """Some calls; shape (n,) each, those with the smallest place first; ties are ordered by start and process."""

    place: Ints
    start: Ints
    process: Ints
    file: Ints
    function: Ints
    kind: Ints
    bytes: Ints
    duration: Ints
    offset: Ints

    @staticmethod
    def joined(some: list[Listed], most: int) -> Listed:
        """The first calls of several lists."""
        if not some:
            return Listed(*(np.zeros(0, np.int64) for _ in Listed.__annotations__))
        columns = [np.concatenate([getattr(listed, name) for listed in some]) for name in Listed.__annotations__]
        order = np.lexsort(columns[::-1])[:most]
        return Listed(*(column[order] for column in columns))


def first_of(batch: Batch, rows: Ints, place: Ints, most: int) -> Listed:
    """The calls with the smallest place among some of a batch."""
    if len(rows) > most:
        # Keep all calls with the place of the last one that counts; ties are resolved later.
        chosen = np.flatnonzero(place <= np.partition(place, most)[most])
        if len(chosen) > 8 * most:
            # There are many ties: keep those that begin first, by process.
            order = np.lexsort((batch.process[rows[chosen]], batch.start[rows[chosen]], place[chosen]))
            chosen = chosen[order[: 8 * most]]
        rows, place = rows[chosen], place[chosen]
    columns = (getattr(batch, name)[rows].astype(np.int64) for name in list(Listed.__annotations__)[1:])
    return Listed.joined([Listed(place, *columns)], most)


def sampled_of(batch: Batch, rows: Ints) -> Listed:
    """Reads and writes of a batch, chosen by a hash of their start, process and offset."""
    rows = rows[(batch.kind[rows] <= Kind.WRITE) & (batch.bytes[rows] > 0)]
    parts = (batch.start, batch.process, batch.offset)
    mixed = np.zeros(len(rows), np.uint64)
    for part in parts:
        mixed = (mixed ^ part[rows].astype(np.int64).view(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return first_of(batch, rows, (mixed >> np.uint64(1)).astype(np.int64), MAX_SAMPLED)


_COLUMNS = ("bytes", "duration_ns", "file", "flags", "func", "kind", "layer", "offset", "rank", "start_ns")
_MAX_HELD = 1 << 20
_LOOK_BACK_NS = 10_000_000_000
"""Maximum delay with which a call is recorded after calls that began later (as in `measures/io_time.py`)."""


@dataclass(frozen=True, eq=False)
class Collected:
    """The calls of one part or of all: sums under integer keys, the longest calls, and a sample of reads and writes.

    Tables: `cells` by row and bin (read, written: bytes) and `busy` (time: ns); `processes` by process (read, written,
    operations) and `busy_processes` (time); `uses` by process and
    pattern (reads, writes: operations; read, written); `files` by the last name of each file that is read or written
    (operations); `layers` by layer and kind (time); `kinds` by row, bin and kind (time); `durations` by `DURATIONS`
    (calls, time).
    """

    sums: int_table.Sums
    longest: Listed
    sampled: Listed


def collect(task: Task, grid: Grid, stores: Sequence[Store], contexts: Sequence[Context]) -> Collected:
    store, sums = stores[task.trace], int_table.SumsBuilder()
    longest = sampled = Listed.joined([], 0)
    union = _Union(grid, sums)
    for calls in store.batches(store.manifest.parts[task.part], _COLUMNS):
        batch = Batch(contexts[task.trace], calls)
        rows = np.flatnonzero(batch.included)
        _add(batch, rows, grid, sums)
        by_time = first_of(batch, rows, -batch.duration[rows].astype(np.int64), MAX_CALLS)
        longest = Listed.joined([longest, by_time], MAX_CALLS)
        sampled = Listed.joined([sampled, sampled_of(batch, rows)], MAX_SAMPLED)
        union.add(batch, rows)
    union.close()
    return Collected(sums.result(), longest, sampled)


def _add(batch: Batch, rows: Ints, grid: Grid, sums: int_table.SumsBuilder) -> None:
    """Add everything about some calls except the unions of their intervals."""

    def add(name: str, keys: Ints, columns: Mapping[str, Numbers]) -> None:
        dense = int_table.Factorized.of(keys)
        sums.add(name, dense.keys, {column: dense.sum(values) for column, values in columns.items()})

    process, kind, size = batch.process[rows], batch.kind[rows], batch.bytes[rows]
    start, end, duration = batch.start[rows], batch.end[rows], batch.duration[rows]
    read, write = kind == Kind.READ, kind == Kind.WRITE
    known = np.where((size == int_table.NO_VALUE) | ~(read | write), 0, size)
    moved = {"read": np.where(read, known, 0), "written": np.where(write, known, 0)}
    moves, ones = np.flatnonzero(known), np.ones(len(rows), np.int64)
    row = grid.row_of_process[process[moves]]
    for piece, bin_, amount in spread(start[moves], end[moves], known[moves], grid):
        out = write[moves][piece]
        columns = {"read": np.where(out, 0, amount), "written": np.where(out, amount, 0)}
        sums.add("cells", int_table.pack((row[piece], bin_), grid.cells), columns)
    length = np.searchsorted(EDGES, duration, side="right")
    add("durations", int_table.pack((kind.astype(np.int64), length), DURATIONS), {"calls": ones, "time": duration})
    add("processes", process, moved | {"operations": ones})
    data = np.flatnonzero(read | write)
    file = batch.file[rows][data]
    add("files", file, {"operations": ones[data]})
    columns = {"reads": read[data].astype(np.int64), "writes": write[data].astype(np.int64)}
    columns |= {name: column[data] for name, column in moved.items()}
    add("uses", int_table.pack((process[data], grid.pattern_of_file[file]), grid.uses), columns)


class _Union:
    """Unions of each process's calls: of all counted calls, cut into bins, and by library and kind."""

    def __init__(self, grid: Grid, sums: int_table.SumsBuilder) -> None:
        self._grid = grid
        self._sums = sums
        self._pending = Intervals()
        self._widths = (grid.processes, CODES)
        """Widths of keys of process, and layer and kind or `ALL_CALLS`."""

    def add(self, batch: Batch, rows: Ints) -> None:
        """Add a batch's calls; `rows` are its counted calls on data set files."""
        process, start, end = batch.process[rows], batch.start[rows], batch.end[rows]
        code = int_table.pack((batch.layer[rows], batch.kind[rows]), OF_LAYER)
        layer, kind = batch.all_calls("layer"), batch.all_calls("kind")
        above = np.flatnonzero(np.isin(layer, LIBRARIES) & (kind < int_table.KINDS))
        workload, trace = batch.context.workload, batch.context.trace
        rank = batch.all_calls("rank")[above].astype(np.int64)
        begun = batch.all_calls("start_ns")[above] + workload.shift_ns[trace]
        of_library = int_table.pack((layer[above], kind[above]), OF_LAYER)
        groups = [
            int_table.pack((process, ALL_CALLS), self._widths),
            int_table.pack((process, code), self._widths),
            int_table.pack((rank + workload.process_base[trace], of_library), self._widths),
        ]
        group_ = np.concatenate(groups)
        if not len(group_):
            return
        starts = np.concatenate((start, start, begun))
        ends = np.concatenate((end, end, begun + batch.all_calls("duration_ns")[above]))
        intervals = Intervals.joined([self._pending, merge(group_, starts, ends)])
        # Ranks come one after the other, so those before the last have no more calls.
        owner, (own, _) = int_table.unpack(group_, self._widths)[0], int_table.unpack(intervals.group, self._widths)
        current = int(owner.max())
        done = own != current
        if len(intervals) - int(done.sum()) > _MAX_HELD:
            done |= intervals.end < int(starts[owner == current].max()) - _LOOK_BACK_NS
        self._book(intervals.where(done))
        self._pending = intervals.where(~done)

    def close(self) -> None:
        """Add the remaining intervals after the last call."""
        self._book(self._pending)
        self._pending = Intervals()

    def _book(self, union: Intervals) -> None:
        process, code = int_table.unpack(union.group, self._widths)
        length, row, whole = union.end - union.start, self._grid.row_of_process[process], code == ALL_CALLS
        self._sums.add("layers", code[~whole], {"time": length[~whole]})
        self._sums.add("busy_processes", process[whole], {"time": length[whole]})
        layer, kind = int_table.unpack(code, OF_LAYER)
        # The time of all calls, and of file-system calls by kind.
        for name, chosen in (("busy", whole), ("kinds", ~whole & (layer <= Layer.STDIO))):
            at = np.flatnonzero(chosen)
            for piece, bin_, part in spread(union.start[at], union.end[at], length[at], self._grid):
                key = int_table.pack((row[at][piece], bin_), self._grid.cells)
                if name == "kinds":
                    key = key * int_table.KINDS + kind[at][piece]
                self._sums.add(name, key, {"time": part})


_MAX_PATTERNS = 40
_KIND_NAMES = ("read", "write", "metadata", "sync")
"""Names in the order of `Kind`."""


def heat_map(stores: Sequence[Store], names: Sequence[str], executor: Executor) -> timeline.HeatMap:
    """Read a workload's stores once and distribute their calls over time and processes.

    Parameters
    ----------
    stores, names
        One per trace, with the name of its app, as for `characterise`.
    """
    workload, own = workload_of([trace_facts(store.manifest) for store in stores], stores, names, None)
    workload, contexts = with_names(workload, stores, own, executor)
    rows = rows_of(workload, [s.manifest.ranks for s in stores])
    row_of_process = np.repeat(np.arange(len(rows)), [r.processes for r in rows])
    source = source_of([store.manifest for store in stores])
    # Nothing is known within a bin of the source.
    length = bin_ns(workload.span_ns) if source != "bins" else _widest([store.manifest for store in stores])
    bins = max(1, -(-workload.span_ns // length))
    # Paths with `#` instead of numbers, and the index of each file's pattern among them.
    number: dict[str, int] = {}
    codes = [number.setdefault(re.sub(r"\d+", "#", path), len(number)) for path in workload.paths]
    patterns, pattern_of_file = list(number), np.array(codes, np.int64)
    grid = Grid(bins, length, row_of_process, pattern_of_file, len(patterns), workload.processes)
    parts: list[Collected] = list(
        executor.map(collect, tasks_of(stores), stage="timeline", broadcast=(grid, stores, contexts))
    )
    sums = int_table.Sums.merged([part.sums for part in parts])
    longest = Listed.joined([part.longest for part in parts], MAX_CALLS)
    sampled = Listed.joined([part.sampled for part in parts], MAX_SAMPLED)
    return _assembled(workload, grid, rows, patterns, sums, longest, sampled).as_given_by(source)


def source_of(manifests: Sequence[Manifest]) -> timeline.Source:
    """The least that the stores of a workload contain: calls, only reads and writes, or only bytes in bins."""
    layouts = {manifest.layout for manifest in manifests}
    return "bins" if HEAT_MAP in layouts else "data" if DXT in layouts else "calls"


def _widest(manifests: Sequence[Manifest]) -> int:
    """Width (ns) of the widest bin; the bins of a log are equally wide."""
    return max(round(m.time_ns / m.records) for m in manifests if m.layout == HEAT_MAP and m.records)


def _assembled(
    workload: Workload,
    grid: Grid,
    rows: list[timeline.HeatRow],
    patterns: list[str],
    sums: int_table.Sums,
    longest: Listed,
    sampled: Listed,
) -> timeline.HeatMap:
    everyone = np.arange(workload.processes)

    def table(name: str, column: str) -> Ints:
        return int_table.totals(len(rows) * grid.bins, sums[name].keys, sums[name][column]).reshape(-1, grid.bins)

    def of_process(name: str, column: str) -> Ints:
        return sums[name].at(everyone, column)

    return timeline.HeatMap(
        bin_s=grid.bin_ns / 1e9,
        bins=grid.bins,
        runtime_s=workload.span_ns / 1e9,
        rows=rows,
        read=table("cells", "read").tolist(),
        written=table("cells", "written").tolist(),
        busy_s=(table("busy", "time") / 1e9).tolist(),
        seconds=_seconds(sums["kinds"], len(rows), grid.bins),
        calls=_call_times(sums["durations"]),
        longest=_calls(longest, workload),
        sampled=_calls(sampled, workload),
        processes=timeline.ProcessTotals(
            bytes_read=of_process("processes", "read").tolist(),
            bytes_written=of_process("processes", "written").tolist(),
            operations=of_process("processes", "operations").tolist(),
            io_s=(of_process("busy_processes", "time") / 1e9).tolist(),
        ),
        app_of_trace=[workload.apps[a] for a in workload.app_of_trace],
        first_process=list(workload.process_base),
        layers=_layers(sums["layers"]),
        uses=_uses(workload, grid, patterns, sums),
    )


def _seconds(kinds: int_table.IntTable, rows: int, bins: int) -> timeline.KindSeconds:
    spent = int_table.totals(rows * bins * int_table.KINDS, kinds.keys, kinds["time"])
    seconds = spent.reshape(rows, bins, int_table.KINDS) / 1e9
    return timeline.KindSeconds.model_validate({name: seconds[:, :, i].tolist() for i, name in enumerate(_KIND_NAMES)})


def _call_times(durations: int_table.IntTable) -> list[timeline.CallTimes]:
    kind, place = int_table.unpack(durations.keys, DURATIONS)
    return [
        timeline.CallTimes.model_validate(
            {
                "kind": _KIND_NAMES[kind[i]],
                "least_s": int(EDGES[place[i] - 1]) / 1e9 if place[i] else 0.0,
                "calls": int(durations["calls"][i]),
                "seconds": int(durations["time"][i]) / 1e9,
            }
        )
        for i in np.lexsort((kind, place)).tolist()
    ]


def _calls(calls: Listed, workload: Workload) -> list[timeline.Call]:
    trace = np.searchsorted(workload.process_base, calls.process, side="right") - 1
    return [
        timeline.Call.model_validate(
            {
                "app": workload.apps[workload.app_of_trace[at]],
                "rank": int(process) - workload.process_base[at],
                "function": workload.functions[function] if 0 <= function < len(workload.functions) else "unknown",
                "path": workload.paths[file] if file >= 0 else "",
                "kind": _KIND_NAMES[kind],
                "start_s": start / 1e9,
                "duration_s": duration / 1e9,
                "bytes": None if size == int_table.NO_VALUE else size,
                "offset": None if offset == int_table.NO_VALUE else offset,
            }
        )
        for at, process, file, function, kind, start, duration, size, offset in zip(
            trace.tolist(),
            *(
                getattr(calls, name).tolist()
                for name in ("process", "file", "function", "kind", "start", "duration", "bytes", "offset")
            ),
            strict=True,
        )
    ]


def _layers(times: int_table.IntTable) -> list[timeline.LayerCost]:
    costs = []
    for name in timeline.LAYERS:
        layer = Layer[name.upper()]
        keys = int_table.pack((layer, np.arange(int_table.KINDS)), OF_LAYER)
        if len(times) and np.isin(keys, times.keys).any():
            read, write, metadata, sync = (times.at(keys, "time") / 1e9).tolist()
            costs.append(timeline.LayerCost(layer=name, read=read, write=write, metadata=metadata, sync=sync))
    return costs


def _uses(workload: Workload, grid: Grid, patterns: list[str], sums: int_table.Sums) -> list[timeline.FileUse]:
    """Uses of each app and pattern; all patterns except those with most bytes are merged."""
    uses, used = sums["uses"], sums["files"]
    width = len(patterns)
    process, of_pattern = int_table.unpack(uses.keys, grid.uses)
    moved = int_table.group(of_pattern, {"bytes": uses["read"] + uses["written"]})
    order = sorted(range(len(moved)), key=lambda i: (-int(moved["bytes"][i]), patterns[moved.keys[i]]))
    shown = [int(moved.keys[i]) for i in order[:_MAX_PATTERNS]]
    place = np.full(width, len(shown), np.int64)
    place[shown] = np.arange(len(shown))
    group_of_file = place[grid.pattern_of_file[used.keys]]
    files = np.bincount(group_of_file, minlength=len(shown) + 1)
    shown_paths = ([workload.paths[f] for f in used.keys[group_of_file == i].tolist()] for i in range(len(shown)))
    names = [*map(common_pattern, shown_paths), ""]
    # By process first, because one that uses several of the merged patterns counts once.
    widths = (workload.processes, len(names))
    own = uses.rekeyed(int_table.pack((process, place[of_pattern]), widths))
    process, shown_as = int_table.unpack(own.keys, widths)
    trace = np.searchsorted(workload.process_base, process, side="right") - 1
    sides = (("readers", "reads"), ("writers", "writes"))
    columns = {users: (own[calls] > 0).astype(np.int64) for users, calls in sides}
    columns |= {f"bytes_{name}": own[name] for name in ("read", "written")}
    of_apps = (len(names), len(workload.apps))
    table = int_table.group(int_table.pack((shown_as, np.array(workload.app_of_trace)[trace]), of_apps), columns)
    return [
        timeline.FileUse(
            pattern=names[name],
            files=int(files[name]),
            app=workload.apps[app],
            **{column: int(table[column][i]) for column in columns},
        )
        for i, (name, app) in enumerate(zip(*int_table.unpack(table.keys, of_apps), strict=True))
    ]
