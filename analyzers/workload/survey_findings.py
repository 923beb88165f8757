"""Findings of the first pass over the calls, for the second one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.int_table import NO_VALUE, beside, pack, unpack

Ints = NDArray[np.int64]

BUCKETS = 4096
"""Maximum number of moments at which the ends of files are known: the run is divided into this many equal pieces."""
MOMENTS = beside(BUCKETS + 1)
"""Widths of keys of an entity and a moment."""


@dataclass(frozen=True, eq=False)
class Ends:
    """Reach of each file over time; reads beyond it returned nothing."""

    known: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))
    """Shape (files,): whether the run created the file, or its earlier size is known, and all writes are visible."""
    since: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    """Shape (files,): time from which the end is known: earlier reads may have returned data."""
    always: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))
    """Shape (files,): whether no read came before that time."""
    keys: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    """Keys of file and moment, see `MOMENTS`; ascending."""
    reach: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    """Largest end so far at each key."""
    bucket_ns: int = 1
    level: int = 0
    """A moment is 2 ** level pieces of the run, each of `bucket_ns`."""

    def at(self, file: Ints, time_ns: Ints) -> Ints:
        """End of each file at a time, 0 before anything was written; valid where `known`."""
        ends = np.zeros(len(file), np.int64)
        if len(self.keys):
            moment = np.minimum(time_ns // self.bucket_ns, BUCKETS) >> self.level
            wanted = pack((file, moment), MOMENTS)
            place = np.searchsorted(self.keys, wanted, side="right") - 1
            # The previous key belongs to the same file unless the time is before the file's first moment.
            same = np.flatnonzero((place >= 0) & (self.keys[place] >= wanted - moment))
            ends[same] = self.reach[place[same]]
        return ends

    def for_kernel(self) -> dict[str, Any]:
        """Arguments of kernels that need ends over time."""
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
        """Largest end that each file ever had, shape (files,); `NO_VALUE` if unknown."""
        ends = np.where(self.known, 0, NO_VALUE)
        owner, _ = unpack(self.keys, MOMENTS)
        if len(owner):
            final = np.flatnonzero(np.append(owner[1:] != owner[:-1], True))
            keep = self.known[owner[final]]
            ends[owner[final][keep]] = self.reach[final][keep]
        return ends


@dataclass(frozen=True, eq=False)
class SurveyFindings:
    """Findings of the first pass, for the second one."""

    phase_start: Ints
    """Shape (phases,): start of each phase in ns, app by app, ascending within an app."""
    phase_app: Ints
    first_phase: Ints
    """Shape (apps + 1,): phases of app a are first_phase[a] .. first_phase[a + 1]."""
    ends: Ends = field(default_factory=Ends)
    linked: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))
    """Shape (files,): whether a file is both written and read, and by several processes, which can depend on each other
    through it."""
    linked_by_open: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))
    """Shape (files,): of these, files whose writes or reads left no records except the opens around them."""
    written_by_open: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))
    """Shape (files,): of these, files whose writes left no records."""
    threaded: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    """Processes that run calls concurrently, ascending."""
    listed_as: NDArray[np.int32] | None = None
    """Shape (files + 1,): the code under which `Batch.listed_phase_file` counts a file: its own if it is listed or
    not in the data set, else -1. The last entry is for no file. None if all files are listed."""
    linked_calls: int = 0
    """Number of data operations on `linked` files."""

    @property
    def phases(self) -> int:
        return len(self.phase_start)
