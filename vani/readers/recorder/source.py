"""The parts of a trace, which are files in a directory or sections of one recorder.dat, read in bounded memory."""

import re
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
from isal import isal_zlib
from numpy.typing import NDArray

from vani.columns import Bools, Ints, distinct
from vani.errors import TraceError, UnknownFormatError
from vani.readers.files import entries_of, readable
from vani.units import counted

# isal's stub does not declare its error as an exception.
_DAMAGED: tuple[type[Exception], ...] = (zlib.error, cast("type[Exception]", isal_zlib.error))

CUT_OFF = "the file was cut off or damaged: copy the trace again, or run the program again"
"""Advice for a truncated file."""

MAX_TABLE_BYTES = 1 << 27
"""Largest call table that is read into memory (two million calls); real ones have a few MB, and decoding takes about
ten times as much."""

MAX_STREAMED_BYTES = 1 << 30
"""Largest call table that is inflated in pieces."""

_DEFLATE_RATIO = 1032
"""No deflate stream expands by more than this (zlib technical details, "Maximum Compression Factor")."""


def read_file(path: Path, *, most: int = MAX_TABLE_BYTES) -> bytes:
    """Read a whole file of a trace.

    Raises
    ------
    TraceError
        The file is missing, unreadable, not a regular file, or larger than `most` bytes.
    """
    with readable(path):
        if not path.is_file():
            raise TraceError("is missing" if not path.exists() else "is not a regular file", where=path)
        size = path.stat().st_size
        if size > most:
            raise TraceError(
                f"has {counted(size, 'byte')}, more than the {most:,} that Vani takes into memory", where=path
            )
        return path.read_bytes()


def inflate_frame(frame: memoryview | bytes, *, where: str) -> bytes:
    """Inflate one zlib frame, checking its sizes first.

    Raises
    ------
    TraceError
        The sizes are wrong, the stream is damaged, or it has more than `MAX_TABLE_BYTES` of content.
    """
    _, content = _sizes(frame[:16], len(frame), MAX_TABLE_BYTES, where)
    stream = isal_zlib.decompressobj()
    try:
        data = stream.decompress(frame[16:], content + 1)
    except _DAMAGED as error:
        raise TraceError(f"zlib stream is damaged ({error})", where=where) from error
    if len(data) != content or not stream.eof:
        raise TraceError(
            f"zlib stream contains {counted(len(data), 'byte')} or more, its header says {content:,}",
            where=where,
        )
    return bytes(data)


def _sizes(head: memoryview | bytes, size: int, most: int, where: str) -> tuple[int, int]:
    """Checked sizes of a frame's stream and content; the frame has `size` bytes with its header of 16 bytes."""
    if len(head) < 16:
        raise TraceError(f"zlib frame of {counted(size, 'byte')} has no header", where=where, todo=CUT_OFF)
    packed, content = struct.unpack("<QQ", head)
    if packed != size - 16:
        raise TraceError(
            f"zlib frame claims {counted(packed, 'byte')}, there are {size - 16:,}",
            where=where,
            todo=CUT_OFF if size - 16 < packed else "",
        )
    if content > min(most, packed * _DEFLATE_RATIO + 64):
        raise TraceError(f"zlib frame of {counted(packed, 'byte')} claims to contain {content:,}", where=where)
    return packed, content


