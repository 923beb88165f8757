"""The counts of all runs of a workload in one table, with the workload's numbers for files, apps and processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.workload.workload import Context, Workload
from vani.calls import FileClass
from vani.counts import ALL_RANKS, COLUMNS, RunCounts

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Rows:
    """Shape (rows,) each; see `vani.counts.COLUMNS`, plus `sync_ns` for flushes whose time is known."""

    workload: Workload
    columns: Mapping[str, Ints]
    trace: Ints
    app: Ints
    file: Ints
    """File of the workload."""
    process: Ints
    """Process of the workload; -1 for all processes of the row's trace."""

    @staticmethod
    def of(workload: Workload, contexts: Sequence[Context], runs: Sequence[RunCounts]) -> Rows:
        """Combine the runs."""
        nothing = np.empty(0, np.int64)
        columns = {name: np.concatenate([nothing, *(run.table[name] for run in runs)]) for name in COLUMNS}
        lengths = [len(run.table["rank"]) for run in runs]
        trace = np.repeat(np.arange(len(runs)), lengths)
        bases = np.array(workload.process_base, np.int64)[trace]
        files = [c.file_codes[run.table["file"]] for c, run in zip(contexts, runs, strict=True)]
        # Zero until `flushes_apart` separates it from write time.
        columns["sync_ns"] = np.zeros(len(columns["syncs"]), np.int64)
        # Convert times since the start of the run to the workload's clock.
        shift = np.array(workload.shift_ns, np.int64)[trace]
        for name in ("first", "last", "read_first", "read_last", "write_first", "write_last"):
            moment = columns[f"{name}_ns"]
            columns[f"{name}_ns"] = np.where(moment > 0, moment + shift, 0)
        return Rows(
            workload,
            columns,
            trace,
            np.array(workload.app_of_trace, np.int64)[trace],
            np.concatenate([nothing, *files]),
            np.where(columns["rank"] == ALL_RANKS, -1, bases + columns["rank"]),
        )

    def __len__(self) -> int:
        return len(self.trace)

    def __getitem__(self, name: str) -> Ints:
        return self.columns[name]

    @cached_property
    def included(self) -> NDArray[np.bool_]:
        """Whether each row is on a file of the data set."""
        included: NDArray[np.bool_] = self.workload.file_class[self.file] == FileClass.DATASET
        return included

    @cached_property
    def phase(self) -> Ints:
        """One phase per app; the number of apps for paths that are counted separately."""
        phase: Ints = np.where(self.included, self.app, len(self.workload.apps))
        return phase

    @cached_property
    def ranks(self) -> Ints:
        """Number of processes in the row's trace."""
        ends = np.append(np.array(self.workload.process_base), self.workload.processes)
        ranks: Ints = np.diff(ends)[self.trace]
        return ranks

    @cached_property
    def movers(self) -> Ints:
        """Maximum number of processes that can have moved bytes: one if a single process is known to have moved all."""
        moved = self["bytes_read"] + self["bytes_written"]
        alone = (self["slowest_bytes"] == moved) | (self["fastest_bytes"] == moved)
        movers: Ints = np.where((self.process >= 0) | (alone & (moved > 0)), 1, self.ranks)
        return movers

    @property
    def time_ns(self) -> Ints:
        """Time in calls of any kind."""
        return self["read_ns"] + self["write_ns"] + self["metadata_ns"] + self["sync_ns"]
