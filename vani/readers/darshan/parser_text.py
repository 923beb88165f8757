"""Log text that darshan-parser printed, optionally compressed with gzip, for when the log itself is not available."""

from __future__ import annotations

import gzip
import hashlib
import re
import zlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np

from vani.columns import Ints, Numbers, UInt64s
from vani.errors import TraceError, UnknownFormatError, one_line
from vani.readers.darshan.log import check_job, check_ranks
from vani.readers.darshan.reader import DarshanReader
from vani.readers.darshan.record_layouts import largest
from vani.readers.darshan.records import Module, Records, check_cells
from vani.readers.signatures import NO_VALUE
from vani.site import BUDGET

_TOTAL = re.compile(r"total_[A-Za-z0-9_-]+: ")
"""A sum printed by `darshan-parser --total` (or `--all`)."""
_SIGNS: Sequence[tuple[str, tuple[str, ...], str]] = (
    (
        "darshan-dxt-parser",
        ("# DXT, file_id", "# DXT_POSIX module data", "# DXT_MPIIO module data", "# no DXT module data"),
        "at most single reads and writes, and no counters",
    ),
    ("darshan-parser --total", ("total_",), "sums over all files and no counters of single files"),
    (
        "darshan-parser --perf",
        ("# performance", "# total_bytes:", "# I/O timing for unique files", "# agg_perf_by_"),
        "rates of the whole run and no counters of files",
    ),
    (
        "darshan-parser --file-list",
        ("# Per-file summary of I/O activity",),
        "times of files and no counters",
    ),
    ("darshan-parser --file", ("# files", "# Total file counts", "# <file_type>"), "numbers of files and no counters"),
)
"""The command, how its lines begin, and its contents in place of counters. The first match counts, because
`--perf` and `--file` print less than `--total`."""
_EMPTY = "# no module data available"
"""Line that `darshan-parser` prints for a log without records."""
_TODO: Final = "name the log itself, or print its counters with `darshan-parser LOG > FILE` and name FILE"


def refuse_other_texts(path: Path, sign: int, exe: str) -> None:
    """Raise an error that names the command behind a text without counters; return if there is none with that number.

    Raises
    ------
    UnknownFormatError
        Another command or option printed the text.
    """
    for command, _, instead in _SIGNS[sign : sign + 1]:
        raise UnknownFormatError(f"is text of `{command}`{_run(exe)}, which has {instead}", where=path, todo=_TODO)


def _sign(line: str) -> int:
    """Position in `_SIGNS` of the command that prints such lines; its length if none does."""
    return next((at for at, sign in enumerate(_SIGNS) if line.startswith(sign[1])), len(_SIGNS))


def _run(exe: str) -> str:
    return f" of the run of {one_line(exe.split(maxsplit=1)[0])}" if exe.split() else ""


_LOOK_AHEAD: Final = 1000
"""Lines after a damaged one that may still show which command printed a text."""
_COMPONENT = re.compile(r"LUSTRE_COMP(\d{1,4})_(STRIPE_COUNT|STRIPE_SIZE|EXT_START|EXT_END)")
_OLD_LAYOUT = {"LUSTRE_STRIPE_WIDTH": "STRIPE_COUNT", "LUSTRE_STRIPE_SIZE": "STRIPE_SIZE"}
_TARGET = re.compile(r"LUSTRE_(?:COMP\d{1,4}_)?OST_ID_\d{1,5}")
_BIN = re.compile(r"HEATMAP_(READ|WRITE)_BIN_(\d{1,7})")
_PARTIAL = re.compile(r"The (\S+) module contains incomplete data")
_WARNING = "# Warning: "
_OTHERS = ("LUSTRE", "HEATMAP")
_FIELDS = 6
_RANK = re.compile(r"-?\d{1,9}")
_PER_BYTE: Final = 3
_PER_RECORD: Final = 1600
"""Memory of a profile in bytes, for each byte of text and for each record."""
_LONGEST: Final = 1 << 16
"""Longest line in bytes: paths have at most 4,096."""
_DAMAGED: Final = (OSError, EOFError, zlib.error)


class ParserTextReader(DarshanReader):
    """A reader of a log's printed text."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, check=False)
        self.layout = "darshan-parser"
        digest = hashlib.sha256()
        records = parsed(path, _lines(path, digest))
        self._content = digest.hexdigest()
        check_job(path, records.ranks, records.start_s, records.end_s)
        for name, module in records.modules.items():
            check_ranks(path, name, module.rank, records.ranks)
        self.format = records.version
        self.__dict__["_records"] = records


def printed_records(path: Path) -> Records:
    """The records in a log's printed text; raises TraceError like `parsed`."""
    return parsed(path, _lines(path, hashlib.sha256()))


def _lines(path: Path, digest: hashlib._Hash) -> Iterator[str]:
    """The lines of a text, compressed or not, one at a time; they update `digest`."""
    try:
        with path.open("rb") as file:
            compressed = file.read(2) == b"\x1f\x8b"
        with gzip.open(path) if compressed else path.open("rb") as file:
            while line := file.readline(_LONGEST):
                digest.update(line)
                yield line.decode(errors="surrogateescape").removesuffix("\n")
    except _DAMAGED as error:
        raise _damaged(path, one_line(str(error))) from error


