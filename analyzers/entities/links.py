"""Links between processes: files that several of them wrote and read, and the bytes that flowed between them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.entities.flows import flows
from vani.analyzers.measures.exchanges import NEVER, ExchangeCounts
from vani.analyzers.measures.extents import ProcessExtents

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Links:
    """Exchanges as arrays: one row per process and file, for files with several processes."""

    def __init__(
        self, exchanges: ExchangeCounts, extents: ProcessExtents, app_of_process: Ints, skew_ns: int
    ) -> None:
        # Other files link nothing.
        users = np.bincount(exchanges.file, minlength=1)
        rows = np.flatnonzero(users[exchanges.file] > 1)
        rows = rows[np.argsort(exchanges.file[rows], kind="stable")]
        self.process, self.file = exchanges.process[rows], exchanges.file[rows]
        self.columns = {name: column[rows] for name, column in exchanges.columns.items()}
        # A read that begins this shortly before a write may have seen it.
        self.columns["last_read"] = np.where(self["last_read"] > -NEVER, self["last_read"] + skew_ns, -NEVER)
        self.begins = np.append(True, self.file[1:] != self.file[:-1])[: len(self.file)]
        """Shape (rows,): start of each file's rows."""
        self.starts = np.flatnonzero(self.begins)
        self.app_of_process = app_of_process
        self.app = self.app_of_process[self.process]
        self.extents = extents
        flows_ = flows(extents, exchanges, skew_ns)
        self.blocks, self.unresolved, self.in_doubt = flows_.blocks, flows_.unresolved, flows_.in_doubt
        wrote, read = self["first_write"] != NEVER, self["last_read"] > -NEVER
        # If all calls of a file are considered, they may show what a single row's calls do not.
        hidden = np.isin(self.file, self.unresolved) | self.extents.given_up
        self.unplaced_writer = wrote & (hidden | self._any("unplaced_writes", "made"))
        self.unplaced_reader = read & (hidden | self._any("unplaced_reads") | self._only_looked)
        self.unsized_writer = self._any("unsized_writes", "made")
        self.unsized_reader = self._any("unsized_reads") | self._only_looked

    def __getitem__(self, column: str) -> Ints:
        return self.columns[column]

    def _any(self, *columns: str) -> Bools:
        is_any = np.zeros(len(self.file), np.bool_)
        for column in columns if len(self.file) else ():
            is_any |= self[column] > 0
        return is_any

    @property
    def _only_looked(self) -> Bools:
        return self._any("looked") & ~self._any("reads")