class Inflater:
    """Inflates a long zlib stream from a file, in pieces and bounded memory."""

    _READ = 1 << 18

    def __init__(self, path: Path, offset: int, packed: int, content: str = "time stamps: ") -> None:
        """Start at `offset` in the file; the stream has `packed` bytes, and errors name its `content`."""
        self._what = content
        self._file = path.open("rb")
        self._file.seek(offset)
        self._where = str(path)
        self._left = packed
        self._stream = isal_zlib.decompressobj()
        self._pending = b""

    def read(self, size: int) -> bytes:
        """Return the next `size` bytes, or fewer at the end of the stream.

        Raises
        ------
        TraceError
            The stream is damaged or ends early.
        """
        pieces = []
        while size > 0 and not self._stream.eof:
            source = self._pending
            if not source:
                source = self._file.read(min(self._READ, self._left))
                self._left -= len(source)
            try:
                piece = self._stream.decompress(source, size)
            except _DAMAGED as error:
                raise TraceError(f"{self._what}zlib stream is damaged ({error})", where=self._where) from error
            # All input may be read long before the last output is produced.
            if not source and not piece:
                break
            self._pending = self._stream.unconsumed_tail
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    @property
    def finished(self) -> bool:
        """Whether the stream has ended properly."""
        return bool(self._stream.eof)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class FramedTable:
    """The content of a zlib frame in a file, inflated in pieces; for tables that are too large for memory."""

    def __init__(self, path: Path, offset: int, packed: int, *, where: str) -> None:
        """Open the frame at `offset`, which has `packed` bytes including its header.

        Raises
        ------
        TraceError
            The sizes are wrong, or the frame has more than `MAX_STREAMED_BYTES` of content.
        """
        self._where = where
        with path.open("rb") as file:
            file.seek(offset)
            head = file.read(min(16, packed))
        claimed, self.size = _sizes(head, packed, MAX_STREAMED_BYTES, where)
        self._left = self.size
        self._stream = Inflater(path, offset + 16, claimed, content="")

    def read(self, size: int) -> bytes:
        """Return the next `size` bytes, or fewer at the end.

        Raises
        ------
        TraceError
            The stream is damaged, or contains less or more than its header states.
        """
        amount = min(size, self._left)
        data = self._stream.read(amount)
        self._left -= len(data)
        short = len(data) < amount
        # After all content was read, request one more byte: the stream must have ended.
        if short or (not self._left and (self._stream.read(1) or not self._stream.finished)):
            raise TraceError(
                f"zlib stream contains {counted(self.size - self._left, 'byte')} or more, not {self.size:,}",
                where=self._where,
            )
        return data

    def close(self) -> None:
        """Close the file."""
        self._stream.close()


NEWEST = 2
"""First format version of recorder.dat."""
_MAX_FORMATS = 99

_GLOBAL = ("recorder.mt", "recorder.ts", "recorder.cst", "ug.cfg", "ug.mt")
"""Contents of the sections of types 0 to 4, by their names as files."""
_OF_RANK = {5: "cst", 6: "cfg", 7: "callsites"}
_TYPE_OF_SUFFIX = {suffix: kind for kind, suffix in _OF_RANK.items()}

_HEADER_BYTES = 16
_ENTRY = np.dtype([("type", "<u4"), ("rank", "<i4"), ("offset", "<u8"), ("size", "<u8")])
_MAX_SECTIONS = 1 << 23
"""Three sections for each of two million ranks; such a table takes 200 MB."""
_LONG = 10
"""Number of digits that no rank number has."""
_MAX_NAMED = 5
"""Number of damaged sections that are reported individually."""


@dataclass(frozen=True, eq=False)
class Extent:
    """Place of a part's bytes."""

    path: Path
    offset: int
    length: int


