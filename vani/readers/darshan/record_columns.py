"""Records of a log's modules as columns: the position of each counter in each version of POSIX, STDIO and MPI-IO."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["MOST_SECONDS", "MPIIO", "POSIX", "STDIO", "RecordColumns", "RecordLayout"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MOST_SECONDS: Final = 1e9
"""Longer times are damage."""
_STREAMS: Final = np.array([0xCC7A12A8F35A0099, 0xDCEFD8E1E1999787, 0x6473749C774423AF], np.uint64)


@dataclass(frozen=True)
class RecordLayout:
    """Positions of counters in a version of a module's records."""

    counters: int
    times: int
    at: dict[str, int]
    time_at: tuple[int, int, int]
    """Positions of the times of reads, writes and metadata."""
    begin_at: tuple[int, int, int] = (0, 1, 2)
    """Positions of the begin of the first open, read and write."""

    @property
    def size(self) -> int:
        return 16 + 8 * (self.counters + self.times)


def _numbered(*names: str) -> dict[str, int]:
    return {name: number for number, name in enumerate(names) if name}


_POSIX_4 = _numbered(
    "opens", "filenos", "dups", "reads", "writes", "seeks", "stats", "", "fsyncs", "fdsyncs", "renames", "", "", "",
    "bytes_read", "bytes_written", "", "max_byte_written",
)  # fmt: skip
_POSIX_2 = _numbered(
    "opens", "reads", "writes", "seeks", "stats", "", "fsyncs", "fdsyncs", "", "bytes_read", "bytes_written", "",
    "max_byte_written",
)  # fmt: skip
_POSIX_1 = _numbered(
    "opens", "reads", "writes", "seeks", "stats", "", "", "", "", "", "fsyncs", "fdsyncs", "", "bytes_read",
    "bytes_written", "", "max_byte_written",
)  # fmt: skip
_STDIO_2 = _numbered(
    "opens",
    "fdopens",
    "reads",
    "writes",
    "seeks",
    "flushes",
    "bytes_written",
    "bytes_read",
    "",
    "max_byte_written",
)
_STDIO_1 = _numbered(
    "opens", "reads", "writes", "seeks", "flushes", "bytes_written", "bytes_read", "", "max_byte_written"
)
POSIX: Final = {
    1: RecordLayout(68, 15, _POSIX_1, (6, 7, 8)),
    2: RecordLayout(64, 15, _POSIX_2, (6, 7, 8)),
    3: RecordLayout(64, 17, _POSIX_2, (8, 9, 10)),
    4: RecordLayout(69, 17, _POSIX_4, (8, 9, 10)),
}
STDIO: Final = {
    1: RecordLayout(13, 15, _STDIO_1, (2, 1, 0), (3, 6, 5)),
    2: RecordLayout(14, 15, _STDIO_2, (2, 1, 0), (3, 6, 5)),
}
_MPIIO_AT = _numbered(
    "", "", "indep_reads", "indep_writes", "coll_reads", "coll_writes", "split_reads", "split_writes", "nb_reads",
    "nb_writes",
)  # fmt: skip
MPIIO: Final = {
    1: RecordLayout(51, 15, _MPIIO_AT, (6, 7, 8)),
    2: RecordLayout(51, 15, _MPIIO_AT, (6, 7, 8)),
    3: RecordLayout(51, 17, _MPIIO_AT, (8, 9, 10)),
}


class RecordColumns:
    """Records of a module as columns; those of standard streams are left out."""

    def __init__(self, region: bytes, layout: RecordLayout, order: str) -> None:
        rows = np.frombuffer(region, f"{order}i8").reshape(-1, layout.size // 8)
        self.id = rows[:, 0].astype(np.int64).view(np.uint64)
        streams = (self.id[:, None] == _STREAMS).any(axis=1)
        if streams.any():
            rows, self.id = rows[~streams], self.id[~streams]
        self.rank: Ints = rows[:, 1].astype(np.int64)
        self._layout, self._order = layout, order
        self._counters: Ints = rows[:, 2 : 2 + layout.counters].astype(np.int64)
        times = np.ascontiguousarray(rows[:, 2 + layout.counters :])
        seconds = times.view(f"{order}f8").astype(np.float64)
        sound = np.isfinite(seconds) & (seconds > 0) & (seconds < MOST_SECONDS)
        self._seconds: Floats = np.where(sound, seconds, 0.0)
        self.read_s, self.write_s, self.metadata_s = (self._seconds[:, at] for at in layout.time_at)

    def __len__(self) -> int:
        return len(self.id)

    def count(self, *names: str) -> Ints:
        """Sum of counters; those that were not counted are 0."""
        total = np.zeros(len(self), np.int64)
        for name in names:
            if name in self._layout.at:
                total += np.maximum(self._counters[:, self._layout.at[name]], 0)
        return total

    def begins(self) -> tuple[Floats, Floats, Floats]:
        """Start of the first open, read and write, in seconds since the run began; 0 where there was none."""
        opened, read, wrote = (self._seconds[:, at] for at in self._layout.begin_at)
        return opened, read, wrote

    def lost(self) -> bool:
        """Tell whether a counter of data or opens is negative."""
        names = ("opens", "reads", "writes", "bytes_read", "bytes_written")
        return bool((self._counters[:, [self._layout.at[name] for name in names]] < 0).any())

    @property
    def slowest(self) -> tuple[Ints, Floats]:
        """Rank and time of the slowest process of each record."""
        return self._counters[:, -2], self._seconds[:, -3]
