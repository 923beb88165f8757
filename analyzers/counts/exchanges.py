"""Data that a workload's runs passed to later ones through files, and that one run's processes may have exchanged.

Counts record on a common clock when a run first writes a file and when it last reads one: a run that reads a file
after another run's first write to it, or at the same time, depends on it. The order within a run is not counted.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.counts.rows import Rows
from vani.analyzers.measurements import PossibleExchanges
from vani.analyzers.tables.int_table import IntTable, group
from vani.analyzers.tables.keys import pack, unpack
from vani.distinct import distinct
from vani.schema.profile import AppDependency

Ints = NDArray[np.int64]
_NEVER = np.iinfo(np.int64).max


def exchanges_of(rows: Rows) -> PossibleExchanges:
    """Written files; whether they were finally removed is not counted."""
    workload, apps = rows.workload, len(rows.workload.apps)
    users = _by_run(rows)
    trace, file = (
        unpack(users.keys, (len(workload.process_base), workload.files)) if len(users) else (users.keys,) * 2
    )
    writer, reader = np.flatnonzero(users["writes"] > 0), np.flatnonzero(users["reads"] > 0)
    # Each writer with each reader of the file: files shared by many runs have few writers.
    producer, consumer = _pairs(file, writer, reader)
    later = (trace[producer] != trace[consumer]) & (users["read"][consumer] >= users["written"][producer])
    producer, consumer = producer[later], consumer[later]
    return PossibleExchanges(
        between_apps=False,
        processes=_within(rows, users, trace),
        files=distinct(file[writer]),
        exchanged=distinct(file[producer]),
        dependencies=_dependencies(rows, users, trace, file, producer, consumer) if apps > 1 else [],
    )


def _by_run(rows: Rows) -> IntTable:
    """By run and file: reads, writes, bytes, the first write and the end of the last read."""
    moving = rows.included & ((rows["reads"] > 0) | (rows["writes"] > 0))
    columns = {name: rows[name][moving] for name in ("reads", "writes", "bytes_read", "bytes_written")}
    # If the time of the first write is unknown, the first call on the file is a lower bound.
    first = np.where(rows["write_first_ns"] > 0, rows["write_first_ns"], rows["first_ns"])[moving]
    last = np.where(rows["read_last_ns"] > 0, rows["read_last_ns"], rows["last_ns"])[moving]
    columns["written"] = np.where(columns["writes"] > 0, first, _NEVER)
    columns["read"] = np.where(columns["reads"] > 0, last, -1)
    columns["alone"] = (rows.process[moving] >= 0).astype(np.int64)
    columns["rows"] = np.ones(len(first), np.int64)
    key = pack((rows.trace[moving], rows.file[moving]), (len(rows.workload.process_base), max(1, rows.workload.files)))
    return group(key, columns, {"written": "min", "read": "max"})


def _pairs(file: Ints, writer: Ints, reader: Ints) -> tuple[Ints, Ints]:
    """All pairs of rows of which one writes and one reads the same file."""
    reader = reader[np.argsort(file[reader], kind="stable")]
    begin = np.searchsorted(file[reader], file[writer], side="left")
    count = np.searchsorted(file[reader], file[writer], side="right") - begin
    producer = np.repeat(writer, count)
    inside = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
    return producer, reader[np.repeat(begin, count) + inside]


def _within(rows: Rows, users: IntTable, trace: Ints) -> NDArray[np.bool_]:
    """Apps in which several processes of a run use a file that the run both reads and writes."""
    within = np.zeros(len(rows.workload.apps), np.bool_)
    both = (users["reads"] > 0) & (users["writes"] > 0)
    several = both & ((users["alone"] < users["rows"]) | (users["rows"] > 1))
    within[np.array(rows.workload.app_of_trace, np.int64)[trace[several]]] = True
    return within


def _dependencies(
    rows: Rows, users: IntTable, trace: Ints, file: Ints, producer: Ints, consumer: Ints
) -> list[AppDependency]:
    workload, apps = rows.workload, len(rows.workload.apps)
    app = np.array(workload.app_of_trace, np.int64)[trace]
    other = app[producer] != app[consumer]
    producer, consumer = producer[other], consumer[other]
    # Each file once per pair of apps, with the bytes that all their runs moved.
    widths = (apps, apps, workload.files)
    linked = distinct(pack((app[producer], app[consumer], file[producer]), widths))
    by_app = group(
        pack((app, file), (apps, workload.files)), {n: users[n] for n in ("bytes_read", "bytes_written")}
    )
    from_, to, of = unpack(linked, widths) if len(linked) else (linked,) * 3
    totals = group(
        pack((from_, to), (apps, apps)),
        {
            "files": np.ones(len(of), np.int64),
            "written": by_app.at(pack((from_, of), (apps, workload.files)), "bytes_written"),
            "read": by_app.at(pack((to, of), (apps, workload.files)), "bytes_read"),
        },
    )
    ends = (
        list(zip(*(c.tolist() for c in unpack(totals.keys, (apps, apps))), strict=True))
        if len(totals)
        else []
    )
    return [
        AppDependency(
            producer=workload.apps[from_app],
            consumer=workload.apps[to_app],
            files=int(totals["files"][i]),
            files_by_extents=None,
            bytes_written=int(totals["written"][i]),
            bytes_read=int(totals["read"][i]),
        )
        for i, (from_app, to_app) in enumerate(ends)
    ]