class Sections:
    """Places of the sections in a recorder.dat.

    Attributes
    ----------
    problems
        Faults in the section table, or in the places that it names.
    """

    def __init__(self, path: Path, columns: tuple[Ints, Ints, Ints, Ints], problems: list[str]) -> None:
        """`columns` are keys, which ascend and are unique (see `_key`), offsets, lengths and marks of cut sections."""
        self.path, self.problems = path, problems
        self._keys, self._offset, self._length, self._cut = columns

    def extent(self, name: str) -> Extent | None:
        """Place of the section whose content has this file name; None if there is none."""
        at = self._find(name)
        return None if at is None else Extent(self.path, int(self._offset[at]), int(self._length[at]))

    def missing(self, name: str) -> str:
        """Explain why a content is missing."""
        at = self._find(name)
        if at is None:
            return f"has no section for {name}"
        return f"is cut off before its section for {name}" if self._cut[at] else f"has an empty section for {name}"

    def _find(self, name: str) -> int | None:
        stem, _, suffix = name.partition(".")
        if suffix in _TYPE_OF_SUFFIX and stem.isdecimal() and len(stem) < _LONG:
            key = _key(_TYPE_OF_SUFFIX[suffix], int(stem))
        elif name in _GLOBAL:
            key = _key(_GLOBAL.index(name), -1)
        else:
            return None
        at = int(self._keys.searchsorted(key))
        return at if at < len(self._keys) and self._keys[at] == key else None

    def of_ranks(self, suffix: str) -> tuple[Ints, Ints, Ints]:
        """Rank, offset and length of all nonempty sections whose file names end with this suffix."""
        of_suffix = (self._keys >> 32 == _TYPE_OF_SUFFIX[suffix]) & (self._length > 0)
        return (self._keys[of_suffix] & 0xFFFFFFFF) - 1, self._offset[of_suffix], self._length[of_suffix]

    def beyond(self, ranks: int) -> list[str]:
        """Report sections of ranks that do not exist."""
        strays = distinct((self._keys[self._keys & 0xFFFFFFFF > ranks] & 0xFFFFFFFF) - 1)
        named = counted(ranks, "rank")
        return [f"{self.path}: has sections of rank {rank}, of {named} in all: passed over" for rank in strays[:1]]

    def names(self, suffix: str) -> bool:
        """Return whether any rank has such a section, even an empty one."""
        return bool((self._keys >> 32 == _TYPE_OF_SUFFIX[suffix]).any())


def _key(kind: int, rank: int) -> int:
    return kind << 32 | rank + 1


def format_of(file: Path) -> int:
    """Read the format version of a recorder.dat, which may be newer than Vani knows.

    Raises
    ------
    UnknownFormatError
        The version is impossible.
    TraceError
        The file is not a recorder.dat, or cannot be read.
    """
    version, _, _ = _header(file)
    if not 1 <= version <= _MAX_FORMATS:
        raise UnknownFormatError(
            f"is a recorder.dat of format {version}; known are 1 and {NEWEST}",
            where=file,
            todo="convert it with the Recorder that wrote it, or update Vani",
        )
    return version


def _header(file: Path) -> tuple[int, int, int]:
    """Format version, number of sections, size of the file."""
    with readable(file):
        if not file.is_file():
            # Opening a pipe would wait for its writer.
            raise TraceError("is not a regular file", where=file)
        size = file.stat().st_size
        with file.open("rb") as opened:
            head = opened.read(_HEADER_BYTES)
    if len(head) < _HEADER_BYTES or head[:8] != b"RECORDER":
        raise TraceError("does not begin with RECORDER and the number of its sections", where=file)
    version, count = struct.unpack_from("<II", head, 8)
    return version, count, size


def open_sections(file: Path) -> Sections:
    """Read and check the section table of a recorder.dat.

    As much as possible is kept. Sections of unknown types are skipped. Of two sections for the same content, the first
    nonempty one counts. A section that extends past the end of the file is cut there. All of these are problems.

    Raises
    ------
    TraceError
        There is no table, or it was not written completely.
    """
    _, count, size = _header(file)
    if _ENTRY.itemsize * count > size - _HEADER_BYTES or count > _MAX_SECTIONS:
        raise TraceError(f"claims {counted(count, 'section')} in {counted(size, 'byte')}", where=file)
    with readable(file), file.open("rb") as opened:
        opened.seek(_HEADER_BYTES)
        table = np.frombuffer(opened.read(_ENTRY.itemsize * count), _ENTRY)
    if not table["size"].any():
        # The tracer writes the table last, over zeros.
        raise TraceError(
            "has no sections, as a run leaves it that ended while it was written",
            where=file,
            todo="trace the run again",
        )
    problems: list[str] = []
    table = _known(table, file, problems)
    kind, rank = table["type"].astype(np.int64), table["rank"].astype(np.int64)
    keys = kind << 32 | np.where(kind < len(_GLOBAL), 0, rank + 1)
    offset, length, cut = _within(table, keys, size, file, problems)
    order = np.lexsort((np.arange(len(keys)), length == 0, keys))
    first = np.append(True, keys[order][1:] != keys[order][:-1])[: len(keys)]
    again = distinct(keys[order[~first]])
    _report(problems, again, lambda key: f"{file}: has several sections for {_name(key)}, the first counts")
    columns = keys[order[first]], offset[order[first]], length[order[first]], cut[order[first]].astype(np.int64)
    _check_overlaps(*columns[:3], _HEADER_BYTES + table.itemsize * count, file, problems)
    return Sections(file, columns, problems)