def _damaged(path: Path, fault: str) -> TraceError:
    return TraceError(
        f"is damaged text of darshan-parser: {fault}",
        where=path,
        todo="print the log again with darshan-parser, or leave it out",
    )


class _Printed:
    """Counters of a module as they are printed: a record, a counter and a value in each line."""

    def __init__(self) -> None:
        self.row_of: dict[tuple[int, int], int] = {}
        """Number of each record, by rank and id."""
        self._names: dict[str, int] = {}
        self._lines = {kind: (array("l"), array("l"), array(kind)) for kind in "qd"}

    def add(self, path: Path, rank: int, record: int, counter: str, text: str) -> None:
        """Add a line; raises TraceError if its value is not a number."""
        row = self.row_of.setdefault((rank, record), len(self.row_of))
        name = self._names.setdefault(counter, len(self._names))
        kind = "d" if "_F_" in counter else "q"
        try:
            number: Any = float(text) if kind == "d" else int(text)
        except ValueError as error:
            raise _damaged(path, f"{one_line(counter)}: {one_line(str(error))}") from error
        if kind == "q":
            # Ids of records and impossible numbers may need more than 63 bits.
            number = NO_VALUE if not -(1 << 63) <= number <= largest(counter) else number
        for column, value in zip(self._lines[kind], (row, name, number), strict=True):
            column.append(value)

    @cached_property
    def columns(self) -> dict[str, tuple[Ints, Numbers]]:
        """Records, ascending, and values of each counter; the last of several lines counts."""
        texts, columns = list(self._names), {}
        for parts in self._lines.values():
            row, name, value = (np.frombuffer(part, part.typecode) for part in parts)
            order = np.lexsort((row, name))
            row, name, value = row[order], name[order], value[order]
            last = np.ones(len(row), np.bool_)
            last[:-1] = (row[1:] != row[:-1]) | (name[1:] != name[:-1])
            row, name, value = row[last], name[last], value[last]
            bounds = np.searchsorted(name, np.arange(len(texts) + 1))
            for code, text in enumerate(texts):
                if bounds[code] < bounds[code + 1]:
                    own = slice(bounds[code], bounds[code + 1])
                    columns[text] = row[own], value[own]
        return {text: columns[text] for text in texts}

    def column(self, name: str, missing: int, kind: type[Any] = np.int64) -> Numbers:
        """A counter of all records; `missing` for those without it."""
        column = np.full(len(self.row_of), missing, kind)
        row, value = self.columns.get(name, (np.empty(0, np.int64), 0))
        column[row] = value
        return column

    @property
    def rank(self) -> Ints:
        return np.array([rank for rank, _ in self.row_of], np.int64)

    @property
    def id(self) -> UInt64s:
        return np.array([record for _, record in self.row_of], np.uint64)


def parsed(path: Path, lines: Iterable[str]) -> Records:
    """Parse the records in printed text.

    Raises
    ------
    TraceError
        A line is not a counter, a record lacks some of its module's counters, or the log's own figures are missing.
    """
    facts: dict[str, str] = {}
    mounts: list[tuple[str, str]] = []
    partial: list[str] = []
    metadata: dict[str, str] = {}
    modules: dict[str, _Printed] = {}
    names: dict[int, str] = {}
    split, other, is_empty = False, len(_SIGNS), False
    numbered = enumerate(BUDGET.charged(lines, _PER_BYTE, path), start=1)
    for number, line in numbered:
        if not modules:
            other = min(other, _sign(line))
            is_empty = is_empty or line.startswith(_EMPTY)
        if line.startswith("#"):
            _note(line, facts, mounts, partial, metadata)
        elif line.strip() and not (_TOTAL.match(line) or split):
            fields = line.split("\t", _FIELDS - 1)
            if len(fields) < _FIELDS or not (_RANK.fullmatch(fields[1]) and fields[2].isdecimal()):
                if not modules:
                    # A torn warning may come before the first line that shows which command printed this.
                    later = (_sign(text) for _, text in islice(numbered, _LOOK_AHEAD))
                    refuse_other_texts(path, min(other, *later, len(_SIGNS)), facts.get("exe", ""))
                raise _damaged(path, f"line {number:,} is not a counter of a record: {one_line(line[:60])!r}")
            module, rank, id_, counter, value, rest = fields
            record = int(id_) & (1 << 64) - 1
            modules.setdefault(module, _Printed()).add(path, int(rank), record, counter, value)
            if record not in names:
                BUDGET.expect(_PER_RECORD, path)
                # The counter's name is followed by the mount's folder and type.
                names[record] = rest.rsplit("\t", 2)[0]
        # If stderr went to the same file, a warning splits a comment in two.
        split = _WARNING in line[1:]
    try:
        start, length = float(facts["start_time"]), float(facts["run time"])
        ranks = int(facts["nprocs"])
    except (KeyError, ValueError) as error:
        raise _damaged(path, f"its head does not contain {one_line(str(error))}") from error
    if not modules:
        refuse_other_texts(path, other, facts.get("exe", ""))
        if not is_empty:
            what = f"is the head of a printed Darshan log{_run(facts.get('exe', ''))}, without a counter"
            raise UnknownFormatError(what, where=path, todo=_TODO)
    lustre, heat = modules.get("LUSTRE"), modules.get("HEATMAP")
    return Records(
        version=one_line(facts.get("darshan log version", "")),
        exe=facts.get("exe", ""),
        ranks=ranks,
        start_s=start,
        end_s=start + length,
        mounts=mounts,
        partial=partial,
        ids=np.array(list(names), np.uint64),
        names=list(names.values()),
        modules={name: _module(path, name, printed) for name, printed in modules.items() if name not in _OTHERS},
        layouts=None if lustre is None else _layouts(lustre),
        heat=None if heat is None else _heat(path, heat),
        user=_whole(facts.get("uid")),
        job_id=_whole(facts.get("jobid")),
        metadata=metadata,
        targets=_targets(_Printed() if lustre is None else lustre),
    )


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and text.lstrip("-").isdecimal() else None


