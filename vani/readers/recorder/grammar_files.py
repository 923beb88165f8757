"""Files with the grammars that ranks share: concatenated frames in ug.cfg, or one file each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from vani.errors import TraceError
from vani.readers.recorder.frames import MOST_TABLE_BYTES, inflate_frame, split_frames
from vani.readers.recorder.source import Extent, Source
from vani.readers.recorder.unique_grammars import GrammarBytes

Ints = NDArray[np.int64]


def grammar_files(source: Source, *, framed: bool, count: int, problems: list[str]) -> GrammarBytes:
    """Find the grammars of a trace.

    Parameters
    ----------
    count
        Expected number of grammars.
    problems
        Extended if there are fewer.

    Raises
    ------
    TraceError
        The file with the grammars cannot be read.
    """
    if not framed:
        return _Files(source, count)
    content = memoryview(source.read("ug.cfg"))
    where = source.where("ug.cfg")
    begins, lengths, sizes = _whole_frames(content, count, where, problems)
    if len(begins) != count:
        problems.append(f"{where}: contains {len(begins)} complete grammars of {count}")
    extent = source.extent("ug.cfg")
    if extent is None:
        raise TraceError("is missing", where=where)
    return _Frames(extent, where, begins, lengths, sizes)


class _Frames:
    """Frames at known places in one file."""

    def __init__(self, extent: Extent, where: str, begins: Ints, lengths: Ints, sizes: Ints) -> None:
        self._extent, self._where = extent, where
        self._begins, self._lengths, self._sizes = begins, lengths, sizes

    def sizes(self) -> Ints:
        return self._sizes

    def read(self, indices: Iterable[int]) -> Iterator[bytes | TraceError]:
        try:
            with self._extent.path.open("rb") as file:
                for index in indices:
                    file.seek(self._extent.offset + int(self._begins[index]))
                    frame = file.read(int(self._lengths[index]))
                    try:
                        yield inflate_frame(frame, where=self.where(index))
                    except TraceError as error:
                        yield error
        except OSError as error:
            raise TraceError(f"cannot be read ({error.strerror})", where=self._where) from error

    def where(self, index: int) -> str:
        return f"{self._where} (grammar {index})"


class _Files:
    """One file per grammar."""

    def __init__(self, source: Source, count: int) -> None:
        self._source, self._count = source, count

    def sizes(self) -> Ints:
        extents = (self._source.extent(f"{index}.cfg") for index in range(self._count))
        return np.array([0 if e is None else e.length for e in extents], dtype=np.int64)

    def read(self, indices: Iterable[int]) -> Iterator[bytes | TraceError]:
        for index in indices:
            try:
                yield self._source.read(f"{index}.cfg")
            except TraceError as error:
                yield error

    def where(self, index: int) -> str:
        return self._source.where(f"{index}.cfg")


def _whole_frames(content: memoryview, most: int, where: str, problems: list[str]) -> tuple[Ints, Ints, Ints]:
    """Complete frames up to the first incomplete one, at most `most` + 1: start, length and content size of each."""
    begins: list[int] = []
    lengths: list[int] = []
    sizes: list[int] = []
    at = 0
    while at < len(content) and len(begins) <= most:
        size = 16 + int.from_bytes(content[at : at + 8], "little")
        if at + size > len(content) or at + 16 > len(content):
            try:
                split_frames(content[at : at + size], where=where)
            except TraceError as error:
                problems.append(str(error))
            break
        begins.append(at)
        lengths.append(size)
        sizes.append(min(int.from_bytes(content[at + 8 : at + 16], "little"), MOST_TABLE_BYTES))
        at += size
    return tuple(np.array(column, dtype=np.int64) for column in (begins, lengths, sizes))  # type: ignore[return-value]
