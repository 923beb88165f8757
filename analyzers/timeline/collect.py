"""Sums over a partition's calls for a heat map, under integer keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.calls.batch import Batch
from vani.analyzers.passes.run_pass import Task
from vani.analyzers.tables.factorized import Factorized
from vani.analyzers.tables.int_table import NO_VALUE, IntTable, group
from vani.analyzers.tables.intervals import Intervals, merge
from vani.analyzers.tables.keys import KINDS, pack, unpack
from vani.analyzers.timeline.grid import ALL_CALLS, CODES, LIBRARIES, OF_LAYER, SIZE_CLASSES, Grid
from vani.analyzers.timeline.long_calls import Long, by_duration, longest
from vani.analyzers.timeline.spread import spread
from vani.analyzers.workload.workload import Context
from vani.calls import Kind, Layer
from vani.store.read import Store

Ints = NDArray[np.int64]

TABLES = ("cells", "processes", "sizes", "uses", "files", "layers", "kinds", "durations")
_COLUMNS = ("bytes", "duration_ns", "file", "flags", "func", "kind", "layer", "rank", "start_ns")
_SIZE_EDGES = np.array([1024 * 4**k for k in range(12)])
_MOST_HELD = 1 << 20
_LOOK_BACK_NS = 10_000_000_000
"""Maximum delay with which a call is recorded after calls that began later (as in `measures/io_time.py`)."""


@dataclass
class Sums:
    """Sums under integer keys, for one part or for all."""

    cells: list[IntTable] = field(default_factory=list)
    """Columns read, written (bytes) and busy (ns) by row and bin."""
    processes: list[IntTable] = field(default_factory=list)
    """Columns read, written, operations, busy by process."""
    sizes: list[IntTable] = field(default_factory=list)
    """Columns operations, bytes, time by `SIZE_CLASSES`."""
    uses: list[IntTable] = field(default_factory=list)
    """Columns reads, writes (operations), read, written by process and pattern."""
    files: list[IntTable] = field(default_factory=list)
    """Column operations by the last name of each file that is read or written."""
    layers: list[IntTable] = field(default_factory=list)
    """Column time (ns) by layer and kind."""
    kinds: list[IntTable] = field(default_factory=list)
    """Column time (ns) by row, bin and kind."""
    durations: list[IntTable] = field(default_factory=list)
    """Columns calls and time (ns) by `long_calls.DURATIONS`."""
    longest: list[Long] = field(default_factory=list)
    """The longest calls."""

    def shrink(self) -> None:
        """Merge the collected rows."""
        for table in TABLES:
            setattr(self, table, [IntTable.merged(getattr(self, table))])
        self.longest = [Long.joined(self.longest)]


def collect(task: Task, grid: Grid, stores: Sequence[Store], contexts: Sequence[Context]) -> Sums:
    store = stores[task.trace]
    sums = Sums()
    union = _Union(grid, sums)
    for calls in store.batches(store.manifest.parts[task.part], _COLUMNS):
        batch = Batch(contexts[task.trace], calls)
        rows = np.flatnonzero(batch.included)
        if len(rows):
            _add(batch, rows, grid, sums)
        union.add(batch, rows)
        if len(sums.cells) > 32:
            sums.shrink()
    union.close()
    sums.shrink()
    return sums


def _add(batch: Batch, rows: Ints, grid: Grid, sums: Sums) -> None:
    """Add everything about some calls except the unions of their intervals."""
    process, kind, size = batch.process[rows], batch.kind[rows], batch.bytes[rows]
    start, end = batch.start[rows], batch.end[rows]
    read, write = kind == Kind.READ, kind == Kind.WRITE
    known = np.where((size == NO_VALUE) | ~(read | write), 0, size)
    moves = np.flatnonzero(known)
    row = grid.row_of_process[process[moves]]
    for piece, bin_, amount in spread(
        start[moves], end[moves], known[moves], bins=grid.bins, bin_ns=grid.bin_ns
    ):
        out = write[moves][piece]
        sums.cells.append(
            group(
                pack((row[piece], bin_), grid.cells),
                {
                    "read": np.where(out, 0, amount),
                    "written": np.where(out, amount, 0),
                    "busy": np.zeros(len(amount), np.int64),
                },
            )
        )
    sums.durations.append(by_duration(kind.astype(np.int64), batch.duration[rows]))
    sums.longest.append(longest(batch, rows))
    own = Factorized.of(process)
    columns = {"read": own.sum(known, read), "written": own.sum(known, write), "operations": own.count()}
    sums.processes.append(IntTable(own.keys, {**columns, "busy": np.zeros(len(own.keys), np.int64)}))
    data = np.flatnonzero(read | write)
    if not len(data):
        return
    sized, size_class = size[data] != NO_VALUE, np.searchsorted(_SIZE_EDGES, size[data], side="right")
    classes = (np.where(sized, write[data], 2), np.where(sized, size_class, 0))
    of_size = Factorized.of(pack(classes, SIZE_CLASSES))
    columns = {"operations": of_size.count(), "bytes": of_size.sum(known[data])}
    sums.sizes.append(IntTable(of_size.keys, {**columns, "time": of_size.sum(batch.duration[rows][data])}))
    file = Factorized.of(batch.file[rows][data])
    sums.files.append(IntTable(file.keys, {"operations": file.count()}))
    pattern = grid.pattern_of_file[file.keys][file.codes]
    use = Factorized.of(pack((process[data], pattern), grid.uses))
    sums.uses.append(
        IntTable(
            use.keys,
            {
                "reads": use.count(read[data]),
                "writes": use.count(write[data]),
                "read": use.sum(known[data], read[data]),
                "written": use.sum(known[data], write[data]),
            },
        )
    )


class _Union:
    """Unions of each process's calls: of all counted calls, cut into bins, and by library and kind."""

    def __init__(self, grid: Grid, sums: Sums) -> None:
        self._grid = grid
        self._sums = sums
        self._pending = Intervals()
        self._widths = (grid.processes, CODES)
        """Widths of keys of process, and layer and kind or `ALL_CALLS`."""

    def add(self, batch: Batch, rows: Ints) -> None:
        """Add a batch's calls; `rows` are its counted calls on data set files."""
        process, start, end = batch.process[rows], batch.start[rows], batch.end[rows]
        code = pack((batch.layer[rows], batch.kind[rows]), OF_LAYER)
        layer, kind = batch.all_calls("layer"), batch.all_calls("kind")
        above = np.flatnonzero(np.isin(layer, LIBRARIES) & (kind < KINDS))
        workload, trace = batch.context.workload, batch.context.trace
        rank = batch.all_calls("rank")[above].astype(np.int64)
        begun = batch.all_calls("start_ns")[above] + workload.shift_ns[trace]
        of_library = pack((layer[above], kind[above]), OF_LAYER)
        groups = [
            pack((process, ALL_CALLS), self._widths),
            pack((process, code), self._widths),
            pack((rank + workload.process_base[trace], of_library), self._widths),
        ]
        group_ = np.concatenate(groups)
        if not len(group_):
            return
        starts = np.concatenate((start, start, begun))
        ends = np.concatenate((end, end, begun + batch.all_calls("duration_ns")[above]))
        intervals = Intervals.joined([self._pending, merge(group_, starts, ends)])
        # Ranks come one after the other, so those before the last have no more calls.
        owner, (own, _) = unpack(group_, self._widths)[0], unpack(intervals.group, self._widths)
        current = int(owner.max())
        done = own != current
        if len(intervals) - int(done.sum()) > _MOST_HELD:
            done |= intervals.end < int(starts[owner == current].max()) - _LOOK_BACK_NS
        self._book(Intervals(intervals.group[done], intervals.start[done], intervals.end[done]))
        self._pending = Intervals(intervals.group[~done], intervals.start[~done], intervals.end[~done])

    def close(self) -> None:
        """Add the remaining intervals after the last call."""
        self._book(self._pending)
        self._pending = Intervals()

    def _book(self, union: Intervals) -> None:
        process, code = unpack(union.group, self._widths)
        length = union.end - union.start
        by_layer = np.flatnonzero(code != ALL_CALLS)
        if len(by_layer):
            self._sums.layers.append(group(code[by_layer], {"time": length[by_layer]}))
            self._book_kinds(
                Intervals(*(column[by_layer] for column in (union.group, union.start, union.end)))
            )
        whole = np.flatnonzero(code == ALL_CALLS)
        if not len(whole):
            return
        process, length = process[whole], length[whole]
        none = np.zeros(len(whole), np.int64)
        self._sums.processes.append(
            group(process, {"read": none, "written": none, "operations": none, "busy": length})
        )
        row = self._grid.row_of_process[process]
        for piece, bin_, part in spread(
            union.start[whole], union.end[whole], length, bins=self._grid.bins, bin_ns=self._grid.bin_ns
        ):
            none = np.zeros(len(part), np.int64)
            keys = pack((row[piece], bin_), self._grid.cells)
            self._sums.cells.append(group(keys, {"read": none, "written": none, "busy": part}))

    def _book_kinds(self, union: Intervals) -> None:
        """Add the time of file-system calls by row, bin and kind."""
        process, code = unpack(union.group, self._widths)
        layer, kind = unpack(code, OF_LAYER)
        own = np.flatnonzero(layer <= Layer.STDIO)
        length = (union.end - union.start)[own]
        row = self._grid.row_of_process[process[own]]
        for piece, bin_, part in spread(
            union.start[own], union.end[own], length, bins=self._grid.bins, bin_ns=self._grid.bin_ns
        ):
            keys = pack((row[piece], bin_, kind[own][piece]), (*self._grid.cells, KINDS))
            self._sums.kinds.append(group(keys, {"time": part}))
