"""Findings of the first pass over the calls, for the second."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.tables.int_table import NO_VALUE
from vani.analyzers.tables.keys import beside, pack, unpack

__all__ = ["BUCKETS", "MOMENTS", "Ends", "SurveyFindings"]

Ints = NDArray[np.int64]

BUCKETS = 4096
"""Moments at which the ends of files are known, at most: the run is cut into so many pieces of equal length."""
MOMENTS = beside(BUCKETS + 1)
"""Widths of keys of something and a moment."""


@dataclass(frozen=True, eq=False)
class Ends:
    """Reach of each file by time; reads beyond it got nothing."""

    known: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))
    """Shape (files,): the run made the file, or its size before the run is known, and all that was written is seen."""
    since: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    """Shape (files,): moment from which the end is known: earlier reads may have returned data."""
    always: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))
    """Shape (files,): no read came before that moment."""
    keys: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    """Keys of file and moment, see `MOMENTS`; ascending."""
    reach: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    """Largest end so far at each key."""
    bucket_ns: int = 1
    level: int = 0
    """A moment is 2 ** level pieces of the run, each of `bucket_ns`."""

    def at(self, file: Ints, time_ns: Ints) -> Ints:
        """End of each file at a moment, 0 before anything was written; valid where `known`."""
        ends = np.zeros(len(file), np.int64)
        if len(self.keys):
            moment = np.minimum(time_ns // self.bucket_ns, BUCKETS) >> self.level
            wanted = pack((file, moment), MOMENTS)
            place = np.searchsorted(self.keys, wanted, side="right") - 1
            # The key before is of the same file unless it precedes the file's first moment.
            same = np.flatnonzero((place >= 0) & (self.keys[place] >= wanted - moment))
            ends[same] = self.reach[place[same]]
        return ends

    def for_kernel(self) -> dict[str, Any]:
        """Arguments of kernels that need ends by time."""
        return {
            "known": self.known,
            "since": self.since,
            "keys": self.keys,
            "reach": self.reach,
            "bucket_ns": self.bucket_ns,
            "level": self.level,
            "buckets": BUCKETS,
            "moments": MOMENTS[1],
        }

    def last(self) -> Ints:
        """Largest end that each file ever had, shape (files,); `NO_VALUE` where unknown."""
        ends = np.where(self.known, 0, NO_VALUE)
        owner, _ = unpack(self.keys, MOMENTS)
        if len(owner):
            final = np.flatnonzero(np.append(owner[1:] != owner[:-1], True))
            keep = self.known[owner[final]]
            ends[owner[final][keep]] = self.reach[final][keep]
        return ends


@dataclass(frozen=True, eq=False)
class SurveyFindings:
    """Findings of the first pass, for the second."""

    phase_start: Ints
    """Shape (phases,): start of each phase in ns, app after app, ascending within an app."""
    phase_app: Ints
    first_phase: Ints
    """Shape (apps + 1,): phases of app a are first_phase[a] .. first_phase[a + 1]."""
    ends: Ends = field(default_factory=Ends)
    linked: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))
    """Shape (files,): files that are both written and read, and by several processes, which can depend on each other
    through them."""
    linked_by_open: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))
    """Shape (files,): of these, files whose writes or reads left no records, only the opens around them did."""
    written_by_open: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))
    """Shape (files,): of these, files whose writes left none."""
    threaded: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    """Processes that run calls at the same time, ascending."""
    listed_as: NDArray[np.int32] | None = None
    """Shape (files + 1,): the code under which `Batch.listed_phase_file` counts a file: its own if it is listed or
    not a file of the data set, else -1. The last is that of no file. None: all files are listed."""
    linked_calls: int = 0
    """Data operations on the files that are `linked`."""

    @property
    def phases(self) -> int:
        return len(self.phase_start)
