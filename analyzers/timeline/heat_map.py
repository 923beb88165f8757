"""Bytes and I/O time over time and processes, from stores: the time-resolved data that a profile lacks.

Definitions equal the profile's: counted calls (file-system calls on data set files, without nested ones),
a process's I/O time as the union of its calls, times on the workload's clock. A call that spans several time bins is
spread over them in proportion; the parts are integers that add up to its bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.characterise import workload_of
from vani.analyzers.entities.transfer_sizes import BINS
from vani.analyzers.passes.measure_workload import trace_facts, with_names
from vani.analyzers.passes.run_pass import tasks_of
from vani.analyzers.tables.int_table import NO_VALUE, IntTable, group
from vani.analyzers.tables.keys import KINDS, pack, unpack
from vani.analyzers.timeline.collect import TABLES, Sums, collect
from vani.analyzers.timeline.grid import (
    OF_LAYER,
    SIZE_CLASSES,
    Grid,
    bin_ns,
    common_pattern,
    patterns_of,
    rows_of,
)
from vani.analyzers.timeline.long_calls import DURATIONS, EDGES, Long
from vani.analyzers.workload.workload import Workload
from vani.calls import Layer
from vani.engine.executor import Executor
from vani.schema.timeline import (
    LAYERS,
    CallTimes,
    FileUse,
    HeatMap,
    HeatRow,
    KindSeconds,
    LayerCost,
    LongCall,
    ProcessTotals,
    SizeClass,
)
from vani.store.read import Store

Ints = NDArray[np.int64]

_MOST_PATTERNS = 40
_KIND_NAMES = ("read", "write", "metadata", "sync")
"""Names in the order of `Kind`."""


def heat_map(stores: Sequence[Store], names: Sequence[str], executor: Executor) -> HeatMap:
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
    length = bin_ns(workload.span_ns)
    bins = max(1, -(-workload.span_ns // length))
    patterns, pattern_of_file = patterns_of(workload.paths)
    grid = Grid(bins, length, row_of_process, pattern_of_file, len(patterns), workload.processes)
    total = Sums()
    for part in executor.map(
        collect, tasks_of(stores), stage="timeline", broadcast=(grid, stores, contexts)
    ):
        for table in TABLES:
            getattr(total, table).extend(getattr(part, table))
        total.longest.extend(part.longest)
    total.shrink()
    return _assembled(workload, grid, rows, patterns, total)


def _assembled(workload: Workload, grid: Grid, rows: list[HeatRow], patterns: list[str], total: Sums) -> HeatMap:
    (cells,), (processes,), (sizes,) = total.cells, total.processes, total.sizes

    def table(column: str) -> Ints:
        values = np.zeros(len(rows) * grid.bins, np.int64)
        if len(cells):
            values[cells.keys] = cells[column]
        return values.reshape(len(rows), grid.bins)

    everyone = np.arange(workload.processes)

    def of_process(column: str) -> Ints:
        return processes.at(everyone, column) if len(processes) else np.zeros(workload.processes, np.int64)

    unsized = sizes.at(pack((np.array([2]), 0), SIZE_CLASSES), "operations") if len(sizes) else np.zeros(1)
    return HeatMap(
        bin_s=grid.bin_ns / 1e9,
        bins=grid.bins,
        runtime_s=workload.span_ns / 1e9,
        rows=rows,
        read=table("read").tolist(),
        written=table("written").tolist(),
        busy_s=(table("busy") / 1e9).tolist(),
        seconds=_seconds(total.kinds[0], len(rows), grid.bins),
        calls=_call_times(total.durations[0]),
        longest=_longest(total.longest[0], workload),
        processes=ProcessTotals(
            bytes_read=of_process("read").tolist(),
            bytes_written=of_process("written").tolist(),
            operations=of_process("operations").tolist(),
            io_s=(of_process("busy") / 1e9).tolist(),
        ),
        app_of_trace=[workload.apps[a] for a in workload.app_of_trace],
        first_process=list(workload.process_base),
        sizes=_sizes(sizes),
        layers=_layers(total.layers[0]),
        unsized=int(unsized[0]),
        uses=_uses(workload, grid, patterns, total),
    )


def _seconds(kinds: IntTable, rows: int, bins: int) -> KindSeconds:
    times = np.zeros(rows * bins * KINDS, np.int64)
    if len(kinds):
        times[kinds.keys] = kinds["time"]
    seconds = times.reshape(rows, bins, KINDS) / 1e9
    return KindSeconds.model_validate(
        {name: seconds[:, :, kind].tolist() for kind, name in enumerate(_KIND_NAMES)}
    )


def _call_times(durations: IntTable) -> list[CallTimes]:
    if not len(durations):
        return []
    kind, place = unpack(durations.keys, DURATIONS)
    return [
        CallTimes.model_validate(
            {
                "kind": _KIND_NAMES[kind[i]],
                "least_s": int(EDGES[place[i] - 1]) / 1e9 if place[i] else 0.0,
                "calls": int(durations["calls"][i]),
                "seconds": int(durations["time"][i]) / 1e9,
            }
        )
        for i in np.lexsort((kind, place)).tolist()
    ]


def _longest(calls: Long, workload: Workload) -> list[LongCall]:
    trace = np.searchsorted(workload.process_base, calls.process, side="right") - 1
    return [
        LongCall.model_validate(
            {
                "app": workload.apps[workload.app_of_trace[at]],
                "rank": int(process) - workload.process_base[at],
                "function": workload.functions[function] if 0 <= function < len(workload.functions) else "unknown",
                "path": workload.paths[file] if file >= 0 else "",
                "kind": _KIND_NAMES[kind],
                "start_s": start / 1e9,
                "duration_s": duration / 1e9,
                "bytes": None if size == NO_VALUE else size,
            }
        )
        for at, process, file, function, kind, start, duration, size in zip(
            trace.tolist(),
            *(
                getattr(calls, name).tolist()
                for name in ("process", "file", "function", "kind", "start", "duration", "bytes")
            ),
            strict=True,
        )
    ]


def _sizes(sizes: IntTable) -> list[SizeClass]:
    classes = []
    for i, (direction, size_class) in enumerate(zip(*unpack(sizes.keys, SIZE_CLASSES), strict=True)):
        if direction == 2:
            continue
        classes.append(
            SizeClass(
                direction="write" if direction else "read",
                size=BINS[size_class],
                operations=int(sizes["operations"][i]),
                bytes=int(sizes["bytes"][i]),
                seconds=int(sizes["time"][i]) / 1e9,
            )
        )
    return classes


def _layers(times: IntTable) -> list[LayerCost]:
    costs = []
    for name in LAYERS:
        layer = Layer[name.upper()]
        keys = pack((layer, np.arange(KINDS)), OF_LAYER)
        if len(times) and np.isin(keys, times.keys).any():
            read, write, metadata, sync = (times.at(keys, "time") / 1e9).tolist()
            costs.append(LayerCost(layer=name, read=read, write=write, metadata=metadata, sync=sync))
    return costs


def _uses(workload: Workload, grid: Grid, patterns: list[str], total: Sums) -> list[FileUse]:
    """Uses of each app and pattern; all patterns except those with most bytes are merged."""
    uses, used = total.uses[0], total.files[0]
    if not len(uses):
        return []
    width = len(patterns)
    process, of_pattern = unpack(uses.keys, grid.uses)
    moved = group(of_pattern, {"bytes": uses["read"] + uses["written"]})
    order = sorted(range(len(moved)), key=lambda i: (-int(moved["bytes"][i]), patterns[moved.keys[i]]))
    shown = [int(moved.keys[i]) for i in order[:_MOST_PATTERNS]]
    place = np.full(width, len(shown), np.int64)
    place[shown] = np.arange(len(shown))
    group_of_file = place[grid.pattern_of_file[used.keys]]
    files = np.bincount(group_of_file, minlength=len(shown) + 1)
    names = [
        *(
            common_pattern([workload.paths[f] for f in used.keys[group_of_file == i].tolist()])
            for i in range(len(shown))
        ),
        "",
    ]
    # By process first, because one that uses several of the merged patterns counts once.
    widths = (workload.processes, len(names))
    own = uses.rekeyed(pack((process, place[of_pattern]), widths))
    process, shown_as = unpack(own.keys, widths)
    trace = np.searchsorted(workload.process_base, process, side="right") - 1
    table = group(
        pack((shown_as, np.array(workload.app_of_trace)[trace]), (len(names), len(workload.apps))),
        {
            "readers": (own["reads"] > 0).astype(np.int64),
            "writers": (own["writes"] > 0).astype(np.int64),
            "read": own["read"],
            "written": own["written"],
        },
    )
    return [
        FileUse(
            pattern=names[name],
            files=int(files[name]),
            app=workload.apps[app],
            readers=int(table["readers"][i]),
            writers=int(table["writers"][i]),
            bytes_read=int(table["read"][i]),
            bytes_written=int(table["written"][i]),
        )
        for i, (name, app) in enumerate(zip(*unpack(table.keys, (len(names), len(workload.apps))), strict=True))
    ]