def _known(table: NDArray[np.void], file: Path, problems: list[str]) -> NDArray[np.void]:
    kind = table["type"]
    unknown = kind > max(_OF_RANK)
    types, counts = np.unique(kind[unknown], return_counts=True)
    for number, count in list(zip(types.tolist(), counts.tolist(), strict=True))[:_MAX_NAMED]:
        sections = "a section" if count == 1 else counted(count, "section")
        problems.append(f"{file}: {sections} of the unknown type {number} passed over")
    if len(types) > _MAX_NAMED:
        problems.append(f"{file}: sections of {len(types)} unknown types passed over in all")
    without_rank = ~unknown & (kind >= len(_GLOBAL)) & (table["rank"] < 0)
    if without_rank.any():
        problems.append(f"{file}: {counted(int(without_rank.sum()), 'section')} of no rank passed over")
    return table[~unknown & ~without_rank]


def _within(
    table: NDArray[np.void], keys: Ints, size: int, file: Path, problems: list[str]
) -> tuple[Ints, Ints, Bools]:
    """Offset and length of each section's part inside the file, and whether the rest is missing."""
    offset = np.minimum(table["offset"], np.uint64(size)).astype(np.int64)
    length = np.minimum(table["size"], np.uint64(size)).astype(np.int64)
    left = size - offset
    outside = (table["size"] > 0) & ((table["offset"] > np.uint64(size)) | (table["size"] > left.astype(np.uint64)))
    rows = np.flatnonzero(outside)
    _report(
        problems,
        rows,
        lambda row: (
            f"{file}: the section for {_name(int(keys[row]))} ends behind the file: "
            f"{min(int(length[row]), int(left[row]))} of {counted(int(table['size'][row]), 'byte')} are there"
        ),
    )
    return offset, np.minimum(length, left), outside


def _check_overlaps(
    keys: Ints, offset: Ints, length: Ints, table_ends: int, file: Path, problems: list[str]
) -> None:
    used = np.flatnonzero(length > 0)
    used = used[np.argsort(offset[used], kind="stable")]
    if not len(used):
        return
    ends = np.maximum.accumulate(offset[used] + length[used])
    over = used[np.flatnonzero(offset[used] < np.append(table_ends, ends[:-1]))]
    _report(
        problems,
        over,
        lambda row: f"{file}: the section for {_name(int(keys[row]))} overlaps what precedes it",
    )


def _name(key: int) -> str:
    kind, rank = key >> 32, (key & 0xFFFFFFFF) - 1
    return _GLOBAL[kind] if kind < len(_GLOBAL) else f"{rank}.{_OF_RANK[kind]}"


def _report(problems: list[str], numbers: Sequence[int] | Ints, text: Callable[[int], str]) -> None:
    problems += [text(int(number)) for number in numbers[:_MAX_NAMED]]
    if len(numbers) > _MAX_NAMED:
        problems.append(f"{text(int(numbers[_MAX_NAMED]))}; {len(numbers)} of this kind in all")


_COMBINED = "recorder.dat"
_PART_FILE = re.compile(r"VERSION|recorder\.(mt|ts|cst|dat)|ug\.(mt|cfg)|\d+\.(ts|cst|cfg|callsites)")
_RANK_PART = re.compile(r"([0-9]{1,9})\.(cst|cfg|callsites)")


