"""Bytes and I/O time over time and processes, from stores: the time-resolved data that a profile does not hold.

Definitions are those of the profile: counted calls (file-system calls on files of the data set, nested ones left out),
I/O time of a process as the union of its calls, time on the workload's clock. A call that spans bins of time is spread
over them in proportion; the parts are integers that add up to its bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.batch import Batch
from vani.analyzers.characterise import world_of
from vani.analyzers.intervals import Intervals, merge
from vani.analyzers.keyed import NO_VALUE, Dense, Keyed, group
from vani.analyzers.keys import KINDS
from vani.analyzers.passes import trace_facts, with_names
from vani.analyzers.transfer_sizes import BINS
from vani.analyzers.world import Context, World
from vani.calls import Kind, Layer
from vani.engine.run import Engine
from vani.schema.timeline import LAYERS, FileUse, HeatMap, HeatRow, LayerCost, ProcessTotals, SizeClass
from vani.store.read import Store

__all__ = ["MOST_BINS", "MOST_ROWS", "heat_map"]

Ints = NDArray[np.int64]

MOST_ROWS = 512
MOST_BINS = 150
_MOST_PATTERNS = 40
_TABLES = ("cells", "processes", "sizes", "uses", "files", "layers")
_COLUMNS = ("bytes", "duration_ns", "file", "flags", "kind", "layer", "rank", "start_ns")
_SIZE_EDGES = np.array([1024 * 4**k for k in range(12)])
_LIBRARIES = (Layer.MPIIO, Layer.HDF5, Layer.PNETCDF, Layer.NETCDF)
_ALL = KINDS * (max(_LIBRARIES) + 1)
"""Stands for all counted calls, beside layer * KINDS + kind."""
_CODES = _ALL + 1
_PIECES_AT_ONCE = 1 << 20
_EXACT_NS = 1 << 31
"""Products of two numbers below this fit into 64 bits."""
_MOST_HELD = 1 << 20
_LOOK_BACK_NS = 10_000_000_000
"""No call is recorded later than this after calls that began after it (as in `measures/io_time.py`)."""


@dataclass(frozen=True)
class _Grid:
    """Where calls go: bins of time, rows of processes, patterns of files."""

    bins: int
    bin_ns: int
    row_of_process: Ints
    pattern_of_file: Ints
    """Shape (files,): number of the pattern of a file's path."""
    patterns: int


@dataclass(frozen=True)
class _Task:
    store: Store
    part: int
    context: Context


@dataclass
class _Found:
    """Of one part, or of all: sums under integer keys."""

    cells: list[Keyed] = field(default_factory=list)
    """Columns read, written (bytes) and busy (ns) by row * bins + bin."""
    processes: list[Keyed] = field(default_factory=list)
    """Columns read, written, operations, busy by process."""
    sizes: list[Keyed] = field(default_factory=list)
    """Columns operations, bytes, time by direction * len(BINS) + class; after them, one key for unsized operations."""
    uses: list[Keyed] = field(default_factory=list)
    """Columns reads, writes (operations), read, written by process * patterns + pattern."""
    files: list[Keyed] = field(default_factory=list)
    """Column operations by the last name of each file that is read or written."""
    layers: list[Keyed] = field(default_factory=list)
    """Column time (ns) by layer * KINDS + kind."""

    def shrink(self) -> None:
        """Add up what has been collected."""
        for table in _TABLES:
            setattr(self, table, [Keyed.merged(getattr(self, table))])


