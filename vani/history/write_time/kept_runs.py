"""Runs of a history as writes: those that write, and hardly read.

The time is what their slowest process spends in I/O, from opening to closing. A history does not tell on how many nodes
a run was.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from vani.database.runs.run import Run
from vani.errors import InputError
from vani.history.write_time.samples import Floats, Writes

__all__ = ["writes_of"]

_MOST_READ: Final = 0.1
"""Bytes read over bytes written of a run whose time in I/O is that of its writes."""
_ALIKE: Final = 0.01
"""Amounts that differ by less are the same: a few lines of a log make no other write."""


def writes_of(runs: Sequence[Run], where: str) -> Writes:
    """The writes of runs: processes, bytes, bytes per request, stripes if all tell them, mounts if they are several.

    Raises
    ------
    InputError
        No run writes and hardly reads.
    """
    used = [run for run in runs if _tells(run)]
    if not used:
        raise InputError(
            f"none of {len(runs):,} runs writes, hardly reads, and tells its time",
            where=where,
            todo="name another application, or measure with IOR",
        )
    size = _rounded([float(run.bytes_written or 0) for run in used])
    numbers = {"processes": np.array([float(run.processes) for run in used]), "bytes": size}
    if all(run.writes for run in used):
        numbers["request"] = _rounded([(run.bytes_written or 0) / (run.writes or 1) for run in used])
    if all(run.stripes for run in used):
        numbers["stripe_count"] = np.array([float(run.stripes or 0) for run in used])
    mounts = np.array([run.mount or "unknown" for run in used])
    return Writes(
        numbers,
        {"mount": mounts} if len(set(mounts.tolist())) > 1 else {},
        np.array([float(run.slowest_s or 0.0) for run in used]),
    )


def _tells(run: Run) -> bool:
    return bool(
        run.complete
        and run.slowest_s
        and run.bytes_written
        and (run.bytes_read or 0) <= _MOST_READ * run.bytes_written
    )


def _rounded(values: Sequence[float]) -> Floats:
    """Each amount as the least of those that are the same."""
    known, place = np.unique(np.maximum(values, 1.0), return_inverse=True)
    least = known.copy()
    begin = 0
    while begin < len(known):
        end = int(np.searchsorted(known, known[begin] * (1 + _ALIKE), side="right"))
        least[begin:end] = known[begin]
        begin = end
    return np.asarray(least[place])