class Source:
    """A trace's parts, by their names in the directory layouts.

    If a part's section in recorder.dat is empty or missing, the part may be a file next to it: without inter-process
    compression, rank 0 does not wait for the other ranks' files when it collects them.
    """

    def __init__(self, path: Path, sections: Sections | None = None) -> None:
        """`sections` come from a recorder.dat; None if all parts are files."""
        self.path = path
        self._sections = sections

    def problems(self, ranks: int) -> list[str]:
        """Faults of the section table, for a trace with this number of ranks."""
        return [] if self._sections is None else [*self._sections.problems, *self._sections.beyond(ranks)]

    def extent(self, name: str) -> Extent | None:
        """Place of a part; None if there is none."""
        extent = self._section(name)
        if extent is not None:
            return extent
        path = self.path / name
        try:
            return Extent(path, 0, path.stat().st_size) if path.is_file() else None
        except OSError:
            return None

    def read(self, name: str) -> bytes:
        """Read a part into memory.

        Raises
        ------
        TraceError
            The part is missing, unreadable or too large.
        """
        extent = self._in_sections(name)
        if extent is None:
            return read_file(self.path / name)
        if extent.length > MAX_TABLE_BYTES:
            raise TraceError(f"section for {name} has {counted(extent.length, 'byte')}", where=extent.path)
        with readable(self.where(name)), extent.path.open("rb") as file:
            file.seek(extent.offset)
            return file.read(extent.length)

    def read_ranks(self, ranks: Iterable[int], suffix: str) -> Iterator[bytes | TraceError]:
        """Read small parts of many ranks, in order; recorder.dat is opened only once."""
        places: dict[int, tuple[int, int]] = {}
        if self._sections is not None:
            ranks_, offset, length = self._sections.of_ranks(suffix)
            small = length <= MAX_TABLE_BYTES
            columns = (column[small].tolist() for column in (ranks_, offset, length))
            places = {rank: (at, size) for rank, at, size in zip(*columns, strict=True)}
        with ExitStack() as stack:
            opened: BinaryIO | None = None
            for rank in ranks:
                try:
                    if rank not in places:
                        yield self.read(f"{rank}.{suffix}")
                        continue
                    if opened is None:
                        opened = stack.enter_context((self.path / _COMBINED).open("rb"))
                    opened.seek(places[rank][0])
                    yield opened.read(places[rank][1])
                except OSError as error:
                    yield TraceError(f"cannot be read ({error.strerror})", where=self.path / _COMBINED)
                except TraceError as error:
                    yield error

    def _in_sections(self, name: str) -> Extent | None:
        """Place of a part's section; None if the part is a file.

        Raises
        ------
        TraceError
            It is neither.
        """
        extent = self._section(name)
        if extent is not None or self._sections is None or (self.path / name).exists():
            return extent
        raise TraceError(f"{self._sections.missing(name)}, which is not next to it", where=self._sections.path)

    def ranks_with(self, *suffixes: str) -> list[int]:
        """Ranks with a part whose name ends with one of these suffixes, ascending."""
        names = (_RANK_PART.fullmatch(entry.name) for entry in entries_of(self.path))
        ranks = {int(match[1]) for match in names if match and match[2] in suffixes}
        if self._sections is not None:
            for suffix in suffixes:
                ranks.update(self._sections.of_ranks(suffix)[0].tolist())
        return sorted(ranks)

    def names(self, suffix: str) -> bool:
        """Return whether ranks' parts with such names were written, even if they are lost now."""
        return (self._sections is not None and self._sections.names(suffix)) or bool(self.ranks_with(suffix))

    def surplus_ranks(self, ranks: int) -> int:
        """Number of ranks with files that cannot belong to the run of `ranks` ranks described by the folder's metadata.

        A run leaves one file per rank, or one for all (`ug.cfg`); the next run in the same folder replaces files of
        the same name.
        """
        owners = self.ranks_with("cfg", "cst")
        if self.extent("ug.cfg") is not None:
            return len(owners)
        return sum(rank >= ranks for rank in owners)

    def where(self, name: str) -> str:
        """Name a part for a message."""
        if self._sections is not None and (self._section(name) is not None or not (self.path / name).exists()):
            return f"{self._sections.path} ({name})"
        return str(self.path / name)

    def _section(self, name: str) -> Extent | None:
        """Place of a part's section, if there is one with content."""
        extent = None if self._sections is None else self._sections.extent(name)
        return extent if extent is not None and extent.length else None


def part_files(path: Path) -> list[Path]:
    """The files of a trace directory that are read, by name.

    Raises
    ------
    OSError
        The directory cannot be listed.
    """
    return sorted(p for p in path.iterdir() if _PART_FILE.fullmatch(p.name) and p.is_file())
