"""POSIX, STDIO and MPI-IO records as columns, for sums over many logs."""

from __future__ import annotations

from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from vani.readers.darshan.record_layouts import RecordLayout

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MOST_SECONDS: Final = 1e9
"""Longest plausible time; longer ones are damage."""
_STREAMS: Final = np.array([0xCC7A12A8F35A0099, 0xDCEFD8E1E1999787, 0x6473749C774423AF], np.uint64)
"""Ids of the standard streams: hashes of their names."""


class RecordColumns:
    """A module's records as columns, without those of the standard streams.

    Parameters
    ----------
    rows
        Shape (records, words): the log's own 8-byte words.
    """

    def __init__(self, rows: Ints, layout: RecordLayout) -> None:
        self.id = rows[:, 0].astype(np.int64).view(np.uint64)
        streams = (self.id[:, None] == _STREAMS).any(axis=1)
        if streams.any():
            rows, self.id = rows[~streams], self.id[~streams]
        self.rank: Ints = rows[:, 1].astype(np.int64)
        self._layout = layout
        behind = layout.first + len(layout.counters)
        self._counters: Ints = rows[:, layout.first : behind].astype(np.int64)
        times = np.ascontiguousarray(rows[:, behind:])
        seconds = times.view(times.dtype.str.replace("i", "f")).astype(np.float64)
        sound = (seconds > 0) & (seconds < MOST_SECONDS)
        self._seconds: Floats = np.where(sound, seconds, 0.0)
        self.read_s, self.write_s, self.metadata_s = (
            self._time(f"F_{kind}_TIME") for kind in ("READ", "WRITE", "META")
        )

    def __len__(self) -> int:
        return len(self.id)

    def _time(self, name: str) -> Floats:
        seconds: Floats = self._seconds[:, self._layout.at[name]]
        return seconds

    def count(self, *names: str) -> Ints:
        """Sum of counters by Darshan's names, per record; uncounted ones are 0."""
        total = np.zeros(len(self), np.int64)
        for name in names:
            if name in self._layout.at:
                total += np.maximum(self._counters[:, self._layout.at[name]], 0)
        return total

    @cached_property
    def _totals(self) -> tuple[list[int], list[float]]:
        counted = np.maximum(self._counters, 0)
        return counted.sum(axis=0).tolist(), counted.sum(axis=0, dtype=np.float64).tolist()

    def total(self, *names: str) -> tuple[int, float]:
        """Sum of counters over all records: an exact integer if it fits 64 bits, and a float that shows overflow."""
        places = [self._layout.at[name] for name in names if name in self._layout.at]
        exact, rough = self._totals
        return sum(exact[at] for at in places), sum(rough[at] for at in places)

    def begins(self) -> tuple[Floats, Floats, Floats]:
        """Start of the first open, read and write of each record, in seconds since the start of the run; 0 if none."""
        opened, read, wrote = (self._time(f"F_{kind}_START_TIMESTAMP") for kind in ("OPEN", "READ", "WRITE"))
        return opened, read, wrote

    def lost(self) -> bool:
        """Return whether any data or open counter is negative."""
        names = ("OPENS", "READS", "WRITES", "BYTES_READ", "BYTES_WRITTEN")
        return bool((self._counters[:, [self._layout.at[name] for name in names]] < 0).any())

    @property
    def slowest(self) -> tuple[Ints, Floats]:
        """Rank and time of each record's slowest process."""
        return self._counters[:, self._layout.at["SLOWEST_RANK"]], self._time("F_SLOWEST_RANK_TIME")
