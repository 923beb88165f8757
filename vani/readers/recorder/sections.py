"""recorder.dat: a trace's parts as sections of one file (format document, section 8)."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vani.distinct import distinct
from vani.errors import TraceError, UnknownFormatError
from vani.units import counted

NEWEST = 2
"""First format version of recorder.dat."""
_MOST_FORMATS = 99

_GLOBAL = ("recorder.mt", "recorder.ts", "recorder.cst", "ug.cfg", "ug.mt")
"""Contents of the sections of types 0 to 4, by their names as files."""
_OF_RANK = {5: "cst", 6: "cfg", 7: "callsites"}
_TYPE_OF_SUFFIX = {suffix: kind for kind, suffix in _OF_RANK.items()}

_HEAD = 16
_ENTRY = np.dtype([("type", "<u4"), ("rank", "<i4"), ("offset", "<u8"), ("size", "<u8")])
_MOST_SECTIONS = 1 << 23
"""Three sections for each of two million ranks; such a table takes 200 MB."""
_LONG = 10
"""Number of digits that no rank number has."""
_MOST_NAMED = 5
"""Number of damaged sections that are reported individually."""

Ints = NDArray[np.int64]


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

    def __init__(
        self,
        path: Path,
        keys: Ints,
        offset: Ints,
        length: Ints,
        cut: NDArray[np.bool_],
        problems: list[str],
    ) -> None:
        """`keys` ascend and are unique, see `_key`; `cut` marks sections that claim more than the file has."""
        self.path = path
        self.problems = problems
        self._keys, self._offset, self._length, self._cut = keys, offset, length, cut

    def extent(self, name: str) -> Extent | None:
        """Place of the section whose content has this file name; None if there is none."""
        at = self._find(name)
        return None if at is None else Extent(self.path, int(self._offset[at]), int(self._length[at]))

    def missing(self, name: str) -> str:
        """Explain why a content is missing."""
        at = self._find(name)
        if at is None:
            return f"has no section for {name}"
        return (
            f"is cut off before its section for {name}"
            if self._cut[at]
            else f"has an empty section for {name}"
        )

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

    def beyond(self, ranks: int) -> str | None:
        """Report sections of ranks that do not exist."""
        strays = distinct((self._keys[self._keys & 0xFFFFFFFF > ranks] & 0xFFFFFFFF) - 1)
        if not len(strays):
            return None
        return (
            f"{self.path}: has sections of rank {strays[0]}, of {counted(ranks, 'rank')} in all: passed over"
        )

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
    if not 1 <= version <= _MOST_FORMATS:
        raise UnknownFormatError(
            f"is a recorder.dat of format {version}; known are 1 and {NEWEST}",
            where=file,
            todo="convert it with the Recorder that wrote it, or update Vani",
        )
    return version


def _header(file: Path) -> tuple[int, int, int]:
    """Format version, number of sections, size of the file."""
    try:
        if not file.is_file():
            # Opening a pipe would wait for its writer.
            raise TraceError("is not a regular file", where=file)
        size = file.stat().st_size
        with file.open("rb") as opened:
            head = opened.read(_HEAD)
    except OSError as error:
        raise TraceError(f"cannot be read ({error.strerror})", where=file) from error
    if len(head) < _HEAD or head[:8] != b"RECORDER":
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
    if _ENTRY.itemsize * count > size - _HEAD or count > _MOST_SECTIONS:
        raise TraceError(f"claims {counted(count, 'section')} in {counted(size, 'byte')}", where=file)
    try:
        with file.open("rb") as opened:
            opened.seek(_HEAD)
            table = np.frombuffer(opened.read(_ENTRY.itemsize * count), _ENTRY)
    except OSError as error:
        raise TraceError(f"cannot be read ({error.strerror})", where=file) from error
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
    keys, offset, length, cut = keys[order], offset[order], length[order], cut[order]
    first = np.append(True, keys[1:] != keys[:-1])[: len(keys)]
    again = distinct(keys[~first])
    _report(problems, again, lambda key: f"{file}: has several sections for {_name(key)}, the first counts")
    keys, offset, length, cut = keys[first], offset[first], length[first], cut[first]
    _check_overlaps(keys, offset, length, _HEAD + table.itemsize * count, file, problems)
    return Sections(file, keys, offset, length, cut, problems)


def _known(table: NDArray[np.void], file: Path, problems: list[str]) -> NDArray[np.void]:
    kind = table["type"]
    unknown = kind > max(_OF_RANK)
    types, counts = np.unique(kind[unknown], return_counts=True)
    for number, count in list(zip(types.tolist(), counts.tolist(), strict=True))[:_MOST_NAMED]:
        sections = "a section" if count == 1 else counted(count, "section")
        problems.append(f"{file}: {sections} of the unknown type {number} passed over")
    if len(types) > _MOST_NAMED:
        problems.append(f"{file}: sections of {len(types)} unknown types passed over in all")
    without_rank = ~unknown & (kind >= len(_GLOBAL)) & (table["rank"] < 0)
    if without_rank.any():
        problems.append(f"{file}: {counted(int(without_rank.sum()), 'section')} of no rank passed over")
    known: NDArray[np.void] = table[~unknown & ~without_rank]
    return known


def _within(
    table: NDArray[np.void], keys: Ints, size: int, file: Path, problems: list[str]
) -> tuple[Ints, Ints, NDArray[np.bool_]]:
    """Offset and length of each section's part inside the file, and whether the rest is missing."""
    offset = np.minimum(table["offset"], np.uint64(size)).astype(np.int64)
    length = np.minimum(table["size"], np.uint64(size)).astype(np.int64)
    left = size - offset
    outside = (table["size"] > 0) & (
        (table["offset"] > np.uint64(size)) | (table["size"] > left.astype(np.uint64))
    )
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
    problems += [text(int(number)) for number in numbers[:_MOST_NAMED]]
    if len(numbers) > _MOST_NAMED:
        problems.append(f"{text(int(numbers[_MOST_NAMED]))}; {len(numbers)} of this kind in all")
