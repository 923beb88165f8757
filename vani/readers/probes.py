"""Probed paths: the tracer records a failed open like one that succeeds.

A path is a probe if no call shows that it existed: in the whole trace it was opened without O_CREAT and O_TRUNC, and
tested by name (stat, access), but never closed, read, written, or used otherwise. Programs look for settings files
in this way (`/etc/romio-hints`). A program that opens a file, never closes it and moves all data with calls that
leave no records (fgets, mmap) is mistaken for a failed look-up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from vani.calls import Flag, Layer

_ON_DESCRIPTORS = frozenset(["fstat", "fstat64", "__fxstat", "__fxstat64"])
"""Functions that query open files."""
_ON_ALL_STREAMS = frozenset(["fflush", "fflush_unlocked"])
"""Functions that accept NULL for all streams; it is recorded under the last file name that fopen did not find."""

Bools = NDArray[np.bool_]


class _Signatures(Protocol):
    """Columns of `vani.readers.signatures.Signatures` that reveal probes; some of them may be packed."""

    func: Any
    layer: Any
    file: Any
    flags: Any
    rename_to: Any


class Probes:
    """Collects the uses of each path in a trace."""

    def __init__(self, functions: Sequence[str]) -> None:
        """`functions` are names by code."""
        # -1, the code of a function without a name, selects the last entry.
        self._on_descriptors = np.array([f in _ON_DESCRIPTORS for f in functions] + [False])
        self._on_all_streams = np.array([f in _ON_ALL_STREAMS for f in functions] + [False])
        self._looked_for, self._there = np.zeros(0, np.bool_), np.zeros(0, np.bool_)

    def see(self, signatures: _Signatures, ids: NDArray[np.int64]) -> None:
        """Add signatures of calls that were made."""
        layer, file, flags = signatures.layer[ids], signatures.file[ids], signatures.flags[ids]
        on_file_system = (layer <= Layer.STDIO) & (file >= 0)
        kind = flags & (Flag.OPEN | Flag.CREATE | Flag.TRUNCATE | Flag.DIRECTORY)
        looks = on_file_system & (kind == Flag.OPEN)
        func = signatures.func[ids]
        asks = on_file_system & ((flags & Flag.STAT) != 0) & ~self._on_descriptors[func]
        asks |= on_file_system & self._on_all_streams[func]
        renamed = signatures.rename_to[ids]
        existing = np.concatenate((file[on_file_system & ~looks & ~asks], renamed[renamed >= 0]))
        self._looked_for = _marked(self._looked_for, file[looks])
        self._there = _marked(self._there, existing)

    def only_probed(self, files: int) -> Bools:
        """Paths that were only probed, shape (files,), bool."""
        return _padded(self._looked_for, files)[:files] & ~_padded(self._there, files)[:files]


def _padded(marks: Bools, length: int) -> Bools:
    return marks if len(marks) >= length else np.append(marks, np.zeros(length - len(marks), np.bool_))


def _marked(marks: Bools, codes: NDArray[np.int32]) -> Bools:
    needed = int(codes.max(initial=-1)) + 1
    if needed > len(marks):
        marks = _padded(marks, max(needed, 2 * len(marks)))
    marks[codes] = True
    return marks
