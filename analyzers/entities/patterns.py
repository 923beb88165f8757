"""Name patterns of the data set's files, over all of them, including unlisted ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.entities.file_sums import FileSums, most_important
from vani.analyzers.entities.view import Notes, View
from vani.analyzers.measures.io_time import SpentTime
from vani.analyzers.tables.int_table import NO_VALUE, exact_sum
from vani.name_patterns import NamePatterns
from vani.schema.profile import NamePattern

MOST_BY_TIME = 100
MOST_BY_FILES = 10

Ints = NDArray[np.int64]


def patterns(view: View, size_of: Ints) -> tuple[list[NamePattern], Notes]:
    """The patterns with most I/O time (or bytes, if no time is known), then those with most files.

    `size_of` is as returned by `sizes`.
    """
    codes = view.files
    if not len(codes):
        return [], {}
    grouped = NamePatterns(view.paths_of_files)
    sums = FileSums(view, grouped.codes, grouped.count)
    users = view.users_of_files
    writes, reads, opens, flushes = (sums.total(n) for n in ("writes", "reads", "opens", "syncs"))
    shared = sums.sum(users["processes"] >= 2)
    used = sums.ranks("first_process", "last_process", np.ones(len(codes), np.bool_))
    wrote = sums.ranks("first_writer", "last_writer", view.surveyed("writes") > 0)
    # The users of a single file are known, so a pattern has at least as many processes as its most shared file.
    processes = None if used is None else np.maximum(used[0], sums.most(users["processes"]))
    writers = None if wrote is None else np.maximum(wrote[0], sums.most(users["writers"]))
    sizes = size_of[codes]
    known = sums.sum(sizes != NO_VALUE)
    moved = sums.total("bytes_read") + sums.total("bytes_written")
    weight = sums.time if view.timed else moved
    chosen = most_important(
        weight, moved if view.timed else reads + writes, sums.files, by_time=MOST_BY_TIME, by_files=MOST_BY_FILES
    )
    rank = np.arange(view.workload.processes) - np.array(view.workload.process_base)[view.trace_of_process]
    notes = view.nulls(SpentTime, "patterns.time_s", "patterns.metadata_time_s")
    if processes is None:
        why = "calls were counted for several processes at once (--quick)"
        notes |= dict.fromkeys((f"patterns.{n}" for n in ("processes", "writers", "writer")), why)
    if (known[chosen] < sums.files[chosen]).any():
        notes["patterns.size"] = "the size of some file is not known: see files.size"
    if len(chosen) < grouped.count:
        most = "I/O time" if view.timed else "bytes"
        notes["patterns"] = (
            f"{len(chosen)} of {grouped.count:,}: the {MOST_BY_TIME} with most {most}, "
            f"and the {MOST_BY_FILES} with most files"
        )
    entities = [
        NamePattern(
            pattern=grouped.name(i),
            files=int(sums.files[i]),
            bytes=sums.bytes(i),
            time_s=int(sums.time[i]) / 1e9 if view.timed else None,
            metadata_time_s=int(sums.metadata_time[i]) / 1e9 if view.timed else None,
            processes=None if processes is None else int(processes[i]),
            writers=None if writers is None else int(writers[i]),
            writer=None if wrote is None or writers is None or writers[i] != 1 else int(rank[wrote[1][i]]),
            shared=int(shared[i]),
            reads=int(reads[i]),
            writes=int(writes[i]),
            flushes=int(flushes[i]),
            opens=int(opens[i]),
            size=exact_sum(sizes[grouped.members(i)]) if known[i] == sums.files[i] else None,
        )
        for i in chosen
    ]
    return entities, notes
