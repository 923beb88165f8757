"""Time of flushes, where the source adds it to that of writes and traced all writes one by one."""

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

__all__ = ["flushes_apart"]

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def flushes_apart(rows: Rows, segments: TracedSegments) -> tuple[Rows, Bools]:
    """The rows, `write_ns` without flushes and `sync_ns` of these where that is known; which rows still hide them.

    Flushes took the part of a file's time in writes and flushes that its writing calls did not take. Where that is
    not known of some file of the data set, all are left as they are: a sum of both would be neither.
    """
    flushed = rows["syncs"] > 0
    known = flushed & rows.included & (rows["layer"] == Layer.POSIX) & segments.whole[:, Kind.WRITE]
    if not known.any() or (flushed & rows.included & ~known).any():
        return rows, flushed
    writing = np.where(known, np.minimum(_writing(rows, segments), rows["write_ns"]), rows["write_ns"])
    apart = {"write_ns": writing, "sync_ns": np.where(known, rows["write_ns"] - writing, 0)}
    return replace(rows, columns={**rows.columns, **apart}), flushed & ~known


def _writing(rows: Rows, segments: TracedSegments) -> Ints:
    """Time of the kept writes of each row's processes and file; overlapping threads of a process count once."""
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
