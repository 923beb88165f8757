"""Flush time, for sources that add it to write time but traced all writes individually."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.counts.rows import Rows
from vani.analyzers.counts.traced_segments import TracedSegments
from vani.analyzers.tables.int_table import IntTable, group
from vani.analyzers.tables.intervals import merge, total_length
from vani.analyzers.tables.keys import pack, unpack
from vani.calls import Kind, Layer

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def flushes_apart(rows: Rows, segments: TracedSegments) -> tuple[Rows, Bools]:
    """The rows, with `write_ns` excluding flushes and `sync_ns` for these if known; and which rows still mix them.

    Flushes took the part of a file's write and flush time that its write calls did not take. If this is
    unknown for any file of the data set, all rows are left unchanged: a sum would mix both meanings.
    """
    flushed = rows["syncs"] > 0
    known = flushed & rows.included & (rows["layer"] == Layer.POSIX) & segments.whole[:, Kind.WRITE]
    if not known.any() or (flushed & rows.included & ~known).any():
        return rows, flushed
    writing = np.where(known, np.minimum(_writing(rows, segments), rows["write_ns"]), rows["write_ns"])
    apart = {"write_ns": writing, "sync_ns": np.where(known, rows["write_ns"] - writing, 0)}
    return replace(rows, columns={**rows.columns, **apart}), flushed & ~known


def _writing(rows: Rows, segments: TracedSegments) -> Ints:
    """Time of the kept writes of each row's processes and file; a process's concurrent threads count once."""
    workload = rows.workload
    widths, writes = (workload.processes, max(1, workload.files)), segments.kind == Kind.WRITE
    keys, lengths = total_length(
        merge(
            pack((segments.process[writes], segments.file[writes]), widths),
            segments.start[writes],
            segments.end[writes],
        )
    )
    alone = IntTable(keys, {"time": lengths})
    process, file = unpack(keys, widths) if len(keys) else (keys, keys)
    trace = np.searchsorted(np.array(workload.process_base), process, side="right") - 1
    of_runs = (len(workload.process_base), max(1, workload.files))
    together = group(pack((trace, file), of_runs), {"time": lengths})
    return np.where(
        rows.process >= 0,
        alone.at(pack((np.maximum(rows.process, 0), rows.file), widths), "time"),
        together.at(pack((rows.trace, rows.file), of_runs), "time"),
    )
