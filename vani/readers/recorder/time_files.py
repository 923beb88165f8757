"""Files with each rank's time stamps, and how they are read."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vani.readers.recorder.frames import Inflater
from vani.readers.recorder.metadata import Metadata
from vani.readers.recorder.source import Extent, Source
from vani.units import counted

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _Segments:
    """Segments of recorder.ts by rank: offset in the file and length, 0 if there is none."""

    path: Path
    offset: Ints
    length: Ints
    problem: str | None


class TimeFiles:
    """Finds and opens the time stamps of one trace's ranks."""

    def __init__(self, source: Source, meta: Metadata) -> None:
        self._source, self._meta = source, meta

    @property
    def problem(self) -> str | None:
        """A fault in the table of a recorder.ts that all ranks share."""
        return self._segments.problem if self._meta.layout.framed else None

    def where(self, rank: int) -> str:
        """Name the place of a rank's time stamps for a message."""
        return self._source.where("recorder.ts" if self._meta.layout.framed else f"{rank}.ts")

    @functools.cached_property
    def _segments(self) -> _Segments:
        """Place of each rank's segment in recorder.ts."""
        where = self._source.where("recorder.ts")
        none = np.zeros(self._meta.ranks, dtype=np.int64)
        extent = self._source.extent("recorder.ts")
        if extent is None:
            return _Segments(Path(), none, none, f"{where}: is missing")
        try:
            with extent.path.open("rb") as file:
                file.seek(extent.offset)
                head = file.read(min(8 * self._meta.ranks, extent.length))
        except OSError as error:
            return _Segments(extent.path, none, none, f"{where}: cannot be read ({error.strerror})")
        if len(head) < 8 * self._meta.ranks:
            return _Segments(
                extent.path,
                none,
                none,
                f"{where}: ends within its table of {counted(self._meta.ranks, 'rank')}",
            )
        sizes = np.frombuffer(head, "<u8")
        # To avoid overflow, sizes are limited to the file's before they are added up, and their sum to twice that.
        cut = np.minimum(sizes, extent.length).astype(np.int64)
        cut[np.cumsum(cut, dtype=np.float64) > 2.0 * extent.length] = 0
        starts = 8 * self._meta.ranks + np.cumsum(cut) - cut
        lengths = np.clip(extent.length - starts, 0, cut)
        used = 8 * self._meta.ranks + float(sizes.sum(dtype=np.float64))
        problem = (
            None
            if used == extent.length
            else f"{where}: has {counted(extent.length, 'byte')}, its table claims {used:.0f}"
        )
        return _Segments(extent.path, extent.offset + starts, lengths, problem)

    def _segment(self, rank: int) -> Extent | None:
        """Place of the rank's time stamps; None if there are none."""
        if not self._meta.layout.framed:
            return self._source.extent(f"{rank}.ts")
        offset, length = int(self._segments.offset[rank]), int(self._segments.length[rank])
        return Extent(self._segments.path, offset, length) if length else None

    def open(self, rank: int) -> Inflater | RawTimes | None:
        """A source of the rank's raw time stamps with `read(size)`; None if there are none."""
        extent = self._segment(rank)
        if extent is None:
            return None
        if self._meta.layout.framed and self._meta.compressed_times:
            if extent.length < 16:
                return None
            return Inflater(extent.path, extent.offset + 16, extent.length - 16)
        return RawTimes(extent)


class RawTimes:
    """Uncompressed time stamps of one rank."""

    def __init__(self, extent: Extent) -> None:
        self._file = extent.path.open("rb")
        self._file.seek(extent.offset)
        self._left = extent.length

    def read(self, size: int) -> bytes:
        data = self._file.read(min(size, self._left))
        self._left -= len(data)
        return data

    def close(self) -> None:
        self._file.close()