def _note(
    line: str,
    facts: dict[str, str],
    mounts: list[tuple[str, str]],
    partial: list[str],
    metadata: dict[str, str],
) -> None:
    """Read a comment: a fact about the log, a mount, or a module with dropped records."""
    name, colon, value = line[1:].partition(":")
    if name.strip() == "mount entry":
        folder, _, kind = value.strip().rpartition("\t")
        mounts.append((folder, kind))
    elif name.strip() == "metadata":
        key, _, text = value.partition("=")
        metadata[key.strip()] = text.strip()
    elif dropped := _PARTIAL.search(line):
        partial.append(dropped[1])
    elif colon:
        facts.setdefault(name.strip(), value.strip())


def _module(path: Path, name: str, printed: _Printed) -> Module:
    columns = printed.columns
    if any(len(row) < len(printed.row_of) for row, _ in columns.values()):
        raise _damaged(path, f"a record of {name} lacks some of its counters: it was cut off")
    times = {text: value for text, (_, value) in columns.items() if "_F_" in text}
    counters = {text: value for text, (_, value) in columns.items() if "_F_" not in text}
    return Module(printed.id, printed.rank, counters, times, "MPIIO" if name == "MPI-IO" else name)


def _layouts(printed: _Printed) -> dict[str, Numbers] | None:
    parts: dict[int, dict[str, str]] = {}
    for name in printed.columns:
        if match := _COMPONENT.fullmatch(name):
            parts.setdefault(int(match[1]), {})[match[2]] = name
        elif name in _OLD_LAYOUT:
            parts.setdefault(0, {})[_OLD_LAYOUT[name]] = name
    unknown = {"STRIPE_COUNT": -1, "STRIPE_SIZE": -1, "EXT_START": 0, "EXT_END": -1}
    # Records have different numbers of components.
    rows = [np.unique(np.concatenate([printed.columns[name][0] for name in own.values()])) for own in parts.values()]
    if not rows:
        return None
    order = np.argsort(np.concatenate(rows), kind="stable")

    def column(name: str, missing: int) -> Numbers:
        columns = (printed.column(own.get(name, ""), missing) for own in parts.values())
        return np.concatenate([column[row] for column, row in zip(columns, rows, strict=True)])[order]

    table = {f"LUSTRE_COMP_{name}": column(name, missing) for name, missing in unknown.items()}
    of_row = np.concatenate(rows)[order]
    return table | {"id": printed.id[of_row], "OSTS": printed.column("LUSTRE_OSTS", -1)[of_row]}


def _targets(printed: _Printed) -> dict[str, Numbers]:
    """The targets of each file; components that were never written have negative ones, which are dropped."""
    of_names = [np.stack(column, axis=1) for name, column in printed.columns.items() if _TARGET.fullmatch(name)]
    pairs = np.unique(np.concatenate([np.empty((0, 2), np.int64), *of_names]), axis=0)
    pairs = pairs[pairs[:, 1] >= 0]
    return {"id": printed.id[pairs[:, 0]], "target": pairs[:, 1]}


def _heat(path: Path, printed: _Printed) -> dict[str, Numbers]:
    bins = {match.groups(): name for name in printed.columns if (match := _BIN.fullmatch(name))}
    longest = 1 + max((int(place) for _, place in bins), default=-1)
    check_cells(path, len(printed.row_of), longest)
    table = {side: np.zeros((len(printed.row_of), longest), np.int64) for side in ("READ", "WRITE")}
    for (side, place), name in bins.items():
        table[side][:, int(place)] = printed.column(name, 0)
    return {
        "id": printed.id,
        "rank": printed.rank,
        "width": printed.column("HEATMAP_F_BIN_WIDTH_SECONDS", 0, np.float64),
        "read": table["READ"],
        "write": table["WRITE"],
    }