def heat_map(stores: Sequence[Store], names: Sequence[str], engine: Engine) -> HeatMap:
    """Read the stores of a workload once and lay their calls out over time and processes.

    Parameters
    ----------
    stores, names
        One per trace, with the name of its app, as for `characterise`.
    """
    world, own = world_of([trace_facts(store.manifest) for store in stores], stores, names, None)
    world, contexts = with_names(world, stores, own, engine)
    rows = _rows(world, [s.manifest.ranks for s in stores])
    row_of_process = np.repeat(np.arange(len(rows)), [r.processes for r in rows])
    bin_ns = _bin_ns(world.span_ns)
    bins = max(1, -(-world.span_ns // bin_ns))
    patterns, pattern_of_file = _patterns(world.paths)
    grid = _Grid(bins, bin_ns, row_of_process, pattern_of_file, len(patterns))
    tasks = [
        _Task(store, part, context)
        for store, context in zip(stores, contexts, strict=True)
        for part in range(len(store.manifest.parts))
    ]
    total = _Found()
    for part in engine.map(partial(_collect, grid=grid), tasks, stage="timeline"):
        for table in _TABLES:
            getattr(total, table).extend(getattr(part, table))
    total.shrink()
    return _assembled(world, grid, rows, patterns, total)


def _rows(world: World, ranks: Sequence[int]) -> list[HeatRow]:
    """A row per process, or per block of as many neighbours as it takes to have at most `MOST_ROWS`."""
    apps = [world.apps[a] for a in world.app_of_trace]
    if len(ranks) > MOST_ROWS:
        step = -(-world.processes // MOST_ROWS)
        found = []
        for first in range(0, world.processes, step):
            last = min(first + step, world.processes)
            trace = int(np.searchsorted(world.process_base, first, side="right")) - 1
            base = world.process_base[trace]
            one = last <= base + ranks[trace]
            found.append(
                HeatRow(
                    app=apps[trace],
                    trace=trace,
                    first_process=first,
                    processes=last - first,
                    ranks=(first - base, last - base - 1) if one else None,
                )
            )
        return found
    step = 1
    while sum(-(-n // step) for n in ranks) > MOST_ROWS:
        step += 1
    return [
        HeatRow(
            app=apps[trace],
            trace=trace,
            first_process=world.process_base[trace] + first,
            processes=min(step, n - first),
            ranks=(first, min(first + step, n) - 1),
        )
        for trace, n in enumerate(ranks)
        for first in range(0, n, step)
    ]


def _patterns(paths: Sequence[str]) -> tuple[list[str], Ints]:
    """Paths with `#` for numbers, each once, and which of them is a file's."""
    number: dict[str, int] = {}
    codes = [number.setdefault(re.sub(r"\d+", "#", path), len(number)) for path in paths]
    return list(number), np.array(codes, np.int64)


def _pattern(paths: Sequence[str]) -> str:
    """Paths that differ in numbers only as one, with `#` for the numbers that differ."""
    if len(paths) == 1:
        return paths[0]
    texts = re.split(r"\d+", paths[0])
    columns = zip(*(re.findall(r"\d+", path) for path in paths), strict=True)
    numbers = [found[0] if len(set(found)) == 1 else "#" for found in columns]
    return "".join(text + n for text, n in zip(texts, [*numbers, ""], strict=True))


def _bin_ns(span_ns: int) -> int:
    """The shortest of 1, 2, 5, 10, 20, ... ns that cuts the run into no more than `MOST_BINS` bins."""
    unit = 1
    while True:
        for length in (unit, 2 * unit, 5 * unit):
            if length * MOST_BINS >= span_ns:
                return length
        unit *= 10


def _collect(task: _Task, grid: _Grid) -> _Found:
    found = _Found()
    union = _Union(grid, found)
    for calls in task.store.batches(task.store.manifest.parts[task.part], _COLUMNS):
        batch = Batch(task.context, calls)
        rows = np.flatnonzero(batch.included)
        if len(rows):
            _add(batch, rows, grid, found)
        union.add(batch, rows)
        if len(found.cells) > 32:
            found.shrink()
    union.close()
    found.shrink()
    return found


def _add(batch: Batch, rows: Ints, grid: _Grid, found: _Found) -> None:
    """Everything of some calls but the unions of their intervals."""
    process, kind, size = batch.process[rows], batch.kind[rows], batch.bytes[rows]
    start, end = batch.start[rows], batch.end[rows]
    read, write = kind == Kind.READ, kind == Kind.WRITE
    known = np.where((size == NO_VALUE) | ~(read | write), 0, size)
    moves = np.flatnonzero(known)
    row = grid.row_of_process[process[moves]]
    for piece, bin_, amount in _spread(start[moves], end[moves], known[moves], grid):
        out = write[moves][piece]
        found.cells.append(
            group(
                row[piece] * grid.bins + bin_,
                {
                    "read": np.where(out, 0, amount),
                    "written": np.where(out, amount, 0),
                    "busy": np.zeros(len(amount), np.int64),
                },
            )
        )
    own = Dense.of(process)
    columns = {"read": own.sum(known, read), "written": own.sum(known, write), "operations": own.count()}
    found.processes.append(Keyed(own.keys, {**columns, "busy": np.zeros(len(own.keys), np.int64)}))
    data = np.flatnonzero(read | write)
    if not len(data):
        return
    bins = len(BINS)
    place = np.searchsorted(_SIZE_EDGES, size[data], side="right") + write[data] * bins
    of_size = Dense.of(np.where(size[data] == NO_VALUE, 2 * bins, place))
    columns = {"operations": of_size.count(), "bytes": of_size.sum(known[data])}
    found.sizes.append(Keyed(of_size.keys, {**columns, "time": of_size.sum(batch.duration[rows][data])}))
    file = Dense.of(batch.file[rows][data])
    found.files.append(Keyed(file.keys, {"operations": file.count()}))
    pattern = grid.pattern_of_file[file.keys][file.codes]
    use = Dense.of(process[data] * grid.patterns + pattern)
    found.uses.append(
        Keyed(
            use.keys,
            {
                "reads": use.count(read[data]),
                "writes": use.count(write[data]),
                "read": use.sum(known[data], read[data]),
                "written": use.sum(known[data], write[data]),
            },
        )
    )


def _spread(start: Ints, end: Ints, amount: Ints, grid: _Grid) -> Iterator[tuple[Ints, Ints, Ints]]:
    """Cut amounts at the borders of bins: (row, bin, part), at most about a million parts at a time.

    What has passed at a border is rounded down, so that the parts of a row add up to its amount exactly.
    """
    last_bin = grid.bins - 1
    first = np.clip(start // grid.bin_ns, 0, last_bin)
    last = np.clip((np.maximum(end, start + 1) - 1) // grid.bin_ns, first, last_bin)
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
        # In two parts, so that nothing overflows; the first alone is exact where the amount is the length.
        whole, rest = amount[rows] // length, amount[rows] % length

        def passed(
            border: Ints, rows: Ints = rows, length: Ints = length, whole: Ints = whole, rest: Ints = rest
        ) -> Ints:
            since = np.clip(border - start[rows], 0, length)
            exact = length < _EXACT_NS
            part = np.where(exact, rest, 0) * np.where(exact, since, 0) // length
            rounded = np.floor(rest * (since / length)).astype(np.int64)
            found: Ints = whole * since + np.where(exact, part, np.minimum(rounded, rest))
            return found

        # At the ends nothing and all has passed, whatever the division of floats gives.
        before = np.where(step == 0, 0, passed(bin_ * grid.bin_ns))
        after = np.where(bin_ == last[rows], amount[rows], passed((bin_ + 1) * grid.bin_ns))
        yield rows, bin_, after - before


def _runs(count: Ints) -> Iterator[tuple[int, int]]:
    """Stretches of rows whose counts add up to about `_PIECES_AT_ONCE`."""
    reach = np.cumsum(count)
    first = 0
    while first < len(count):
        done = int(reach[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(reach, done + _PIECES_AT_ONCE, side="right")))
        yield first, last
        first = last


class _Union:
    """Unions of the calls of each process: of all counted calls, cut into bins, and by library and kind."""

    def __init__(self, grid: _Grid, found: _Found) -> None:
        self._grid = grid
        self._found = found
        self._held = Intervals()

    def add(self, batch: Batch, rows: Ints) -> None:
        """Take the calls of a batch; `rows` are those of its counted calls that are on files of the data set."""
        process, start, end = batch.process[rows], batch.start[rows], batch.end[rows]
        code = batch.layer[rows].astype(np.int64) * KINDS + batch.kind[rows]
        layer, kind = batch.all_calls("layer"), batch.all_calls("kind")
        above = np.flatnonzero(np.isin(layer, _LIBRARIES) & (kind < KINDS))
        world, trace = batch.context.world, batch.context.trace
        rank = batch.all_calls("rank")[above].astype(np.int64)
        begun = batch.all_calls("start_ns")[above] + world.shift_ns[trace]
        groups = [
            process * _CODES + _ALL,
            process * _CODES + code,
            (rank + world.process_base[trace]) * _CODES + layer[above].astype(np.int64) * KINDS + kind[above],
        ]
        group_ = np.concatenate(groups)
        if not len(group_):
            return
        starts = np.concatenate((start, start, begun))
        ends = np.concatenate((end, end, begun + batch.all_calls("duration_ns")[above]))
        held = Intervals.joined([self._held, merge(group_, starts, ends)])
        # Ranks come one after the other: no more calls come of those before the last.
        current = int(group_.max()) // _CODES
        done = held.group // _CODES != current
        if len(held) - int(done.sum()) > _MOST_HELD:
            done |= held.end < int(starts[group_ // _CODES == current].max()) - _LOOK_BACK_NS
        self._book(Intervals(held.group[done], held.start[done], held.end[done]))
        self._held = Intervals(held.group[~done], held.start[~done], held.end[~done])

    def close(self) -> None:
        """No more calls come."""
        self._book(self._held)
        self._held = Intervals()

    def _book(self, union: Intervals) -> None:
        process, code = union.group // _CODES, union.group % _CODES
        length = union.end - union.start
        by_layer = np.flatnonzero(code != _ALL)
        if len(by_layer):
            self._found.layers.append(group(code[by_layer], {"time": length[by_layer]}))
        whole = np.flatnonzero(code == _ALL)
        if not len(whole):
            return
        process, length = process[whole], length[whole]
        none = np.zeros(len(whole), np.int64)
        self._found.processes.append(
            group(process, {"read": none, "written": none, "operations": none, "busy": length})
        )
        row = self._grid.row_of_process[process]
        for piece, bin_, part in _spread(union.start[whole], union.end[whole], length, self._grid):
            none = np.zeros(len(part), np.int64)
            keys = row[piece] * self._grid.bins + bin_
            self._found.cells.append(group(keys, {"read": none, "written": none, "busy": part}))


def _assembled(world: World, grid: _Grid, rows: list[HeatRow], patterns: list[str], total: _Found) -> HeatMap:
    (cells,), (processes,), (sizes,) = total.cells, total.processes, total.sizes

    def table(column: str) -> Ints:
        values = np.zeros(len(rows) * grid.bins, np.int64)
        if len(cells):
            values[cells.keys] = cells[column]
        return values.reshape(len(rows), grid.bins)

    everyone = np.arange(world.processes)

    def of_process(column: str) -> Ints:
        return processes.at(everyone, column) if len(processes) else np.zeros(world.processes, np.int64)

    unsized = sizes.at(np.array([2 * len(BINS)]), "operations") if len(sizes) else np.zeros(1)
    return HeatMap(
        bin_s=grid.bin_ns / 1e9,
        bins=grid.bins,
        runtime_s=world.span_ns / 1e9,
        rows=rows,
        read=table("read").tolist(),
        written=table("written").tolist(),
        busy_s=(table("busy") / 1e9).tolist(),
        processes=ProcessTotals(
            bytes_read=of_process("read").tolist(),
            bytes_written=of_process("written").tolist(),
            operations=of_process("operations").tolist(),
            io_s=(of_process("busy") / 1e9).tolist(),
        ),
        app_of_trace=[world.apps[a] for a in world.app_of_trace],
        first_process=list(world.process_base),
        sizes=_sizes(sizes),
        layers=_layers(total.layers[0]),
        unsized=int(unsized[0]),
        uses=_uses(world, grid, patterns, total),
    )


def _sizes(sizes: Keyed) -> list[SizeClass]:
    found = []
    for i, key in enumerate(sizes.keys.tolist()):
        if key >= 2 * len(BINS):
            continue
        found.append(
            SizeClass(
                direction="write" if key >= len(BINS) else "read",
                size=BINS[key % len(BINS)],
                operations=int(sizes["operations"][i]),
                bytes=int(sizes["bytes"][i]),
                seconds=int(sizes["time"][i]) / 1e9,
            )
        )
    return found


def _layers(times: Keyed) -> list[LayerCost]:
    found = []
    for name in LAYERS:
        layer = Layer[name.upper()]
        keys = layer * KINDS + np.arange(KINDS)
        if len(times) and np.isin(keys, times.keys).any():
            read, write, metadata, sync = (times.at(keys, "time") / 1e9).tolist()
            found.append(LayerCost(layer=name, read=read, write=write, metadata=metadata, sync=sync))
    return found


def _uses(world: World, grid: _Grid, patterns: list[str], total: _Found) -> list[FileUse]:
    """Of each app and pattern; patterns beyond the ones with most bytes are put together."""
    uses, used = total.uses[0], total.files[0]
    if not len(uses):
        return []
    width = len(patterns)
    moved = group(uses.keys % width, {"bytes": uses["read"] + uses["written"]})
    order = sorted(range(len(moved)), key=lambda i: (-int(moved["bytes"][i]), patterns[moved.keys[i]]))
    shown = [int(moved.keys[i]) for i in order[:_MOST_PATTERNS]]
    place = np.full(width, len(shown), np.int64)
    place[shown] = np.arange(len(shown))
    group_of_file = place[grid.pattern_of_file[used.keys]]
    files = np.bincount(group_of_file, minlength=len(shown) + 1)
    names = [
        *(
            _pattern([world.paths[f] for f in used.keys[group_of_file == i].tolist()])
            for i in range(len(shown))
        ),
        "",
    ]
    # By process first: one that uses several of the patterns put together counts once.
    own = uses.rekeyed(uses.keys // width * len(names) + place[uses.keys % width])
    trace = np.searchsorted(world.process_base, own.keys // len(names), side="right") - 1
    app = np.array(world.app_of_trace)[trace]
    found = group(
        own.keys % len(names) * len(world.apps) + app,
        {
            "readers": (own["reads"] > 0).astype(np.int64),
            "writers": (own["writes"] > 0).astype(np.int64),
            "read": own["read"],
            "written": own["written"],
        },
    )
    return [
        FileUse(
            pattern=names[key // len(world.apps)],
            files=int(files[key // len(world.apps)]),
            app=world.apps[key % len(world.apps)],
            readers=int(found["readers"][i]),
            writers=int(found["writers"][i]),
            bytes_read=int(found["read"][i]),
            bytes_written=int(found["written"][i]),
        )
        for i, key in enumerate(found.keys.tolist())
    ]
