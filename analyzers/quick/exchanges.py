"""Processes that read and write files that others write, as far as known without the order of calls."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.int_table import Factorized, IntTable, group, pack, unpack
from vani.analyzers.passes.findings_of_survey import exchanged
from vani.analyzers.quick.rows import Rows
from vani.analyzers.workload import Workload
from vani.calls import Kind

_MAX_USES = 1 << 25
"""Maximum number of pairs of rank groups and remaining files that are searched for exchanges (9 bytes each)."""

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class ExchangeCounter:
    """Keeps each group's operations on each file, because the important files are known only at the end."""

    def __init__(self, workload: Workload) -> None:
        self._files = workload.files
        self._app_file = (len(workload.apps), workload.files + 1)
        """Widths of keys, like those of the measures."""
        self._uses: list[list[tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int8]]]] = []
        self._uses_collected = 0
        self._ranks: list[Ints] = []

    def begin(self, ranks_of_group: Ints) -> None:
        """Start the next trace."""
        self._ranks.append(ranks_of_group)
        self._uses.append([])

    def add(self, rows: Rows, kind: NDArray[np.int8], emptied: Bools, looks: Bools) -> None:
        """Add a batch: the kind of its included calls, and which of them recreate the file, or only query it."""
        at = rows.included
        widths = (len(self._ranks[-1]), self._files)
        dense = Factorized.of(pack((rows.group[at], rows.file[at]), widths))
        if self._uses_collected > _MAX_USES:
            return
        did = np.zeros(len(dense.keys), np.int8)
        for bit, mask in enumerate((kind == Kind.READ, kind == Kind.WRITE, looks, emptied)):
            did |= ((dense.count(mask) > 0) << bit).astype(np.int8)
        group_, file = unpack(dense.keys, widths)
        self._uses[-1].append((group_.astype(np.int32), file.astype(np.int32), did))
        self._uses_collected += len(did)

    def users(self, workload: Workload, survey: IntTable) -> IntTable | None:
        """By keys of app and file + 1: number of processes that are readers, writers, and both; None if there are too
        many.

        `workload` already has the final names of renamed files, and `survey` the operations on each file.
        """
        if self._uses_collected > _MAX_USES:
            return None
        if not len(survey):
            return IntTable()
        written, read, opened_new, opened_read = exchanged(workload, survey)
        linked = ((written | opened_new) & (read | opened_read))[workload.final_name]
        by_open = (opened_new | opened_read)[workload.final_name]
        tables = []
        for trace, parts in enumerate(self._uses):
            for group_, file, did in parts:
                links = np.flatnonzero(linked[file])
                if not len(links):
                    continue
                uses = np.where(by_open[file[links]], did[links] | did[links] >> 2, did[links])
                # A process may know a file by several names; all its calls are in one batch.
                widths = (len(self._ranks[trace]), workload.files)
                dense = Factorized.of(pack((group_[links], workload.final_name[file[links]]), widths))
                reads, writes = (dense.count((uses >> bit & 1) != 0) > 0 for bit in (0, 1))
                owner, named = unpack(dense.keys, widths)
                ranks = self._ranks[trace][owner]
                key = pack((workload.app_of_trace[trace], named + 1), self._app_file)
                masks = {"readers": reads, "writers": writes, "both": reads & writes}
                tables.append(group(key, {n: np.where(m, ranks, 0) for n, m in masks.items()}))
        return IntTable.merged(tables)
